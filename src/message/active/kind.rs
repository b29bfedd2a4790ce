//! Kinds of messages: typed names.

use std::{any::TypeId, fmt, marker::PhantomData};

use super::Argument;
use crate::element::Element;

/// A kind of message that carries arguments `A` and whose handler returns `R`. A constant of the program; its name tells it from others of one endpoint.
pub struct Short<A, R = ()> {
    name: &'static str,
    types: PhantomData<fn(A) -> R>,
}

/// A kind of message that also carries a slice of `T`, up to 8 KiB of it.
pub struct Medium<A, T, R = ()> {
    name: &'static str,
    types: PhantomData<fn(A, T) -> R>,
}

impl<A: Argument, R: Argument> Short<A, R> {
    /// A kind of this name.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        const { assert!(A::WORDS <= super::MOST && R::WORDS <= super::MOST, "arguments and results have at most 13 words") };
        Short { name, types: PhantomData }
    }

    pub(super) fn named(self) -> Named {
        Named { name: self.name, types: TypeId::of::<fn(A) -> R>(), text: std::any::type_name::<(A, R)>() }
    }
}

impl<A: Argument, T: Element, R: Argument> Medium<A, T, R> {
    /// A kind of this name.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        const { assert!(A::WORDS <= super::MOST && R::WORDS <= super::MOST, "arguments and results have at most 13 words") };
        const { assert!(size_of::<T>() > 0 && align_of::<T>() <= align_of::<u64>(), "elements are aligned to 8 bytes at most") };
        Medium { name, types: PhantomData }
    }

    pub(super) fn named(self) -> Named {
        Named { name: self.name, types: TypeId::of::<fn(A, &[T]) -> R>(), text: std::any::type_name::<(A, [T; 0], R)>() }
    }
}

macro_rules! copies {
    ($kind:ident<$($parameter:ident),*>) => {
        impl<$($parameter),*> Clone for $kind<$($parameter),*> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<$($parameter),*> Copy for $kind<$($parameter),*> {}
        impl<$($parameter),*> fmt::Debug for $kind<$($parameter),*> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({:?})", stringify!($kind), self.name)
            }
        }
    };
}
copies!(Short<A, R>);
copies!(Medium<A, T, R>);

/// A kind without its types.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub(super) name: &'static str,
    types: TypeId,
    /// The types, the same in each process.
    pub(super) text: &'static str,
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.types == other.types && (std::ptr::eq(self.name, other.name) || self.name == other.name)
    }
}
