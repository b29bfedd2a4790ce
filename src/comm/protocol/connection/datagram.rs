//! What two ends tell each other out of band: where the sender stands. Numbers are little-endian.
//!
//! ```text
//!  byte   0 .. 16   the job's token
//!        16 .. 24   stage, whether an answer is asked for, six zeros
//!        24 .. 40   sender, receiver, epoch, number of this datagram
//!        40 .. 52   number of the datagram that this one answers, the sender's queue pair and its first sequence number
//!        52 .. 60   the sender's wish
//! ```
//!
//! Nothing is read of a datagram that is not exactly so.

/// Bytes of a datagram.
pub(in crate::comm) const LENGTH: usize = 60;

/// No wish.
pub(super) const NEVER: u64 = u64::MAX;

/// Where an end stands in an epoch. Within an epoch an end never goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::comm) enum PairStage {
    /// It holds no queue pair.
    #[default]
    Idle,
    /// It makes its queue pair.
    Asking,
    /// Its queue pair is in INIT, and has an address.
    Initialized,
    /// Its queue pair is in RTS.
    Connected,
    /// It posts nothing more, and all that it posted is acknowledged.
    Closing,
}

/// Where a queue pair is reached, in one epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::comm) struct PairAddress {
    /// The adapter's number of the queue pair.
    pub(in crate::comm) queue_pair: u32,
    /// The sequence number of the first packet that it sends.
    pub(in crate::comm) sequence: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PairDatagram {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) epoch: u32,
    pub(super) stage: PairStage,
    /// Of no meaning below [`PairStage::Initialized`].
    pub(super) address: PairAddress,
    /// When the sender wished for the connection, by the job's logical clock; [`NEVER`] if it did not.
    pub(super) wish: u64,
    /// The count of datagrams from the sender to this peer.
    pub(super) number: u32,
    /// The number of the datagram that this one answers; zero if none.
    pub(super) answers: u32,
    /// It was sent again, because nothing was heard: to be answered.
    pub(super) asks: bool,
}

impl PairDatagram {
    pub(super) fn encode(&self, token: u128) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..16].copy_from_slice(&token.to_le_bytes());
        (bytes[16], bytes[17]) = (self.stage as u8, u8::from(self.asks));
        let PairAddress { queue_pair, sequence } = self.address;
        let words = [self.from, self.to, self.epoch, self.number, self.answers, queue_pair, sequence];
        for (bytes, word) in bytes[24..52].chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        bytes[52..].copy_from_slice(&self.wish.to_le_bytes());
        bytes
    }

    /// Returns none unless it is a datagram of the job that has this token.
    pub(super) fn decode(bytes: &[u8], token: u128) -> Option<Self> {
        let bytes: &[u8; LENGTH] = bytes.try_into().ok()?;
        let stages = [PairStage::Idle, PairStage::Asking, PairStage::Initialized, PairStage::Connected, PairStage::Closing];
        let stage = *stages.get(usize::from(bytes[16]))?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let wish = u64::from(word(52)) | u64::from(word(56)) << 32;
        let is_form = bytes[17] <= 1 && bytes[18..24] == [0; 6] && (wish == NEVER || wish < NEVER / 2);
        let is_ours = bytes[..16] == token.to_le_bytes() && is_form;
        is_ours.then(|| PairDatagram {
            from: word(24),
            to: word(28),
            epoch: word(32),
            stage,
            address: PairAddress { queue_pair: word(44), sequence: word(48) },
            wish,
            number: word(36),
            answers: word(40),
            asks: bytes[17] == 1,
        })
    }
}
