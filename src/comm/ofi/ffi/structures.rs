//! Structures of the header. Those that the library allocates are declared as far as their fields are used, and handled only by pointer.

use std::ffi::{c_char, c_int, c_void};

/// An entry of a table that is not called.
type Uncalled = Option<unsafe extern "C" fn()>;

/// An enumeration.
type Enumeration = u32;

macro_rules! structures {
    ($($(#[$attribute:meta])* $name:ident { $($field:ident: $type:ty),* $(,)? })*) => {
        $(
            $(#[$attribute])*
            #[derive(Clone, Copy, Debug)]
            #[repr(C)]
            pub(crate) struct $name {
                $(pub(crate) $field: $type),*
            }
        )*
    };
}

structures! {
    fi_info {
        next: *mut fi_info,
        caps: u64,
        mode: u64,
        addr_format: u32,
        src_addrlen: usize,
        dest_addrlen: usize,
        src_addr: *mut c_void,
        dest_addr: *mut c_void,
        handle: *mut fid,
        tx_attr: *mut fi_tx_attr,
        rx_attr: *mut fi_rx_attr,
        ep_attr: *mut fi_ep_attr,
        domain_attr: *mut fi_domain_attr,
        fabric_attr: *mut fi_fabric_attr,
    }
    fi_tx_attr {
        caps: u64,
        mode: u64,
        op_flags: u64,
        msg_order: u64,
        comp_order: u64,
        inject_size: usize,
        size: usize,
    }
    fi_rx_attr { caps: u64, mode: u64, op_flags: u64, msg_order: u64, comp_order: u64, total_buffered_recv: usize, size: usize }
    fi_ep_attr {
        r#type: Enumeration,
        protocol: u32,
        protocol_version: u32,
        max_msg_size: usize,
        msg_prefix_size: usize,
        max_order_raw_size: usize,
        max_order_war_size: usize,
        max_order_waw_size: usize,
    }
    fi_domain_attr {
        domain: *mut fid_domain,
        name: *mut c_char,
        threading: Enumeration,
        control_progress: Enumeration,
        data_progress: Enumeration,
        resource_mgmt: Enumeration,
        av_type: Enumeration,
        mr_mode: c_int,
        mr_key_size: usize,
    }
    fi_fabric_attr { fabric: *mut fid_fabric, name: *mut c_char, prov_name: *mut c_char, prov_version: u32 }
    fid { fclass: usize, context: *mut c_void, ops: *mut fi_ops }
    fi_ops {
        size: usize,
        close: Option<unsafe extern "C" fn(*mut fid) -> c_int>,
        bind: Option<unsafe extern "C" fn(*mut fid, *mut fid, u64) -> c_int>,
        control: Option<unsafe extern "C" fn(*mut fid, c_int, *mut c_void) -> c_int>,
    }
    fid_fabric { fid: fid, ops: *mut fi_ops_fabric }
    fi_ops_fabric {
        size: usize,
        domain: Option<unsafe extern "C" fn(*mut fid_fabric, *mut fi_info, *mut *mut fid_domain, *mut c_void) -> c_int>,
        passive_ep: Uncalled,
        eq_open: Uncalled,
        wait_open: Uncalled,
        trywait: Option<unsafe extern "C" fn(*mut fid_fabric, *mut *mut fid, c_int) -> c_int>,
    }
    fid_domain { fid: fid, ops: *mut fi_ops_domain, mr: *mut fi_ops_mr }
    fi_ops_domain {
        size: usize,
        av_open: Option<unsafe extern "C" fn(*mut fid_domain, *mut fi_av_attr, *mut *mut fid_av, *mut c_void) -> c_int>,
        cq_open: Option<unsafe extern "C" fn(*mut fid_domain, *mut fi_cq_attr, *mut *mut fid_cq, *mut c_void) -> c_int>,
        endpoint: Option<unsafe extern "C" fn(*mut fid_domain, *mut fi_info, *mut *mut fid_ep, *mut c_void) -> c_int>,
    }
    fi_ops_mr {
        size: usize,
        reg: Option<unsafe extern "C" fn(*mut fid, *const c_void, usize, u64, u64, u64, u64, *mut *mut fid_mr, *mut c_void) -> c_int>,
    }
    fid_mr { fid: fid, mem_desc: *mut c_void, key: u64 }
    fi_av_attr {
        r#type: Enumeration,
        rx_ctx_bits: c_int,
        count: usize,
        ep_per_node: usize,
        name: *const c_char,
        map_addr: *mut c_void,
        flags: u64,
    }
    fid_av { fid: fid, ops: *mut fi_ops_av }
    fi_ops_av {
        size: usize,
        insert: Option<unsafe extern "C" fn(*mut fid_av, *const c_void, usize, *mut u64, u64, *mut c_void) -> c_int>,
    }
    fi_cq_attr {
        size: usize,
        flags: u64,
        format: Enumeration,
        wait_obj: Enumeration,
        signaling_vector: c_int,
        wait_cond: Enumeration,
        wait_set: *mut c_void,
    }
    fid_cq { fid: fid, ops: *mut fi_ops_cq }
    fi_ops_cq {
        size: usize,
        read: Option<unsafe extern "C" fn(*mut fid_cq, *mut c_void, usize) -> isize>,
        readfrom: Uncalled,
        readerr: Option<unsafe extern "C" fn(*mut fid_cq, *mut fi_cq_err_entry, u64) -> isize>,
    }
    fi_cq_msg_entry { op_context: *mut c_void, flags: u64, len: usize }
    fi_cq_err_entry {
        op_context: *mut c_void,
        flags: u64,
        len: usize,
        buf: *mut c_void,
        data: u64,
        tag: u64,
        olen: usize,
        err: c_int,
        prov_errno: c_int,
        err_data: *mut c_void,
        err_data_size: usize,
    }
    fid_ep { fid: fid, ops: *mut c_void, cm: *mut fi_ops_cm, msg: *mut fi_ops_msg, rma: *mut fi_ops_rma }
    fi_ops_cm {
        size: usize,
        setname: Uncalled,
        getname: Option<unsafe extern "C" fn(*mut fid, *mut c_void, *mut usize) -> c_int>,
    }
    fi_ops_msg {
        size: usize,
        recv: Option<unsafe extern "C" fn(*mut fid_ep, *mut c_void, usize, *mut c_void, u64, *mut c_void) -> isize>,
        recvv: Uncalled,
        recvmsg: Uncalled,
        send: Option<unsafe extern "C" fn(*mut fid_ep, *const c_void, usize, *mut c_void, u64, *mut c_void) -> isize>,
        sendv: Uncalled,
        sendmsg: Uncalled,
        inject: Option<unsafe extern "C" fn(*mut fid_ep, *const c_void, usize, u64) -> isize>,
    }
    fi_ops_rma {
        size: usize,
        read: Option<unsafe extern "C" fn(*mut fid_ep, *mut c_void, usize, *mut c_void, u64, u64, u64, *mut c_void) -> isize>,
        readv: Uncalled,
        readmsg: Uncalled,
        write: Uncalled,
        writev: Uncalled,
        writemsg: Option<unsafe extern "C" fn(*mut fid_ep, *const fi_msg_rma, u64) -> isize>,
        inject: Option<unsafe extern "C" fn(*mut fid_ep, *const c_void, usize, u64, u64, u64) -> isize>,
    }
    fi_rma_iov { addr: u64, len: usize, key: u64 }
    fi_msg_rma {
        msg_iov: *const libc::iovec,
        desc: *mut *mut c_void,
        iov_count: usize,
        addr: u64,
        rma_iov: *const fi_rma_iov,
        rma_iov_count: usize,
        context: *mut c_void,
        data: u64,
    }
}
