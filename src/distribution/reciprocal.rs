//! Exact division by a number that is known beforehand.
//!
//! With `m = floor((2^64 - 1) / d)` there is an `e` of `1..=d` such that `m * d = 2^64 - e`. The high half of `(n + 1) * m` is the
//! integer part of `(n + 1) / d - (n + 1) * e / (d * 2^64)`. Write `n = q * d + r`: that is `q + (r + 1) / d` less a positive number of
//! at most 1, so that the high half is `q` or `q - 1`, and `q - 1` only if `r + 1 < (n + 1) * e / 2^64`. One comparison of the remainder
//! settles it for every `n` below `2^64 - 1`.
//!
//! The comparison is a branch on purpose. Where the product of extent and divisor is at most `2^64` it is never taken, and for an axis of
//! `2^40` for at most one index in `2^24`: a predicted branch does not delay the address. (The usual estimate `n * floor(2^64 / d)` errs
//! for every multiple of `d`.)

const _: () = assert!(usize::BITS == 64, "reciprocals and extents are 64-bit numbers");

/// The reciprocal of `divisor`, which is not zero.
pub(super) fn reciprocal(divisor: usize) -> usize {
    usize::MAX / divisor
}

/// Quotient and remainder of a number less than `usize::MAX`.
#[inline(always)]
pub(super) fn divide(number: usize, divisor: usize, reciprocal: usize) -> (usize, usize) {
    let quotient = ((number.wrapping_add(1) as u128 * reciprocal as u128) >> 64) as usize;
    let remainder = number.wrapping_sub(quotient.wrapping_mul(divisor));
    if remainder >= divisor {
        unlikely();
        return (quotient + 1, remainder - divisor);
    }
    (quotient, remainder)
}

/// Tells the compiler that the branch in which it is called is not the usual one.
#[cold]
#[inline(always)]
fn unlikely() {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(number: usize, divisor: usize) {
        let number = number.min(usize::MAX - 1);
        assert_eq!(divide(number, divisor, reciprocal(divisor)), (number / divisor, number % divisor), "{number} / {divisor}");
    }

    #[test]
    fn exact_at_the_edges() {
        let edges =
            [0, 1, 2, 3, 5, 7, 63, 64, 65, 1 << 32, (1 << 32) + 1, (1 << 63) - 1, 1 << 63, usize::MAX - 2, usize::MAX - 1];
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
