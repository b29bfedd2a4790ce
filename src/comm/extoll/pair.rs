//! Two nodes with software engines, for a bench.

use super::{
    adapter::ExtollAdapter,
    engines::{CommandBytes, Engines},
    packets::VeloPackets,
    soft::SoftEngines,
};
use crate::comm::{
    rma::{
        adapter::RmaAccess,
        pair::{MovesBytes, PairMemory, SoftPair},
    },
    soft::fabric::{MovingFabric, MovingRules},
};

/// The engines alone. They are in front of their memory.
#[derive(Debug)]
struct Alone {
    engines: SoftEngines,
    _other: SoftEngines,
    /// Network addresses.
    here_at: u64,
    there_at: u64,
    _here: PairMemory,
    _there: PairMemory,
}

impl MovesBytes for Alone {
    fn moves(&mut self, len: usize, reads: bool) -> bool {
        let (bytes, word) = (CommandBytes { here: self.here_at, there: self.there_at, len }, size_of::<u64>());
        // SAFETY: memory of this value. The get of a word behind a put ends when the put is visible.
        let begun = unsafe {
            match reads {
                true => self.engines.get(1, bytes),
                false => self.engines.put(1, bytes).and_then(|()| self.engines.get(1, CommandBytes { len: word, ..bytes })),
            }
        };
        let mut left = if reads { 1 } else { 2 };
        while begun.is_ok() && left > 0 {
            self.engines.go_on();
            match self.engines.notification() {
                Ok(notification) => left -= usize::from(notification.is_some()),
                Err(_) => return false,
            }
        }
        begun.is_ok()
    }
}

impl SoftPair {
    /// Of EXTOLL.
    ///
    /// # Panics
    /// There is no memory.
    #[must_use]
    pub fn extoll() -> Self {
        let fabric = || MovingFabric::new(MovingRules::InOrder, 1);
        let (of_alone, of_wires) = (fabric(), fabric());
        let (mut engines, mut other) = (SoftEngines::open(&of_alone, 0), SoftEngines::open(&of_alone, 1));
        let (mut here, mut there) = (PairMemory::new(), PairMemory::new());
        let ((start, len), (far, _)) = (here.start(), there.start());
        // SAFETY: it outlives the engines.
        let (here_at, there_at) = unsafe {
            (
                engines.register(start, len, RmaAccess::Local).expect("memory").1,
                other.register(far, len, RmaAccess::Remote).expect("memory").1,
            )
        };
        SoftPair::new(Alone { engines, _other: other, here_at, there_at, _here: here, _there: there }, move |rank| {
            (ExtollAdapter::new(SoftEngines::open(&of_wires, rank)).expect("engines"), VeloPackets::new(2))
        })
    }
}
