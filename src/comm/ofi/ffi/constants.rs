//! Constants of the header.

pub(crate) const FI_MSG: u64 = 1 << 1;
pub(crate) const FI_RMA: u64 = 1 << 2;
pub(crate) const FI_READ: u64 = 1 << 8;
pub(crate) const FI_WRITE: u64 = 1 << 9;
pub(crate) const FI_RECV: u64 = 1 << 10;
pub(crate) const FI_SEND: u64 = 1 << 11;
pub(crate) const FI_REMOTE_READ: u64 = 1 << 12;
pub(crate) const FI_REMOTE_WRITE: u64 = 1 << 13;
pub(crate) const FI_FENCE: u64 = 1 << 21;
pub(crate) const FI_COMPLETION: u64 = 1 << 24;
pub(crate) const FI_DELIVERY_COMPLETE: u64 = 1 << 28;
pub(crate) const FI_CONTEXT: u64 = 1 << 59;
pub(crate) const FI_CONTEXT2: u64 = 1 << 52;

pub(crate) const FI_MR_LOCAL: i32 = 1 << 2;
pub(crate) const FI_MR_VIRT_ADDR: i32 = 1 << 4;
pub(crate) const FI_MR_ALLOCATED: i32 = 1 << 5;
pub(crate) const FI_MR_PROV_KEY: i32 = 1 << 6;
pub(crate) const FI_MR_ENDPOINT: i32 = 1 << 9;

pub(crate) const FI_ORDER_RAW: u64 = 1 << 1;
pub(crate) const FI_ORDER_WAW: u64 = 1 << 4;
pub(crate) const FI_ORDER_SAW: u64 = 1 << 7;
pub(crate) const FI_ORDER_SAS: u64 = 1 << 8;

pub(crate) const FI_EP_RDM: u32 = 3;
pub(crate) const FI_AV_TABLE: u32 = 2;
pub(crate) const FI_THREAD_DOMAIN: u32 = 3;
pub(crate) const FI_RM_ENABLED: u32 = 2;
pub(crate) const FI_CQ_FORMAT_MSG: u32 = 2;
pub(crate) const FI_WAIT_NONE: u32 = 0;
pub(crate) const FI_WAIT_FD: u32 = 3;
pub(crate) const FI_GETWAIT: i32 = 5;
pub(crate) const FI_ENABLE: i32 = 6;

pub(crate) const FI_EAGAIN: i32 = 11;
pub(crate) const FI_EAVAIL: i32 = 259;

pub(crate) const FI_ADDR_UNSPEC: u64 = u64::MAX;
