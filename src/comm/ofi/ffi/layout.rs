//! Compares the declarations here with the header of libfabric: structures, constants, and the types of functions.

use std::{collections::BTreeSet, mem::align_of};

use super::*;
use crate::comm::testing::header::{Known, compare, constants, in_c, missing, names, skipped, structures};

const HEADERS: &str = "rdma/fi_rma.h";
const MORE: &str = "#include <rdma/fi_cm.h>\n#include <rdma/fi_domain.h>\n#include <rdma/fi_endpoint.h>\n#include <rdma/fi_eq.h>";
const PACKAGE: &str = "libfabric-dev";

fn known() -> Vec<Known> {
    let mut known = Vec::new();
    structures! { known:
        part fi_info {
            next caps mode addr_format src_addrlen dest_addrlen src_addr dest_addr handle tx_attr rx_attr ep_attr domain_attr fabric_attr
        }
        part fi_tx_attr { caps mode op_flags msg_order comp_order inject_size size }
        part fi_rx_attr { caps mode op_flags msg_order comp_order total_buffered_recv size }
        part fi_ep_attr {
            r#type protocol protocol_version max_msg_size msg_prefix_size max_order_raw_size max_order_war_size max_order_waw_size
        }
        part fi_domain_attr {
            domain name threading control_progress data_progress resource_mgmt av_type mr_mode mr_key_size
        }
        part fi_fabric_attr { fabric name prov_name prov_version }
        whole fid { fclass context ops }
        part fi_ops { size close bind control }
        part fid_fabric { fid ops }
        part fi_ops_fabric { size domain passive_ep eq_open wait_open trywait }
        part fid_domain { fid ops mr }
        part fi_ops_domain { size av_open cq_open endpoint }
        part fi_ops_mr { size reg }
        part fid_mr { fid mem_desc key }
        whole fi_av_attr { r#type rx_ctx_bits count ep_per_node name map_addr flags }
        part fid_av { fid ops }
        part fi_ops_av { size insert }
        whole fi_cq_attr { size flags format wait_obj signaling_vector wait_cond wait_set }
        part fid_cq { fid ops }
        part fi_ops_cq { size read readfrom readerr }
        whole fi_cq_msg_entry { op_context flags len }
        whole fi_cq_err_entry { op_context flags len buf data tag olen err prov_errno err_data err_data_size }
        part fid_ep { fid ops cm msg rma }
        part fi_ops_cm { size setname getname }
        part fi_ops_msg { size recv recvv recvmsg send sendv sendmsg inject }
        part fi_ops_rma { size read readv readmsg write writev writemsg inject }
        whole fi_rma_iov { addr len key }
        whole fi_msg_rma { msg_iov desc iov_count addr rma_iov rma_iov_count context data }
    }
    // As the 64 bits that they are.
    macro_rules! flags {
        ($($name:ident)*) => { $(known.push((format!("(int64_t){}", stringify!($name)), $name as i64));)* };
    }
    flags! {
        FI_MSG FI_RMA FI_READ FI_WRITE FI_RECV FI_SEND FI_REMOTE_READ FI_REMOTE_WRITE FI_COMPLETION FI_DELIVERY_COMPLETE FI_CONTEXT
        FI_CONTEXT2 FI_ORDER_RAW FI_ORDER_WAW FI_ORDER_SAW FI_ORDER_SAS FI_FENCE FI_ADDR_UNSPEC
    }
    constants! { known:
        FI_MR_LOCAL FI_MR_VIRT_ADDR FI_MR_ALLOCATED FI_MR_PROV_KEY FI_MR_ENDPOINT FI_EP_RDM FI_AV_TABLE FI_THREAD_DOMAIN FI_RM_ENABLED
        FI_CQ_FORMAT_MSG FI_WAIT_NONE FI_WAIT_FD FI_GETWAIT FI_ENABLE FI_EAGAIN FI_EAVAIL
    }
    known.extend(Functions::DECLARED.iter().map(|&(name, arguments, result)| {
        let arguments: Vec<String> = arguments.iter().map(|argument| in_c(argument)).collect();
        let result = if result.is_empty() { "void".to_owned() } else { in_c(result) };
        (format!("__builtin_types_compatible_p(__typeof__({name}), {result} ({}))", arguments.join(", ")), 1)
    }));
    known
}

/// Entries of tables that are called, by the types that `structures` gives their arguments.
const ENTRIES: [(&str, &str, &str); 19] = [
    ("fi_ops", "close", "int (*)(struct fid *)"),
    ("fi_ops", "bind", "int (*)(struct fid *, struct fid *, uint64_t)"),
    ("fi_ops", "control", "int (*)(struct fid *, int, void *)"),
    ("fi_ops_fabric", "domain", "int (*)(struct fid_fabric *, struct fi_info *, struct fid_domain **, void *)"),
    ("fi_ops_domain", "av_open", "int (*)(struct fid_domain *, struct fi_av_attr *, struct fid_av **, void *)"),
    ("fi_ops_domain", "cq_open", "int (*)(struct fid_domain *, struct fi_cq_attr *, struct fid_cq **, void *)"),
    ("fi_ops_domain", "endpoint", "int (*)(struct fid_domain *, struct fi_info *, struct fid_ep **, void *)"),
    (
        "fi_ops_mr",
        "reg",
        "int (*)(struct fid *, const void *, size_t, uint64_t, uint64_t, uint64_t, uint64_t, struct fid_mr **, void *)",
    ),
    ("fi_ops_av", "insert", "int (*)(struct fid_av *, const void *, size_t, fi_addr_t *, uint64_t, void *)"),
    ("fi_ops_cq", "read", "ssize_t (*)(struct fid_cq *, void *, size_t)"),
    ("fi_ops_cq", "readerr", "ssize_t (*)(struct fid_cq *, struct fi_cq_err_entry *, uint64_t)"),
    ("fi_ops_cm", "getname", "int (*)(struct fid *, void *, size_t *)"),
    ("fi_ops_msg", "send", "ssize_t (*)(struct fid_ep *, const void *, size_t, void *, fi_addr_t, void *)"),
    ("fi_ops_msg", "recv", "ssize_t (*)(struct fid_ep *, void *, size_t, void *, fi_addr_t, void *)"),
    ("fi_ops_msg", "inject", "ssize_t (*)(struct fid_ep *, const void *, size_t, fi_addr_t)"),
    ("fi_ops_fabric", "trywait", "int (*)(struct fid_fabric *, struct fid **, int)"),
    ("fi_ops_rma", "read", "ssize_t (*)(struct fid_ep *, void *, size_t, void *, fi_addr_t, uint64_t, uint64_t, void *)"),
    ("fi_ops_rma", "inject", "ssize_t (*)(struct fid_ep *, const void *, size_t, fi_addr_t, uint64_t, uint64_t)"),
    ("fi_ops_rma", "writemsg", "ssize_t (*)(struct fid_ep *, const struct fi_msg_rma *, uint64_t)"),
];

#[test]
fn layout_is_that_of_the_header() {
    if let Some(why) = missing(HEADERS, PACKAGE) {
        return skipped("layout of libfabric", &why);
    }
    let mut known = known();
    known.extend(ENTRIES.map(|(table, entry, signature)| {
        (format!("__builtin_types_compatible_p(__typeof__(((struct {table} *)0)->{entry}), {signature})"), 1)
    }));
    compare(HEADERS, MORE, &known);
}

#[test]
fn all_that_is_declared_is_compared() {
    let source = [include_str!("structures.rs"), include_str!("constants.rs")].concat();
    let compared: BTreeSet<String> = known().iter().flat_map(|(expression, _)| names(expression)).collect();
    let declared = source.lines().filter_map(|line| {
        let constant = line.strip_prefix("pub(crate) const ");
        let structure = line.strip_prefix("    ").filter(|rest| rest.starts_with("fi") && rest.contains('{'));
        constant.or(structure)?.split(|c: char| !c.is_alphanumeric() && c != '_').next()
    });
    let (mut count, mut missing) = (0, Vec::new());
    for name in declared {
        count += 1;
        if !compared.contains(name) {
            missing.push(name);
        }
    }
    assert!(count > 50 && missing.is_empty(), "{count} declared, not compared: {missing:?}");
}
