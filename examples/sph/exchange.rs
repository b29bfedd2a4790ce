//! Migration of particles and exchange of ghosts, one-sided.
//!
//! Each rank has an *inbox*, its row of a global array, and beside it a count of the words that are taken. Who has something for a
//! rank reserves a range of words by read-and-increment of the count, and puts its message there with the rank's signal. The
//! receiver waits for one signal from each neighbour, reads what came in whatever order, and sets the count back to zero. A
//! message holds the particles that move to the receiver and those that it sees as ghosts; an empty one is sent too, because it
//! also tells that the neighbour has come this far.
//!
//! There are two halves, used by even and odd steps in turn, and no barrier. A rank that writes into a half again has had this
//! rank's message of the step between, which was sent after the half was read and its count set back.
//!
//! The rank that held a particle before it moved knows all regions, so it alone tells everybody who needs the particle: its new
//! owner, and whoever sees it as a ghost. One round of messages is enough.
//!
//! When the domain is cut anew, any rank may have something for any other. Then messages go only where there is something to say, and all ranks
//! add up first how many come to each.

use std::collections::BTreeMap;

use global_arrays::{Work, prelude::*};
use ndarray::{ArrayView1, ArrayViewMut1};

use crate::domain::{Domain, Reach};
use crate::particle::Particle;

/// Words before the particles of a message: how many are ghosts, how many migrate. Those come in this order.
const HEAD: usize = 2;

/// Words of an inbox's half before anything is known of what will be sent.
const LEAST: usize = 1 << 12;

/// One rank's view of the exchange.
#[derive(Debug)]
pub(crate) struct Exchange<const D: usize> {
    inbox: GlobalArray<f64, Ix2>,
    taken: GlobalArray<i64, Ix2>,
    arrived: Signal,
    /// How often each half's signal was raised when the last exchange in it was over.
    expected: [u32; 2],
    half: usize,
    /// Words of a half.
    capacity: usize,
    /// How far the kernel reaches. Ghosts come from as far, and where there are walls, which look at fluid for themselves, from
    /// twice as far.
    support: f64,
    domain: Domain<D>,
    reach: Vec<Reach<D>>,
    /// Ranks that messages go to and come from.
    peers: Vec<usize>,
    outgoing: Vec<Outgoing>,
    received: Vec<f64>,
}

/// What goes to one rank.
#[derive(Debug, Clone, Default)]
struct Outgoing {
    /// Nothing yet, or the words before the particles, and the ghosts.
    message: Vec<f64>,
    migrants: Vec<f64>,
}

impl<const D: usize> Exchange<D> {
    /// Makes the inboxes. `support` is how far the kernel reaches. Collective.
    pub(crate) fn new(job: &Job, support: f64, domain: Domain<D>) -> Result<Self, Error> {
        Ok(Exchange {
            inbox: inboxes(job, LEAST)?,
            taken: GlobalArray::builder(job, [job.size(), 2]).grid([job.size(), 1]).name("words taken").zeros().create()?,
            arrived: Signal::with_count(job, 2)?,
            expected: [0; 2],
            half: 0,
            capacity: LEAST,
            support,
            domain,
            reach: Vec::new(),
            peers: Vec::new(),
            outgoing: vec![Outgoing::default(); job.size()],
            received: Vec::new(),
        })
    }

    /// Cuts the domain anew and sends every particle to its owner, from wherever it is. Collective: the one exchange in which all
    /// ranks take part. As [`step`](Self::step) else.
    pub(crate) fn recut(
        &mut self,
        job: &Job,
        particles: &mut Vec<Particle<D>>,
        own: usize,
        beside_wall: impl Fn(&[f64; D]) -> bool,
    ) -> Result<usize, Error> {
        self.domain = Domain::recut(job, self.domain.period, &particles[..own], &beside_wall)?;
        let me = job.rank();
        let (own_before, mut ghosts) = (own, Vec::new());
        let own = self.spread(me, particles, own, &mut ghosts, beside_wall)?;
        // Read three times to place the cuts. Each rank cuts all columns. Particles find their column and their row by halving, and are
        // held against the regions around theirs, eight of them, and images.
        let (passes, bins) = ((3 * size_of::<Particle<D>>() * own_before) as f64, self.domain.bins() as f64);
        let held = own_before * (8 + job.size().ilog2() as usize);
        job.work(Work::bytes(passes + 8.0 * bins) + Work::flops((4 * D * held) as f64));
        // Of each rank, how many words come, and how many messages.
        let to: Vec<usize> = (0..job.size()).filter(|&rank| !self.outgoing[rank].is_empty()).collect();
        let mut coming = vec![[0_u64; 2]; job.size()];
        to.iter().for_each(|&rank| coming[rank] = [self.outgoing[rank].words() as u64, 1]);
        job.all_reduce(coming.as_flattened_mut(), ops::sum)?;
        // Room for twice as many, since more may come near until the next cut, from ranks that say nothing now.
        let needed = 2 * coming.iter().map(|of| of[0]).max().unwrap_or(0) as usize + HEAD * job.size();
        if needed > self.capacity {
            self.capacity = needed;
            self.inbox = inboxes(job, needed)?;
        }
        let own = self.deliver(job, particles, own, ghosts, (&to, coming[me][1] as u32))?;
        // It may have been all particles; in the steps to come it is few.
        self.outgoing.fill(Outgoing::default());
        self.received = Vec::new();
        // Whoever comes within the reach of ghosts, and of what moves in a step.
        self.reach = self.domain.reach(me, 3.0 * self.support);
        self.peers = self.reach.iter().map(|reach| reach.rank).filter(|&rank| rank != me).collect();
        self.peers.sort_unstable();
        self.peers.dedup();
        Ok(own)
    }

