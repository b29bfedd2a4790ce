//! A device that injects faults into another one, by a seed and a rate for each fault.
//!
//! | fault | effect |
//! |---|---|
//! | `lose` | a datagram is sent under a Q_Key that nobody takes |
//! | `duplicate` | a datagram is sent twice, if there is room |
//! | `reorder` | a datagram is reported one poll late |
//! | `blind` | a poll reports nothing, and the next one all |
//! | `no_handle` | a peer's adapter is not found |
//! | `break_pair` | a pair fails behind its posted works, or within a chain |
//! | `wrong_key` | writes name memory that the peer does not know |
//!
//! Steps to the error state and resets are never refused: a program answers faults by them.

use std::{borrow::Cow, sync::Arc, time::Duration};

use crate::comm::{
    ib::device::{
        Access, Address, Completion, Datagram, Device, DeviceError, DeviceEvent, DeviceLimits, DeviceRegion, Done, Handle,
        Opcode, Pair, Queue, Result, State, To, Wakes, Work, WorkPiece,
    },
    kit::{mutex::Mutex, random::Random},
};

/// The rate of each fault, of a thousand times that it could happen.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::comm) struct Rates {
    pub(in crate::comm) lose: usize,
    pub(in crate::comm) duplicate: usize,
    pub(in crate::comm) reorder: usize,
    pub(in crate::comm) blind: usize,
    pub(in crate::comm) fail_step: usize,
    pub(in crate::comm) no_handle: usize,
    pub(in crate::comm) refuse_post: usize,
    pub(in crate::comm) break_pair: usize,
    pub(in crate::comm) wrong_key: usize,
}

/// A device that injects faults into another one.
#[derive(Debug)]
pub(in crate::comm) struct Faulty<D> {
    below: D,
    rates: Rates,
    state: Arc<Mutex<Faults>>,
}

#[derive(Debug)]
struct Faults {
    random: Random,
    /// Datagrams that have arrived and are not reported yet.
    late: Vec<Completion>,
    /// The last poll was blind.
    is_blind: bool,
    posted: Posted,
}

/// Works and datagrams that were posted, or refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Posted {
    pub(super) works: usize,
    /// Calls that posted works.
    pub(super) chains: usize,
    /// Works that ask for a completion.
    pub(super) signaled: usize,
    pub(super) datagrams: usize,
    /// Regions that were registered, without those that were deregistered.
    pub(super) regions: usize,
}

impl Posted {
    pub(super) fn since(self, then: Posted) -> Posted {
        Posted {
            works: self.works - then.works,
            chains: self.chains - then.chains,
            signaled: self.signaled - then.signaled,
            datagrams: self.datagrams - then.datagrams,
            regions: self.regions - then.regions,
        }
    }
}

impl Faults {
    fn happens(&mut self, rate: usize) -> bool {
        self.random.below(1000) < rate
    }
}

impl<D: Device> Faulty<D> {
    pub(in crate::comm) fn new(below: D, rates: Rates, seed: u64) -> Self {
        Faulty {
            below,
            rates,
            state: Arc::new(Mutex::new(Faults {
                random: Random::new(seed),
                late: Vec::new(),
                is_blind: false,
                posted: Posted::default(),
            })),
        }
    }

    fn happens(&self, rate: usize) -> bool {
        self.state.lock().happens(rate)
    }

    pub(super) fn posted(&self) -> Posted {
        self.state.lock().posted
    }

    /// Gives [`posted`](Self::posted) after the device has got another owner.
    pub(super) fn counter(&self) -> impl Fn() -> Posted + use<D> {
        let state = self.state.clone();
        move || state.lock().posted
    }
}

impl<D: Device> Device for Faulty<D> {
    fn now(&self) -> Duration {
        self.below.now()
    }

    fn limits(&self) -> &DeviceLimits {
        self.below.limits()
    }

    fn address(&self) -> Address {
        self.below.address()
    }

    unsafe fn register(&self, start: *mut u8, len: usize, access: Access) -> Result<DeviceRegion> {
        // SAFETY: the caller's promise.
        let region = unsafe { self.below.register(start, len, access) }?;
        self.state.lock().posted.regions += 1;
        Ok(region)
    }

    fn deregister(&self, region: DeviceRegion) -> Result<()> {
        self.below.deregister(region)?;
        self.state.lock().posted.regions -= 1;
        Ok(())
    }

