//! When a message has left, and when it has arrived.
//!
//! An adapter sends one message at a time and receives one at a time, and a link carries one at a time. A message's head goes from the
//! adapter through the links as they become free; its bytes follow at the rate of the slowest. A message takes its turns on links and at the
//! receiver when it begins to leave: times depend on earlier calls only. So one that begins later does not overtake on a link, though it may
//! be closer to it. Messages of one rank to another arrive in the order in which they leave.

use super::{Machine, Picos};

/// See the module's essay.
#[derive(Debug)]
pub(in crate::comm) struct Model {
    machine: Machine,
    nodes: usize,
    /// When the adapters of all nodes are free again, those of sending and of receiving.
    sends: Vec<Picos>,
    receives: Vec<Picos>,
    links: Vec<Picos>,
    route: Vec<usize>,
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm) struct Times {
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
        Model { nodes, sends: free(nodes), receives: free(nodes), links, route: Vec::new(), machine }
    }

    pub(in crate::comm) fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Whether two ranks are on one node.
    fn is_near(&self, one: usize, other: usize) -> bool {
        one / self.machine.ranks_per_node == other / self.machine.ranks_per_node
    }

    /// How long a processor copies so many bytes to or from another rank of its node; nothing for a rank of another.
    pub(in crate::comm) fn copies(&self, from: usize, to: usize, bytes: usize) -> Picos {
        if self.is_near(from, to) { Picos::of_bytes(bytes, self.machine.node.per_byte) } else { Picos::ZERO }
    }

    /// When a message of one rank to another begins to leave, if it is handed to the adapter now. Calls come in the order of `now`.
    pub(in crate::comm) fn begins(&mut self, now: Picos, from: usize, to: usize, bytes: usize) -> Picos {
        if self.is_near(from, to) {
            return now;
        }
        let (per_byte, _) = self.machine.adapter.engine(bytes);
        let sends = &mut self.sends[from / self.machine.ranks_per_node];
        let begin = now.max(*sends);
        *sends = begin + self.machine.adapter.gap.max(Picos::of_bytes(bytes, per_byte));
        begin
    }

    /// What becomes of a message that begins to leave now. Calls come in the order of `now`.
    pub(in crate::comm) fn travels(&mut self, now: Picos, from: usize, to: usize, bytes: usize) -> Times {
        if self.is_near(from, to) {
            let latency = self.machine.node.latency;
            return Times { arrived: now + latency, answered: now + latency + latency };
        }
        let (from, to) = (from / self.machine.ranks_per_node, to / self.machine.ranks_per_node);
        let adapter = &self.machine.adapter;
        let (per_byte, startup) = adapter.engine(bytes);
        self.route.clear();
        self.machine.shape.route(self.nodes, from, to, &mut self.route);
        let on_link = Picos::of_bytes(bytes, self.machine.link);
        let mut head = now + startup + adapter.latency + self.machine.hop;
        for &link in &self.route {
            let free = &mut self.links[link];
            let enters = head.max(*free);
            *free = enters + on_link;
            head = enters + self.machine.hop;
        }
        let slowest = if self.route.is_empty() { per_byte } else { per_byte.max(self.machine.link) };
        let (enters, bytes) = (head.max(self.receives[to]), Picos::of_bytes(bytes, slowest));
        self.receives[to] = enters + adapter.gap.max(bytes);
        let arrived = enters + bytes;
        let back = (0..=self.route.len()).fold(adapter.latency, |time, _| time + self.machine.hop);
        Times { arrived, answered: arrived + back }
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

    fn times(arrived: u64, answered: u64) -> Times {
        Times { arrived: Picos(arrived), answered: Picos(answered) }
    }

    /// When a message begins, and what becomes of it.
    fn send(model: &mut Model, now: u64, from: usize, to: usize, bytes: usize) -> (u64, Times) {
        let begin = model.begins(Picos(now), from, to, bytes);
        (begin.0, model.travels(begin, from, to, bytes))
    }

    #[test]
    fn an_adapter_sends_one_message_at_a_time_and_receives_one_at_a_time() {
        let mut model = Model::new(machine(Shape::Crossbar), 8);
        // The gap is longer than the bytes, and then not.
        assert_eq!(send(&mut model, 0, 0, 2, 8), (0, times(1130, 2180)));
        assert_eq!(send(&mut model, 0, 1, 4, 40), (100, times(1550, 2600)));
        // The receiving adapter is free at 1150.
        assert_eq!(send(&mut model, 0, 6, 3, 8), (0, times(1230, 2280)));
        // The other engine.
        assert_eq!(send(&mut model, 10_000, 0, 2, 64), (10_000, times(16_370, 17_420)));
        assert_eq!(send(&mut model, 10_000, 1, 4, 1).0, 10_320);
    }

    #[test]
    fn ranks_of_a_node_copy() {
        let mut model = Model::new(machine(Shape::Crossbar), 4);
        assert_eq!((model.copies(0, 1, 64), model.copies(0, 2, 64)), (Picos(64), Picos::ZERO));
        assert_eq!(send(&mut model, 10, 0, 1, 64), (10, times(17, 24)));
        assert_eq!(send(&mut model, 10, 0, 0, 64), (10, times(17, 24)));
    }

    #[test]
    fn messages_share_links() {
        // Leaves 0, 1 and 2, 3, one link up from each.
        let mut model = Model::new(machine(Shape::FatTree { leaf: 2, up: 1 }), 8);
        // At its receiver after two links and three switches.
        assert_eq!(send(&mut model, 0, 0, 4, 40), (0, times(1000 + 3 * 50 + 800, 1950 + 1150)));
        // The link up is busy until 1050 + 800.
        assert_eq!(send(&mut model, 0, 2, 6, 40), (0, times(1850 + 100 + 800, 2750 + 1150)));
    }

    /// Whatever else is under way, and however slow links are.
    #[test]
    fn messages_of_a_pair_arrive_in_order() {
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for shape in
            [Shape::Crossbar, Shape::FatTree { leaf: 2, up: 1 }, Shape::torus_of(8, 1), Shape::Dragonfly { routers: 2, share: 1 }]
        {
            for link in [1.0, 10.0, 100.0] {
                let mut model = Model::new(Machine { link, ..machine(shape.clone()) }, 16);
                let mut last = std::collections::HashMap::new();
                let (mut now, mut queue) = (0, std::collections::BTreeMap::new());
                for number in 0..2000_u64 {
                    now += random(200);
                    let (from, to, bytes) = (random(16) as usize, random(16) as usize, random(100) as usize);
                    let begin = model.begins(Picos(now), from, to, bytes);
                    queue.insert((begin, number), (from, to, bytes));
                }
                for ((begin, _), (from, to, bytes)) in queue {
                    let arrived = model.travels(begin, from, to, bytes).arrived;
                    let before = last.insert((from, to), arrived);
                    assert!(before.is_none_or(|before| before <= arrived), "{shape:?}, {link}: from {from} to {to}");
                }
            }
        }
    }
}
