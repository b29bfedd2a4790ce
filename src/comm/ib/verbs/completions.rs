//! What the library reports: completions, wake-ups, and what happens by itself.

use std::{
    collections::VecDeque,
    ffi::c_int,
    mem::MaybeUninit,
    os::fd::{BorrowedFd, RawFd},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::Errno,
};

use super::library::{Object, check, nothing, refused};
use crate::comm::{
    ib::{
        device::{Completion, DeviceError, DeviceEvent, Done, Result, Wakes, WorkFailure},
        ffi::*,
    },
    kit::mutex::Mutex,
};

/// Completions of one call: 1.5 KiB of stack.
const AT_ONCE: usize = 32;

/// Takes completions from a queue, `most` at most.
///
/// # Errors
/// The queue does not work any more.
pub(super) fn take(queue: &Object<ibv_cq>, datagrams: u32, completions: &mut Vec<Completion>, most: usize) -> Result<()> {
    let queue = queue.pointer();
    // SAFETY: a queue that lives, of a device that does.
    let poll_cq = unsafe { (*(*queue).context).ops.poll_cq };
    let mut found = [const { MaybeUninit::<ibv_wc>::uninit() }; AT_ONCE];
    let mut left = most;
    while left > 0 {
        let room = left.min(AT_ONCE);
        // SAFETY: the queue lives; there is room for `room` completions.
        let count = unsafe { poll_cq(queue, room as c_int, found.as_mut_ptr().cast()) };
        let count = usize::try_from(count).map_err(|_| DeviceError::Fatal { why: "its completion queue cannot be read" })?;
        for one in &found[..count] {
            // SAFETY: filled by the call.
            completions.push(completion(unsafe { one.assume_init_ref() }, datagrams));
        }
        left -= count;
        if count < room {
            break;
        }
    }
    Ok(())
}

/// Of a completion that failed, only id, status and the pair's number say something.
fn completion(found: &ibv_wc, datagrams: u32) -> Completion {
    let outcome = match found.status {
        IBV_WC_SUCCESS => done(found, datagrams),
        status => Err(failure(status)),
    };
    Completion { id: found.wr_id, number: found.qp_num, outcome }
}

fn done(found: &ibv_wc, datagrams: u32) -> std::result::Result<Done, WorkFailure> {
    let is = |flag| found.wc_flags & flag != 0;
    match found.opcode {
        IBV_WC_SEND => Ok(Done::Sent),
        IBV_WC_RDMA_WRITE => Ok(Done::Written),
        IBV_WC_RDMA_READ => Ok(Done::Read),
        IBV_WC_COMP_SWAP | IBV_WC_FETCH_ADD => Ok(Done::Swapped),
        IBV_WC_RECV => Ok(Done::Received {
            len: found.byte_len as usize,
            immediate: is(IBV_WC_WITH_IMM).then(|| u32::from_be(found.imm_data)),
            from: (found.qp_num == datagrams).then_some(found.src_qp),
        }),
        // A receive that a peer's write with an immediate value has taken, which no rank posts: its length is not of the receive.
        other => Err(WorkFailure::Other(other as u32)),
    }
}

fn failure(status: c_int) -> WorkFailure {
    match status {
        IBV_WC_RETRY_EXC_ERR => WorkFailure::RetryExceeded,
        IBV_WC_RNR_RETRY_EXC_ERR => WorkFailure::ReceiveRetryExceeded,
        IBV_WC_WR_FLUSH_ERR => WorkFailure::Flushed,
        IBV_WC_REM_ACCESS_ERR => WorkFailure::RemoteAccess,
        IBV_WC_REM_INV_REQ_ERR => WorkFailure::RemoteInvalid,
        IBV_WC_REM_OP_ERR => WorkFailure::RemoteOperation,
        IBV_WC_LOC_PROT_ERR | IBV_WC_LOC_ACCESS_ERR => WorkFailure::LocalProtection,
        IBV_WC_LOC_LEN_ERR => WorkFailure::LocalLength,
        other => WorkFailure::Other(other as u32),
    }
}

/// Wakes a thread that waits for a device: two descriptors, of completions and of events.
#[derive(Debug)]
pub(super) struct Alarm {
    completions: RawFd,
    events: RawFd,
    /// A wake-up was asked for, and not seen.
    armed: AtomicBool,
    /// Events that a wait has found.
    found: Mutex<VecDeque<DeviceEvent>>,
    /// The device does not work any more.
    failed: AtomicBool,
}