    fn create(&self, depth: usize) -> Result<Pair> {
        self.below.create(depth)
    }

    fn modify(&self, pair: Pair, to: To<'_>) -> Result<()> {
        let may_fail = !matches!(to.state(), State::Reset | State::Error);
        if may_fail && self.happens(self.rates.fail_step) {
            return Err(DeviceError::Invalid("a step of a queue pair was refused, as the faults of this device want it"));
        }
        // After these steps nothing is reported late.
        self.state.lock().is_blind |= matches!(to.state(), State::Reset | State::Error);
        self.below.modify(pair, to)
    }

    fn destroy(&self, pair: Pair) -> Result<()> {
        self.below.destroy(pair)
    }

    unsafe fn post(&self, pair: Pair, works: &[Work]) -> Result<usize> {
        if self.happens(self.rates.refuse_post) {
            let why = "it was refused, as the faults of this device want it".to_owned();
            return Err(DeviceError::Work { at: 0, id: works[0].id, why });
        }
        let mut works = Cow::Borrowed(works);
        if self.happens(self.rates.wrong_key) {
            for work in works.to_mut() {
                if let Opcode::Write { to } = &mut work.kind {
                    to.key ^= 1 << 20;
                }
            }
        }
        // Before the pair fails, a part of a chain may have been done.
        let breaks = self.happens(self.rates.break_pair);
        let first = if breaks { self.state.lock().random.below(works.len()) + 1 } else { works.len() };
        // SAFETY: the caller's promise.
        let mut taken = unsafe { self.below.post(pair, &works[..first]) };
        let mut state = self.state.lock();
        state.posted.works += works.len();
        state.posted.chains += 1;
        state.posted.signaled += works.iter().filter(|work| work.signaled).count();
        drop(state);
        if breaks && taken == Ok(first) {
            self.below.modify(pair, To::Error)?;
            // SAFETY: the caller's promise.
            taken = unsafe { self.below.post(pair, &works[first..]) }.map(|rest| first + rest);
        }
        taken
    }

    unsafe fn post_receive(&self, queue: Queue, id: u64, piece: WorkPiece) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.below.post_receive(queue, id, piece) }
    }

    fn handle(&self, to: &Address) -> Result<Handle> {
        if self.happens(self.rates.no_handle) {
            return Err(DeviceError::System { call: "a handle, as the faults of this device want it", code: libc::ETIMEDOUT });
        }
        self.below.handle(to)
    }

    fn release(&self, handle: Handle) -> Result<()> {
        self.below.release(handle)
    }

    unsafe fn post_datagram(&self, datagram: &Datagram) -> Result<()> {
        self.state.lock().posted.datagrams += 1;
        if self.happens(self.rates.lose) {
            // SAFETY: the caller's promise.
            return unsafe { self.below.post_datagram(&Datagram { key: datagram.key ^ 1 << 30, ..*datagram }) };
        }
        if self.happens(self.rates.duplicate) {
            // The report of the second one covers the first.
            // SAFETY: the caller's promise.
            match unsafe { self.below.post_datagram(&Datagram { signaled: false, ..*datagram }) } {
                Ok(()) | Err(DeviceError::Full { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.below.post_datagram(datagram) }
    }

    fn poll(&self, completions: &mut Vec<Completion>, most: usize) -> Result<()> {
        let mut faults = self.state.lock();
        faults.is_blind = !faults.is_blind && faults.happens(self.rates.blind);
        if faults.is_blind {
            return Ok(());
        }
        let first = completions.len();
        let late = faults.late.len().min(most);
        self.below.poll(completions, most - late)?;
        let late: Vec<Completion> = faults.late.drain(..late).collect();
        let mut k = first;
        while k < completions.len() {
            let is_datagram = matches!(completions[k].outcome, Ok(Done::Received { from: Some(_), .. }));
            if is_datagram && faults.happens(self.rates.reorder) {
                faults.late.push(completions.remove(k));
            } else {
                k += 1;
            }
        }
        completions.extend(late);
        Ok(())
    }

    fn arm(&self, wakes: Wakes) -> Result<()> {
        self.below.arm(wakes)
    }

    fn wait(&self, limit: Duration) -> Result<bool> {
        if !self.state.lock().late.is_empty() {
            return Ok(true);
        }
        self.below.wait(limit)
    }

    fn event(&self) -> Option<DeviceEvent> {
        self.below.event()
    }
}
