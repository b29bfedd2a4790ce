//! Migration of particles and exchange of ghosts, one-sided.
//!
//! Each rank has an *inbox*, its row of a global array, and beside it a count of the words that are taken. Who has something for a
//! rank reserves a range of words by read-and-increment of the count, and puts its message there with the rank's signal. The
//! receiver waits for one signal from each neighbor, reads what came in whatever order, and sets the count back to zero. A
//! message holds the particles that move to the receiver and those that it sees as ghosts; an empty one is sent too, because it
//! also shows that the neighbor has come this far.
//!
//! There are two halves, used by even and odd steps in turn, and no barrier. A rank that writes into a half again has had this
//! rank's message of the step between, which was sent after the half was read and its count set back.
//!
//! The rank that held a particle before it moved knows all regions, so it alone tells everybody who needs the particle: its new
//! owner, and whoever sees it as a ghost. One round of messages is enough.
//!
//! When the domain is cut anew, any rank may have something for any other. Then messages go only where there is something to say. The count
//! of an inbox counts messages too, and all ranks reserve before they put: so each learns how many come, and nothing is as long as there are ranks.

use std::collections::BTreeMap;
use std::ops::Range;

use global_arrays::{prelude::*, simulation::Work};
use ndarray::{ArrayView1, ArrayViewMut1};

use crate::domain::{Domain, Period, Reach, Region, wrap};
use crate::particle::Moving;

/// Words before the particles of a message: how many are ghosts, how many migrate. Those come in this order.
const HEAD: usize = 2;

/// Words of an inbox's half before anything is known of what will be sent.
const LEAST: usize = 1 << 12;

/// A message in a count of words that are taken: the upper bits count messages.
const MESSAGE: i64 = 1 << 40;

/// One rank's view of the exchange.
#[derive(Debug)]
pub(crate) struct Exchange<const D: usize> {
    inbox: GlobalArray<f64, Ix2>,
    taken: GlobalArray<i64, Ix2>,
    arrived: Signal,
    /// How often each half's signal was raised when the last exchange in it was over.
    expected: [usize; 2],
    half: usize,
    /// Words of a half.
    capacity: usize,
    /// How far the kernel reaches. Ghosts come from within this distance, and from within twice this distance where ranks compute sums for
    /// them: beside walls, which look at fluid for themselves, and for the densities of a gas.
    support: f64,
    period: Period<D>,
    /// This rank's region, and who is around it.
    mine: Region<D>,
    reach: Vec<Reach<D>>,
    /// Ranks that messages go to and come from.
    peers: Vec<usize>,
}

/// What goes to one rank.
#[derive(Debug, Default)]
struct Outgoing {
    ghosts: Vec<f64>,
    migrants: Vec<f64>,
}

/// By the rank that it goes to.
type AllOutgoing = BTreeMap<usize, Outgoing>;

/// Messages, one behind the other. When particles are dealt there are many small ones, and as many allocations would leave the heap full of holes.
#[derive(Debug)]
struct Parcels {
    words: Vec<f64>,
    list: Vec<Parcel>,
}

/// A message.
#[derive(Debug)]
struct Parcel {
    to: usize,
    words: Range<usize>,
    /// Where it goes in the half of the inbox, once that is reserved.
    start: usize,
}

impl<const D: usize> Exchange<D> {
    /// Makes the inboxes. `support` is how far the kernel reaches. Collective.
    pub(crate) fn new(job: &Job, support: f64, period: Period<D>) -> Result<Self, Error> {
        Ok(Exchange {
            inbox: inboxes(job, LEAST)?,
            taken: GlobalArray::builder(job, [job.size(), 2]).grid([job.size(), 1]).name("words taken").zeros().create()?,
            arrived: Signal::with_count(job, 2)?,
            expected: [0; 2],
            half: 0,
            capacity: LEAST,
            support,
            period,
            mine: Region::everywhere(),
            reach: Vec::new(),
            peers: Vec::new(),
        })
    }

