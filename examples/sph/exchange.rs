//! Migration of particles and exchange of ghosts, by messages.
//!
//! A message holds the particles that move to the receiver and those that it sees as ghosts. In each step a rank sends one to each neighbor's
//! mailbox, an empty one too, because it also shows that the sender has come this far, and takes one of each. There is no barrier.
//!
//! The rank that held a particle before it moved knows all regions, so it alone tells everybody who needs the particle: its new
//! owner, and whoever sees it as a ghost. One round of messages is enough.
//!
//! When the domain is cut anew, any rank may have something for any other. Then active messages go where there is something to say, and their
//! handler keeps what came by sender, until all have been handled: so nobody has to know how many come, and nothing is as long as there are
//! ranks.

use std::collections::BTreeMap;
use std::ops::Range;

use global_arrays::{
    active::{Handlers, Medium},
    mailbox::Mailbox,
    prelude::*,
    simulation::Work,
};

use crate::domain::{Domain, Period, Reach, Region, wrap};
use crate::particle::Moving;

/// Words before the particles of a message: how many are ghosts. Those come first, then those that migrate.
const HEAD: usize = 1;

/// Words of a part.
const LONGEST: usize = 1024;

/// A part of a message, after a cut.
const PART: Medium<(), f64> = Medium::new("particles");

/// One rank's view of the exchange.
#[derive(Debug)]
pub(crate) struct Exchange<const D: usize> {
    mail: Mailbox<f64>,
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
}

impl<const D: usize> Exchange<D> {
    /// Makes the mailboxes. `support` is how far the kernel reaches. Collective.
    pub(crate) fn new(job: &Job, support: f64, period: Period<D>) -> Result<Self, Error> {
        Ok(Exchange { mail: job.mailbox()?, support, period, mine: Region::everywhere(), reach: Vec::new(), peers: Vec::new() })
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
        let mut ghosts = Vec::new();
        let outgoing = self.spread(me, &domain, particles, own, &mut ghosts, beside_wall)?;
        // The messages have those that leave, in the first step nearly all.
        particles.shrink_to_fit();
        // Read four times to place the cuts. Particles find their column and their row by halving, and are held against the regions around
        // theirs, eight of them, and images.
        let passes = (4 * size_of::<P>() * own + 8 * Domain::<D>::LOOKED_AT) as f64;
        let held = own * (8 + job.size().ilog2() as usize);
        job.simulation().work(Work::bytes(passes) + Work::flops((4 * D * held) as f64));
        // Whoever comes within the reach of ghosts, and of what moves in a step.
        (self.mine, self.reach) = (domain.region(me), domain.reach(me, 3.0 * self.support));
        drop(domain);
        self.peers = self.reach.iter().map(|reach| reach.rank).filter(|&rank| rank != me).collect();
        self.peers.sort_unstable();
        self.peers.dedup();
        let mut messages = Handlers::new(BTreeMap::<usize, Vec<f64>>::new())
            .on_slice(PART, |came, context, (), part| came.entry(context.from()).or_default().extend_from_slice(part))
            .open(job)?;
        let parcels = Parcels::new(job, outgoing, P::WORDS);
        for (to, message) in parcels.iter() {
            message.chunks(LONGEST).try_for_each(|part| messages.send_slice(to, PART, (), part))?;
        }
        drop(parcels);
        let came = messages.close()?;
        Ok(unpack(job, particles, ghosts, came.into_values().collect()))
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
        let (ghosts, outgoing) = self.sort_out(job.rank(), particles, own, outside, beside_wall)?;
        job.simulation().work(Work::bytes((size_of::<P>() * looked_at) as f64));
        let parcels = Parcels::new(job, outgoing, P::WORDS);
        parcels.iter().try_for_each(|(to, message)| self.mail.send(to, 0, message))?;
        drop(parcels);
        let came = self.peers.iter().map(|&peer| Ok(self.mail.receive(peer, 0)?.data)).collect::<Result<Vec<_>, Error>>()?;
        Ok(unpack(job, particles, ghosts, came))
    }

    /// Finds what goes out after a cut, when particles may be anywhere, and keeps those that stay; `ghosts` are those that this rank is to itself.
    fn spread<P: Moving<D>>(
        &self,
        me: usize,
        domain: &Domain<D>,
        particles: &mut Vec<P>,
        own: usize,
        ghosts: &mut Vec<P>,
        beside_wall: impl Fn(&[f64; D]) -> bool,
    ) -> Result<AllOutgoing, Error> {
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
        Ok(outgoing)
    }

    /// Keeps the particles that stay in a step, when they are near their region, and finds the ghosts that this rank is to itself, and what goes out:
    /// something to each peer, if only to say that there is nothing.
    fn sort_out<P: Moving<D>>(
        &self,
        me: usize,
        particles: &mut Vec<P>,
        own: usize,
        outside: &mut [u32],
        beside_wall: impl Fn(&[f64; D]) -> bool,
    ) -> Result<(Vec<P>, AllOutgoing), Error> {
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
        Ok((ghosts, outgoing))
    }
}

/// Appends what came to the particles that stay, and then the ghosts. Returns how many particles are this rank's.
fn unpack<const D: usize, P: Moving<D>>(job: &Job, particles: &mut Vec<P>, mut ghosts: Vec<P>, came: Vec<Vec<f64>>) -> usize {
    let words: usize = came.iter().map(Vec::len).sum();
    // Not more, as in the snapshot: these are most of what a rank has.
    particles.reserve_exact(ghosts.len() + words / P::WORDS);
    for message in came {
        let (head, images_and_migrants) = message.split_at(HEAD);
        let (seen, moved) = images_and_migrants.split_at(head[0] as usize * P::WORDS);
        particles.extend(moved.chunks_exact(P::WORDS).map(P::read));
        ghosts.extend(seen.chunks_exact(P::WORDS).map(P::read));
    }
    let own = particles.len();
    particles.append(&mut ghosts);
    // What came is read, and written as particles.
    job.simulation().work(Work::bytes((16 * words) as f64));
    own
}

impl Parcels {
    fn new(job: &Job, outgoing: AllOutgoing, of_particle: usize) -> Self {
        let words = outgoing.values().map(|out| HEAD + out.ghosts.len() + out.migrants.len()).sum();
        let mut parcels = Parcels { words: Vec::with_capacity(words), list: Vec::with_capacity(outgoing.len()) };
        for (to, Outgoing { ghosts, migrants }) in outgoing {
            let start = parcels.words.len();
            parcels.words.push((ghosts.len() / of_particle) as f64);
            parcels.words.extend(ghosts);
            parcels.words.extend(migrants);
            parcels.list.push(Parcel { to, words: start..parcels.words.len() });
        }
        // Written as messages, which the network reads.
        job.simulation().work(Work::bytes((8 * words) as f64));
        parcels
    }

    /// The messages, and the ranks that they go to.
    fn iter(&self) -> impl Iterator<Item = (usize, &[f64])> {
        self.list.iter().map(|Parcel { to, words }| (*to, &self.words[words.clone()]))
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
