//! Operations for the reductions: pass one by name, or any closure of two elements.
//!
//! The order in which contributions are combined is fixed by the number of members, so a reduction gives the same bits on every
//! run and on every member.

use crate::element::Accumulate;

/// Sum; wraps for integers.
pub fn sum<T: Accumulate>(a: T, b: T) -> T {
    a.plus(b)
}

/// Product; wraps for integers.
pub fn product<T: Accumulate>(a: T, b: T) -> T {
    a.times(b)
}

/// The smaller; where they do not compare (NaN), the first.
pub fn min<T: PartialOrd>(a: T, b: T) -> T {
    if b < a { b } else { a }
}

/// The larger; where they do not compare (NaN), the first.
pub fn max<T: PartialOrd>(a: T, b: T) -> T {
    if b > a { b } else { a }
}

/// The one of larger magnitude.
pub fn abs_max<T: Accumulate>(a: T, b: T) -> T {
    if b.magnitude() > a.magnitude() { b } else { a }
}

/// The one of smaller magnitude.
pub fn abs_min<T: Accumulate>(a: T, b: T) -> T {
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
