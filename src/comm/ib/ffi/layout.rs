//! Compares the declarations here with the header of libibverbs: structures, constants, and the types of functions. No name can be forgotten
//! (`all_that_is_declared_is_compared`).

use std::{
    collections::BTreeSet,
    ffi::{CStr, CString, c_void},
    mem::{align_of, size_of},
};

use super::*;
use crate::comm::testing::header::{Known, compare, constants, field, in_c, missing, names, skipped, structures};

const HEADER: &str = "infiniband/verbs.h";

/// Debian's package of the header.
const PACKAGE: &str = "libibverbs-dev";

fn known() -> Vec<Known> {
    let mut known = Vec::new();
    structures! { known:
        part ibv_context { device ops cmd_fd async_fd }
        part ibv_comp_channel { context fd }
        part ibv_cq { context channel cq_context handle cqe }
        part ibv_srq { context }
        part ibv_qp { context qp_context pd send_cq recv_cq srq handle qp_num }
        whole ibv_mr { context pd addr length handle lkey rkey }
        whole ibv_context_ops {
            _compat_query_device _compat_query_port _compat_alloc_pd _compat_dealloc_pd _compat_reg_mr _compat_rereg_mr
            _compat_dereg_mr alloc_mw bind_mw dealloc_mw _compat_create_cq poll_cq req_notify_cq _compat_cq_event
            _compat_resize_cq _compat_destroy_cq _compat_create_srq _compat_modify_srq _compat_query_srq _compat_destroy_srq
            post_srq_recv _compat_create_qp _compat_query_qp _compat_modify_qp _compat_destroy_qp post_send post_recv
            _compat_create_ah _compat_destroy_ah _compat_attach_mcast _compat_detach_mcast _compat_async_event
        }
        whole ibv_device_attr {
            fw_ver node_guid sys_image_guid max_mr_size page_size_cap vendor_id vendor_part_id hw_ver max_qp max_qp_wr
            device_cap_flags max_sge max_sge_rd max_cq max_cqe max_mr max_pd max_qp_rd_atom max_ee_rd_atom max_res_rd_atom
            max_qp_init_rd_atom max_ee_init_rd_atom atomic_cap max_ee max_rdd max_mw max_raw_ipv6_qp max_raw_ethy_qp
            max_mcast_grp max_mcast_qp_attach max_total_mcast_qp_attach max_ah max_fmr max_map_per_fmr max_srq max_srq_wr
            max_srq_sge max_pkeys local_ca_ack_delay phys_port_cnt
        }
        whole ibv_port_attr {
            state max_mtu active_mtu gid_tbl_len port_cap_flags max_msg_sz bad_pkey_cntr qkey_viol_cntr pkey_tbl_len lid sm_lid
            lmc max_vl_num sm_sl subnet_timeout init_type_reply active_width active_speed phys_state link_layer flags
            port_cap_flags2
        }
        whole ibv_async_event { element event_type }
        whole ibv_global_route { dgid flow_label sgid_index hop_limit traffic_class }
        whole ibv_ah_attr { grh dlid sl src_path_bits static_rate is_global port_num }
        whole ibv_srq_attr { max_wr max_sge srq_limit }
        whole ibv_srq_init_attr { srq_context attr }
        whole ibv_qp_cap { max_send_wr max_recv_wr max_send_sge max_recv_sge max_inline_data }
        whole ibv_qp_init_attr { qp_context send_cq recv_cq srq cap qp_type sq_sig_all }
        whole ibv_qp_attr {
            qp_state cur_qp_state path_mtu path_mig_state qkey rq_psn sq_psn dest_qp_num qp_access_flags cap ah_attr alt_ah_attr
            pkey_index alt_pkey_index en_sqd_async_notify sq_draining max_rd_atomic max_dest_rd_atomic min_rnr_timer port_num
            timeout retry_cnt rnr_retry alt_port_num alt_timeout rate_limit
        }
        whole ibv_sge { addr length lkey }
        whole ibv_send_wr { wr_id next sg_list num_sge opcode send_flags imm_data wr qp_type bind_mw }
        whole ibv_recv_wr { wr_id next sg_list num_sge }
        whole ibv_wc {
            wr_id status opcode vendor_err byte_len imm_data qp_num src_qp wc_flags pkey_index slid sl dlid_path_bits
        }
    }
    known.push(("sizeof(union ibv_gid)".to_owned(), size_of::<ibv_gid>() as i64));
    known.push(("_Alignof(union ibv_gid)".to_owned(), align_of::<ibv_gid>() as i64));
    field!(known, "union ibv_gid", ibv_gid, raw);
    field!(known, "struct ibv_async_event", ibv_async_event, element.cq);
    field!(known, "struct ibv_async_event", ibv_async_event, element.qp);
    field!(known, "struct ibv_async_event", ibv_async_event, element.srq);
    field!(known, "struct ibv_async_event", ibv_async_event, element.port_num);
    // Structures without a name in the header: by what they are part of.
    let c = "struct ibv_send_wr";
    known.push((format!("sizeof((({c} *)0)->wr)"), size_of::<ibv_send_wr_wr>() as i64));
    known.push((format!("sizeof((({c} *)0)->wr.rdma)"), size_of::<ibv_send_wr_rdma>() as i64));
    known.push((format!("sizeof((({c} *)0)->wr.atomic)"), size_of::<ibv_send_wr_atomic>() as i64));
    known.push((format!("sizeof((({c} *)0)->wr.ud)"), size_of::<ibv_send_wr_ud>() as i64));
    field!(known, c, ibv_send_wr, wr.rdma.remote_addr);
    field!(known, c, ibv_send_wr, wr.rdma.rkey);
    field!(known, c, ibv_send_wr, wr.atomic.remote_addr);
    field!(known, c, ibv_send_wr, wr.atomic.compare_add);
    field!(known, c, ibv_send_wr, wr.atomic.swap);
    field!(known, c, ibv_send_wr, wr.atomic.rkey);
    field!(known, c, ibv_send_wr, wr.ud.ah);
    field!(known, c, ibv_send_wr, wr.ud.remote_qpn);
    field!(known, c, ibv_send_wr, wr.ud.remote_qkey);
    constants! { known:
        IBV_FORK_UNNEEDED IBV_PORT_DOWN IBV_PORT_INIT IBV_PORT_ARMED IBV_PORT_ACTIVE IBV_LINK_LAYER_ETHERNET
        IBV_QPF_GRH_REQUIRED
        IBV_ACCESS_LOCAL_WRITE IBV_ACCESS_REMOTE_WRITE IBV_ACCESS_REMOTE_READ IBV_ACCESS_REMOTE_ATOMIC IBV_QPT_RC IBV_QPT_UD
        IBV_QPS_RESET IBV_QPS_INIT IBV_QPS_RTR IBV_QPS_RTS IBV_QPS_ERR IBV_QP_STATE IBV_QP_ACCESS_FLAGS IBV_QP_PKEY_INDEX
        IBV_QP_PORT IBV_QP_QKEY IBV_QP_AV IBV_QP_PATH_MTU IBV_QP_TIMEOUT IBV_QP_RETRY_CNT IBV_QP_RNR_RETRY IBV_QP_RQ_PSN
        IBV_QP_MAX_QP_RD_ATOMIC IBV_QP_MIN_RNR_TIMER IBV_QP_SQ_PSN IBV_QP_MAX_DEST_RD_ATOMIC IBV_QP_DEST_QPN IBV_WR_RDMA_WRITE
        IBV_WR_SEND IBV_WR_SEND_WITH_IMM IBV_WR_RDMA_READ IBV_WR_ATOMIC_CMP_AND_SWP IBV_WR_ATOMIC_FETCH_AND_ADD IBV_SEND_FENCE
        IBV_SEND_SIGNALED IBV_SEND_SOLICITED IBV_SEND_INLINE IBV_WC_SUCCESS IBV_WC_LOC_LEN_ERR
        IBV_WC_LOC_PROT_ERR IBV_WC_WR_FLUSH_ERR IBV_WC_LOC_ACCESS_ERR IBV_WC_REM_INV_REQ_ERR IBV_WC_REM_ACCESS_ERR IBV_WC_REM_OP_ERR
        IBV_WC_RETRY_EXC_ERR IBV_WC_RNR_RETRY_EXC_ERR IBV_WC_SEND IBV_WC_RDMA_WRITE IBV_WC_RDMA_READ IBV_WC_COMP_SWAP
        IBV_WC_FETCH_ADD IBV_WC_RECV IBV_WC_GRH IBV_WC_WITH_IMM IBV_EVENT_CQ_ERR
        IBV_EVENT_QP_FATAL IBV_EVENT_QP_REQ_ERR IBV_EVENT_QP_ACCESS_ERR IBV_EVENT_DEVICE_FATAL IBV_EVENT_SRQ_ERR
    }
    known.extend(Functions::DECLARED.iter().map(|declared| (has_type(declared), 1)));
    known
}

