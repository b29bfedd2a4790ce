//! Operations for reductions: pass one by name, or any closure of two elements.
//!
//! The number of members alone determines in which order they combine, so results are bitwise equal on every run and on every member.

use crate::element::{Additive, Number};

/// Sum; wraps for integers.
pub fn sum<T: Additive>(a: T, b: T) -> T {
    a.plus(b)
}

/// Product; wraps for integers.
pub fn product<T: Number>(a: T, b: T) -> T {
    a.scaled(b)
}

/// Minimum; if the values do not compare (NaN), the first.
pub fn min<T: PartialOrd>(a: T, b: T) -> T {
    if b < a { b } else { a }
}

/// Maximum; if the values do not compare (NaN), the first.
pub fn max<T: PartialOrd>(a: T, b: T) -> T {
    if b > a { b } else { a }
}

/// Minimum; NaN if either is, so that no failure of a program is lost in a reduction.
pub fn min_nan<T: PartialOrd + Copy>(a: T, b: T) -> T {
    if b < a || is_nan(b) { b } else { a }
}

/// Maximum; NaN if either is.
pub fn max_nan<T: PartialOrd + Copy>(a: T, b: T) -> T {
    if b > a || is_nan(b) { b } else { a }
}

fn is_nan<T: PartialOrd + Copy>(x: T) -> bool {
    x.partial_cmp(&x).is_none()
}

/// The value of larger magnitude.
pub fn abs_max<T: Number>(a: T, b: T) -> T {
    if b.magnitude() > a.magnitude() { b } else { a }
}

/// The value of smaller magnitude.
pub fn abs_min<T: Number>(a: T, b: T) -> T {
    if b.magnitude() < a.magnitude() { b } else { a }
}

/// Bitwise and.
pub fn and<T: std::ops::BitAnd<Output = T>>(a: T, b: T) -> T {
    a & b
}

/// Bitwise or.
pub fn or<T: std::ops::BitOr<Output = T>>(a: T, b: T) -> T {
    a | b
}

/// Bitwise exclusive or.
pub fn xor<T: std::ops::BitXor<Output = T>>(a: T, b: T) -> T {
    a ^ b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_number_is_not_lost() {
        for (a, b) in [(f64::NAN, 1.0), (1.0, f64::NAN), (f64::NAN, f64::NAN)] {
            assert!(max_nan(a, b).is_nan() && min_nan(a, b).is_nan(), "{a} and {b}");
        }
        assert_eq!([max_nan(1.0, 2.0), max_nan(2.0, 1.0), min_nan(1.0, 2.0), min_nan(2.0, 1.0)], [2.0, 2.0, 1.0, 1.0]);
        assert!([1.0, f64::NAN, 0.5, 2.0].into_iter().fold(0.0, max_nan).is_nan());
    }
}