/// What an alarm reads from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sources<'a> {
    pub(super) functions: &'a Functions,
    pub(super) context: &'a Object<ibv_context>,
    pub(super) channel: &'a Object<ibv_comp_channel>,
    pub(super) queue: &'a Object<ibv_cq>,
    /// The number of the datagram pair, without which the device is of no use.
    pub(super) datagrams: u32,
}

impl Alarm {
    /// Reading of either descriptor never waits from here on.
    pub(super) fn new(context: &Object<ibv_context>, channel: &Object<ibv_comp_channel>) -> Result<Self> {
        // SAFETY: both live, and their descriptors do not change.
        let (events, completions) = unsafe { ((*context.pointer()).async_fd, (*channel.pointer()).fd) };
        for descriptor in [events, completions] {
            // SAFETY: open as long as the device is.
            let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
            let set = fcntl_getfl(descriptor).and_then(|flags| fcntl_setfl(descriptor, flags | OFlags::NONBLOCK));
            set.map_err(|error| refused("fcntl", error.raw_os_error()))?;
        }
        Ok(Alarm { completions, events, armed: AtomicBool::new(false), found: Mutex::default(), failed: AtomicBool::new(false) })
    }

    /// # Errors
    /// The device has failed, as an event said.
    pub(super) fn check(&self) -> Result<()> {
        if self.failed.load(Ordering::Relaxed) {
            return Err(DeviceError::Fatal {
                why: "an event said so: an overrun of its completion queue, or a fault of the adapter",
            });
        }
        Ok(())
    }

    /// Asks for a wake-up by the next completion, or by the next message that was sent as solicited. Wake-ups that have come are forgotten.
    pub(super) fn arm(&self, sources: Sources<'_>, wakes: Wakes) -> Result<()> {
        if self.armed.swap(true, Ordering::Relaxed) {
            while take_wake_up(sources) {}
        }
        let queue = sources.queue.pointer();
        // SAFETY: a queue that lives, of a device that does.
        let req_notify_cq = unsafe { (*(*queue).context).ops.req_notify_cq };
        // SAFETY: as above; zero stands for any completion.
        check("ibv_req_notify_cq", unsafe { req_notify_cq(queue, c_int::from(wakes == Wakes::Arrivals)) })
    }