    /// Sends particles to their owners and ghosts to whoever sees them. The first `own` of `particles` are this rank's, the others
    /// are forgotten; on return the first, as many as is returned, are this rank's and the others its ghosts. Neighbours take part.
    pub(crate) fn step(
        &mut self,
        job: &Job,
        particles: &mut Vec<Particle<D>>,
        own: usize,
        beside_wall: impl Fn(&[f64; D]) -> bool,
    ) -> Result<usize, Error> {
        let (own, ghosts) = self.sort_out(job.rank(), particles, own, beside_wall)?;
        job.work(Work::bytes((size_of::<Particle<D>>() * own) as f64));
        let peers = std::mem::take(&mut self.peers);
        let own = self.deliver(job, particles, own, ghosts, (&peers, peers.len() as u32));
        self.peers = peers;
        own
    }

    /// Fills the outgoing messages after a cut, when particles may be anywhere. Returns how many stay; `ghosts` are those that this rank
    /// is to itself.
    fn spread(
        &mut self,
        me: usize,
        particles: &mut Vec<Particle<D>>,
        own: usize,
        ghosts: &mut Vec<Particle<D>>,
        beside_wall: impl Fn(&[f64; D]) -> bool,
    ) -> Result<usize, Error> {
        particles.truncate(own);
        let domain = &self.domain;
        // What is around a region, for those where particles have been found.
        let mut around = BTreeMap::new();
        let mut k = 0;
        while k < particles.len() {
            domain.wrap(&mut particles[k].position);
            let particle = particles[k];
            let nowhere = || Error::other(format!("particle {} has no position inside the domain", particle.id));
            let owner = domain.owner(&particle.position).ok_or_else(nowhere)?;
            if !domain.regions[owner].holds(&particle.position, -2.0 * self.support) {
                for reach in around.entry(owner).or_insert_with(|| domain.reach(owner, 2.0 * self.support)) {
                    let image = image(&particle, reach.shift);
                    if domain.regions[reach.rank].holds(&image.position, width(self.support, &image, &beside_wall)) {
                        match reach.rank == me {
                            true => ghosts.push(image),
                            false => image.write(self.outgoing[reach.rank].ghosts()),
                        }
                    }
                }
            }
            if owner == me {
                k += 1;
            } else {
                particle.write(&mut self.outgoing[owner].migrants);
                particles.swap_remove(k);
            }
        }
        Ok(particles.len())
    }

    /// Fills the outgoing messages of a step, when particles are near their region, and returns how many stay and the ghosts that this rank
    /// is to itself.
    fn sort_out(
        &mut self,
        me: usize,
        particles: &mut Vec<Particle<D>>,
        own: usize,
        beside_wall: impl Fn(&[f64; D]) -> bool,
    ) -> Result<(usize, Vec<Particle<D>>), Error> {
        particles.truncate(own);
        let (regions, mine) = (&self.domain.regions, self.domain.regions[me]);
        let mut ghosts = Vec::new();
        let mut k = 0;
        while k < particles.len() {
            if mine.holds(&particles[k].position, -2.0 * self.support) {
                k += 1;
                continue;
            }
            let particle = &mut particles[k];
            let before = particle.position;
            self.domain.wrap(&mut particle.position);
            let wrapped: [f64; D] = std::array::from_fn(|axis| {
                let period = self.domain.period[axis].unwrap_or(0.0);
                if before[axis] < 0.0 && period > 0.0 {
                    -period
                } else if period > 0.0 && before[axis] >= period {
                    period
                } else {
                    0.0
                }
            });
            let particle = *particle;
            let home = |rank: &usize| regions[*rank].holds(&particle.position, 0.0);
            let owner = std::iter::once(me).chain(self.peers.iter().copied()).find(home);
            let owner = owner.ok_or_else(|| too_far(&particle))?;
            let here = Reach { rank: me, shift: [0.0; D] };
            for reach in std::iter::once(&here).chain(&self.reach) {
                let shift: [f64; D] = std::array::from_fn(|axis| reach.shift[axis] + wrapped[axis]);
                let itself = reach.rank == owner && shift.iter().all(|&s| s == 0.0);
                let image = image(&particle, shift);
                if !itself && regions[reach.rank].holds(&image.position, width(self.support, &image, &beside_wall)) {
                    if reach.rank == me {
                        ghosts.push(image);
                    } else {
                        image.write(self.outgoing[reach.rank].ghosts());
                    }
                }
            }
            if owner == me {
                k += 1;
            } else {
                particle.write(&mut self.outgoing[owner].migrants);
                particles.swap_remove(k);
            }
        }
        Ok((particles.len(), ghosts))
    }

