//! What a network that jobs can name defines: how its ranks start, and what each does then.
//!
//! | file | contents |
//! |---|---|
//! | `table` | the networks |
//! | `settings` | what a network needs to start ranks |
//! | `launcher`, `bootstrap` | the launcher of this process; how its ranks meet |
//! | `shared_memory`, `threads` | ranks that are processes or threads |
//! | `life` | a rank from its start to its end |
//! | `one_machine` | conduits of jobs of one machine |
//! | `devices` | ranks with a device each |
//! | `modelled` | networks in virtual time |

pub(super) mod bootstrap;
pub(super) mod devices;
pub(crate) mod launcher;
pub(crate) mod life;
pub(super) mod modelled;
pub(super) mod one_machine;
pub(crate) mod settings;
pub(super) mod shared_memory;
pub(crate) mod table;
pub(crate) mod threads;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

pub use self::bootstrap::meeting::Meeting;
use self::{bootstrap::launched::Launcher, life::LocalRank, modelled::Modelled, settings::Settings};
use super::{Conduit, kit::say::panic_text};
use crate::error::Error;

/// A network as jobs see it.
#[derive(Debug)]
pub(crate) struct Named {
    pub name: &'static str,
    /// What its ranks can drive.
    pub variants: &'static [Variant],
    /// The variables that it reads beside those of all networks, and what each may be, for people.
    pub options: &'static [(&'static str, &'static str)],
    /// Joins ranks in virtual time by its own code, if it can.
    pub(in crate::comm) modelled: Option<Modelled>,
}

/// A network with one kind of device.
#[derive(Debug)]
pub(crate) struct Variant {
    /// The names of the device; an empty one is for jobs that name none.
    pub devices: &'static [&'static str],
    pub ranks: Ranks,
    /// The threads of each rank beside the program's: 1 over active messages, whose helper answers others. If there are more, no deadlock is found.
    pub threads: usize,
}

/// The devices of ranks that share a machine and nothing else.
const MAPPING: &[&str] = &["", "mapping"];
const PACKETS: &[&str] = &["packets"];

/// The devices of a network without a choice.
pub(in crate::comm) const NO_DEVICE: &[&str] = &[""];

/// The devices of a network that knows them by the user's names.
pub(in crate::comm) const ANY_DEVICE: &[&str] = &["", "*"];

/// What the ranks of a network are, and how they start.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ranks {
    /// Threads of the process that starts the job.
    Threads(RunHere),
    /// In the process that starts the job, one at a time.
    Simulated(RunHere),
    /// Processes of one machine: it forks them, or a launcher has started them.
    Children(MakeProcesses),
    /// As `Children`, but a launcher's may be on several machines.
    Processes(MakeProcesses),
    /// Processes that a launcher started, this one among them, which meet by the network itself.
    #[cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "of networks behind a feature"))]
    Launched(fn(&Settings) -> Result<LocalRank, Error>),
}