    /// Cuts the domain anew and sends every particle to its owner, from wherever it is. Collective: the one exchange in which all
    /// ranks take part. As [`step`](Self::step) else.
    pub(crate) fn recut<P: Moving<D>>(
        &mut self,
        job: &Job,
        particles: &mut Vec<P>,
        own: usize,
        beside_wall: impl Fn(&[f64; D]) -> bool,
    ) -> Result<usize, Error> {
        let domain = Domain::recut(job, self.period, &particles[..own], &beside_wall)?;
        let me = job.rank();
        let (own_before, mut ghosts) = (own, Vec::new());
        let (own, outgoing) = self.spread(me, &domain, particles, own, &mut ghosts, beside_wall)?;
        // The messages have those that leave, in the first step nearly all.
        particles.shrink_to_fit();
        // Read four times to place the cuts. Particles find their column and their row by halving, and are held against the regions around
        // theirs, eight of them, and images.
        let passes = (4 * size_of::<P>() * own_before + 8 * Domain::<D>::LOOKED_AT) as f64;
        let held = own_before * (8 + job.size().ilog2() as usize);
        job.simulation().work(Work::bytes(passes) + Work::flops((4 * D * held) as f64));
        // Whoever comes within the reach of ghosts, and of what moves in a step.
        (self.mine, self.reach) = (domain.region(me), domain.reach(me, 3.0 * self.support));
        drop(domain);
        self.peers = self.reach.iter().map(|reach| reach.rank).filter(|&rank| rank != me).collect();
        self.peers.sort_unstable();
        self.peers.dedup();
        let mut parcels = Parcels::new(outgoing, P::WORDS);
        self.reserve(&mut parcels)?;
        job.sync()?;
        let (words, come) = self.came(me)?;
        // Room for twice as many, since more may come near until the next cut, from ranks that say nothing now.
        let needed = 2 * job.all_reduce_one(words, ops::max)? + HEAD * job.size();
        if needed > self.capacity {
            self.capacity = needed;
            self.inbox = inboxes(job, needed)?;
        }
        self.deliver(job, particles, own, ghosts, (parcels, come))
    }

    /// Where particles of this rank are ghosts of none.
    pub(crate) fn inner(&self) -> Region<D> {
        self.mine.wider(-2.0 * self.support)
    }

    /// Sends particles to their owners and ghosts to whoever sees them. The first `own` of `particles` are this rank's, the others
    /// are forgotten; on return the first, as many as is returned, are this rank's and the others its ghosts. Neighbors take part.
    ///
    /// `outside` are the numbers of those that are not in the [inner](Self::inner) region, in any order. On return, with n numbers in it, all numbers
    /// below `own` − n that are not in it still belong to the same particles, which have not moved.
    pub(crate) fn step<P: Moving<D>>(
        &mut self,
        job: &Job,
        particles: &mut Vec<P>,
        own: usize,
        outside: &mut [u32],
        beside_wall: impl Fn(&[f64; D]) -> bool,
    ) -> Result<usize, Error> {
        let looked_at = outside.len();
        let (own, ghosts, outgoing) = self.sort_out(job.rank(), particles, own, outside, beside_wall)?;
        job.simulation().work(Work::bytes((size_of::<P>() * looked_at) as f64));
        let mut parcels = Parcels::new(outgoing, P::WORDS);
        self.reserve(&mut parcels)?;
        let come = self.peers.len() as u32;
        self.deliver(job, particles, own, ghosts, (parcels, come))
    }