    /// Waits. Returns true if something came before the limit.
    pub(super) fn wait(&self, sources: Sources<'_>, limit: Duration) -> Result<bool> {
        let end = Instant::now() + limit;
        while self.found.lock().is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
            // SAFETY: open as long as the device is.
            let (completions, events) =
                unsafe { (BorrowedFd::borrow_raw(self.completions), BorrowedFd::borrow_raw(self.events)) };
            let mut looked = [PollFd::new(&completions, PollFlags::IN), PollFd::new(&events, PollFlags::IN)];
            match poll(&mut looked, Some(&left)) {
                Ok(0) => return Ok(false),
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(refused("poll", error.raw_os_error())),
            }
            let [woken, happened] = looked.map(|one| !one.revents().is_empty());
            if happened {
                self.found.lock().extend(std::iter::from_fn(|| self.read_event(sources)));
            }
            if woken && take_wake_up(sources) {
                self.armed.store(false, Ordering::Relaxed);
                return Ok(true);
            }
            // Of an adapter that was taken away there is always something to read, and never anything.
            if end <= Instant::now() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn event(&self, sources: Sources<'_>) -> Option<DeviceEvent> {
        let found = self.found.lock().pop_front();
        let event = found.or_else(|| self.read_event(sources));
        if event == Some(DeviceEvent::Fatal) {
            self.failed.store(true, Ordering::Relaxed);
        }
        event
    }

    /// Reads events from the kernel, up to one that means something.
    fn read_event(&self, sources: Sources<'_>) -> Option<DeviceEvent> {
        loop {
            let mut event = MaybeUninit::<ibv_async_event>::uninit();
            // SAFETY: an open device; the event is written if the call succeeds.
            if unsafe { (sources.functions.ibv_get_async_event)(sources.context.pointer(), event.as_mut_ptr()) } != 0 {
                return None;
            }
            // SAFETY: written by the call that succeeded.
            let mut event = unsafe { event.assume_init() };
            let meaning = meaning(&event, sources.datagrams);
            // SAFETY: acknowledged once. What it is about lives until then.
            unsafe { (sources.functions.ibv_ack_async_event)(&raw mut event) };
            if meaning.is_some() {
                return meaning;
            }
        }
    }
}

/// What an event that was not acknowledged says. Ports that go and come back are none of it: the works tell.
fn meaning(event: &ibv_async_event, datagrams: u32) -> Option<DeviceEvent> {
    match event.event_type {
        IBV_EVENT_QP_FATAL | IBV_EVENT_QP_REQ_ERR | IBV_EVENT_QP_ACCESS_ERR => {
            // SAFETY: such events are about a pair, which is not destroyed before they were acknowledged.
            let number = unsafe { (*event.element.qp).qp_num };
            Some(if number == datagrams { DeviceEvent::Fatal } else { DeviceEvent::PairFailed(number) })
        }
        IBV_EVENT_CQ_ERR | IBV_EVENT_SRQ_ERR | IBV_EVENT_DEVICE_FATAL => Some(DeviceEvent::Fatal),
        _ => None,
    }
}

/// Takes one wake-up from the channel, if there is one.
fn take_wake_up(sources: Sources<'_>) -> bool {
    let (mut queue, mut own) = (nothing(), nothing());
    // SAFETY: the channel lives; both places are written during the call.
    let code = unsafe { (sources.functions.ibv_get_cq_event)(sources.channel.pointer(), &raw mut queue, &raw mut own) };
    if code != 0 {
        return false;
    }
    // SAFETY: the queue that the channel reports, once for one event.
    unsafe { (sources.functions.ibv_ack_cq_events)(queue, 1) };
    true
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{super::library::zeroed, *};

    fn found(status: c_int, opcode: c_int, flags: u32) -> ibv_wc {
        // SAFETY: numbers.
        let zero: ibv_wc = unsafe { zeroed() };
        ibv_wc {
            wr_id: 9,
            status,
            opcode,
            wc_flags: flags,
            byte_len: 60,
            imm_data: 0x0102_u32.to_be(),
            qp_num: 5,
            src_qp: 6,
            ..zero
        }
    }

    #[test]
    fn completions_say_what_was_done() {
        let outcome = |found: &ibv_wc, datagrams| completion(found, datagrams).outcome;
        for (opcode, done) in [
            (IBV_WC_SEND, Done::Sent),
            (IBV_WC_RDMA_WRITE, Done::Written),
            (IBV_WC_RDMA_READ, Done::Read),
            (IBV_WC_COMP_SWAP, Done::Swapped),
            (IBV_WC_FETCH_ADD, Done::Swapped),
            (IBV_WC_RECV, Done::Received { len: 60, immediate: None, from: None }),
        ] {
            let found = found(IBV_WC_SUCCESS, opcode, 0);
            assert_eq!(completion(&found, 1), Completion { id: 9, number: 5, outcome: Ok(done) });
        }
        let datagram = found(IBV_WC_SUCCESS, IBV_WC_RECV, IBV_WC_WITH_IMM | IBV_WC_GRH);
        assert_eq!(outcome(&datagram, 5), Ok(Done::Received { len: 60, immediate: Some(0x0102), from: Some(6) }));
        assert!(outcome(&found(IBV_WC_SUCCESS, IBV_WC_RECV + 1, 0), 1).is_err());
    }

    #[test]
    fn failures_are_told_apart() {
        for (status, failure) in [
            (IBV_WC_WR_FLUSH_ERR, WorkFailure::Flushed),
            (IBV_WC_REM_ACCESS_ERR, WorkFailure::RemoteAccess),
            (IBV_WC_RETRY_EXC_ERR, WorkFailure::RetryExceeded),
            (IBV_WC_RNR_RETRY_EXC_ERR, WorkFailure::ReceiveRetryExceeded),
            (IBV_WC_LOC_PROT_ERR, WorkFailure::LocalProtection),
            (IBV_WC_LOC_LEN_ERR, WorkFailure::LocalLength),
            (21, WorkFailure::Other(21)),
        ] {
            // The opcode of a failure says nothing.
            assert_eq!(completion(&found(status, IBV_WC_RECV, 0), 1).outcome, Err(failure), "{status}");
        }
    }
}
