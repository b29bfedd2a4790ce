//! Ranks that each drive a device of their own: how they start, and what they have in common.
//!
//! They are threads, or forked, or a launcher has started them ([`bootstrap`](super::bootstrap)), perhaps on several machines. Each
//! opens its device in its own process; where all ranks share memory, none does. A [`directory`] holds the addresses.

pub(in crate::comm) mod directory;

use std::sync::Arc;

use self::directory::{Directory, Words};
use super::{
    Body, Processes,
    bootstrap::{
        launched::{Connection, Launcher},
        place::Place,
    },
    life::LocalRank,
    one_machine,
    settings::Settings,
    shared_memory, threads,
};
use crate::{
    comm::{
        Connect, Topology,
        am::{route, wire::Wire},
        kit::random,
        node::Member,
    },
    error::Error,
};

/// Where the devices of ranks come from.
pub(in crate::comm) trait Devices: Sync {
    type Device: Opened;

    /// Refuses what no rank could open, before ranks start.
    ///
    /// # Errors
    /// What is missing.
    fn check(&self) -> Result<(), Error>;

    /// Opens the device of a rank, in the rank's process. `local` is its number on its machine, by which ranks take devices in turns; in a
    /// job of one machine it is the rank itself.
    ///
    /// # Errors
    /// What is missing.
    fn open(&self, local: usize) -> Result<Self::Device, Error>;
}

/// A device that its rank has opened.
pub(in crate::comm) trait Opened {
    type Wire: Wire + 'static;

    /// The address for others. It is asked for where a launcher started the ranks; elsewhere the wire publishes it ([`Cluster::directory`]).
    /// Zeros if ranks find each other without addresses.
    fn address(&self) -> Words;

    /// The wire by which the rank sends to other nodes.
    ///
    /// # Errors
    /// An error of the device.
    fn wire(self, cluster: &Cluster, settings: &Settings, member: &Member) -> Result<Self::Wire, Error>;
}

/// What the ranks of a job have in common.
#[derive(Clone, Debug)]
pub(in crate::comm) struct Cluster {
    pub(in crate::comm) directory: Arc<Directory>,
    pub(in crate::comm) token: u128,
}

impl Cluster {
    /// For ranks that this process starts. The token keeps others out.
    ///
    /// # Errors
    /// There is no memory.
    pub(in crate::comm) fn new(settings: &Settings, token: u128) -> Result<Self, Error> {
        let directory = Directory::shared(settings.ranks).map_err(|error| Error::system("the table of addresses", error))?;
        Ok(Cluster { directory: Arc::new(directory), token })
    }
}

/// Runs a body on the ranks of a job, as threads of this process, over wires that `make` makes.
pub(in crate::comm) fn run_threads<W: Wire + 'static>(
    settings: &Settings,
    body: &Body<'_>,
    make: impl Fn(&Cluster, &Member) -> Result<W, Error> + Sync,
) -> Result<(), Error> {
    run_here(settings, body, threads::run, || Ok(()), make)
}

impl<S: Devices> Processes for S {
    fn fork(&self, settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
        let make = |cluster: &Cluster, member: &Member| {
            let topology = member.topology();
            self.open(topology.local(topology.rank()))?.wire(cluster, settings, member)
        };
        run_here(settings, body, shared_memory::run, || self.check(), make)
    }

    fn begin(&self, settings: &Settings, launcher: Arc<Launcher>) -> Result<LocalRank, Error> {
        let prepare = |connection: &mut Connection, place: &Place| prepare(self, settings, &launcher, connection, place);
        shared_memory::begin_launched(launcher.clone(), settings, true, prepare, |prepared, settings, member| {
            let Some((cluster, device)) = prepared else { return one_machine::join(settings, member, one_machine::mapping) };
            let (fabric, launcher) = (member.fabric().clone(), launcher.clone());
            let is_over = move || matches!(fabric.failure(), Some((Some(_), _)));
            let await_others = move || launcher.await_all(&is_over).map_err(|error| error.to_string());
            let wire = |member: &Member| wire(member, |member| device.wire(&cluster, settings, member));
            one_machine::join_over(settings, member, wire, Some(Box::new(await_others)))
        })
    }
}

/// Starts the ranks of this process, each with the function that it is given.
type Start = fn(&Settings, &(dyn Fn(Member) -> Result<(), String> + Sync)) -> Result<(), Error>;

