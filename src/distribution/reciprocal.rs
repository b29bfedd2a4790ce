//! Exact division by a number that is known beforehand.
//!
//! With `m = floor(2^64 / d)` the high half of `n * m` is the quotient or one less: `m > 2^64 / d - 1`, so `n * m / 2^64` is
//! greater than `n / d - n / 2^64`, less than one below. One comparison of the remainder settles it. For `d = 1`, where `2^64` does not fit,
//! `m = 2^64 - 1` obeys the same bound. This is a multiplication, a multiplication and a comparison, where a division instruction
//! takes several times as long; and unlike shorter schemes it holds for every 64-bit `n`.

const _: () = assert!(usize::BITS == 64, "reciprocals and extents are 64-bit numbers");

/// The reciprocal of `divisor`, which is not zero.
pub(super) fn reciprocal(divisor: usize) -> usize {
    match divisor {
        1 => usize::MAX,
        _ => ((1_u128 << 64) / divisor as u128) as usize,
    }
}

/// Quotient and remainder.
#[inline(always)]
pub(super) fn divide(number: usize, divisor: usize, reciprocal: usize) -> (usize, usize) {
    let quotient = ((number as u128 * reciprocal as u128) >> 64) as usize;
    let remainder = number.wrapping_sub(quotient.wrapping_mul(divisor));
    if remainder >= divisor { (quotient + 1, remainder - divisor) } else { (quotient, remainder) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(number: usize, divisor: usize) {
        assert_eq!(divide(number, divisor, reciprocal(divisor)), (number / divisor, number % divisor), "{number} / {divisor}");
    }

    #[test]
    fn exact_at_the_edges() {
        let edges = [0, 1, 2, 3, 5, 7, 63, 64, 65, 1 << 32, (1 << 32) + 1, (1 << 63) - 1, 1 << 63, usize::MAX - 1, usize::MAX];
        for &divisor in &edges[1..] {
            for &number in &edges {
                check(number, divisor);
            }
            for multiple in [1, 2, 3, usize::MAX / divisor] {
                let number = divisor.wrapping_mul(multiple);
                check(number, divisor);
                check(number.wrapping_sub(1), divisor);
                check(number.wrapping_add(1), divisor);
            }
        }
    }

    proptest! {
        #[test]
        fn exact_everywhere(number: usize, divisor in 1..=usize::MAX, shift in 0..64_u32) {
            check(number, (divisor >> shift).max(1));
            check(number >> shift, divisor);
        }
    }
}
