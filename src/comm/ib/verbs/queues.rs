//! Queues, and how deep they are made. Drivers make them as deep as is asked for, or deeper.

use std::ffi::c_int;

use super::{
    super::{
        device::{DeviceError, Result},
        ffi::*,
    },
    library::{Object, nothing},
};

/// The number that is asked for, if it is within the adapter's limit.
pub(super) fn within(what: &'static str, asked: usize, limit: c_int) -> Result<u32> {
    let (asked, limit) = (asked as u64, limit.max(0) as u64);
    if asked > limit { Err(DeviceError::Limit { what, asked, limit }) } else { Ok(asked as u32) }
}

/// A completion queue, and the number of completions that it holds.
pub(super) fn completions(
    functions: &Functions,
    context: &Object<ibv_context>,
    channel: &Object<ibv_comp_channel>,
    entries: u32,
) -> Result<(Object<ibv_cq>, usize)> {
    // SAFETY: an open device and its channel; the first of its vectors is always there.
    let queue = unsafe { (functions.ibv_create_cq)(context.pointer(), entries as c_int, nothing(), channel.pointer(), 0) };
    // SAFETY: just made; device and channel are dropped after it.
    let queue = unsafe { Object::made("ibv_create_cq", queue, functions.ibv_destroy_cq) }?;
    // SAFETY: the queue lives, and its length does not change.
    let granted = unsafe { (*queue.pointer()).cqe };
    Ok((queue, granted.max(0) as usize))
}

/// A queue of receives for many pairs, and the number that it holds.
pub(super) fn receives(functions: &Functions, domain: &Object<ibv_pd>, receives: u32) -> Result<(Object<ibv_srq>, usize)> {
    let attr = ibv_srq_attr { max_wr: receives, max_sge: 1, srq_limit: 0 };
    let mut attributes = ibv_srq_init_attr { srq_context: nothing(), attr };
    // SAFETY: the domain lives, and the attributes during the call.
    let queue = unsafe { (functions.ibv_create_srq)(domain.pointer(), &raw mut attributes) };
    // SAFETY: just made; the domain is dropped after it.
    let queue = unsafe { Object::made("ibv_create_srq", queue, functions.ibv_destroy_srq) }?;
    Ok((queue, attributes.attr.max_wr as usize))
}

/// The queues that a new pair uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queues<'a> {
    pub(super) domain: &'a Object<ibv_pd>,
    pub(super) completions: &'a Object<ibv_cq>,
    /// Where its receives are. A pair without has its own.
    pub(super) shared: Option<&'a Object<ibv_srq>>,
}

/// Creates a pair; its capacities are written back as they were granted.
pub(super) fn create(functions: &Functions, kind: c_int, queues: Queues<'_>, room: &mut ibv_qp_cap) -> Result<Object<ibv_qp>> {
    let mut attributes = ibv_qp_init_attr {
        qp_context: nothing(),
        send_cq: queues.completions.pointer(),
        recv_cq: queues.completions.pointer(),
        srq: queues.shared.map_or(nothing(), Object::pointer),
        cap: *room,
        qp_type: kind,
        sq_sig_all: 0,
    };
    // SAFETY: domain and queues live, and live longer than the pair; the attributes live during the call.
    let pair = unsafe { (functions.ibv_create_qp)(queues.domain.pointer(), &raw mut attributes) };
    // SAFETY: the new pair's own counterpart; what it stands on is dropped after it.
    let pair = unsafe { Object::made("ibv_create_qp", pair, functions.ibv_destroy_qp) }?;
    *room = attributes.cap;
    Ok(pair)
}

/// What a connected pair asks for, but for inline data.
pub(super) fn capacity(depth: u32) -> ibv_qp_cap {
    ibv_qp_cap { max_send_wr: depth, max_recv_wr: 0, max_send_sge: 1, max_recv_sge: 0, max_inline_data: 0 }
}

/// Creates a pair with as much inline data as is asked for, or, if that is refused, with half as much, and so on. Drivers do not say
/// beforehand how much they take.
pub(super) fn pair(
    functions: &Functions,
    kind: c_int,
    queues: Queues<'_>,
    capacity: ibv_qp_cap,
    asked: usize,
) -> Result<(Object<ibv_qp>, ibv_qp_cap)> {
    let mut inline = asked;
    loop {
        let mut granted = ibv_qp_cap { max_inline_data: inline as u32, ..capacity };
        match create(functions, kind, queues, &mut granted) {
            Ok(pair) => return Ok((pair, granted)),
            Err(_) if inline > 0 => inline /= 2,
            Err(error) => return Err(error),
        }
    }
}
