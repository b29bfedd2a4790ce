//! What is used of libibverbs: its structures, constants and functions, under the names of `infiniband/verbs.h`.
//!
//! The library is loaded at run time, so a program needs neither the library nor its header to be built or started. The functions
//! are found by name: the loader takes the default version of each symbol, `IBVERBS_1.1` of those that have two, as the linker
//! does. Posting, polling and arming are no symbols but inline functions of the header, which call through [`ibv_context_ops`].
//!
//! Structures that the library allocates are declared as far as their fields are used ([`ibv_context`], [`ibv_cq`], [`ibv_srq`],
//! [`ibv_qp`], [`ibv_mr`], [`ibv_comp_channel`]) and are only handled by pointer. All others are whole. The test `layout` compares every size and
//! offset and every constant with the header.
//!
//! # Source
//! rdma-core, `libibverbs/verbs.h`; InfiniBand Architecture Specification 1.2.1, chapters 10 and 11.
#![allow(non_camel_case_types, reason = "the names of the header")]

use std::ffi::{c_char, c_int, c_uint, c_void};

use libloading::Library;

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

/// Types of which nothing but the address is used.
macro_rules! opaque {
    ($($name:ident)*) => {
        $(
            #[repr(C)]
            #[derive(Debug)]
            pub(super) struct $name {
                _private: [u8; 0],
            }
        )*
    };
}

opaque! { ibv_device ibv_pd ibv_ah }

