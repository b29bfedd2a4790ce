//! libfabric: the interface of Slingshot, EFA, Omni-Path and others.
//!
//! | file, folder | contents |
//! |---|---|
//! | `networks` | which providers ranks use |
//! | `adapter`, `messages` | a port as an adapter, and its frames |
//! | `sleeper` | sleeps until something comes, where a provider can tell |
//! | `port` | the objects of an endpoint, and calls on them |
//! | `ffi` | what is used of the library |
//! | `bare` | an endpoint without layers, for a bench |
//!
//! # Visible writes
//!
//! A write is visible when a read that the provider orders behind it has ended; if it orders none, when a fenced write has been
//! delivered; if it has no fence, each write ends when it is delivered.

mod adapter;
#[cfg(feature = "_bench")]
mod bare;
mod ffi;
mod messages;
mod networks;
mod port;
mod sleeper;
#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(feature = "_bench")]
pub use self::bare::BareEndpoint;
pub(super) use self::networks::NETWORK;