    /// Finds what goes out after a cut, when particles may be anywhere, and how many stay; `ghosts` are those that this rank is to itself.
    fn spread<P: Moving<D>>(
        &self,
        me: usize,
        domain: &Domain<D>,
        particles: &mut Vec<P>,
        own: usize,
        ghosts: &mut Vec<P>,
        beside_wall: impl Fn(&[f64; D]) -> bool,
    ) -> Result<(usize, AllOutgoing), Error> {
        particles.truncate(own);
        let mut outgoing = AllOutgoing::new();
        // What is around a region, for those where particles have been found.
        let mut around = BTreeMap::new();
        let mut stay = 0;
        for k in 0..particles.len() {
            let mut particle = particles[k];
            wrap(&self.period, particle.position_mut());
            let nowhere = || Error::other(format!("particle {} has no position inside the domain", particle.id()));
            let owner = domain.owner(particle.position()).ok_or_else(nowhere)?;
            if !domain.region(owner).holds(particle.position(), -2.0 * self.support) {
                for reach in around.entry(owner).or_insert_with(|| domain.reach(owner, 2.0 * self.support)) {
                    let image = image(&particle, reach.shift);
                    if reach.region.holds(image.position(), width(self.support, image.position(), &beside_wall)) {
                        match reach.rank == me {
                            true => ghosts.push(image),
                            false => image.write(&mut outgoing.entry(reach.rank).or_default().ghosts),
                        }
                    }
                }
            }
            // In the order that they had: particles that follow each other in memory are neighbors.
            if owner == me {
                particles[stay] = particle;
                stay += 1;
            } else {
                particle.write(&mut outgoing.entry(owner).or_default().migrants);
            }
        }
        particles.truncate(stay);
        Ok((stay, outgoing))
    }

    /// Finds how many particles stay in a step, when they are near their region, the ghosts that this rank is to itself, and what goes out:
    /// something to each peer, if only to say that there is nothing.
    fn sort_out<P: Moving<D>>(
        &self,
        me: usize,
        particles: &mut Vec<P>,
        own: usize,
        outside: &mut [u32],
        beside_wall: impl Fn(&[f64; D]) -> bool,
    ) -> Result<(usize, Vec<P>, AllOutgoing), Error> {
        particles.truncate(own);
        let mut outgoing: AllOutgoing = self.peers.iter().map(|&peer| (peer, Outgoing::default())).collect();
        let here = Reach { rank: me, region: self.mine, shift: [0.0; D] };
        let mut ghosts = Vec::new();
        debug_assert_eq!(
            outside.len(),
            particles.iter().filter(|particle| !self.inner().holds(particle.position(), 0.0)).count()
        );
        // Backwards: the last particle takes the place of one that leaves, and nothing behind that is looked at again.
        outside.sort_unstable();
        for k in outside.iter().rev().map(|&k| k as usize) {
            let particle = &mut particles[k];
            let before = *particle.position();
            wrap(&self.period, particle.position_mut());
            let wrapped: [f64; D] = std::array::from_fn(|axis| {
                let period = self.period[axis].unwrap_or(0.0);
                if before[axis] < 0.0 && period > 0.0 {
                    -period
                } else if period > 0.0 && before[axis] >= period {
                    period
                } else {
                    0.0
                }
            });
            let particle = *particle;
            let around = || std::iter::once(&here).chain(&self.reach);
            let home = around().find(|reach| reach.region.holds(particle.position(), 0.0));
            let owner = home.ok_or_else(|| too_far(&particle))?.rank;
            for reach in around() {
                let shift: [f64; D] = std::array::from_fn(|axis| reach.shift[axis] + wrapped[axis]);
                let itself = reach.rank == owner && shift.iter().all(|&s| s == 0.0);
                let image = image(&particle, shift);
                if !itself && reach.region.holds(image.position(), width(self.support, image.position(), &beside_wall)) {
                    if reach.rank == me {
                        ghosts.push(image);
                    } else {
                        image.write(&mut outgoing.entry(reach.rank).or_default().ghosts);
                    }
                }
            }
            if owner != me {
                particle.write(&mut outgoing.entry(owner).or_default().migrants);
                particles.swap_remove(k);
            }
        }
        Ok((particles.len(), ghosts, outgoing))
    }

    /// Reserves room for what goes out.
    fn reserve(&self, parcels: &mut Parcels) -> Result<(), Error> {
        for Parcel { to, words, start } in &mut parcels.list {
            let taken = self.taken.fetch_add([*to, self.half], MESSAGE + words.len() as i64)?;
            *start = (taken % MESSAGE) as usize;
        }
        Ok(())
    }

    /// How many words and messages this rank's half has been reserved for.
    fn came(&self, me: usize) -> Result<(usize, u32), Error> {
        let taken = self.taken.load([me, self.half])?;
        Ok(((taken % MESSAGE) as usize, (taken / MESSAGE) as u32))
    }

