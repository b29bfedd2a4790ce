//! Work requests as the library takes them: a list linked through its elements.

use std::{
    ffi::{c_int, c_uint},
    io,
    mem::{MaybeUninit, size_of},
};

use super::{
    super::{
        device::{Datagram, DeviceError, DeviceLimits, Opcode, Result, Target, Work, WorkPiece},
        ffi::*,
    },
    library::{Object, nothing, refused},
};

/// Works behind one doorbell: 4.5 KiB of stack. Longer chains take more doorbells.
const CHAIN: usize = 32;

/// What drivers say of a full queue, with either sign.
const FULL: c_int = libc::ENOMEM;

/// Posts works to a pair. Returns the number taken.
///
/// # Safety
/// As `Device::post`.
pub(super) unsafe fn post(pair: &Object<ibv_qp>, works: &[Work], limits: &DeviceLimits) -> Result<usize> {
    let wrong = works.iter().enumerate().find_map(|(at, work)| Some((at, work.id, fault(work, limits)?)));
    let sound = &works[..wrong.map_or(works.len(), |(at, ..)| at)];
    let mut taken = 0;
    for chain in sound.chunks(CHAIN) {
        // SAFETY: the caller's promise.
        let (posted, code) = unsafe { post_chain(pair, chain) }?;
        taken += posted;
        match code.abs() {
            0 => {}
            FULL => return Ok(taken),
            code => {
                let why = io::Error::from_raw_os_error(code).to_string();
                return Err(DeviceError::Work { at: taken, id: works[taken].id, why });
            }
        }
    }
    match wrong {
        Some((at, id, why)) => Err(DeviceError::Work { at, id, why: why.to_owned() }),
        None => Ok(taken),
    }
}

/// What a driver would refuse by a code that means a full queue to others, or would not notice.
fn fault(work: &Work, limits: &DeviceLimits) -> Option<&'static str> {
    let len = work.local.len;
    match work.kind {
        Opcode::FetchAdd { .. } | Opcode::CompareSwap { .. } if len != size_of::<u64>() => Some("an atomic needs eight bytes"),
        Opcode::FetchAdd { .. } | Opcode::CompareSwap { .. } | Opcode::Read { .. } if work.inline => {
            Some("only data that leave are inline")
        }
        _ if len > limits.longest_message => Some("longer than the longest message"),
        _ if work.inline && len > limits.inline => Some("longer than inline data"),
        _ => None,
    }
}

/// Posts a chain. Returns the number of works taken, and the library's code: 0 if it took all.
///
/// # Safety
/// As `Device::post`.
unsafe fn post_chain(pair: &Object<ibv_qp>, chain: &[Work]) -> Result<(usize, c_int)> {
    let mut pieces = [const { MaybeUninit::<ibv_sge>::uninit() }; CHAIN];
    let mut requests = [const { MaybeUninit::<ibv_send_wr>::uninit() }; CHAIN];
    let (pieces, first) = (pieces.as_mut_ptr().cast::<ibv_sge>(), requests.as_mut_ptr().cast::<ibv_send_wr>());
    for (at, work) in chain.iter().enumerate() {
        let next = if at + 1 < chain.len() { first.wrapping_add(at + 1) } else { nothing() };
        let piece = pieces.wrapping_add(at);
        // SAFETY: within the array, as chains are cut.
        unsafe { piece.write(scatter(work.local)) };
        // SAFETY: as above.
        unsafe { first.wrapping_add(at).write(request(work, piece, next)) };
    }
    // SAFETY: requests of this pair, whose memory the caller answers for; list and pieces live during the call.
    let (code, bad) = unsafe { post_list(pair, first) };
    match code {
        0 => Ok((chain.len(), 0)),
        _ if bad.is_null() => Err(refused("ibv_post_send", code)),
        _ => Ok(((bad.addr() - first.addr()) / size_of::<ibv_send_wr>(), code)),
    }
}

/// The library's code, and the first request that was not taken.
///
/// # Safety
/// As `Device::post`, for requests that live during the call.
unsafe fn post_list(pair: &Object<ibv_qp>, first: *mut ibv_send_wr) -> (c_int, *mut ibv_send_wr) {
    let (pair, mut bad) = (pair.pointer(), nothing());
    // SAFETY: a pair that lives, of a device that does.
    let post_send = unsafe { (*(*pair).context).ops.post_send };
    // SAFETY: the caller's promise.
    let code = unsafe { post_send(pair, first, &raw mut bad) };
    (code, bad)
}

