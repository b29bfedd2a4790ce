//! What a network does in hardware. Code and tests branch on these fields, never on a conduit's name.

/// What a conduit announces about itself.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Capabilities {
    /// Longest single put or get in bytes.
    pub longest_transfer: usize,
    /// Operations that may be in flight before the layer above waits.
    pub window: usize,
    /// Which pairs of operations to one target stay in order.
    pub order: Ordering,
    /// Memory is committed and released in pieces of this many bytes, a power of two.
    pub granule: usize,
    /// What makes progress.
    pub progress: Progress,
    /// Which optional operations exist.
    pub native: Native,
    /// Any thread of a rank may call. If not, only the one that runs the rank's body may.
    pub threads: bool,
    /// The ranks of some node outnumber its cores, the same answer on every rank: waiting by turns beats spinning.
    pub crowded: bool,
}

impl Default for Capabilities {
    fn default() -> Self {
        Capabilities {
            longest_transfer: usize::MAX,
            window: 64,
            order: Ordering::default(),
            granule: 1 << 16,
            progress: Progress::Caller,
            native: Native::default(),
            threads: true,
            crowded: false,
        }
    }
}

/// Pairs of operations from one rank to one target that the network keeps in order by itself.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Ordering {
    /// A put is visible before a later put, and comes to be visible without any further call of its rank once its local completion
    /// was polled.
    pub put_put: bool,
    /// A get sees an earlier put.
    pub put_get: bool,
}

/// What makes progress on operations that other ranks began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// Nobody needs to do anything.
    Hardware,
    /// A thread of the conduit.
    Thread,
    /// The target, whenever it calls the library.
    Caller,
}

/// Optional operations; what is not announced is emulated above.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Native {
    /// The atomic operations of the network and those of processors may meet on words of up to this many bytes: 8, 4 or none. Adapters often
    /// promise that only among their own operations (ARMCI-Gemini §III-B3); then wider words that both could reach are left to the adapter.
    pub coherent: usize,
    /// Puts and gets of strided blocks.
    pub blocks: bool,
    /// Accumulates of strided blocks, which a processor of the owner's node adds.
    pub accumulate: bool,
    /// Puts that change a word behind the data.
    pub signals: bool,
    /// Letters for rings of other ranks, which a processor of the owner's node appends.
    pub append: bool,
}
