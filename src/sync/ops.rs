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
