//! The conduits of jobs of one machine: what joins ranks that do not see each other's memory.

use std::sync::Arc;

use super::{
    Body, caught, contain,
    life::{self, LocalRank},
    settings::Settings,
};
use crate::{
    comm::{
        Conduit,
        am::{Am, packets::Packets, wire::Wire},
        layers,
        node::{Member, helper::Helper, keeping, loopback::Loopback},
    },
    error::Error,
};

/// A rank's conduit, and the helper that answers others while the rank computes. The helper ends with the rank, even if the conduit
/// is still held.
pub(super) type Joint = (Arc<Conduit>, Option<Helper>);

/// Waits for the ranks of all machines at the end.
type AwaitOthers = Box<dyn Fn() -> Result<(), String> + Sync>;

/// Joins a rank to those whose memory it has not mapped.
pub(super) type Joins = fn(&Settings, Member) -> Result<Joint, Error>;

/// A rank of a job that is joined to the others.
pub(super) struct JoinedRank {
    pub(super) conduit: Arc<Conduit>,
    helper: Option<Helper>,
    await_others: Option<AwaitOthers>,
}

/// Joins a rank to the others of a job of one machine.
pub(super) fn join(
    settings: &Settings,
    member: Member,
    joins: impl FnOnce(&Settings, Member) -> Result<Joint, Error>,
) -> Result<JoinedRank, String> {
    let joint = match member.topology().is_all_mapped() {
        true => Ok((Arc::new(Conduit::mapped(member)), None)),
        false => joins(settings, member),
    };
    let (conduit, helper) = joint.map_err(|error| error.to_string())?;
    Ok(JoinedRank { conduit, helper, await_others: None })
}

/// As [`join`], with the caller's own wire for active messages between the nodes, and a wait for the ranks of other machines if there may
/// be any.
pub(super) fn join_over<W: Wire + 'static>(
    settings: &Settings,
    member: Member,
    wire: impl FnOnce(&Member) -> Result<W, Error>,
    await_others: Option<AwaitOthers>,
) -> Result<JoinedRank, String> {
    let joined = join(settings, member, |settings, member| over(wire(&member)?, settings, member))?;
    Ok(JoinedRank { await_others, ..joined })
}

impl JoinedRank {
    /// Runs a body as the rank, until no other rank needs it.
    pub(super) fn run(self, settings: &Settings, body: &Body<'_>) -> Result<(), String> {
        // A panic ends here, where the network can still tell it.
        let outcome = contain(|| body(self.conduit.clone(), settings.cores));
        self.leave(outcome)
    }

    /// The end of the rank, with the outcome of its body.
    pub(super) fn leave(self, outcome: Result<(), String>) -> Result<(), String> {
        let outcome = leave(&self.conduit, outcome, self.await_others);
        // Before the network: layers hold memory that it may still read.
        drop(self.helper);
        outcome
    }
}

/// Makes the calling thread the only rank of a job.
///
/// # Errors
/// There is no memory.
pub(super) fn alone(settings: &Settings) -> Result<LocalRank, Error> {
    let fabric = life::fabric(settings)?;
    fabric.keep_from_children().map_err(keeping)?;
    let threads = 1 + settings.threads_of_a_rank();
    let member = Member::new(fabric.clone(), settings.topology(0), settings.cores, Some(threads));
    let joined = join(settings, member, mapping).map_err(Error::Launch)?;
    Ok(LocalRank::new(joined.conduit.clone(), settings.cores, move |outcome, _| {
        if fabric.is_inherited() {
            let cause = fabric.cause();
            std::mem::forget(joined);
            return Err(Error::JobEnded { operation: "finish".into(), cause });
        }
        life::conclude(&fabric, 0, 0, caught(|| joined.leave(outcome)));
        let failed = fabric.failure();
        fabric.end_here();
        failed.map_or(Ok(()), |(_, cause)| Err(Error::RankFailed { rank: 0, cause }))
    }))
}

/// The end of a body.
fn leave(conduit: &Conduit, outcome: Result<(), String>, await_others: Option<AwaitOthers>) -> Result<(), String> {
    if let (Err(words), Some(_)) = (&outcome, &await_others) {
        // The launcher ends ranks without a word; ranks of other machines learn the cause by this.
        conduit.end(words);
    }
    outcome?;
    conduit.drain();
    if let Some(await_others) = await_others {
        await_others()?;
    }
    conduit.leave();
    Ok(())
}

/// Active messages over a wire, with a thread that makes progress.
fn over<W: Wire + 'static>(wire: W, settings: &Settings, member: Member) -> Result<Joint, Error> {
    let (fabric, topology) = (member.fabric().clone(), member.topology().clone());
    let am = Arc::new(Am::new(wire, &member, true, settings.may_give_up(), settings.silence));
    let helper = Helper::answering(&topology, &fabric, am.clone())
        .map_err(|error| Error::system("starting the thread that makes progress", error))?;
    Ok((Arc::new(Conduit::with_network(member, layers::stack(&settings.layers, topology.rank(), am))), Some(helper)))
}

/// Over the mapping: a stack of layers, the harshest if none is chosen.
pub(super) fn mapping(settings: &Settings, member: Member) -> Result<Joint, Error> {
    let (fabric, topology) = (member.fabric().clone(), member.topology().clone());
    let layers = layers::harsh(&settings.layers);
    let network = layers::stack(&layers, topology.rank(), Arc::new(Loopback::new(fabric, topology)));
    Ok((Arc::new(Conduit::with_network(member, network)), None))
}

/// Over packets.
pub(super) fn packets(settings: &Settings, member: Member) -> Result<Joint, Error> {
    over(Packets::new(member.fabric().clone(), member.topology().clone()), settings, member)
}
