//! The constants of the header.

use std::ffi::{c_int, c_uint};

pub(crate) const IBV_FORK_UNNEEDED: c_int = 2;

pub(crate) const IBV_PORT_DOWN: c_int = 1;
pub(crate) const IBV_PORT_INIT: c_int = 2;
pub(crate) const IBV_PORT_ARMED: c_int = 3;
pub(crate) const IBV_PORT_ACTIVE: c_int = 4;
pub(crate) const IBV_LINK_LAYER_ETHERNET: u8 = 2;
pub(crate) const IBV_QPF_GRH_REQUIRED: u8 = 1;

pub(crate) const IBV_ACCESS_LOCAL_WRITE: c_int = 1;
pub(crate) const IBV_ACCESS_REMOTE_WRITE: c_int = 1 << 1;
pub(crate) const IBV_ACCESS_REMOTE_READ: c_int = 1 << 2;
pub(crate) const IBV_ACCESS_REMOTE_ATOMIC: c_int = 1 << 3;

pub(crate) const IBV_QPT_RC: c_int = 2;
pub(crate) const IBV_QPT_UD: c_int = 4;

pub(crate) const IBV_QPS_RESET: c_int = 0;
pub(crate) const IBV_QPS_INIT: c_int = 1;
pub(crate) const IBV_QPS_RTR: c_int = 2;
pub(crate) const IBV_QPS_RTS: c_int = 3;
pub(crate) const IBV_QPS_ERR: c_int = 6;

pub(crate) const IBV_QP_STATE: c_int = 1;
pub(crate) const IBV_QP_ACCESS_FLAGS: c_int = 1 << 3;
pub(crate) const IBV_QP_PKEY_INDEX: c_int = 1 << 4;
pub(crate) const IBV_QP_PORT: c_int = 1 << 5;
pub(crate) const IBV_QP_QKEY: c_int = 1 << 6;
pub(crate) const IBV_QP_AV: c_int = 1 << 7;
pub(crate) const IBV_QP_PATH_MTU: c_int = 1 << 8;
pub(crate) const IBV_QP_TIMEOUT: c_int = 1 << 9;
pub(crate) const IBV_QP_RETRY_CNT: c_int = 1 << 10;
pub(crate) const IBV_QP_RNR_RETRY: c_int = 1 << 11;
pub(crate) const IBV_QP_RQ_PSN: c_int = 1 << 12;
pub(crate) const IBV_QP_MAX_QP_RD_ATOMIC: c_int = 1 << 13;
pub(crate) const IBV_QP_MIN_RNR_TIMER: c_int = 1 << 15;
pub(crate) const IBV_QP_SQ_PSN: c_int = 1 << 16;
pub(crate) const IBV_QP_MAX_DEST_RD_ATOMIC: c_int = 1 << 17;
pub(crate) const IBV_QP_DEST_QPN: c_int = 1 << 20;

pub(crate) const IBV_WR_RDMA_WRITE: c_int = 0;
pub(crate) const IBV_WR_SEND: c_int = 2;
pub(crate) const IBV_WR_SEND_WITH_IMM: c_int = 3;
pub(crate) const IBV_WR_RDMA_READ: c_int = 4;
pub(crate) const IBV_WR_ATOMIC_CMP_AND_SWP: c_int = 5;
pub(crate) const IBV_WR_ATOMIC_FETCH_AND_ADD: c_int = 6;

pub(crate) const IBV_SEND_FENCE: c_uint = 1;
pub(crate) const IBV_SEND_SIGNALED: c_uint = 1 << 1;
pub(crate) const IBV_SEND_SOLICITED: c_uint = 1 << 2;
pub(crate) const IBV_SEND_INLINE: c_uint = 1 << 3;

pub(crate) const IBV_WC_SUCCESS: c_int = 0;
pub(crate) const IBV_WC_LOC_LEN_ERR: c_int = 1;
pub(crate) const IBV_WC_LOC_PROT_ERR: c_int = 4;
pub(crate) const IBV_WC_WR_FLUSH_ERR: c_int = 5;
pub(crate) const IBV_WC_LOC_ACCESS_ERR: c_int = 8;
pub(crate) const IBV_WC_REM_INV_REQ_ERR: c_int = 9;
pub(crate) const IBV_WC_REM_ACCESS_ERR: c_int = 10;
pub(crate) const IBV_WC_REM_OP_ERR: c_int = 11;
pub(crate) const IBV_WC_RETRY_EXC_ERR: c_int = 12;
pub(crate) const IBV_WC_RNR_RETRY_EXC_ERR: c_int = 13;

pub(crate) const IBV_WC_SEND: c_int = 0;
pub(crate) const IBV_WC_RDMA_WRITE: c_int = 1;
pub(crate) const IBV_WC_RDMA_READ: c_int = 2;
pub(crate) const IBV_WC_COMP_SWAP: c_int = 3;
pub(crate) const IBV_WC_FETCH_ADD: c_int = 4;
pub(crate) const IBV_WC_RECV: c_int = 128;

#[cfg_attr(any(not(test), loom), expect(dead_code, reason = "datagrams are known by their receives"))]
pub(crate) const IBV_WC_GRH: c_uint = 1;
pub(crate) const IBV_WC_WITH_IMM: c_uint = 1 << 1;

pub(crate) const IBV_EVENT_CQ_ERR: c_int = 0;
pub(crate) const IBV_EVENT_QP_FATAL: c_int = 1;
pub(crate) const IBV_EVENT_QP_REQ_ERR: c_int = 2;
pub(crate) const IBV_EVENT_QP_ACCESS_ERR: c_int = 3;
pub(crate) const IBV_EVENT_DEVICE_FATAL: c_int = 8;
pub(crate) const IBV_EVENT_SRQ_ERR: c_int = 14;
