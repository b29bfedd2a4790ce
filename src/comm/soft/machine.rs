//! The parameters of a machine, in the terms of LogGP: overhead `o`, gap `g`, gap for each byte `G`, latency `L` (A. Alexandrov, M.
//! F. Ionescu, K. E. Schauser, C. Scheiman: LogGP, SPAA 1995).

use super::{Picos, Shape};

/// The parameters of a machine.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::comm) struct Machine {
    pub ranks_per_node: usize,
    pub processor: Processor,
    pub node: Node,
    pub adapter: Adapter,
    pub shape: Shape,
    /// The time of a link for each byte: in each direction of a torus; elsewhere all are alike.
    pub link: [f64; 3],
    /// The time of a switch.
    pub hop: Picos,
    /// Messages between nodes go by the code of a network, and ranks have agents that look at it while they compute.
    pub agent: Option<AgentTimes>,
}

/// A network's own code: agents look at it, and ranks connect by it.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::comm) struct AgentTimes {
    /// The name of the network.
    pub code: String,
    /// The time from the arrival of a message until the agent looks, if its rank computes.
    pub wake_up: Picos,
    /// The time until a queue pair is made and initialized; and until it is ready to receive and to send.
    pub prepare: Picos,
    pub connect: Picos,
    /// The taker's time for each byte of a message: they are copied out of the receive buffer, or added.
    pub handle_per_byte: f64,
}

/// What one rank computes with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::comm) struct Processor {
    /// Operations on numbers in a second.
    pub flops: f64,
    /// Bytes from and to memory in a second.
    pub memory: f64,
}

/// Copies between ranks of a node, by processors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::comm) struct Node {
    pub latency: Picos,
    pub per_byte: f64,
}

/// What joins a node to the network. It sends one message at a time, and receives one at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::comm) struct Adapter {
    /// The processor's time for each operation: `o`.
    pub overhead: Picos,
    /// The adapter's time for each message: `g`.
    pub gap: Picos,
    /// The adapter's time for each byte: `G`.
    pub per_byte: f64,
    /// The time from one adapter to another, without the switches: `L`.
    pub latency: Picos,
    /// The time until a target's adapter has read what a get asks for.
    pub read: Picos,
    /// Another engine for long transfers.
    pub block: Option<Block>,
    /// There is no such engine: processors move the messages.
    pub driven: Option<Driven>,
    /// The most bytes of a put that the processor is done with when the call returns.
    pub copied: usize,
    /// Operations that a rank may have in flight.
    pub window: usize,
    /// Puts of one rank to another arrive in order, and so do gets behind them.
    pub ordered: bool,
    /// A put can change a word behind its data.
    pub signals: bool,
}

/// Host-driven messages: the processors of both ranks move them, as over TCP. The overhead of LogGP is then told apart: `Adapter::overhead` is
/// that of the sender, `o_s`, and the receiver has its own, `o_r`. Each rank sends or receives one message at a time, and computes that much
/// less meanwhile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::comm) struct Driven {
    /// The processor's time for each message that it receives: `o_r`.
    pub receive: Picos,
    /// The longest that a message waits for a rank that computes.
    pub progress: Picos,
}

/// The engine for long transfers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::comm) struct Block {
    /// Bytes of the shortest.
    pub from: usize,
    /// More latency.
    pub startup: Picos,
    pub per_byte: f64,
}

impl Adapter {
    /// The adapter's time for each byte of a transfer, and the extra time to begin.
    pub(super) fn engine(&self, bytes: usize) -> (f64, Picos) {
        match self.block {
            Some(block) if bytes >= block.from => (block.per_byte, block.startup),
            _ => (self.per_byte, Picos::ZERO),
        }
    }
}