    /// Sends messages for which there is room reserved, waits for so many, and returns how many particles are this rank's then.
    fn deliver<P: Moving<D>>(
        &mut self,
        job: &Job,
        particles: &mut Vec<P>,
        own: usize,
        mut ghosts: Vec<P>,
        (parcels, come): (Parcels, u32),
    ) -> Result<usize, Error> {
        debug_assert_eq!(own, particles.len());
        let (half, me) = (self.half, job.rank());
        for Parcel { to, words, start } in parcels.list {
            let len = words.len();
            if start + len > self.capacity {
                return Err(Error::other(format!("rank {to} has no room for {len} more words of particles")));
            }
            let at = half * self.capacity + start;
            // Written as a message, which the network reads.
            job.simulation().work(Work::bytes((8 * len) as f64));
            let message = ArrayView1::from(&parcels.words[words]);
            self.inbox.put_signal(s![to, at..at + len], message, self.arrived.at(to, half))?;
        }
        drop(parcels.words);
        self.expected[half] += come as usize;
        self.arrived.wait_at_least(half, self.expected[half])?;

        let words = if come == 0 { 0 } else { self.came(me)?.0 };
        let mut received = vec![0.0; words];
        let from = half * self.capacity;
        self.inbox.get_into(s![me, from..from + words], ArrayViewMut1::from(&mut received[..]))?;
        self.taken.store([me, half], 0)?;
        self.taken.fence()?;
        self.half = 1 - half;
        let mut rest = &received[..];
        // Not more, as in the snapshot: these are most of what a rank has.
        particles.reserve_exact(ghosts.len() + words / P::WORDS);
        while let Some((counts, particles_of)) = rest.split_at_checked(HEAD) {
            let [images, migrants] = [counts[0], counts[1]].map(|count| count as usize * P::WORDS);
            let (seen, others) = particles_of.split_at(images);
            let (moved, others) = others.split_at(migrants);
            particles.extend(moved.chunks_exact(P::WORDS).map(P::read));
            ghosts.extend(seen.chunks_exact(P::WORDS).map(P::read));
            rest = others;
        }
        let own = particles.len();
        particles.append(&mut ghosts);
        // What came is read, and written as particles.
        job.simulation().work(Work::bytes((16 * words) as f64));
        Ok(own)
    }
}

impl Parcels {
    fn new(outgoing: AllOutgoing, of_particle: usize) -> Self {
        let words = outgoing.values().map(|out| HEAD + out.ghosts.len() + out.migrants.len()).sum();
        let mut parcels = Parcels { words: Vec::with_capacity(words), list: Vec::with_capacity(outgoing.len()) };
        for (to, Outgoing { ghosts, migrants }) in outgoing {
            let start = parcels.words.len();
            parcels.words.extend([&ghosts, &migrants].map(|words| (words.len() / of_particle) as f64));
            parcels.words.extend(ghosts);
            parcels.words.extend(migrants);
            parcels.list.push(Parcel { to, words: start..parcels.words.len(), start: 0 });
        }
        parcels
    }
}

/// A particle as it is seen from elsewhere.
fn image<const D: usize, P: Moving<D>>(particle: &P, shift: [f64; D]) -> P {
    let mut image = *particle;
    image.position_mut().iter_mut().zip(shift).for_each(|(x, shift)| *x += shift);
    image
}

/// How far from a region a particle is seen as a ghost.
fn width<const D: usize>(support: f64, image: &[f64; D], beside_wall: impl Fn(&[f64; D]) -> bool) -> f64 {
    if beside_wall(image) { 2.0 * support } else { support }
}

fn too_far<const D: usize>(particle: &impl Moving<D>) -> Error {
    let id = particle.id();
    Error::other(format!("particle {id} moved farther in a step than its neighbors are: the time step is too long"))
}

/// One row of two halves for each rank.
fn inboxes(job: &Job, capacity: usize) -> Result<GlobalArray<f64, Ix2>, Error> {
    GlobalArray::builder(job, [job.size(), 2 * capacity]).grid([job.size(), 1]).name("inboxes").create()
}
