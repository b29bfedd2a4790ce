//! What is used of libibverbs, under the names of `infiniband/verbs.h`.
//!
//! The library is loaded at run time, so programs build and start without it and without its header. Posting, polling and arming
//! are inline functions of the header, which call through [`ibv_context_ops`].
//!
//! Structures that the library allocates are declared as far as their fields are used, and handled only by pointer. All others are
//! whole.
//!
//! # Source
//! rdma-core, `libibverbs/verbs.h`.
#![allow(non_camel_case_types, reason = "the names of the header")]

mod constants;
#[cfg(all(test, not(loom)))]
mod layout;
mod structures;

use std::ffi::{c_char, c_int, c_uint, c_void};

use libloading::Library;

pub(super) use constants::*;
pub(super) use structures::*;

/// Declares the table of functions and how it is found in the library.
macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of the library.
        #[derive(Clone, Copy, Debug)]
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($argument: $type),*) $(-> $result)?,)*
            /// Since rdma-core 35.
            pub(super) ibv_is_fork_initialized: Option<unsafe extern "C" fn() -> c_int>,
        }

        impl Functions {
            /// Names, types of the arguments and types of the results of those that are always there.
            #[cfg(test)]
            pub(super) const DECLARED: &[(&str, &[&str], &str)] =
                &[$((stringify!($name), &[$(stringify!($type)),*], stringify!($($result)?))),*];

            /// # Errors
            /// A function is missing.
            ///
            /// # Safety
            /// The library is libibverbs, and is never unloaded.
            pub(super) unsafe fn find(library: &Library) -> Result<Self, libloading::Error> {
                Ok(Functions {
                    // SAFETY: the function has this type in the library that the caller promises, and lasts as long as it.
                    $($name: *unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) }?,)*
                    // SAFETY: as above.
                    ibv_is_fork_initialized: unsafe { library.get(b"ibv_is_fork_initialized\0") }.ok().map(|found| *found),
                })
            }
        }
    };
}

functions! {
    ibv_fork_init() -> c_int;
    ibv_get_device_list(count: *mut c_int) -> *mut *mut ibv_device;
    ibv_free_device_list(list: *mut *mut ibv_device);
    ibv_get_device_name(device: *mut ibv_device) -> *const c_char;
    ibv_open_device(device: *mut ibv_device) -> *mut ibv_context;
    ibv_close_device(context: *mut ibv_context) -> c_int;
    ibv_query_device(context: *mut ibv_context, attributes: *mut ibv_device_attr) -> c_int;
    ibv_query_port(context: *mut ibv_context, port: u8, attributes: *mut ibv_port_attr) -> c_int;
    ibv_query_gid(context: *mut ibv_context, port: u8, index: c_int, gid: *mut ibv_gid) -> c_int;
    ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd;
    ibv_dealloc_pd(domain: *mut ibv_pd) -> c_int;
    ibv_reg_mr(domain: *mut ibv_pd, address: *mut c_void, length: usize, access: c_int) -> *mut ibv_mr;
    ibv_dereg_mr(region: *mut ibv_mr) -> c_int;
    ibv_create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel;
    ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int;
    ibv_create_cq(
        context: *mut ibv_context,
        entries: c_int,
        own: *mut c_void,
        channel: *mut ibv_comp_channel,
        vector: c_int
    ) -> *mut ibv_cq;
    ibv_destroy_cq(queue: *mut ibv_cq) -> c_int;
    ibv_get_cq_event(channel: *mut ibv_comp_channel, queue: *mut *mut ibv_cq, own: *mut *mut c_void) -> c_int;
    ibv_ack_cq_events(queue: *mut ibv_cq, count: c_uint);
    ibv_get_async_event(context: *mut ibv_context, event: *mut ibv_async_event) -> c_int;
    ibv_ack_async_event(event: *mut ibv_async_event);
    ibv_create_srq(domain: *mut ibv_pd, attributes: *mut ibv_srq_init_attr) -> *mut ibv_srq;
    ibv_destroy_srq(queue: *mut ibv_srq) -> c_int;
    ibv_create_qp(domain: *mut ibv_pd, attributes: *mut ibv_qp_init_attr) -> *mut ibv_qp;
    ibv_modify_qp(pair: *mut ibv_qp, attributes: *mut ibv_qp_attr, mask: c_int) -> c_int;
    ibv_destroy_qp(pair: *mut ibv_qp) -> c_int;
    ibv_create_ah(domain: *mut ibv_pd, attributes: *mut ibv_ah_attr) -> *mut ibv_ah;
    ibv_destroy_ah(handle: *mut ibv_ah) -> c_int;
}
