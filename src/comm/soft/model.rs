//! When a message has left, and when it has arrived.
//!
//! An adapter sends one message at a time and receives one at a time, and a link carries one at a time. A message's head goes from the
//! adapter through the links as they become free; its bytes follow at the rate of the slowest. A message takes its turns when it is sent:
//! times depend on earlier calls only. So one that is sent later does not overtake on a link, though it may be closer to it.

use super::{Machine, Picos};

/// See the module's essay.
#[derive(Debug)]
pub(in crate::comm) struct Model {
    machine: Machine,
    nodes: usize,
    /// When the adapters of all nodes are free again, those of sending and of receiving.
    sends: Vec<Picos>,
    receives: Vec<Picos>,
    /// When the processor of a rank has copied what it sent inside its node.
    copies: Vec<Picos>,
    links: Vec<Picos>,
    route: Vec<usize>,
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm) struct Times {
    /// When its last byte has left.
    pub sent: Picos,
    /// When its last byte is in the memory of the target.
    pub arrived: Picos,
    /// When the sender knows: no adapter waits for the word that goes back.
    pub answered: Picos,
}

impl Model {
    pub(in crate::comm) fn new(machine: Machine, ranks: usize) -> Self {
        let nodes = ranks.div_ceil(machine.ranks_per_node);
        let free = |count: usize| vec![Picos::ZERO; count];
        let links = free(machine.shape.links(nodes));
        Model { nodes, sends: free(nodes), receives: free(nodes), copies: free(ranks), links, route: Vec::new(), machine }
    }

    pub(in crate::comm) fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Whether two ranks are on one node.
    fn is_near(&self, one: usize, other: usize) -> bool {
        one / self.machine.ranks_per_node == other / self.machine.ranks_per_node
    }

    /// Sends a message from rank to rank. Calls come in the order of `now`.
    pub(in crate::comm) fn send(&mut self, now: Picos, from: usize, to: usize, bytes: usize) -> Times {
        if self.is_near(from, to) {
            let near = self.machine.node;
            let sent = now.max(self.copies[from]) + Picos::of_bytes(bytes, near.per_byte);
            self.copies[from] = sent;
            let arrived = sent + near.latency;
            return Times { sent, arrived, answered: arrived + near.latency };
        }
        let (from, to) = (from / self.machine.ranks_per_node, to / self.machine.ranks_per_node);
        let adapter = &self.machine.adapter;
        let (per_byte, startup) = adapter.engine(bytes);
        let occupied = adapter.gap.max(Picos::of_bytes(bytes, per_byte));
        let begin = now.max(self.sends[from]);
        let sent = begin + occupied;
        self.sends[from] = sent;
        self.route.clear();
        self.machine.shape.route(self.nodes, from, to, &mut self.route);
        let on_link = Picos::of_bytes(bytes, self.machine.link);
        let mut head = begin + startup + adapter.latency + self.machine.hop;
        for &link in &self.route {
            let free = &mut self.links[link];
            let enters = head.max(*free);
            *free = enters + on_link;
            head = enters + self.machine.hop;
        }
        let enters = head.max(self.receives[to]);
        self.receives[to] = enters + occupied;
        let slowest = if self.route.is_empty() { per_byte } else { per_byte.max(self.machine.link) };
        let arrived = enters + Picos::of_bytes(bytes, slowest);
        let back = (0..=self.route.len()).fold(adapter.latency, |time, _| time + self.machine.hop);
        Times { sent, arrived, answered: arrived + back }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::soft::{Adapter, Block, Node, Processor, Shape};

    /// Two ranks on each node.
    fn machine(shape: Shape) -> Machine {
        let adapter = Adapter {
            overhead: Picos::ZERO,
            gap: Picos(100),
            per_byte: 10.0,
            latency: Picos(1000),
            block: Some(Block { from: 64, startup: Picos(5000), per_byte: 5.0 }),
            copied: 0,
            window: 1,
            ordered: true,
            signals: true,
        };
        let processor = Processor { flops: 1.0, memory: 1.0 };
        let node = Node { latency: Picos(7), per_byte: 1.0 };
        Machine { ranks_per_node: 2, processor, node, adapter, shape, link: 20.0, hop: Picos(50) }
    }

    fn times(sent: u64, arrived: u64, answered: u64) -> Times {
        Times { sent: Picos(sent), arrived: Picos(arrived), answered: Picos(answered) }
    }

    #[test]
    fn an_adapter_sends_one_message_at_a_time_and_receives_one_at_a_time() {
        let mut model = Model::new(machine(Shape::Crossbar), 8);
        // The gap is longer than the bytes, and then not.
        assert_eq!(model.send(Picos(0), 0, 2, 8), times(100, 1130, 2180));
        assert_eq!(model.send(Picos(0), 1, 4, 40), times(500, 1550, 2600));
        // The receiving adapter is free at 1150.
        assert_eq!(model.send(Picos(0), 6, 3, 8), times(100, 1230, 2280));
        // The other engine.
        assert_eq!(model.send(Picos(10_000), 0, 2, 64), times(10_320, 16_370, 17_420));
    }

    #[test]
    fn ranks_of_a_node_copy() {
        let mut model = Model::new(machine(Shape::Crossbar), 4);
        assert_eq!(model.send(Picos(0), 0, 1, 64), times(64, 71, 78));
        assert_eq!(model.send(Picos(0), 0, 0, 64), times(128, 135, 142));
        assert_eq!(model.send(Picos(0), 1, 0, 64), times(64, 71, 78));
    }

    #[test]
    fn messages_share_links() {
        // Leaves 0, 1 and 2, 3, one link up from each.
        let mut model = Model::new(machine(Shape::FatTree { leaf: 2, up: 1 }), 8);
        // At its receiver after two links and three switches.
        assert_eq!(model.send(Picos(0), 0, 4, 40), times(400, 1000 + 3 * 50 + 800, 1950 + 1150));
        // The link up is busy until 1050 + 800.
        assert_eq!(model.send(Picos(0), 2, 6, 40), times(400, 1850 + 100 + 800, 2750 + 1150));
        // No link between nodes of a leaf.
        assert_eq!(model.send(Picos(0), 5, 6, 40).sent, Picos(400));
    }
}
