//! The software device alone, for a bench.

use std::fmt;

use super::{
    super::{
        device::{Access, Completion, Device, DeviceRegion, Opcode, Pair, Target, To, Work, WorkPiece},
        links::DEPTHS,
    },
    Rules, SoftDevice, SoftFabric,
};

/// Works under way, at most.
const AHEAD: usize = 32;

/// Two devices of one fabric, and a pair of each, which are connected. One thread drives both.
pub struct Bare {
    ends: [BareEnd; 2],
    polled: Vec<Completion>,
}

struct BareEnd {
    // Dropped first: after that nobody uses the memory.
    device: SoftDevice,
    pair: Pair,
    region: DeviceRegion,
    memory: Vec<u64>,
}

impl Bare {
    /// Two devices with `bytes` bytes each.
    ///
    /// # Panics
    /// The device refuses what it is made for.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let fabric = SoftFabric::new(Rules::default());
        let ends = [0, 1].map(|_| {
            let device = fabric.open(DEPTHS).expect("a device");
            // Not zeros: memory that nobody has written is one page, which is always in the cache.
            let mut memory = vec![1_u64; bytes.div_ceil(size_of::<u64>())];
            // SAFETY: the memory is the end's, which drops its device before, and touched by works alone.
            let region = unsafe { device.register(memory.as_mut_ptr().cast(), size_of_val(&*memory), Access::ALL) };
            BareEnd { pair: device.create(AHEAD).expect("a pair"), region: region.expect("a region"), device, memory }
        });
        for (own, peer) in [(0, 1), (1, 0)] {
            let (own, peer): (&BareEnd, &BareEnd) = (&ends[own], &ends[peer]);
            let address = peer.device.address();
            let steps = [
                To::Init { access: Access::ALL },
                To::ReadyToReceive {
                    peer: &address,
                    number: peer.pair.number,
                    first_packet: 0,
                    answer_depth: 1,
                    receive_timer: 1,
                },
                To::ReadyToSend { first_packet: 0, read_depth: 1, timeout: 14, retries: 6, receive_retries: 7 },
            ];
            steps.into_iter().try_for_each(|step| own.device.modify(own.pair, step)).expect("a connection");
        }
        Bare { ends, polled: Vec::with_capacity(AHEAD) }
    }

    /// Writes `bytes` bytes `count` times, and waits until all have landed.
    ///
    /// # Panics
    /// The memory has fewer bytes, or the device does not write.
    pub fn write(&mut self, bytes: usize, count: usize) {
        self.run(bytes, count, |to| Opcode::Write { to });
    }

    /// Reads `bytes` bytes `count` times, and waits until all have landed.
    ///
    /// # Panics
    /// As [`write`](Self::write).
    pub fn read(&mut self, bytes: usize, count: usize) {
        self.run(bytes, count, |from| Opcode::Read { from });
    }

    fn run(&mut self, bytes: usize, count: usize, kind: impl Fn(Target) -> Opcode) {
        let [own, peer] = &self.ends;
        let target = Target { start: peer.memory.as_ptr().addr() as u64, key: peer.region.remote };
        let local = WorkPiece { start: own.memory.as_ptr().cast_mut().cast(), len: bytes, key: own.region.local };
        let kind = kind(target);
        let inline = matches!(kind, Opcode::Write { .. }) && bytes <= own.device.limits().inline;
        let work = Work { id: 0, kind, local, signaled: true, inline, fence: false };
        let (mut posted, mut done) = (0, 0);
        while done < count {
            if posted < count && posted - done < AHEAD {
                // SAFETY: as for `register`.
                posted += unsafe { own.device.post(own.pair, &[work]) }.expect("a post");
            }
            if posted == count || posted - done == AHEAD {
                own.device.poll(&mut self.polled, AHEAD).expect("completions");
                done += self.polled.len();
                assert!(self.polled.drain(..).all(|completion| completion.outcome.is_ok()), "a transfer has failed");
            }
        }
    }
}

impl fmt::Debug for Bare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bare({} words)", self.ends[0].memory.len())
    }
}