fn run_here<W: Wire + 'static>(
    settings: &Settings,
    body: &Body<'_>,
    start: Start,
    check: impl Fn() -> Result<(), Error>,
    make: impl Fn(&Cluster, &Member) -> Result<W, Error> + Sync,
) -> Result<(), Error> {
    check_connections(settings)?;
    let [a, b] = random::secret().map_err(|error| Error::system("drawing the token of the job", error))?;
    let cluster = Cluster::new(settings, u128::from(a) << 64 | u128::from(b))?;
    if !settings.topology(0).is_all_mapped() {
        check()?;
    }
    start(settings, &|member| {
        let wire = |member: &Member| wire(member, |member| make(&cluster, member));
        one_machine::join_over(settings, member, wire, None)?.run(settings, body)
    })
}

/// Makes the wire by which a rank sends to other nodes, and is reached if it answers for its node.
///
/// # Errors
/// The node has too many ranks for that, or the device has an error.
pub(in crate::comm) fn wire<W>(member: &Member, make: impl FnOnce(&Member) -> Result<W, Error>) -> Result<W, Error> {
    fits(member.topology())?;
    make(member)
}

/// Refuses a node of more ranks than its first one can answer for.
fn fits(topology: &Topology) -> Result<(), Error> {
    route::fits(topology).map_err(|most| {
        Error::Launch(format!(
            "this node has {} ranks, and its first rank answers for at most {most}; cut it into smaller nodes (GA_RANKS_PER_NODE)",
            topology.ranks_here()
        ))
    })
}

/// Opens the device of a rank. Every rank learns if one could not, and then no rank starts. Returns none where all share memory.
fn prepare<S: Devices>(
    devices: &S,
    settings: &Settings,
    launcher: &Arc<Launcher>,
    connection: &mut Connection,
    place: &Place,
) -> Result<Option<(Cluster, S::Device)>, Error> {
    let topology = &place.topology;
    if topology.is_all_mapped() {
        return Ok(None);
    }
    let device = check_connections_of(settings, topology).and_then(|()| devices.open(topology.local(topology.rank())));
    let words = device.as_ref().map_or(Words::default(), Opened::address);
    let published = connection.publish(&words, device.is_err())?;
    let device = device?;
    if let Some(rank) = published.failed {
        return Err(Error::Launch(format!("rank {rank} has no device to use, and says why")));
    }
    // What outlives the job keeps no meeting of the program.
    let launcher = Arc::downgrade(launcher);
    let ask = move |rank| launcher.upgrade()?.ask(rank, &published.key)?.try_into().ok();
    Ok(Some((Cluster { directory: Arc::new(Directory::asked(ask)), token: place.token }, device)))
}

/// Refuses `GA_CONNECT=static` where `GA_CONNECTIONS` allows fewer connections than a rank needs, for ranks that this process starts.
///
/// # Errors
/// [`Error::Launch`].
pub(in crate::comm) fn check_connections(settings: &Settings) -> Result<(), Error> {
    // Nodes are of consecutive ranks, and only the last one may be smaller.
    [0, settings.ranks - 1].into_iter().try_for_each(|rank| check_connections_of(settings, &settings.topology(rank)))
}

/// As [`check_connections`], for one rank.
fn check_connections_of(settings: &Settings, topology: &Topology) -> Result<(), Error> {
    let (Connect::Static, Some(budget)) = (settings.connect, settings.connections) else { return Ok(()) };
    let (rank, needs) = (topology.rank(), partners(topology).count());
    if needs <= budget {
        return Ok(());
    }
    Err(Error::Launch(format!(
        "GA_CONNECT=static connects rank {rank} with {needs} ranks of other nodes, but GA_CONNECTIONS={budget} allows fewer; leave one of \
         them out"
    )))
}

/// The ranks that a rank may need connections with where agents answer for their nodes: the agents of other nodes, and if it is one itself, all
/// ranks of other nodes.
pub(in crate::comm) fn partners(topology: &Topology) -> impl Iterator<Item = usize> {
    let ranks = if topology.is_agent(topology.rank()) { (0..topology.size()).collect() } else { topology.leaders() };
    ranks.into_iter().filter(|&rank| rank != topology.rank() && !topology.is_mapped(rank))
}
