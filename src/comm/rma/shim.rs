//! Adapters that are reached by a library of ours, a *shim*: users compile it by one command, against the headers of their machine.

use std::{
    ffi::{CStr, c_char},
    fmt::Display,
    marker::PhantomData,
};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::{
    adapter::RmaAdapter,
    road::FrameRoad,
    wire::{RmaSettings, RmaWire},
};
use crate::{
    comm::{
        node::Member,
        start::{
            Processes,
            devices::{Cluster, Devices, Opened, directory::Words},
            settings::Settings,
        },
    },
    error::Error,
};

/// A library of ours.
#[derive(Clone, Copy, Debug)]
pub(in crate::comm) struct Shim {
    pub(in crate::comm) network: &'static str,
    /// The variable that names it.
    pub(in crate::comm) option: &'static str,
    /// What makes it.
    pub(in crate::comm) command: &'static str,
}

impl Shim {
    fn fail(&self, why: impl Display) -> Error {
        Error::Launch(format!("GA_NETWORK={}: {why}", self.network))
    }

    /// What is wrong with a library, and what to do.
    pub(in crate::comm) fn refused(&self, path: &str, why: impl Display) -> String {
        format!("{}={path}: {why}; compile it on this machine: {}", self.option, self.command)
    }

    /// Loads it. It stays: what it calls may have threads.
    ///
    /// # Errors
    /// What is missing, for people.
    pub(in crate::comm) fn load(&self, path: &str) -> Result<&'static Library, String> {
        // SAFETY: the user names a library that was made from ours, which does nothing when it is loaded.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
        library.map(|library| &*Box::leak(Box::new(library))).map_err(|error| self.refused(path, error))
    }
}

/// Declares the functions of a shim. Each answers 0 when it is done, 1 if it is to be asked again later, and anything else if it refuses.
macro_rules! shim {
    ($functions:ident, $why:ident { $($name:ident($($argument:ident: $type:ty),*);)* }) => {
        /// The functions of the shim.
        #[derive(Clone, Copy, Debug)]
        struct $functions {
            $why: unsafe extern "C" fn() -> *const std::ffi::c_char,
            $($name: unsafe extern "C" fn($($type),*) -> std::ffi::c_int,)*
        }

        impl $functions {
            fn load(shim: &Shim, path: &str) -> Result<Self, String> {
                let (library, missing) = (shim.load(path)?, |error| shim.refused(path, error));
                Ok($functions {
                    // SAFETY: the functions have these types in the library, which stays.
                    $why: *unsafe { library.get(stringify!($why).as_bytes()) }.map_err(missing)?,
                    // SAFETY: as above.
                    $($name: *unsafe { library.get(stringify!($name).as_bytes()) }.map_err(missing)?,)*
                })
            }

            $(
                /// True if it was done, false if it is to be done again later.
                #[allow(clippy::too_many_arguments, reason = "those of the shim")]
                unsafe fn $name(&self, $($argument: $type),*) -> Result<bool, String> {
                    // SAFETY: the caller's promise.
                    match unsafe { (self.$name)($($argument),*) } {
                        code @ (0 | 1) => Ok(code == 0),
                        // SAFETY: no arguments.
                        _ => Err(crate::comm::rma::shim::text(unsafe { (self.$why)() })),
                    }
                }
            )*
        }
    };
}
pub(in crate::comm) use shim;

/// A text of a shim, which ends by zero.
pub(in crate::comm) fn text(start: *const c_char) -> String {
    // SAFETY: as above.
    unsafe { CStr::from_ptr(start) }.to_string_lossy().into_owned()
}

/// An adapter that a shim reaches.
pub(in crate::comm) trait ByShim: RmaAdapter + Sized {
    type Road: FrameRoad<Self>;

    const SHIM: Shim;

    /// Opens the adapter of the process and its road, by the path of the shim.
    ///
    /// # Errors
    /// What is missing, for people.
    fn open(path: &str) -> Result<(Self, Self::Road), String>;

    /// Hears the rank and the number of ranks, before anything is sent.
    ///
    /// # Errors
    /// The adapter is of another rank.
    fn join(&mut self, road: &mut Self::Road, rank: usize, ranks: usize) -> Result<(), String>;
}

/// Ranks that are processes with adapters that a shim reaches.
pub(in crate::comm) fn processes<A: ByShim + 'static>(settings: &Settings) -> Result<Box<dyn Processes>, Error> {
    let Shim { option, command, .. } = A::SHIM;
    let missing = || {
        A::SHIM.fail(format!("{option} names no library; compile it on this machine, and set {option} to its path: {command}"))
    };
    let path = settings.option(option).ok_or_else(missing)?;
    Ok(Box::new(ShimAt::<A>(path.to_owned(), PhantomData)))
}

/// Where the shim is.
struct ShimAt<A>(String, PhantomData<fn() -> A>);

impl<A: ByShim> Devices for ShimAt<A> {
    type Device = OpenedByShim<A>;

    /// The shim is loaded behind the fork of ranks.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    fn open(&self, _: usize) -> Result<OpenedByShim<A>, Error> {
        A::open(&self.0).map(|(adapter, road)| OpenedByShim(adapter, road)).map_err(|why| A::SHIM.fail(why))
    }
}

/// An adapter that its rank has opened, and its road.
struct OpenedByShim<A: ByShim>(A, A::Road);

impl<A: ByShim> Opened for OpenedByShim<A> {
    type Wire = RmaWire<A, A::Road>;

    fn address(&self) -> Words {
        self.0.address()
    }

    fn wire(self, cluster: &Cluster, settings: &Settings, member: &Member) -> Result<Self::Wire, Error> {
        let OpenedByShim(mut adapter, mut road) = self;
        let joined = adapter.join(&mut road, member.topology().rank(), member.topology().size());
        let wire = |()| RmaWire::new(adapter, road, cluster.directory.clone(), RmaSettings::of(settings, member));
        joined.and_then(wire).map_err(|why| A::SHIM.fail(why))
    }
}
