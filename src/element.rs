//! Element types.
//!
//! An [`Element`] is plain data: no padding, every bit pattern valid, no references. So another process can write it at any time without
//! breaking a Rust invariant, and a new array can have meaningless but initialized contents. [`Additive`] elements can be added,
//! [`Number`]s have all of arithmetic. Integers wrap, as in a network adapter.

use std::any::TypeId;

use ndarray::LinalgScalar;
use num_complex::Complex;
use num_traits::{Float, NumAssign};

/// Plain data that a [`GlobalArray`](crate::GlobalArray) can hold.
///
/// Implemented for every `Pod` type: integers, floats, `Complex`, arrays of these, and user structs that derive `Pod`.
#[doc(alias = "NGA_Register_type")]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an element of a global array",
    label = "not plain data",
    note = "elements are plain data that any rank may overwrite: numbers, `Complex`, arrays of elements, and structs that derive `Pod`",
    note = "a flag: use `u8` in place of `bool`; a choice: use an integer in place of an enum; a reference, `String` or `Vec`: store the data, or an index",
    note = "a struct: `#[repr(C)] #[derive(Clone, Copy, Pod, Zeroable)] #[bytemuck(crate = \"global_arrays::bytemuck\")]`, with `Pod` and `Zeroable` of `global_arrays::bytemuck`; where fields leave a gap, name it, as in `gap: [u8; 4]`"
)]
pub trait Element: bytemuck::Pod + Send + Sync {}

#[diagnostic::do_not_recommend]
impl<T: bytemuck::Pod + Send + Sync> Element for T {}

/// An element that can be added, and multiplied by a number: what accumulates, sums and `zeros` need.
///
/// Implemented for [`Number`]s and for arrays of additive elements, such as `[f64; 3]`. A struct of your own joins by an `impl`. Sums and
/// other reductions take elements up to 64 KiB in a group of up to 64 members, and up to 4 KiB in a larger one.
///
/// # Examples
/// ```
/// use global_arrays::{
///     bytemuck::{Pod, Zeroable},
///     prelude::*,
/// };
///
/// /// A force and the energy that goes with it.
/// #[repr(C)]
/// #[derive(Clone, Copy, Pod, Zeroable)]
/// #[bytemuck(crate = "global_arrays::bytemuck")]
/// struct Pull {
///     force: [f64; 3],
///     energy: f64,
/// }
///
/// impl Additive for Pull {
///     type Scale = f64;
///     const ZERO: Self = Pull { force: [0.0; 3], energy: 0.0 };
///
///     fn plus(self, other: Self) -> Self {
///         Pull { force: self.force.plus(other.force), energy: self.energy + other.energy }
///     }
///
///     fn scaled(self, by: f64) -> Self {
///         Pull { force: self.force.scaled(by), energy: self.energy * by }
///     }
/// }
///
/// # fn main() -> Result<(), Error> {
/// Launch::new().ranks(2).network("threads").run(|job| {
///     let pulls = GlobalArray1::<Pull>::builder(job, [100]).zeros().create()?;
///     let mine = Array1::from_elem(100, Pull { force: [1.0, 0.0, 0.0], energy: 0.25 });
///     pulls.accumulate(.., 2.0, &mine)?;
///     job.sync()?;
///     assert_eq!(pulls.sum()?.energy, 100.0 * 2.0 * 0.5);
///     job.sync()
/// })
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "elements of type `{Self}` cannot be added",
    label = "not `Additive`",
    note = "numbers, `Complex` and arrays of these can; for a struct of your own implement `Additive`: `ZERO`, `plus`, `scaled`",
    note = "to move elements, with `get`, `put`, `load` or `store`, `Element` is enough"
)]
pub trait Additive: Element {
    /// What an element is multiplied by: itself for a number, `f64` for `[f64; 3]`.
    type Scale: Number;
    /// The additive identity.
    const ZERO: Self;
    /// An element is an array of `Scale` that `plus` and `scaled` treat one by one, so kernels for numbers do.
    #[doc(hidden)]
    const IS_FLAT: bool = false;
    /// `self + other`, wrapping for integers.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// `self * by`, wrapping for integers.
    #[must_use]
    fn scaled(self, by: Self::Scale) -> Self;
}

/// How many numbers an element is, if it is an array of these and nothing else.
pub(crate) const fn numbers_of<T: Additive>() -> Option<usize> {
    let (whole, one) = (size_of::<T>(), size_of::<T::Scale>());
    if T::IS_FLAT && one > 0 && whole.is_multiple_of(one) && align_of::<T::Scale>() <= align_of::<T>() {
        Some(whole / one)
    } else {
        None
    }
}