fn scatter(piece: WorkPiece) -> ibv_sge {
    ibv_sge { addr: piece.start.expose_provenance() as u64, length: piece.len as u32, lkey: piece.key }
}

fn request(work: &Work, piece: *mut ibv_sge, next: *mut ibv_send_wr) -> ibv_send_wr {
    let rdma = |target: Target| ibv_send_wr_wr { rdma: ibv_send_wr_rdma { remote_addr: target.start, rkey: target.key } };
    let atomic = |target: Target, compare_add, swap| ibv_send_wr_wr {
        atomic: ibv_send_wr_atomic { remote_addr: target.start, compare_add, swap, rkey: target.key },
    };
    let none = ibv_send_wr_wr { rdma: ibv_send_wr_rdma { remote_addr: 0, rkey: 0 } };
    let (opcode, immediate, wr) = match work.kind {
        Opcode::Send { immediate: None } => (IBV_WR_SEND, 0, none),
        Opcode::Send { immediate: Some(value) } => (IBV_WR_SEND_WITH_IMM, value, none),
        Opcode::Write { to } => (IBV_WR_RDMA_WRITE, 0, rdma(to)),
        Opcode::Read { from } => (IBV_WR_RDMA_READ, 0, rdma(from)),
        Opcode::FetchAdd { at, operand } => (IBV_WR_ATOMIC_FETCH_AND_ADD, 0, atomic(at, operand, 0)),
        Opcode::CompareSwap { at, expected, value } => (IBV_WR_ATOMIC_CMP_AND_SWP, 0, atomic(at, expected, value)),
    };
    ibv_send_wr {
        wr_id: work.id,
        next,
        sg_list: piece,
        num_sge: pieces(work.local),
        opcode,
        send_flags: flags(work.signaled, work.inline, work.fence, matches!(work.kind, Opcode::Send { .. })),
        imm_data: immediate.to_be(),
        wr,
        qp_type: 0,
        bind_mw: [0; 6],
    }
}

/// Nothing is no piece: drivers take one of length zero for 2 GiB.
fn pieces(piece: WorkPiece) -> c_int {
    c_int::from(piece.len > 0)
}

/// What is sent is solicited: it may end a sleep there.
fn flags(signaled: bool, inline: bool, fence: bool, solicited: bool) -> c_uint {
    let bits =
        [(signaled, IBV_SEND_SIGNALED), (inline, IBV_SEND_INLINE), (fence, IBV_SEND_FENCE), (solicited, IBV_SEND_SOLICITED)];
    bits.into_iter().filter(|&(set, _)| set).fold(0, |all, (_, bit)| all | bit)
}

/// Posts a datagram by way of a handle. False if the queue is full.
///
/// # Safety
/// As `Device::post_datagram`.
pub(super) unsafe fn post_datagram(
    pair: &Object<ibv_qp>,
    handle: &Object<ibv_ah>,
    datagram: &Datagram,
    limits: &DeviceLimits,
) -> Result<bool> {
    let refuse = |why: String| DeviceError::Work { at: 0, id: datagram.id, why };
    if datagram.local.len > limits.longest_datagram {
        return Err(refuse(format!("{} bytes are longer than a packet", datagram.local.len)));
    }
    if datagram.inline && datagram.local.len > limits.inline {
        return Err(refuse("longer than inline data".to_owned()));
    }
    let mut piece = scatter(datagram.local);
    let ud = ibv_send_wr_ud { ah: handle.pointer(), remote_qpn: datagram.number, remote_qkey: datagram.key };
    let mut request = ibv_send_wr {
        wr_id: datagram.id,
        next: nothing(),
        sg_list: &raw mut piece,
        num_sge: pieces(datagram.local),
        opcode: IBV_WR_SEND,
        send_flags: flags(datagram.signaled, datagram.inline, false, true),
        imm_data: 0,
        wr: ibv_send_wr_wr { ud },
        qp_type: 0,
        bind_mw: [0; 6],
    };
    // SAFETY: the caller's promise; request and piece live during the call, the handle as well.
    match unsafe { post_list(pair, &raw mut request) }.0.abs() {
        0 => Ok(true),
        FULL => Ok(false),
        code => Err(refuse(io::Error::from_raw_os_error(code).to_string())),
    }
}