/// A function of a context that is not used, or stands for compatibility.
pub(super) type Unused = Option<unsafe extern "C" fn()>;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct ibv_context_ops {
    pub(super) _compat_query_device: Unused,
    pub(super) _compat_query_port: Unused,
    pub(super) _compat_alloc_pd: Unused,
    pub(super) _compat_dealloc_pd: Unused,
    pub(super) _compat_reg_mr: Unused,
    pub(super) _compat_rereg_mr: Unused,
    pub(super) _compat_dereg_mr: Unused,
    pub(super) alloc_mw: Unused,
    pub(super) bind_mw: Unused,
    pub(super) dealloc_mw: Unused,
    pub(super) _compat_create_cq: Unused,
    pub(super) poll_cq: unsafe extern "C" fn(*mut ibv_cq, c_int, *mut ibv_wc) -> c_int,
    pub(super) req_notify_cq: unsafe extern "C" fn(*mut ibv_cq, c_int) -> c_int,
    pub(super) _compat_cq_event: Unused,
    pub(super) _compat_resize_cq: Unused,
    pub(super) _compat_destroy_cq: Unused,
    pub(super) _compat_create_srq: Unused,
    pub(super) _compat_modify_srq: Unused,
    pub(super) _compat_query_srq: Unused,
    pub(super) _compat_destroy_srq: Unused,
    pub(super) post_srq_recv: unsafe extern "C" fn(*mut ibv_srq, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int,
    pub(super) _compat_create_qp: Unused,
    pub(super) _compat_query_qp: Unused,
    pub(super) _compat_modify_qp: Unused,
    pub(super) _compat_destroy_qp: Unused,
    pub(super) post_send: unsafe extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int,
    pub(super) post_recv: unsafe extern "C" fn(*mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int,
    pub(super) _compat_create_ah: Unused,
    pub(super) _compat_destroy_ah: Unused,
    pub(super) _compat_attach_mcast: Unused,
    pub(super) _compat_detach_mcast: Unused,
    pub(super) _compat_async_event: Unused,
}

#[repr(C)]
#[derive(Debug)]
pub(super) struct ibv_context {
    pub(super) device: *mut ibv_device,
    pub(super) ops: ibv_context_ops,
    pub(super) cmd_fd: c_int,
    pub(super) async_fd: c_int,
}

#[repr(C)]
#[derive(Debug)]
pub(super) struct ibv_comp_channel {
    pub(super) context: *mut ibv_context,
    pub(super) fd: c_int,
}

#[repr(C)]
#[derive(Debug)]
pub(super) struct ibv_cq {
    pub(super) context: *mut ibv_context,
    pub(super) channel: *mut ibv_comp_channel,
    pub(super) cq_context: *mut c_void,
    pub(super) handle: u32,
    pub(super) cqe: c_int,
}

#[repr(C)]
#[derive(Debug)]
pub(super) struct ibv_srq {
    pub(super) context: *mut ibv_context,
}

#[repr(C)]
#[derive(Debug)]
pub(super) struct ibv_qp {
    pub(super) context: *mut ibv_context,
    pub(super) qp_context: *mut c_void,
    pub(super) pd: *mut ibv_pd,
    pub(super) send_cq: *mut ibv_cq,
    pub(super) recv_cq: *mut ibv_cq,
    pub(super) srq: *mut ibv_srq,
    pub(super) handle: u32,
    pub(super) qp_num: u32,
}

#[repr(C)]
#[derive(Debug)]
pub(super) struct ibv_mr {
    pub(super) context: *mut ibv_context,
    pub(super) pd: *mut ibv_pd,
    pub(super) addr: *mut c_void,
    pub(super) length: usize,
    pub(super) handle: u32,
    pub(super) lkey: u32,
    pub(super) rkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct ibv_device_attr {
    pub(super) fw_ver: [c_char; 64],
    pub(super) node_guid: u64,
    pub(super) sys_image_guid: u64,
    pub(super) max_mr_size: u64,
    pub(super) page_size_cap: u64,
    pub(super) vendor_id: u32,
    pub(super) vendor_part_id: u32,
    pub(super) hw_ver: u32,
    pub(super) max_qp: c_int,
    pub(super) max_qp_wr: c_int,
    pub(super) device_cap_flags: c_uint,
    pub(super) max_sge: c_int,
    pub(super) max_sge_rd: c_int,
    pub(super) max_cq: c_int,
    pub(super) max_cqe: c_int,
    pub(super) max_mr: c_int,
    pub(super) max_pd: c_int,
    pub(super) max_qp_rd_atom: c_int,
    pub(super) max_ee_rd_atom: c_int,
    pub(super) max_res_rd_atom: c_int,
    pub(super) max_qp_init_rd_atom: c_int,
    pub(super) max_ee_init_rd_atom: c_int,
    pub(super) atomic_cap: c_int,
    pub(super) max_ee: c_int,
    pub(super) max_rdd: c_int,
    pub(super) max_mw: c_int,
    pub(super) max_raw_ipv6_qp: c_int,
    pub(super) max_raw_ethy_qp: c_int,
    pub(super) max_mcast_grp: c_int,
    pub(super) max_mcast_qp_attach: c_int,
    pub(super) max_total_mcast_qp_attach: c_int,
    pub(super) max_ah: c_int,
    pub(super) max_fmr: c_int,
    pub(super) max_map_per_fmr: c_int,
    pub(super) max_srq: c_int,
    pub(super) max_srq_wr: c_int,
    pub(super) max_srq_sge: c_int,
    pub(super) max_pkeys: u16,
    pub(super) local_ca_ack_delay: u8,
    pub(super) phys_port_cnt: u8,
}

/// The symbol `ibv_query_port` fills it but for the last field, which the header's inline function would ask the driver for.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct ibv_port_attr {
    pub(super) state: c_int,
    pub(super) max_mtu: c_int,
    pub(super) active_mtu: c_int,
    pub(super) gid_tbl_len: c_int,
    pub(super) port_cap_flags: u32,
    pub(super) max_msg_sz: u32,
    pub(super) bad_pkey_cntr: u32,
    pub(super) qkey_viol_cntr: u32,
    pub(super) pkey_tbl_len: u16,
    pub(super) lid: u16,
    pub(super) sm_lid: u16,
    pub(super) lmc: u8,
    pub(super) max_vl_num: u8,
    pub(super) sm_sl: u8,
    pub(super) subnet_timeout: u8,
    pub(super) init_type_reply: u8,
    pub(super) active_width: u8,
    pub(super) active_speed: u8,
    pub(super) phys_state: u8,
    pub(super) link_layer: u8,
    pub(super) flags: u8,
    pub(super) port_cap_flags2: u16,
}

/// A union in the header, of bytes and of two numbers of eight bytes: hence the alignment.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ibv_gid {
    pub(super) raw: [u8; 16],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct ibv_global_route {
    pub(super) dgid: ibv_gid,
    pub(super) flow_label: u32,
    pub(super) sgid_index: u8,
    pub(super) hop_limit: u8,
    pub(super) traffic_class: u8,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct ibv_ah_attr {
    pub(super) grh: ibv_global_route,
    pub(super) dlid: u16,
    pub(super) sl: u8,
    pub(super) src_path_bits: u8,
    pub(super) static_rate: u8,
    pub(super) is_global: u8,
    pub(super) port_num: u8,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct ibv_srq_attr {
    pub(super) max_wr: u32,
    pub(super) max_sge: u32,
    pub(super) srq_limit: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct ibv_srq_init_attr {
    pub(super) srq_context: *mut c_void,
    pub(super) attr: ibv_srq_attr,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct ibv_qp_cap {
    pub(super) max_send_wr: u32,
    pub(super) max_recv_wr: u32,
    pub(super) max_send_sge: u32,
    pub(super) max_recv_sge: u32,
    pub(super) max_inline_data: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct ibv_qp_init_attr {
    pub(super) qp_context: *mut c_void,
    pub(super) send_cq: *mut ibv_cq,
    pub(super) recv_cq: *mut ibv_cq,
    pub(super) srq: *mut ibv_srq,
    pub(super) cap: ibv_qp_cap,
    pub(super) qp_type: c_int,
    pub(super) sq_sig_all: c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct ibv_qp_attr {
    pub(super) qp_state: c_int,
    pub(super) cur_qp_state: c_int,
    pub(super) path_mtu: c_int,
    pub(super) path_mig_state: c_int,
    pub(super) qkey: u32,
    pub(super) rq_psn: u32,
    pub(super) sq_psn: u32,
    pub(super) dest_qp_num: u32,
    pub(super) qp_access_flags: c_uint,
    pub(super) cap: ibv_qp_cap,
    pub(super) ah_attr: ibv_ah_attr,
    pub(super) alt_ah_attr: ibv_ah_attr,
    pub(super) pkey_index: u16,
    pub(super) alt_pkey_index: u16,
    pub(super) en_sqd_async_notify: u8,
    pub(super) sq_draining: u8,
    pub(super) max_rd_atomic: u8,
    pub(super) max_dest_rd_atomic: u8,
    pub(super) min_rnr_timer: u8,
    pub(super) port_num: u8,
    pub(super) timeout: u8,
    pub(super) retry_cnt: u8,
    pub(super) rnr_retry: u8,
    pub(super) alt_port_num: u8,
    pub(super) alt_timeout: u8,
    pub(super) rate_limit: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct ibv_sge {
    pub(super) addr: u64,
    pub(super) length: u32,
    pub(super) lkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct ibv_send_wr_rdma {
    pub(super) remote_addr: u64,
    pub(super) rkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct ibv_send_wr_atomic {
    pub(super) remote_addr: u64,
    pub(super) compare_add: u64,
    pub(super) swap: u64,
    pub(super) rkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct ibv_send_wr_ud {
    pub(super) ah: *mut ibv_ah,
    pub(super) remote_qpn: u32,
    pub(super) remote_qkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) union ibv_send_wr_wr {
    pub(super) rdma: ibv_send_wr_rdma,
    pub(super) atomic: ibv_send_wr_atomic,
    pub(super) ud: ibv_send_wr_ud,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ibv_send_wr {
    pub(super) wr_id: u64,
    pub(super) next: *mut ibv_send_wr,
    pub(super) sg_list: *mut ibv_sge,
    pub(super) num_sge: c_int,
    pub(super) opcode: c_int,
    pub(super) send_flags: c_uint,
    /// In network byte order.
    pub(super) imm_data: u32,
    pub(super) wr: ibv_send_wr_wr,
    pub(super) qp_type: u32,
    /// What binds memory windows.
    pub(super) bind_mw: [u64; 6],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct ibv_recv_wr {
    pub(super) wr_id: u64,
    pub(super) next: *mut ibv_recv_wr,
    pub(super) sg_list: *mut ibv_sge,
    pub(super) num_sge: c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct ibv_wc {
    pub(super) wr_id: u64,
    pub(super) status: c_int,
    pub(super) opcode: c_int,
    pub(super) vendor_err: u32,
    pub(super) byte_len: u32,
    /// In network byte order.
    pub(super) imm_data: u32,
    pub(super) qp_num: u32,
    pub(super) src_qp: u32,
    pub(super) wc_flags: c_uint,
    pub(super) pkey_index: u16,
    pub(super) slid: u16,
    pub(super) sl: u8,
    pub(super) dlid_path_bits: u8,
}

/// What it is about: a union of pointers and a port's number.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) union ibv_async_event_element {
    pub(super) cq: *mut ibv_cq,
    pub(super) qp: *mut ibv_qp,
    pub(super) srq: *mut ibv_srq,
    pub(super) port_num: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ibv_async_event {
    pub(super) element: ibv_async_event_element,
    pub(super) event_type: c_int,
}

pub(super) const IBV_FORK_UNNEEDED: c_int = 2;

pub(super) const IBV_PORT_DOWN: c_int = 1;
pub(super) const IBV_PORT_INIT: c_int = 2;
pub(super) const IBV_PORT_ARMED: c_int = 3;
pub(super) const IBV_PORT_ACTIVE: c_int = 4;
pub(super) const IBV_LINK_LAYER_ETHERNET: u8 = 2;

pub(super) const IBV_ACCESS_LOCAL_WRITE: c_int = 1;
pub(super) const IBV_ACCESS_REMOTE_WRITE: c_int = 1 << 1;
pub(super) const IBV_ACCESS_REMOTE_READ: c_int = 1 << 2;
pub(super) const IBV_ACCESS_REMOTE_ATOMIC: c_int = 1 << 3;

pub(super) const IBV_QPT_RC: c_int = 2;
pub(super) const IBV_QPT_UD: c_int = 4;

pub(super) const IBV_QPS_RESET: c_int = 0;
pub(super) const IBV_QPS_INIT: c_int = 1;
pub(super) const IBV_QPS_RTR: c_int = 2;
pub(super) const IBV_QPS_RTS: c_int = 3;
pub(super) const IBV_QPS_ERR: c_int = 6;

pub(super) const IBV_QP_STATE: c_int = 1;
pub(super) const IBV_QP_ACCESS_FLAGS: c_int = 1 << 3;
pub(super) const IBV_QP_PKEY_INDEX: c_int = 1 << 4;
pub(super) const IBV_QP_PORT: c_int = 1 << 5;
pub(super) const IBV_QP_QKEY: c_int = 1 << 6;
pub(super) const IBV_QP_AV: c_int = 1 << 7;
pub(super) const IBV_QP_PATH_MTU: c_int = 1 << 8;
pub(super) const IBV_QP_TIMEOUT: c_int = 1 << 9;
pub(super) const IBV_QP_RETRY_CNT: c_int = 1 << 10;
pub(super) const IBV_QP_RNR_RETRY: c_int = 1 << 11;
pub(super) const IBV_QP_RQ_PSN: c_int = 1 << 12;
pub(super) const IBV_QP_MAX_QP_RD_ATOMIC: c_int = 1 << 13;
pub(super) const IBV_QP_MIN_RNR_TIMER: c_int = 1 << 15;
pub(super) const IBV_QP_SQ_PSN: c_int = 1 << 16;
pub(super) const IBV_QP_MAX_DEST_RD_ATOMIC: c_int = 1 << 17;
pub(super) const IBV_QP_DEST_QPN: c_int = 1 << 20;

pub(super) const IBV_WR_RDMA_WRITE: c_int = 0;
pub(super) const IBV_WR_SEND: c_int = 2;
pub(super) const IBV_WR_SEND_WITH_IMM: c_int = 3;
pub(super) const IBV_WR_RDMA_READ: c_int = 4;
pub(super) const IBV_WR_ATOMIC_CMP_AND_SWP: c_int = 5;
pub(super) const IBV_WR_ATOMIC_FETCH_AND_ADD: c_int = 6;

pub(super) const IBV_SEND_FENCE: c_uint = 1;
pub(super) const IBV_SEND_SIGNALED: c_uint = 1 << 1;
pub(super) const IBV_SEND_INLINE: c_uint = 1 << 3;

pub(super) const IBV_WC_SUCCESS: c_int = 0;
pub(super) const IBV_WC_LOC_LEN_ERR: c_int = 1;
pub(super) const IBV_WC_LOC_PROT_ERR: c_int = 4;
pub(super) const IBV_WC_WR_FLUSH_ERR: c_int = 5;
pub(super) const IBV_WC_LOC_ACCESS_ERR: c_int = 8;
pub(super) const IBV_WC_REM_INV_REQ_ERR: c_int = 9;
pub(super) const IBV_WC_REM_ACCESS_ERR: c_int = 10;
pub(super) const IBV_WC_REM_OP_ERR: c_int = 11;
pub(super) const IBV_WC_RETRY_EXC_ERR: c_int = 12;
pub(super) const IBV_WC_RNR_RETRY_EXC_ERR: c_int = 13;

pub(super) const IBV_WC_SEND: c_int = 0;
pub(super) const IBV_WC_RDMA_WRITE: c_int = 1;
pub(super) const IBV_WC_RDMA_READ: c_int = 2;
pub(super) const IBV_WC_COMP_SWAP: c_int = 3;
pub(super) const IBV_WC_FETCH_ADD: c_int = 4;
pub(super) const IBV_WC_RECV: c_int = 128;

pub(super) const IBV_WC_GRH: c_uint = 1;
pub(super) const IBV_WC_WITH_IMM: c_uint = 1 << 1;

pub(super) const IBV_EVENT_CQ_ERR: c_int = 0;
pub(super) const IBV_EVENT_QP_FATAL: c_int = 1;
pub(super) const IBV_EVENT_QP_REQ_ERR: c_int = 2;
pub(super) const IBV_EVENT_QP_ACCESS_ERR: c_int = 3;
pub(super) const IBV_EVENT_DEVICE_FATAL: c_int = 8;
pub(super) const IBV_EVENT_SRQ_ERR: c_int = 14;