/// A number: an element with all of arithmetic, for the array algebra.
///
/// Integers, floats and `Complex` of floats. As a bound it brings num-traits' arithmetic and ndarray's `LinalgScalar`. So generic code
/// needs it alone, also to call ndarray's `dot`. Integers wrap in operations of this crate; their
/// operators, as everywhere, panic in a debug build.
///
/// # Examples
/// ```
/// use global_arrays::prelude::*;
///
/// /// The product of this rank's rows and a vector.
/// fn times<T: Number>(rows: &Array2<T>, x: &Array1<T>) -> Array1<T> {
///     rows.dot(x)
/// }
/// # assert_eq!(times(&Array2::<f64>::eye(2), &Array1::ones(2)).to_vec(), [1.0, 1.0]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number",
    label = "not a `Number`",
    note = "integers, floats and `Complex<f32>`, `Complex<f64>` are; arrays such as `[f64; 3]` are `Additive`: they can be accumulated, scaled and summed"
)]
pub trait Number: Additive<Scale = Self> + LinalgScalar + NumAssign + std::fmt::Debug {
    /// What a magnitude is: `f32` for `f32` and its complex numbers, else `f64`.
    type Real: Number + Float;
    /// The multiplicative identity.
    const ONE: Self;
    /// Whether every number is its own conjugate.
    const IS_REAL: bool = false;
    /// The complex conjugate; the number itself if it is real.
    #[must_use]
    fn conj(self) -> Self;
    /// The magnitude.
    fn magnitude(self) -> Self::Real;
}

impl<T: Additive, const N: usize> Additive for [T; N]
where
    [T; N]: Element,
{
    type Scale = T::Scale;
    const ZERO: Self = [T::ZERO; N];
    const IS_FLAT: bool = T::IS_FLAT;
    #[inline]
    fn plus(self, other: Self) -> Self {
        std::array::from_fn(|k| self[k].plus(other[k]))
    }
    #[inline]
    fn scaled(self, by: T::Scale) -> Self {
        self.map(|x| x.scaled(by))
    }
}

macro_rules! additive {
    ($t:ty, $zero:expr, $plus:expr, $times:expr) => {
        impl Additive for $t {
            type Scale = Self;
            const ZERO: Self = $zero;
            const IS_FLAT: bool = true;
            #[inline]
            fn plus(self, other: Self) -> Self {
                $plus(self, other)
            }
            #[inline]
            fn scaled(self, by: Self) -> Self {
                $times(self, by)
            }
        }
    };
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        additive!($t, 0, <$t>::wrapping_add, <$t>::wrapping_mul);
        impl Number for $t {
            type Real = f64;
            const ONE: Self = 1;
            const IS_REAL: bool = true;
            #[inline]
            fn conj(self) -> Self { self }
            #[inline]
            fn magnitude(self) -> f64 { (self as f64).abs() }
        }
    )*};
}
integers!(i8, u8, i16, u16, i32, u32, i64, u64, i128, u128, isize, usize);

macro_rules! floats {
    ($($t:ty),*) => {$(
        additive!($t, 0.0, std::ops::Add::add, std::ops::Mul::mul);
        impl Number for $t {
            type Real = Self;
            const ONE: Self = 1.0;
            const IS_REAL: bool = true;
            #[inline]
            fn conj(self) -> Self { self }
            #[inline]
            fn magnitude(self) -> Self { self.abs() }
        }
        additive!(Complex<$t>, Complex { re: 0.0, im: 0.0 }, std::ops::Add::add, std::ops::Mul::mul);
        impl Number for Complex<$t> {
            type Real = $t;
            const ONE: Self = Complex { re: 1.0, im: 0.0 };
            #[inline]
            fn conj(self) -> Self { Complex::conj(&self) }
            #[inline]
            fn magnitude(self) -> $t { self.norm() }
        }
    )*};
}
floats!(f32, f64);

/// An integer element that supports read-and-increment, fetch-op, swap and compare-and-swap.
///
/// Sealed: the widths are those that processors and network adapters support.
pub trait AtomicInteger: Number + Eq + Ord + sealed::Sealed {
    #[doc(hidden)]
    fn to_bits(self) -> u64;
    #[doc(hidden)]
    fn from_bits(bits: u64) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! atomic_integer {
    ($($t:ty, $u:ty);*) => {$(
        impl sealed::Sealed for $t {}
        impl AtomicInteger for $t {
            #[inline]
            fn to_bits(self) -> u64 { self as $u as u64 }
            #[inline]
            fn from_bits(bits: u64) -> Self { bits as $u as $t }
        }
    )*};
}
atomic_integer!(i32, u32; u32, u32; i64, u64; u64, u64; isize, usize; usize, usize);

/// Whether a type is one of the [`AtomicInteger`]s; a constant once the type is known.
#[inline(always)]
pub(crate) fn has_atomics<T: 'static>() -> bool {
    let this = TypeId::of::<T>();
    // No list and no loop: that would not be folded.
    this == TypeId::of::<i32>()
        || this == TypeId::of::<u32>()
        || this == TypeId::of::<i64>()
        || this == TypeId::of::<u64>()
        || this == TypeId::of::<isize>()
        || this == TypeId::of::<usize>()
}