/// Where receives are posted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Receives<'a> {
    Shared(&'a Object<ibv_srq>),
    Own(&'a Object<ibv_qp>),
}

/// Posts memory for a message. False if the queue is full.
///
/// # Safety
/// As `Device::post_receive`.
pub(super) unsafe fn post_receive(queue: Receives<'_>, id: u64, piece: WorkPiece) -> Result<bool> {
    let mut place = scatter(piece);
    let mut request = ibv_recv_wr { wr_id: id, next: nothing(), sg_list: &raw mut place, num_sge: pieces(piece) };
    let (request, mut bad) = (&raw mut request, nothing());
    let (call, code) = match queue {
        Receives::Shared(queue) => {
            let queue = queue.pointer();
            // SAFETY: a queue that lives, of a device that does.
            let post_srq_recv = unsafe { (*(*queue).context).ops.post_srq_recv };
            // SAFETY: the caller's promise; the request lives during the call.
            ("ibv_post_srq_recv", unsafe { post_srq_recv(queue, request, &raw mut bad) })
        }
        Receives::Own(pair) => {
            let pair = pair.pointer();
            // SAFETY: a pair that lives, of a device that does.
            let post_recv = unsafe { (*(*pair).context).ops.post_recv };
            // SAFETY: the caller's promise; the request lives during the call.
            ("ibv_post_recv", unsafe { post_recv(pair, request, &raw mut bad) })
        }
    };
    match code.abs() {
        0 => Ok(true),
        FULL => Ok(false),
        code => Err(refused(call, code)),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const LIMITS: DeviceLimits = DeviceLimits {
        inline: 16,
        read_depth: 1,
        answer_depth: 1,
        longest_message: 100,
        longest_datagram: 50,
        send_depth: 8,
        completions: 8,
        shared_receives: 8,
        datagram_receives: 8,
        pairs: 8,
        reads: true,
        virtual_time: false,
    };

    fn work(kind: Opcode, len: usize, inline: bool) -> Work {
        let local = WorkPiece { start: nothing(), len, key: 7 };
        Work { id: 3, kind, local, signaled: true, inline, fence: false }
    }

    #[test]
    fn what_drivers_would_mistake_is_refused() {
        let target = Target { start: 64, key: 9 };
        let add = Opcode::FetchAdd { at: target, operand: 1 };
        let send = Opcode::Send { immediate: None };
        let read = Opcode::Read { from: target };
        for (sound, work) in [
            (true, work(add, 8, false)),
            (false, work(add, 4, false)),
            (false, work(add, 8, true)),
            (true, work(send, 16, true)),
            (false, work(send, 17, true)),
            (true, work(send, 100, false)),
            (false, work(send, 101, false)),
            (true, work(read, 0, false)),
            (false, work(read, 8, true)),
        ] {
            assert_eq!(fault(&work, &LIMITS).is_none(), sound, "{work:?}");
        }
    }

    #[test]
    fn a_work_becomes_a_request() {
        let target = Target { start: 64, key: 9 };
        let swap = Opcode::CompareSwap { at: target, expected: 5, value: 6 };
        let request = request(&work(swap, 8, false), nothing(), nothing());
        assert_eq!((request.opcode, request.num_sge, request.send_flags), (IBV_WR_ATOMIC_CMP_AND_SWP, 1, IBV_SEND_SIGNALED));
        // SAFETY: an atomic's part was written.
        let atomic = unsafe { request.wr.atomic };
        assert_eq!((atomic.remote_addr, atomic.rkey, atomic.compare_add, atomic.swap), (64, 9, 5, 6));
        let fenced = Work { signaled: false, fence: true, ..work(Opcode::Send { immediate: Some(0x0102) }, 0, true) };
        let request = super::request(&fenced, nothing(), nothing());
        assert_eq!((request.opcode, request.num_sge, request.imm_data.to_ne_bytes()), (IBV_WR_SEND_WITH_IMM, 0, [0, 0, 1, 2]));
        assert_eq!(request.send_flags, IBV_SEND_INLINE | IBV_SEND_FENCE | IBV_SEND_SOLICITED);
    }
}
