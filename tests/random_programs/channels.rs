//! Random programs of channels: any graph, lengths and numbers of slots.
//!
//! All ranks draw one sequence of puts and waits that a single rank could carry out: a put only where a slot is free, a wait only where a
//! message is. Each rank carries out its own part of it, in that order, and nobody can hang, whatever the others' speed. What is left at
//! the end is taken in the order in which it arrives.

use global_arrays::{
    channel::{Channels, Inlet, Outlet, from, to, wait_any},
    prelude::*,
};

use crate::random::Random;

/// A channel, and what the sequence has put on it and waited for.
#[derive(Clone, Debug)]
struct Channel {
    from: usize,
    to: usize,
    tag: u64,
    most: usize,
    put: usize,
    waited: usize,
}

impl Channel {
    /// Any length up to the longest, any contents, by the number of the message.
    fn message(&self, number: usize) -> Vec<u32> {
        let mut random = Random::new(((self.from * 64 + self.to) as u64) << 40 ^ self.tag << 32 ^ number as u64);
        let len = random.between(0, self.most);
        (0..len).map(|_| random.next() as u32).collect()
    }
}

/// One creation, and the sequence on it.
struct Graph {
    slots: usize,
    channels: Vec<Channel>,
    outlets: Vec<Outlet<u32>>,
    inlets: Vec<Inlet<u32>>,
}

pub(crate) fn program(job: &Job, seed: u64) -> Result<(), Error> {
    let mut random = Random::new(seed + 7_000_000);
    let mut graphs = Vec::new();
    for _ in 0..random.between(1, 3) {
        graphs.push(Graph::new(job, &mut random)?);
        for _ in 0..random.between(5, 80) {
            let at = random.below(graphs.len());
            graphs[at].step(job.rank(), &mut random)?;
        }
        if random.chance(30) {
            let at = random.below(graphs.len());
            graphs.swap_remove(at).drain(job.rank(), random.chance(50))?;
        }
    }
    graphs.into_iter().try_for_each(|graph| graph.drain(job.rank(), true))?;
    job.sync()
}

impl Graph {
    fn new(job: &Job, random: &mut Random) -> Result<Self, Error> {
        let (slots, size) = (random.between(1, 4), job.size());
        let mut channels: Vec<Channel> = Vec::new();
        for tag in 0..random.between(1, 2 * size + 1) as u64 {
            // Seldom beyond what a network puts at once; tags are not in order.
            let most = if random.chance(10) { 20_000 } else { random.below(40) };
            channels.push(Channel {
                from: random.below(size),
                to: random.below(size),
                tag: tag * 5 % 7,
                most,
                put: 0,
                waited: 0,
            });
        }
        // Two of the same name are none.
        let mut seen = std::collections::HashSet::new();
        channels.retain(|channel| seen.insert((channel.from, channel.to, channel.tag)));
        let own = |end: fn(&Channel) -> usize| channels.iter().filter(move |channel| end(channel) == job.rank());
        let (outlets, inlets) = Channels::new(job).slots(slots as u32).open(
            own(|channel| channel.from).map(|channel| to(channel.to, channel.tag, channel.most)).collect::<Vec<_>>(),
            own(|channel| channel.to).map(|channel| from(channel.from, channel.tag)).rev().collect::<Vec<_>>(),
        )?;
        Ok(Graph { slots, channels, outlets, inlets })
    }

    /// The next put or wait of the sequence; `rank` does it if it is its own.
    fn step(&mut self, rank: usize, random: &mut Random) -> Result<(), Error> {
        let at = random.below(self.channels.len());
        let (way, puts) = (random.below(4), random.chance(50));
        let channel = &mut self.channels[at];
        let unread = channel.put - channel.waited;
        if unread == 0 || puts && unread < self.slots {
            channel.put += 1;
            if channel.from == rank {
                let out = self.outlets.iter_mut().find(|out| (out.member(), out.tag()) == (channel.to, channel.tag));
                put(out.expect("its outlet"), &channel.message(channel.put - 1), way)?;
            }
        } else {
            channel.waited += 1;
            if channel.to == rank {
                let inlet = self.inlets.iter_mut().find(|inlet| (inlet.member(), inlet.tag()) == (channel.from, channel.tag));
                wait(inlet.expect("its inlet"), &channel.message(channel.waited - 1), way)?;
            }
        }
        Ok(())
    }

    /// Takes all that is left, if it is to be taken, in the order of arrival.
    fn drain(mut self, rank: usize, all: bool) -> Result<(), Error> {
        if !all {
            return Ok(());
        }
        loop {
            let channels = &self.channels;
            let of = |inlet: &Inlet<u32>| {
                channels.iter().position(|channel| (channel.from, channel.to, channel.tag) == (inlet.member(), rank, inlet.tag()))
            };
            let is_left = |at: usize| channels[at].waited < channels[at].put;
            let mut left: Vec<&mut Inlet<u32>> = self.inlets.iter_mut().filter(|inlet| of(inlet).is_some_and(is_left)).collect();
            if left.is_empty() {
                return Ok(());
            }
            let first = wait_any(&mut left)?;
            let at = of(left[first]).expect("its channel");
            wait(left[first], &channels[at].message(channels[at].waited), 0)?;
            self.channels[at].waited += 1;
        }
    }
}

fn put(out: &mut Outlet<u32>, message: &[u32], way: usize) -> Result<(), Error> {
    match way {
        0 => out.put(message),
        1 => out.fill(message.len(), |slot| slot.copy_from_slice(message)),
        2 => out.put(ArrayView1::from(message).slice(s![..;-1]).to_owned().slice(s![..;-1])),
        _ => {
            while !out.try_put(message)? {}
            Ok(())
        }
    }
}

fn wait(inlet: &mut Inlet<u32>, expected: &[u32], way: usize) -> Result<(), Error> {
    if way == 0 {
        assert_eq!(*inlet.wait()?, *expected);
        return Ok(());
    }
    while inlet.try_wait()?.is_none_or(|arrived| {
        assert_eq!(*arrived, *expected);
        false
    }) {}
    Ok(())
}