/// An expression that is 1 if a function has the declared type. The one whose argument the header hides behind an inline function
/// is compared with what that passes on.
fn has_type(&(name, arguments, result): &(&str, &[&str], &str)) -> String {
    let mut arguments: Vec<String> =
        arguments.iter().map(|argument| in_c(argument).replace("struct ibv_gid", "union ibv_gid")).collect();
    if name == "ibv_query_port" {
        arguments[2] = "struct _compat_ibv_port_attr *".to_owned();
    }
    let arguments = if arguments.is_empty() { "void".to_owned() } else { arguments.join(", ") };
    let result = if result.is_empty() { "void".to_owned() } else { in_c(result) };
    format!("__builtin_types_compatible_p(__typeof__({name}), {result} ({arguments}))")
}

/// The functions of a context that are called, by the types that `ffi` gives their arguments.
const OPERATIONS: [(&str, &str); 5] = [
    ("poll_cq", "int (*)(struct ibv_cq *, int, struct ibv_wc *)"),
    ("req_notify_cq", "int (*)(struct ibv_cq *, int)"),
    ("post_srq_recv", "int (*)(struct ibv_srq *, struct ibv_recv_wr *, struct ibv_recv_wr **)"),
    ("post_send", "int (*)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **)"),
    ("post_recv", "int (*)(struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **)"),
];