/// Runs a body on every rank in this process, and returns when all have ended.
pub(crate) type RunHere = fn(&Settings, &Body<'_>) -> Result<(), Error>;

/// Makes what starts ranks that are processes.
pub(crate) type MakeProcesses = fn(&Settings) -> Result<Box<dyn Processes>, Error>;

/// Ranks that are processes, and what joins them.
pub(crate) trait Processes {
    /// Forks the ranks, runs a body on each, and returns when all have ended.
    ///
    /// # Errors
    /// They cannot start, or one failed.
    fn fork(&self, settings: &Settings, body: &Body<'_>) -> Result<(), Error>;

    /// Makes this process, or the calling thread, the rank that its launcher says. Collective.
    ///
    /// # Errors
    /// The ranks cannot meet, or cannot be joined.
    fn begin(&self, settings: &Settings, launcher: Arc<Launcher>) -> Result<LocalRank, Error>;
}

/// The body of a rank: it gets its conduit, and the number of cores that the ranks of its machine share.
pub(crate) type Body<'b> = dyn Fn(Arc<Conduit>, usize) -> Result<(), String> + Sync + 'b;

impl Named {
    /// Returns true if a name behind its own is for the network to understand.
    fn takes_any_device(&self) -> bool {
        self.is_a_model() || self.variants.iter().any(|variant| variant.devices == ANY_DEVICE)
    }

    /// Returns true if it is a model of a machine, which its name names behind a colon.
    pub(crate) fn is_a_model(&self) -> bool {
        self.variants.iter().any(|variant| matches!(variant.ranks, Ranks::Simulated(_)))
    }
}

impl Variant {
    /// Returns true if all ranks are on the machine of the process that starts them.
    pub(crate) fn is_of_one_machine(&self) -> bool {
        !matches!(self.ranks, Ranks::Launched(_) | Ranks::Processes(_))
    }

    /// Returns true if a launcher's ranks meet by this crate's own bootstrap.
    pub(crate) fn meets_by_launcher(&self) -> bool {
        matches!(self.ranks, Ranks::Children(_) | Ranks::Processes(_))
    }

    /// Runs a body on every rank, or as the rank that this process is, and returns when all have ended.
    ///
    /// # Errors
    /// The job cannot start, or a rank failed.
    pub(crate) fn run(&self, settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
        match (self.ranks, settings.launched) {
            (Ranks::Threads(run) | Ranks::Simulated(run), _) => run(settings, body),
            (Ranks::Children(make) | Ranks::Processes(make), None) => make(settings)?.fork(settings, body),
            (Ranks::Children(make) | Ranks::Processes(make), Some(started)) => {
                make(settings)?.begin(settings, Launcher::of_process(started))?.run(body)
            }
            (Ranks::Launched(begin), _) => begin(settings)?.run(body),
        }
    }

    /// Returns true if a launcher started the ranks.
    pub(crate) fn is_launched(&self, settings: &Settings) -> bool {
        self.is_launched_by_itself() || settings.launched.is_some()
    }

    /// Returns true if ranks are always a launcher's, and meet by the network.
    pub(crate) fn is_launched_by_itself(&self) -> bool {
        matches!(self.ranks, Ranks::Launched(_))
    }

    /// Makes this process the rank that its launcher says, or the only rank if there is none. Collective.
    ///
    /// # Errors
    /// There are to be ranks that only a run makes; they cannot meet.
    pub(crate) fn begin(&self, settings: &Settings) -> Result<LocalRank, Error> {
        match (self.ranks, settings.launched) {
            (Ranks::Launched(begin), _) => begin(settings),
            (Ranks::Children(make) | Ranks::Processes(make), Some(started)) => {
                make(settings)?.begin(settings, Launcher::of_process(started))
            }
            (Ranks::Simulated(_), _) => {
                Err(Error::Launch("ranks in virtual time run in turns, and only `run` makes them: start cannot".into()))
            }
            _ if settings.ranks > 1 => Err(Error::Launch(format!(
                "start makes no ranks, and {0} were asked for (Launch::ranks, GA_RANKS): start the program by `ga-run -n {0}`, mpirun or srun, \
                 or use `run`, which makes them",
                settings.ranks
            ))),
            _ if self.devices != MAPPING && !settings.topology(0).is_all_mapped() => Err(Error::Launch(
                "one rank alone uses no network, so layers that hide its memory have nothing to stand on; leave out +hidden"
                    .into(),
            )),
            _ => one_machine::alone(settings),
        }
    }

    /// Makes the calling thread a rank that meets the others by the program's meeting. Collective.
    ///
    /// # Errors
    /// The network has another way to meet; they cannot meet.
    pub(crate) fn begin_with(&self, settings: &Settings, meeting: Box<dyn Meeting>) -> Result<LocalRank, Error> {
        match (self.ranks, settings.launched) {
            (Ranks::Children(make) | Ranks::Processes(make), Some(started)) => {
                make(settings)?.begin(settings, Launcher::of_meeting(started, meeting))
            }
            _ => Err(Error::Launch(
                "ranks of this network do not meet by the program: choose shared_memory, ib, ofi or another whose ranks are processes \
                 (GA_NETWORK), or start_on for mpi"
                    .into(),
            )),
        }
    }
}

/// Runs the body of a rank. Returns how it failed.
pub(super) fn contain(body: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    caught(|| body().map_err(|error| format!("returned an error: {error}")))
}

/// Runs what is around a body. Returns how that failed, or the words of the body.
fn caught(around: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(around)).unwrap_or_else(|panic| Err(format!("panicked: {}", panic_text(&*panic))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_ranks_have_words() {
        assert_eq!(contain(|| Ok(())), Ok(()));
        assert_eq!(contain(|| Err("words".into())), Err("returned an error: words".into()));
        assert_eq!(contain(|| panic!("{} words", 2)), Err("panicked: 2 words".into()));
        assert_eq!(contain(|| std::panic::panic_any(2)), Err("panicked: with a value that is no text".into()));
    }
}
