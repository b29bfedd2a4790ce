//! A value for each row, column or element of a diagonal.

use std::{borrow::Cow, ops::Range};

use ndarray::{Array1, Dimension, Ix1};

use super::{Elements, IntoOperand, Operand, PatchRef};
use crate::{
    array::{Frozen, GlobalArray},
    element::Element,
    error::Result,
};

/// One value after another: a list that every member passes whole (`&[T]`, `&[T; N]`, `&Vec<T>`, `&Array1<T>`), or an operand of one axis
/// (`&x`, `x.at(..)`), of which each member fetches what it needs.
///
/// Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no list of `{T}`",
    label = "neither a list nor an operand of one axis",
    note = "`&list` of a slice, an array, a `Vec` or an `Array1` is; so are `&x` and `x.at(..)` of a `GlobalArray1`"
)]
pub trait IntoValues<T: Element>: sealed::Sealed {
    #[doc(hidden)]
    type Axes: Dimension;
    #[doc(hidden)]
    fn into_values<'s>(self) -> Values<'s, T, Self::Axes>
    where
        Self: 's,
        T: 's,
        Self::Axes: 's;
}

/// A list, or a patch.
#[doc(hidden)]
#[derive(Debug)]
pub enum Values<'a, T: Element, S: Dimension> {
    List(Cow<'a, [T]>),
    Patch(PatchRef<'a, T, Ix1, S>),
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! values {
    ($([$($generics:tt)*] $of:ty, $axes:ty, $own:ident => $values:expr;)*) => {$(
        impl<$($generics)*> sealed::Sealed for $of {}
        impl<$($generics)*> IntoValues<T> for $of {
            type Axes = $axes;
            fn into_values<'s>(self) -> Values<'s, T, $axes>
            where
                Self: 's,
                $axes: 's,
            {
                let $own = self;
                $values
            }
        }
    )*};
}
values! {
    [T: Element] &[T], Ix1, list => Values::List(list.into());
    [T: Element, const N: usize] &[T; N], Ix1, list => Values::List(list.into());
    [T: Element] &Vec<T>, Ix1, list => Values::List(list.into());
    [T: Element] &Array1<T>, Ix1, list => Values::List(list.as_slice().map_or_else(|| list.to_vec().into(), Cow::from));
    [T: Element] &GlobalArray<T, Ix1>, Ix1, x => Values::Patch(x.into_operand());
    [T: Element] &Frozen<T, Ix1>, Ix1, x => Values::Patch(x.into_operand());
    [T: Element, S: Dimension] PatchRef<'_, T, Ix1, S>, S, x => Values::Patch(x);
}

/// Values that are as many as they must be.
pub(super) enum Checked<'a, T: Element, S> {
    List(Cow<'a, [T]>),
    Operand(Operand<'a, T, Ix1, S>),
}

impl<'a, T: Element, S: Dimension> Values<'a, T, S> {
    /// There must be `len` of them, on the members of `array`.
    pub(super) fn check<D: Dimension>(
        self,
        operation: &'static str,
        array: &GlobalArray<T, D>,
        len: usize,
    ) -> Result<Checked<'a, T, S>> {
        let (checked, found) = match self {
            Values::List(list) => {
                let len = list.len();
                (Checked::List(list), len)
            }
            Values::Patch(patch) => {
                let operand = patch.resolve(operation)?;
                array.check_members(operation, operand.array)?;
                let len = operand.shape()[0];
                (Checked::Operand(operand), len)
            }
        };
        if found == len { Ok(checked) } else { Err(array.shape_error(operation, &[len], &[found])) }
    }
}

impl<T: Element, S: Dimension> Checked<'_, T, S> {
    /// What members must share, and what they read.
    pub(super) fn call(&self) -> (u64, Elements) {
        match self {
            Checked::List(_) => (0, Elements::Own),
            Checked::Operand(operand) => (operand.fingerprint(), Elements::All),
        }
    }

    pub(super) fn fetch(&self, range: Range<usize>) -> Result<Cow<'_, [T]>> {
        match self {
            Checked::List(list) => Ok(list[range].into()),
            Checked::Operand(operand) => {
                let mut values = Array1::from_elem(range.len(), T::zeroed());
                operand.read(&Ix1(range.start), &Ix1(range.len()), values.view_mut())?;
                Ok(values.into_raw_vec_and_offset().0.into())
            }
        }
    }
}