    /// Sends the messages to some ranks, waits for so many, and returns how many particles are this rank's then.
    fn deliver(
        &mut self,
        job: &Job,
        particles: &mut Vec<Particle<D>>,
        own: usize,
        mut ghosts: Vec<Particle<D>>,
        (to, come): (&[usize], u32),
    ) -> Result<usize, Error> {
        debug_assert_eq!(own, particles.len());
        let (half, me) = (self.half, job.rank());
        self.half = 1 - half;
        for &peer in to {
            let out = &mut self.outgoing[peer];
            let words = out.words();
            let start = self.taken.fetch_add([peer, half], words as i64)? as usize;
            if start + words > self.capacity {
                return Err(Error::other(format!("rank {peer} has no room for {words} more words of particles")));
            }
            let at = half * self.capacity + start;
            // Written as a message, which the network reads.
            job.work(Work::bytes((8 * words) as f64));
            self.inbox.put_signal(s![peer, at..at + words], out.whole::<D>(), self.arrived.at(peer, half))?;
            out.clear();
        }
        self.expected[half] = self.expected[half].wrapping_add(come);
        self.arrived.wait_at_least(half, self.expected[half])?;

        let words = if come == 0 { 0 } else { self.taken.load([me, half])? as usize };
        self.received.resize(words, 0.0);
        let from = half * self.capacity;
        self.inbox.get_into(s![me, from..from + words], ArrayViewMut1::from(&mut self.received[..]))?;
        self.taken.store([me, half], 0)?;
        self.taken.fence()?;
        let mut rest = &self.received[..];
        while let Some((counts, particles_of)) = rest.split_at_checked(HEAD) {
            let [images, migrants] = [counts[0], counts[1]].map(|count| count as usize * Particle::<D>::WORDS);
            let (seen, others) = particles_of.split_at(images);
            let (moved, others) = others.split_at(migrants);
            particles.extend(moved.chunks_exact(Particle::<D>::WORDS).map(Particle::read));
            ghosts.extend(seen.chunks_exact(Particle::<D>::WORDS).map(Particle::read));
            rest = others;
        }
        let own = particles.len();
        particles.append(&mut ghosts);
        // What came is read, and written as particles.
        job.work(Work::bytes((16 * words) as f64));
        Ok(own)
    }
}

impl Outgoing {
    fn is_empty(&self) -> bool {
        self.words() == HEAD
    }

    fn words(&self) -> usize {
        self.message.len().max(HEAD) + self.migrants.len()
    }

    /// The message as far as its ghosts.
    fn ghosts(&mut self) -> &mut Vec<f64> {
        if self.message.is_empty() {
            self.message.resize(HEAD, 0.0);
        }
        &mut self.message
    }

    /// The message as it is sent.
    fn whole<const D: usize>(&mut self) -> ArrayView1<'_, f64> {
        let counts = [self.ghosts().len() - HEAD, self.migrants.len()].map(|words| (words / Particle::<D>::WORDS) as f64);
        self.message[..HEAD].copy_from_slice(&counts);
        self.message.append(&mut self.migrants);
        ArrayView1::from(&self.message[..])
    }

    fn clear(&mut self) {
        self.message.truncate(HEAD);
        self.migrants.clear();
    }
}

/// A particle as it is seen from elsewhere.
fn image<const D: usize>(particle: &Particle<D>, shift: [f64; D]) -> Particle<D> {
    let mut image = *particle;
    image.position.iter_mut().zip(shift).for_each(|(x, shift)| *x += shift);
    image
}

/// How far from a region a particle is seen as a ghost.
fn width<const D: usize>(support: f64, image: &Particle<D>, beside_wall: impl Fn(&[f64; D]) -> bool) -> f64 {
    if beside_wall(&image.position) { 2.0 * support } else { support }
}

fn too_far<const D: usize>(particle: &Particle<D>) -> Error {
    let id = particle.id;
    Error::other(format!("particle {id} moved farther in a step than its neighbours are: the time step is too long"))
}

/// One row of two halves for each rank.
fn inboxes(job: &Job, capacity: usize) -> Result<GlobalArray<f64, Ix2>, Error> {
    GlobalArray::builder(job, [job.size(), 2 * capacity]).grid([job.size(), 1]).name("inboxes").create()
}
