//! What is posted to the device, by its slot.

/// What a completion is of: 32 bits say what, 32 bits which slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Posted {
    Send(usize),
    Receive(usize),
    DatagramSend(usize),
    DatagramReceive(usize),
    Control(usize),
    /// An empty write, whose end is that of all before it; of a peer, not a slot.
    Mark(usize),
}

impl Posted {
    pub(super) fn id(self) -> u64 {
        let (what, slot) = match self {
            Posted::Send(slot) => (0, slot),
            Posted::Receive(slot) => (1, slot),
            Posted::DatagramSend(slot) => (2, slot),
            Posted::DatagramReceive(slot) => (3, slot),
            Posted::Control(slot) => (4, slot),
            Posted::Mark(to) => (5, to),
        };
        what << 32 | slot as u64
    }

    pub(super) fn of(id: u64) -> Self {
        let slot = id as u32 as usize;
        match id >> 32 {
            0 => Posted::Send(slot),
            1 => Posted::Receive(slot),
            2 => Posted::DatagramSend(slot),
            3 => Posted::DatagramReceive(slot),
            4 => Posted::Control(slot),
            _ => Posted::Mark(slot),
        }
    }
}
