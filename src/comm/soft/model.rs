//! Computes when a message has left, and when it has arrived.
//!
//! An adapter sends one message at a time and receives one at a time, and a link carries one at a time. A message's head goes through
//! the links as they become free; its bytes follow at the rate of the slowest. Links and receivers serve first the head that is there
//! first. So a caller follows each head from link to link, and times depend on earlier calls only. If the adapter keeps order, messages
//! of one rank to another arrive in the order in which they leave.
//!
//! Where processors move the messages ([`Driven`](super::Driven)), each rank is an adapter, which sends *or* receives.

use super::{Machine, Picos, Shape, links::LinkRoute};

/// The times of messages in a machine.
#[derive(Debug)]
pub(in crate::comm) struct Model {
    machine: Machine,
    nodes: usize,
    /// The times when the adapters of all nodes are free again, to send and to receive. Where processors move messages, `sends`
    /// is of all ranks and of both.
    sends: Vec<Picos>,
    /// The time when each rank's last message began to leave, where processors move messages.
    begun: Vec<Picos>,
    receives: Vec<Picos>,
    links: Vec<Picos>,
    /// The time when each node's last head was in the network.
    heads: Vec<Picos>,
}

/// The way of a message: the links that its head takes. None before it begins to leave.
#[derive(Debug, Default)]
pub(in crate::comm) struct Way(Option<LinkRoute>);

/// What comes next of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm) enum NextLeg {
    /// Its head is at a link or at the receiver. Ask again then.
    Head(Picos),
    Ends(Times),
}

/// The times of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm) struct Times {
    /// The time when its last byte is in the target's memory.
    pub arrived: Picos,
    /// The time when the sender knows: no adapter waits for the word that goes back.
    pub answered: Picos,
}

impl Model {
    pub(in crate::comm) fn new(machine: Machine, ranks: usize) -> Self {
        let nodes = ranks.div_ceil(machine.ranks_per_node);
        let free = |count: usize| vec![Picos::ZERO; count];
        let links = free(machine.shape.links(nodes));
        let driven = machine.adapter.driven.is_some();
        let (sends, begun) = if driven { (free(ranks), free(ranks)) } else { (free(nodes), Vec::new()) };
        Model { nodes, sends, begun, receives: free(nodes), links, heads: free(nodes), machine }
    }

    pub(in crate::comm) fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Returns true if two ranks are on one node.
    pub(in crate::comm) fn is_near(&self, one: usize, other: usize) -> bool {
        one / self.machine.ranks_per_node == other / self.machine.ranks_per_node
    }

    /// The adapter of a node sends and receives nothing before `until`.
    pub(in crate::comm) fn stall(&mut self, node: usize, until: Picos) {
        let own = match self.machine.adapter.driven {
            Some(_) => self.machine.ranks_per_node * node..self.machine.ranks_per_node * (node + 1),
            None => node..node + 1,
        };
        let sends = self.sends.iter_mut().enumerate().filter(|(at, _)| own.contains(at)).map(|(_, free)| free);
        sends.chain(self.receives.get_mut(node)).for_each(|free| *free = until.max(*free));
    }

    /// The time when the processor of a rank has moved the messages that have come by now; zero, if adapters do.
    pub(in crate::comm) fn attends(&self, rank: usize) -> Picos {
        if self.machine.adapter.driven.is_some() { self.sends[rank] } else { Picos::ZERO }
    }

    /// The time of a rank's processor for a message that it sends, or receives.
    pub(in crate::comm) fn moves(&self, from: usize, to: usize, bytes: usize, receives: bool) -> Picos {
        let adapter = &self.machine.adapter;
        match adapter.driven.filter(|_| !self.is_near(from, to)) {
            Some(driven) => {
                let (per_byte, _) = adapter.engine(bytes);
                Picos::of_bytes(bytes, per_byte) + if receives { driven.receive } else { Picos::ZERO }
            }
            None => Picos::ZERO,
        }
    }

    /// The time to copy `bytes` bytes to or from another rank of the node; zero for a rank of another.
    pub(in crate::comm) fn copies(&self, from: usize, to: usize, bytes: usize) -> Picos {
        if self.is_near(from, to) { Picos::of_bytes(bytes, self.machine.node.per_byte) } else { Picos::ZERO }
    }