#[test]
fn layout_is_that_of_the_header() {
    if let Some(why) = missing(HEADER, PACKAGE) {
        return skipped("layout of libibverbs", &why);
    }
    let mut known = known();
    known.extend(OPERATIONS.map(|(name, signature)| {
        let pointer = format!("__typeof__(((struct ibv_context_ops *)0)->{name})");
        (format!("__builtin_types_compatible_p({pointer}, {signature})"), 1)
    }));
    compare(HEADER, "#undef ibv_query_port", &known);
}

#[test]
fn all_that_is_declared_is_compared() {
    let source = [include_str!("structures.rs"), include_str!("constants.rs")].concat();
    let compared: BTreeSet<String> = known().iter().flat_map(|(expression, _)| names(expression)).collect();
    let declared = source.lines().filter_map(|line| {
        let rest = ["pub(crate) struct ", "pub(crate) const "].iter().find_map(|start| line.strip_prefix(start))?;
        rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
    });
    let nameless = ["ibv_send_wr_rdma", "ibv_send_wr_atomic", "ibv_send_wr_ud"];
    let (mut count, mut missing) = (0, Vec::new());
    for name in declared.filter(|name| !nameless.contains(name)) {
        count += 1;
        if !compared.contains(name) {
            missing.push(name);
        }
    }
    assert!(count > 70 && missing.is_empty(), "{count} declared, not compared: {missing:?}");
}

/// A symbol that a library has in two versions is found by name as the linker finds it: in the version that is the default.
#[test]
fn functions_are_found_in_the_version_of_the_header() {
    const VERSIONS: [&CStr; 2] = [c"IBVERBS_1.1", c"IBVERBS_1.0"];
    // SAFETY: the library may be loaded at any time; it is never unloaded.
    let library = unsafe { libc::dlopen(c"libibverbs.so.1".as_ptr(), libc::RTLD_NOW) };
    if library.is_null() {
        return skipped("versions of libibverbs", "no libibverbs.so.1 (Debian: libibverbs1)");
    }
    let find = |version: Option<&CStr>, name: &str| -> *mut c_void {
        let name = CString::new(name).expect("no zero");
        match version {
            // SAFETY: a loaded library and texts that end by zero.
            Some(version) => unsafe { libc::dlvsym(library, name.as_ptr(), version.as_ptr()) },
            // SAFETY: as above.
            None => unsafe { libc::dlsym(library, name.as_ptr()) },
        }
    };
    let mut in_both = 0;
    for (name, _, _) in Functions::DECLARED {
        let versions = VERSIONS.map(|version| find(Some(version), name));
        let newest = versions.into_iter().find(|found| !found.is_null());
        assert_eq!(newest, Some(find(None, name)), "{name}");
        in_both += usize::from(versions.iter().all(|found| !found.is_null()) && versions[0] != versions[1]);
    }
    assert!(in_both > 10, "{in_both} have two versions");
}
