//! libfabric: the interface of Slingshot, EFA, Omni-Path and others.
//!
//! | file, folder | contents |
//! |---|---|
//! | `ffi` | what is used of the library |
//! | `bare` | an endpoint without layers, for the bench |

mod bare;
mod ffi;

pub use bare::BareEndpoint;
