//! Two software devices, for a bench.

use super::{
    adapter::GeminiAdapter,
    dmapp::{Dmapp, DmappSegment, Element, RemoteElements},
    mailboxes::Mailboxes,
    soft::SoftDmapp,
};
use crate::comm::{
    rma::pair::{MovesBytes, PairMemory, SoftPair},
    soft::fabric::{MovingFabric, MovingRules},
};

/// DMAPP alone. Devices are in front of their memory.
#[derive(Debug)]
struct Alone {
    dmapp: SoftDmapp,
    _other: SoftDmapp,
    segment: DmappSegment,
    here: PairMemory,
    there: PairMemory,
}

impl MovesBytes for Alone {
    fn moves(&mut self, len: usize, reads: bool) -> bool {
        let element = if len.is_multiple_of(Element::Word16.bytes()) { Element::Word16 } else { Element::Word8 };
        let ((here, _), (there, _)) = (self.here.start(), self.there.start());
        let (address, count) = (there.expose_provenance() as u64, len / element.bytes());
        let there = RemoteElements { pe: 1, segment: self.segment, address, count, element };
        // SAFETY: memory of this value.
        let begun = unsafe { if reads { self.dmapp.get(there, here) } else { self.dmapp.put(there, here) } };
        let Ok(work) = begun else { return false };
        loop {
            self.dmapp.go_on();
            match self.dmapp.test(work) {
                Ok(true) => return true,
                Ok(false) => {}
                Err(_) => return false,
            }
        }
    }
}

impl SoftPair {
    /// Of Gemini, with strict ordering.
    ///
    /// # Panics
    /// There is no memory.
    #[must_use]
    pub fn gemini() -> Self {
        let fabric = || MovingFabric::new(MovingRules::Strict, 1);
        let (of_alone, of_wires) = (fabric(), fabric());
        let (dmapp, mut other) = (SoftDmapp::open(&of_alone, 0), SoftDmapp::open(&of_alone, 1));
        let (here, mut there) = (PairMemory::new(), PairMemory::new());
        let (start, len) = there.start();
        // SAFETY: it outlives the device.
        let segment = unsafe { other.register(start, len) }.expect("memory");
        SoftPair::new(Alone { dmapp, _other: other, segment, here, there }, move |rank| {
            let mut adapter = GeminiAdapter::new(SoftDmapp::open(&of_wires, rank), 2);
            let mailboxes = Mailboxes::new(&mut adapter, rank, 2).expect("a door");
            (adapter, mailboxes)
        })
    }
}
