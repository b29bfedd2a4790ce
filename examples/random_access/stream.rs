//! The stream of random numbers that the rules prescribe: a shift register with feedback, and how to jump to any place of it.
//!
//! a₀ = 1 and aₙ₊₁ = 2·aₙ, exclusive-or 7 if the highest bit of aₙ was set. Read as polynomials over GF(2) that is a multiplication
//! by x modulo p(x) = x⁶⁴ + x² + x + 1, so aₙ = xⁿ mod p: a power, by squaring.

/// x² + x + 1, what x⁶⁴ is modulo p.
const POLYNOMIAL: u64 = 7;

/// Numbers after which the stream repeats.
pub(crate) const PERIOD: u64 = 1_317_624_576_693_539_401;

/// aₙ₊₁ from aₙ.
#[inline(always)]
pub(crate) fn next(a: u64) -> u64 {
    // The highest bit spread over the word, so that there is no branch that could go wrong.
    a << 1 ^ ((a as i64 >> 63) as u64 & POLYNOMIAL)
}

/// aₙ, in 64 steps for each bit of n at most.
pub(crate) fn at(n: u64) -> u64 {
    let (mut power, mut square, mut left) = (1, 2, n % PERIOD);
    while left > 0 {
        if left & 1 == 1 {
            power = product(power, square);
        }
        square = product(square, square);
        left >>= 1;
    }
    power
}

/// The product of two polynomials modulo p, by Horner's rule.
fn product(a: u64, b: u64) -> u64 {
    (0..u64::BITS).rev().fold(0, |sum, bit| next(sum) ^ if b >> bit & 1 == 1 { a } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// n and aₙ as HPC Challenge tells them.
    fn reference() -> impl Iterator<Item = (u64, u64)> {
        include_str!("data/lfsr.csv").lines().map(|line| {
            let mut fields = line.split(',');
            let n = fields.next().unwrap().parse().unwrap();
            (n, u64::from_str_radix(fields.next().unwrap().trim_start_matches("0x"), 16).unwrap())
        })
    }

    #[test]
    fn jumps_lead_where_the_reference_is() {
        assert_eq!(reference().count(), 16);
        for (n, a) in reference() {
            assert_eq!(at(n), a, "a_{n}");
        }
    }

    #[test]
    fn steps_lead_there_too() {
        let far = 1 << 20;
        let mut stream = (0..=far).scan(1, |a, n| {
            let this = *a;
            *a = next(*a);
            Some((n, this))
        });
        for (n, a) in reference().filter(|&(n, _)| n <= far).collect::<std::collections::BTreeMap<_, _>>() {
            assert_eq!(stream.find(|&(k, _)| k == n), Some((n, a)));
        }
    }

    #[test]
    fn the_stream_repeats_after_its_period() {
        assert_eq!((at(PERIOD), next(at(PERIOD - 1))), (1, 1));
        assert_eq!(at(PERIOD + 1000), at(1000));
    }
}