    /// The time when a message of one rank to another begins to leave, if it is handed to the adapter at `now`. The adapter sends
    /// messages in the order of the calls.
    ///
    /// A processor that moves messages has done so when a call hands one over. What it `answers` waits until it is free.
    pub(in crate::comm) fn begins(&mut self, now: Picos, from: usize, to: usize, bytes: usize, answers: bool) -> Picos {
        if self.is_near(from, to) {
            return now;
        }
        let (per_byte, _) = self.machine.adapter.engine(bytes);
        let bytes_take = Picos::of_bytes(bytes, per_byte);
        if self.machine.adapter.driven.is_some() {
            let sends = &mut self.sends[from];
            let free = if answers { *sends } else { Picos::ZERO };
            // Behind one that a fault keeps back, too.
            let begin = now.max(free).max(self.begun[from]);
            self.begun[from] = begin;
            *sends = begin.max(*sends) + bytes_take;
            return begin;
        }
        let sends = &mut self.sends[from / self.machine.ranks_per_node];
        let begin = now.max(*sends);
        *sends = begin + self.machine.adapter.gap.max(bytes_take);
        begin
    }

    /// What comes next of a message that begins to leave now, or whose head is at its next link or receiver. Calls come in the
    /// order of `now`. The target `computes` until then, as far as is known.
    pub(in crate::comm) fn travels(
        &mut self,
        now: Picos,
        from: usize,
        to: usize,
        bytes: usize,
        computes: Picos,
        way: &mut Way,
    ) -> NextLeg {
        if self.is_near(from, to) {
            let latency = if from == to { Picos::ZERO } else { self.machine.node.latency };
            return NextLeg::Ends(Times { arrived: now + latency, answered: now + latency + latency });
        }
        let (sender, receiver) = (from, to);
        let (from, to) = (from / self.machine.ranks_per_node, to / self.machine.ranks_per_node);
        let adapter = &self.machine.adapter;
        let (per_byte, startup) = adapter.engine(bytes);
        let Some(route) = &mut way.0 else {
            way.0 = Some(self.machine.shape.route(self.nodes, from, to));
            let is_at_once = self.machine.shape == Shape::Crossbar && adapter.block.is_none() && adapter.driven.is_none();
            let mut head = now + startup + adapter.latency + self.machine.hop;
            if adapter.ordered {
                // One that starts up faster stays behind.
                head = head.max(self.heads[from]);
                self.heads[from] = head;
            }
            // Where all heads take equally long, they come in the order in which they begin: the caller need not ask again.
            return if is_at_once { self.travels(head, sender, receiver, bytes, computes, way) } else { NextLeg::Head(head) };
        };
        if let Some(link) = route.next(&self.machine.shape) {
            let on_link = Picos::of_bytes(bytes, self.machine.link[self.machine.shape.direction(link)]);
            let enters = now.max(self.links[link]);
            self.links[link] = enters + on_link;
            return NextLeg::Head(enters + self.machine.hop);
        }
        let back = (0..=route.len()).fold(adapter.latency, |time, _| time + self.machine.hop);
        let slowest = route.directions().into_iter().zip(self.machine.link).filter(|(leads, _)| *leads);
        let slowest = slowest.map(|(_, link)| Picos::of_bytes(bytes, link)).max();
        let last = slowest.map_or(Picos::ZERO, |on_link| now + on_link);
        if let Some(driven) = adapter.driven {
            let mut enters = now.max(self.sends[receiver]);
            if computes > now {
                // A long one is asked for when its turn has come; short ones wait together.
                let seen = if bytes > adapter.copied { enters } else { now };
                enters = enters.max(computes.min(seen + driven.progress));
            }
            let arrived = enters + driven.receive + Picos::of_bytes(bytes, per_byte);
            self.sends[receiver] = arrived;
            let arrived = arrived.max(last);
            return NextLeg::Ends(Times { arrived, answered: arrived + back });
        }
        let (enters, bytes) = (now.max(self.receives[to]), Picos::of_bytes(bytes, per_byte));
        self.receives[to] = enters + adapter.gap.max(bytes);
        // The last byte comes at the rate of a link, and is received at that of the adapter.
        let arrived = (enters + bytes).max(last);
        NextLeg::Ends(Times { arrived, answered: arrived + back })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::comm::soft::{Adapter, Block, Driven, Node, Processor};

    /// Two ranks on each node.
    fn machine(shape: Shape) -> Machine {
        let adapter = Adapter {
            overhead: Picos::ZERO,
            gap: Picos(100),
            per_byte: 10.0,
            latency: Picos(1000),
            read: Picos::ZERO,
            block: Some(Block { from: 64, startup: Picos(5000), per_byte: 5.0 }),
            driven: None,
            copied: 0,
            window: 1,
            ordered: true,
            signals: true,
        };
        let processor = Processor { flops: 1.0, memory: 1.0 };
        let node = Node { latency: Picos(7), per_byte: 1.0 };
        Machine { ranks_per_node: 2, processor, node, adapter, shape, link: [20.0; 3], hop: Picos(50), agent: None }
    }

    fn times(arrived: u64, answered: u64) -> Times {
        Times { arrived: Picos(arrived), answered: Picos(answered) }
    }

    /// The times of messages. Each is given by the time at which its adapter gets it, and by from, to, bytes.
    fn send(model: &mut Model, messages: &[(u64, usize, usize, usize)]) -> Vec<(u64, Times)> {
        send_to(model, messages, 0)
    }

    /// As `send`, to ranks that compute until a time.
    fn send_to(model: &mut Model, messages: &[(u64, usize, usize, usize)], computes: u64) -> Vec<(u64, Times)> {
        let mut sent: Vec<_> = messages.iter().map(|_| (None, Way::default(), times(0, 0))).collect();
        let mut queue: BTreeSet<(u64, usize)> =
            messages.iter().enumerate().map(|(number, message)| (message.0, number)).collect();
        while let Some((now, number)) = queue.pop_first() {
            let (_, from, to, bytes) = messages[number];
            let (begin, way, times) = &mut sent[number];
            let at = match begin {
                None => {
                    let at = model.begins(Picos(now), from, to, bytes, false);
                    *begin = Some(at);
                    at
                }
                Some(_) => match model.travels(Picos(now), from, to, bytes, Picos(computes), way) {
                    NextLeg::Head(at) => at,
                    NextLeg::Ends(ends) => {
                        *times = ends;
                        continue;
                    }
                },
            };
            queue.insert((at.0, number));
        }
        sent.into_iter().map(|(begin, _, times)| (begin.unwrap().0, times)).collect()
    }

    #[test]
    fn an_adapter_sends_one_message_at_a_time_and_receives_one_at_a_time() {
        let mut model = Model::new(machine(Shape::Crossbar), 8);
        // The gap is longer than the bytes, and then not. The receiving adapter is free at 1150.
        let sent = send(&mut model, &[(0, 0, 2, 8), (0, 1, 4, 40), (0, 6, 3, 8)]);
        assert_eq!(sent, [(0, times(1130, 2180)), (100, times(1550, 2600)), (0, times(1230, 2280))]);
        // The other engine.
        let sent = send(&mut model, &[(10_000, 0, 2, 64), (10_000, 1, 4, 1)]);
        assert_eq!(sent[0], (10_000, times(16_370, 17_420)));
        // Its head stays behind.
        assert_eq!(sent[1], (10_320, times(16_060, 17_110)));
    }

    #[test]
    fn ranks_of_a_node_copy() {
        let mut model = Model::new(machine(Shape::Crossbar), 4);
        assert_eq!((model.copies(0, 1, 64), model.copies(0, 2, 64)), (Picos(64), Picos::ZERO));
        assert_eq!(send(&mut model, &[(10, 0, 1, 64), (10, 0, 0, 64)]), [(10, times(17, 24)), (10, times(10, 10))]);
    }

    #[test]
    fn messages_share_links() {
        // Leaves 0, 1 and 2, 3, one link up from each.
        let mut model = Model::new(machine(Shape::FatTree { leaf: 2, up: 1 }), 8);
        // At its receiver after two links and three switches. Then the link up is busy until 1050 + 800.
        let sent = send(&mut model, &[(0, 0, 4, 40), (0, 2, 6, 40)]);
        assert_eq!(sent, [(0, times(1000 + 3 * 50 + 800, 1950 + 1150)), (0, times(1850 + 100 + 800, 2750 + 1150))]);
    }

    /// On a ring where all send over two links, each link carries two messages, its own node's first. None waits for more than one.
    #[test]
    fn whoever_is_at_a_link_first_goes_first() {
        let ring = Shape::Torus { sides: [8, 1, 1], share: 1 };
        let mut model = Model::new(machine(ring), 16);
        let messages: Vec<_> = (0..8).map(|node| (0, 2 * node, 2 * ((node + 2) % 8), 40)).collect();
        for (_, times) in send(&mut model, &messages) {
            assert_eq!(times.arrived, Picos(1000 + 3 * 50 + (800 - 50) + 800));
        }
    }

    /// The receiver is taken by the head that is there first, though the other began earlier; also without a second engine.
    #[test]
    fn whoever_is_at_a_receiver_first_goes_first() {
        let shape = Shape::FatTree { leaf: 2, up: 1 };
        let plain = Machine { adapter: Adapter { block: None, ..machine(Shape::Crossbar).adapter }, ..machine(shape) };
        let mut model = Model::new(plain, 8);
        // From another leaf, three switches away, at the rate of its links; and 60 later from the same leaf, one switch away.
        let sent = send(&mut model, &[(0, 4, 0, 8), (60, 2, 0, 8)]);
        assert_eq!([sent[1].1.arrived, sent[0].1.arrived], [Picos(60 + 1050 + 80), Picos(1150 + 160)]);
    }

    /// An adapter that is faster than a link receives from two at once.
    #[test]
    fn a_receiver_is_busy_at_its_own_rate() {
        let ring = Shape::Torus { sides: [8, 1, 1], share: 1 };
        let mut model = Model::new(machine(ring), 16);
        // 400 in the adapter, 800 on a link.
        let sent = send(&mut model, &[(0, 2, 0, 40), (0, 14, 0, 40)]);
        assert_eq!([sent[0].1.arrived, sent[1].1.arrived], [Picos(1100 + 800), Picos(1100 + 800)]);
    }

    #[test]
    fn a_processor_that_moves_messages_sends_or_receives() {
        let driven = Some(Driven { receive: Picos(30), progress: Picos(2000) });
        let plain = machine(Shape::Crossbar);
        let adapter = Adapter { block: None, gap: Picos::ZERO, copied: 20, driven, ..plain.adapter };
        let model = || Model::new(Machine { adapter, ..plain.clone() }, 8);
        // 400 to send, 1050 on the way, 30 + 400 to receive. Rank 1, on the node of rank 0, is a processor of its own.
        let ends = times(1480, 2530);
        assert_eq!(send(&mut model(), &[(0, 0, 2, 40), (0, 1, 4, 40)]), [(0, ends), (0, ends)]);
        // Rank 0 has sent when it begins to receive, and has received when it begins to answer.
        let mut busy = model();
        let sent = send(&mut busy, &[(0, 0, 2, 200), (0, 4, 0, 40)]);
        assert_eq!(sent[1].1.arrived, Picos(2000 + 430));
        assert_eq!(busy.begins(Picos(1100), 0, 2, 40, true), Picos(2430));
        // Behind one that is handed over late, which others are not.
        let mut late = model();
        let begins = [(900, 0), (100, 0), (100, 1)].map(|(handed, from)| late.begins(Picos(handed), from, 2, 40, false).0);
        assert_eq!(begins, [900, 900, 100]);
        // Short ones wait together until a rank that computes looks, long ones each, and none when it has computed.
        let short = [(0, 0, 2, 10), (0, 4, 2, 10)];
        let at = |messages: &[_], computes| {
            send_to(&mut model(), messages, computes).iter().map(|sent| sent.1.arrived.0).collect::<Vec<_>>()
        };
        assert_eq!(at(&short, 100_000), [1050 + 2000 + 130, 1050 + 2000 + 260]);
        assert_eq!(at(&[(0, 0, 2, 40), (0, 4, 2, 40)], 100_000), [1050 + 2000 + 430, 1050 + 2000 + 430 + 2000 + 430]);
        assert_eq!(at(&short, 1500), [1500 + 130, 1500 + 260]);
        let model = model();
        assert_eq!(
            (model.moves(0, 2, 40, true), model.moves(0, 2, 40, false), model.moves(0, 1, 40, true)),
            (Picos(430), Picos(400), Picos::ZERO)
        );
    }

    /// A message is as slow as the slowest link on its way.
    #[test]
    fn links_of_a_torus_differ_by_direction() {
        let torus = Shape::Torus { sides: [3, 3, 1], share: 1 };
        let mut model = Model::new(Machine { link: [20.0, 40.0, 20.0], ranks_per_node: 1, ..machine(torus) }, 9);
        // Along x, along y, and along both: the link along y is taken by the second until 1050 + 1600.
        let sent = send(&mut model, &[(0, 0, 1, 40), (0, 1, 4, 40), (5000, 0, 4, 40)]);
        let arrived: Vec<u64> = sent.iter().map(|sent| sent.1.arrived.0).collect();
        assert_eq!(arrived, [1100 + 800, 1100 + 1600, 5000 + 1150 + 1600]);
    }

    /// With anything else under way, and links of any speed.
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
            for (link, driven) in [(1.0, false), (10.0, false), (100.0, false), (10.0, true)] {
                let plain = machine(shape.clone());
                let processor = Some(Driven { receive: Picos(30), progress: Picos(2000) });
                let adapter =
                    if driven { Adapter { block: None, copied: 20, driven: processor, ..plain.adapter } } else { plain.adapter };
                let mut model = Model::new(Machine { link: [link; 3], adapter, ..plain }, 16);
                let mut now = 0;
                let messages: Vec<_> = (0..2000)
                    .map(|_| {
                        now += random(200);
                        (now, random(16) as usize, random(16) as usize, random(100) as usize)
                    })
                    .collect();
                let mut last = std::collections::HashMap::new();
                for ((_, from, to, _), (_, times)) in messages.iter().zip(send(&mut model, &messages)) {
                    let before = last.insert((*from, *to), times.arrived);
                    assert!(before.is_none_or(|before| before <= times.arrived), "{shape:?}, {link}: from {from} to {to}");
                }
            }
        }
    }
}
