//! What a job starts with: each value from the program, the environment, or else the machine.

use std::time::Duration;

use super::{
    launch::{Launch, Start},
    options::{Bootstrap, Computing, Connect},
    report::{self, Wanted},
    setting::{BYTES, Setting, size, variable, zero_or_one},
};
use crate::{
    comm::{
        kit::cores,
        layers::{Layer, WITHOUT_EFFECT},
        soft::{Faults, Form},
        start::{
            Named, Ranks, Variant,
            launcher::{self, Protocol, Started},
            settings::Settings,
            table::{self, Choice},
        },
    },
    error::Error,
    memory::{large_pages::LARGE, limits},
};

/// Most ranks that one process may start, and most that it may simulate.
const MOST_RANKS: usize = 8192;
const MOST_SIMULATED: usize = 65_536;

/// Bytes of the stack of a simulated rank, and the fewest.
const STACK: usize = 256 << 10;
const LEAST_STACK: usize = 64 << 10;

/// Seconds after which a wait may time out. A shorter limit would end waits that a healthy job has all the time, be it that the
/// system lets another process go first; the longest is some thirty years.
const TIMEOUTS: (f64, f64) = (0.001, 1e9);

/// Seconds after which a machine that does not answer ends the job, and what may be chosen.
const SILENCE: f64 = 3.5;
const SILENCES: (f64, f64) = (1.0, 1e9);

/// What a job is resolved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// It runs a body on all ranks, and makes them if there are none.
    Run,
    /// It begins on one that exists.
    Start,
    /// The same, which meets the others by the program.
    Meet { rank: usize, size: usize },
}

impl Launch {
    /// Answers every question, to run a body.
    pub(super) fn resolve(&self) -> Result<Start, Error> {
        self.resolve_for(Way::Run)
    }

    /// Answers every question.
    pub(super) fn resolve_for(&self, way: Way) -> Result<Start, Error> {
        let cpus = cores::allowed(None).map_err(|e| Error::system("reading the cores of this process", e))?;
        let cores = cpus.len().max(1);
        let chosen = match &self.network {
            Some(name) => Some(name.clone()),
            None => variable("GA_NETWORK", "a network's name", |text| Some(text.to_owned()))?,
        };
        let started = launcher::of_this_process();
        let name = match chosen {
            Some(name) => name,
            None if matches!(way, Way::Meet { .. }) => "shared_memory".to_owned(),
            None => unchosen(started.as_ref()).to_owned(),
        };
        let choice = table::choose(&name).map_err(Error::Launch)?;
        let is_plain = choice.is_plain();
        let Choice { network, variant, device, layers } = choice;
        let most = if network.is_a_model() { MOST_SIMULATED } else { MOST_RANKS };
        let allowed = format!("a number of ranks from 1 to {most}");
        let ranks = Setting { method: "Launch::ranks", variable: "GA_RANKS", allowed: &allowed };
        let asked = ranks.value(self.ranks, |text| text.parse().ok(), |ranks| (1..=most).contains(ranks))?;
        // What comes from the machine must not be more either.
        let ranks = asked.unwrap_or(if way == Way::Run { cores } else { 1 }).min(most);
        let launched = match way {
            Way::Meet { rank, size } => Some(Started::by_meeting(rank, size).map_err(Error::Launch)?),
            _ => launched(network, variant, self.bootstrap, started, asked, way)?,
        };
        let per_node =
            Setting { method: "Launch::ranks_per_node", variable: "GA_RANKS_PER_NODE", allowed: "a number of ranks, at least 1" };
        let ranks_per_node = per_node.value(self.ranks_per_node, |text| text.parse().ok(), |&ranks| ranks > 0)?;
        if !is_plain
            && !layers.contains(&Layer::Hidden)
            && ranks_per_node.is_none()
            && variant.is_of_one_machine()
            && !network.is_a_model()
        {
            return Err(Error::Launch(format!("the device or layers of \"{name}\" would do nothing: {WITHOUT_EFFECT}")));
        }
        let heap = Setting { method: "Launch::heap", variable: "GA_HEAP", allowed: BYTES };
        let heap =
            heap.value(self.heap, |text| size(text)?.try_into().ok(), |&heap| heap > 0 && isize::try_from(heap).is_ok())?;
        let memory = Setting { method: "Launch::memory", variable: "GA_MEMORY", allowed: BYTES };
        let memory = memory.value(self.memory, size, |&memory| memory > 0)?;
        let switch = |set, method, variable| Setting { method, variable, allowed: "0 or 1" }.value(set, zero_or_one, |_| true);
        let pin = switch(self.pin, "Launch::pin", "GA_PIN")?.unwrap_or(true);
        let large = switch(self.large_pages, "Launch::large_pages", "GA_LARGE_PAGES")?.unwrap_or(true);
        let wanted = self.wanted()?;
        let connections =
            Setting { method: "Launch::connections", variable: "GA_CONNECTIONS", allowed: "a number of connections, at least 1" };
        let connections = connections.value(self.connections, |text| text.parse().ok(), |&connections| connections > 0)?;
        let connect = Setting { method: "Launch::connect", variable: "GA_CONNECT", allowed: Connect::ALLOWED };
        let connect = connect.value(self.connect, |text| text.parse().ok(), |_| true)?.unwrap_or_default();
        let chosen = |name, allowed| variable(name, allowed, |text| Some(text.to_owned()));
        let options = table::options().map(|(name, allowed)| Ok(chosen(name, allowed)?.map(|text| (name, text))));
        let options = options.filter_map(Result::transpose).collect::<Result<Vec<_>, Error>>()?;
        let model = self.machine.as_ref();
        let seed = Setting { method: "Machine::seed", variable: "GA_SEED", allowed: "a whole number, 0 or more" };
        let seed = seed.value(model.and_then(|model| model.seed), |text| text.parse().ok(), |_| true)?.unwrap_or(0);
        let stack = Setting { method: "Machine::stack", variable: "GA_STACK", allowed: "a number of bytes, at least 64K" };
        let fits = |stack: &usize| (LEAST_STACK..1 << 40).contains(stack);
        let stack = stack.value(model.and_then(|model| model.stack), |text| size(text)?.try_into().ok(), fits)?.unwrap_or(STACK);
        let computing = Setting { method: "Machine::computing", variable: "GA_COMPUTING", allowed: Computing::ALLOWED };
        let set = model.and_then(|model| model.computing);
        let computing = computing.value(set, |text| text.parse().ok(), Computing::is_allowed)?.unwrap_or_default();
        let faults = Setting { method: "Machine::faults", variable: "GA_FAULTS", allowed: Faults::ALLOWED };
        let is_one = |text: &String| Faults::of_text(text).is_some();
        let faults = faults.value(model.and_then(|model| model.faults.clone()), |text| Some(text.to_owned()), is_one)?;
        let faults = faults.and_then(|text| Faults::of_text(&text)).unwrap_or_default();
        if model.is_some() && !network.is_a_model() {
            let what = format!("the network \"{name}\" is not simulated: what Launch::simulated chooses has no meaning there");
            return Err(Error::Launch(what));
        }
        if faults != Faults::default() && !network.is_a_model() {
            return Err(Error::Launch(format!(
                "the network \"{name}\" is not simulated, and has no faults that can be chosen (GA_FAULTS)"
            )));
        }
        let coroutines = match self.coroutines {
            None => variable("GA_COROUTINES", "0 or 1", zero_or_one)?,
            chosen => chosen,
        };
        let form = if coroutines == Some(true) { Form::Coroutines } else { Form::Threads };
        let large_pages = large && (64 * ranks * LARGE) as u64 <= limits::available().bytes.min(memory.unwrap_or(u64::MAX));
        let (least, most) = TIMEOUTS;
        let allowed = format!("a number of seconds from {least} to {most:e}");
        let timeout = Setting { method: "Launch::timeout", variable: "GA_TIMEOUT", allowed: &allowed };
        // What is not a number is in no range.
        let timeout = timeout.value(self.timeout, |text| text.parse().ok(), |seconds| (least..=most).contains(seconds))?;
        let (least, most) = SILENCES;
        let allowed = format!("a number of seconds from {least} to {most:e}, or 0");
        let silence = Setting { method: "Launch::silence", variable: "GA_SILENCE", allowed: &allowed };
        let in_range = |seconds: &f64| *seconds == 0.0 || (least..=most).contains(seconds);
        let silence = silence.value(self.silence, |text| text.parse().ok(), in_range)?.unwrap_or(SILENCE);
        let silence = (silence > 0.0).then(|| Duration::from_secs_f64(silence));
        // Each rank may use the whole node: address space costs nothing. A reservation that cannot be mapped is halved.
        let heap = heap.unwrap_or_else(|| limits::total().max(1 << 30));
        let pins = if pin { cpus } else { Vec::new() };
        let settings = Settings {
            ranks,
            wanted: self.ranks,
            started,
            launched,
            meet: table::MEET,
            threads: variant.threads,
            connections,
            connect,
            options,
            layers,
            device,
            form,
            stack,
            seed,
            computing,
            faults,
            ranks_per_node,
            heap,
            large_pages,
            stats: wanted.any(),
            timeout,
            silence,
            cores,
            pins,
        };
        Ok(Start { variant, name, settings, memory, wanted })
    }

    /// What the job is to tell about itself.
    fn wanted(&self) -> Result<Wanted, Error> {
        const STATS: &str = "0, 1 or the name of a file that ends in .json or .svg";
        const TRACE: &str = "the name of a file that ends in .json";
        let any = |text: &str| Some(text.to_owned());
        let stats = |name: &str, text: &str| report::file(name, text, &["json", "svg"], STATS);
        let trace = |name: &str, text: &str| report::file(name, text, &["json"], TRACE);
        let mut wanted = Wanted { tables: self.stats.unwrap_or(false), ..Wanted::default() };
        if let Some(path) = &self.stats_file {
            wanted.file = Some(stats("Launch::stats_file", &path.to_string_lossy())?);
        } else if self.stats.is_none() {
            match variable("GA_STATS", STATS, any)?.as_deref() {
                None | Some("0") => {}
                Some("1") => wanted.tables = true,
                Some(text) => wanted.file = Some(stats("GA_STATS", text)?),
            }
        }
        wanted.trace = match (&self.trace, variable("GA_TRACE", TRACE, any)?) {
            (Some(path), _) => Some(trace("Launch::trace", &path.to_string_lossy())?),
            (None, Some(text)) => Some(trace("GA_TRACE", &text)?),
            (None, None) => None,
        };
        Ok(wanted)
    }
}

/// The network of a program that chose none.
fn unchosen(started: Option<&Started>) -> &'static str {
    if started.is_some_and(|by| by.protocol() != Some(Protocol::Root)) && cfg!(feature = "mpi") { "mpi" } else { "shared_memory" }
}

/// The launcher by which the ranks of a network meet that has none of its own.
fn launched(
    network: &Named,
    variant: &Variant,
    chosen: Option<Bootstrap>,
    started: Option<Started>,
    asked: Option<usize>,
    way: Way,
) -> Result<Option<Started>, Error> {
    let bootstrap = Setting { method: "Launch::bootstrap", variable: "GA_BOOTSTRAP", allowed: Bootstrap::ALLOWED };
    let chosen = bootstrap.value(chosen, |text| text.parse().ok(), |_| true)?;
    // A child that a rank forked has the variables too, and forks ranks of its own.
    if launcher::is_half_said() && variant.meets_by_launcher() && chosen != Some(Bootstrap::Fork) {
        return Err(Error::Launch(
            "GA_ROOT says where rank 0 is; a rank also needs GA_RANKS, how many there are, and GA_RANK, its own number below that"
                .into(),
        ));
    }
    let started = if cfg!(feature = "mpi") { started.map(Started::with_mpi) } else { started };
    let spoken = started.and_then(|started| started.protocol()).map(|protocol| match protocol {
        Protocol::Pmi { .. } => Bootstrap::Pmi,
        Protocol::Pmix => Bootstrap::Pmix,
        Protocol::Root => Bootstrap::Root,
        Protocol::Mpi => Bootstrap::Mpi,
    });
    // Where `run` makes ranks, or finds those of the network, `start` would make each process of a launcher a job of its own.
    let parted = started.filter(|started| way == Way::Start && started.has_others());
    let refuse = |started: Started, advice: &str| {
        let what = format!("this is {started}, but ranks of \"{}\" are not those processes; {advice}", network.name);
        Err(Error::Launch(what))
    };
    if !variant.meets_by_launcher() {
        if let Some(started) = parted.filter(|_| !variant.is_launched_by_itself()) {
            return refuse(started, "choose another network (GA_NETWORK)");
        }
        // What is so without a choice.
        let other = chosen.filter(|&name| !variant.is_launched_by_itself() || name != Bootstrap::Mpi);
        return other.map_or(Ok(None), |name| {
            Err(Error::Launch(format!(
                "the bootstrap \"{name}\" is for ranks that are processes, as those of \"shared_memory\"; those of \"{}\" start in one way (GA_BOOTSTRAP)",
                network.name
            )))
        });
    }
    match chosen {
        Some(Bootstrap::Fork) => Ok(None),
        Some(name) if spoken == Some(name) => Ok(started),
        Some(name) => Err(Error::Launch(format!(
            "the bootstrap is \"{name}\" (GA_BOOTSTRAP), but {}",
            match spoken {
                Some(Bootstrap::Mpi) => "in a binary with the feature `mpi` its ranks meet by MPI (GA_BOOTSTRAP=mpi)".into(),
                None if name == Bootstrap::Mpi && !cfg!(feature = "mpi") => "this binary is without the feature `mpi`".into(),
                None => "no launcher that speaks it started this process".into(),
                Some(other) => format!("a launcher that speaks \"{other}\" started this process"),
            }
        ))),
        // Over shared memory alone, each process of MPI's is a job of its own.
        None if spoken == Some(Bootstrap::Mpi) && matches!(variant.ranks, Ranks::Children(_)) => match parted {
            Some(started) => refuse(started, "choose GA_BOOTSTRAP=mpi, or a job of its own for each process (GA_BOOTSTRAP=fork)"),
            None => Ok(None),
        },
        None => match started {
            Some(started) if started.has_others() && started.protocol().is_none() => Err(Error::Launch(started.refusal())),
            // A process alone may fork more ranks, if it is asked to.
            started => Ok(started.filter(|started| {
                started.protocol().is_some() && (started.has_others() || asked.is_none_or(|asked| asked == 1))
            })),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::Machine;

    #[test]
    fn what_cannot_be_started_says_why() {
        let refusal = |launch: Launch| launch.resolve().unwrap_err().to_string();
        let factor = Machine::new("gemini").computing(Computing::Measured(-1.0));
        for (launch, words) in [
            (Launch::new().ranks(0), ["Launch::ranks(0)", "GA_RANKS", "from 1 to 8192"]),
            (Launch::new().ranks(9000), ["Launch::ranks(9000)", "GA_RANKS", "from 1 to 8192"]),
            (Launch::new().ranks_per_node(0), ["Launch::ranks_per_node(0)", "GA_RANKS_PER_NODE", "at least 1"]),
            (Launch::simulated(Machine::new("gemini").stack(1)), ["Machine::stack(1)", "GA_STACK", "at least 64K"]),
            (Launch::simulated(factor), ["Machine::computing(Measured(-1.0))", "GA_COMPUTING", "FACTOR"]),
            (Launch::new().connections(0), ["Launch::connections(0)", "GA_CONNECTIONS", "at least 1"]),
            (Launch::new().heap(0), ["Launch::heap(0)", "GA_HEAP", "above 0"]),
            (Launch::new().heap(usize::MAX), ["Launch::heap(18446744073709551615)", "GA_HEAP", "can be addressed"]),
            (Launch::new().memory(0), ["Launch::memory(0)", "GA_MEMORY", "above 0"]),
        ] {
            let said = refusal(launch);
            assert!(words.iter().all(|word| said.contains(word)), "{said}");
        }
        for seconds in [0.0, -0.0, -1.0, 1e-300, 1e-4, 1e10, 1e300, f64::MAX, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            let said = refusal(Launch::new().timeout(seconds));
            let value = format!("Launch::timeout({seconds:?})");
            assert!(said.contains(&value) && said.contains("GA_TIMEOUT") && said.contains("from 0.001 to 1e9"), "{said}");
        }
        assert!(Launch::new().ranks(8192).ranks_per_node(usize::MAX).timeout(0.001).resolve().is_ok());
        assert!(Launch::new().heap(isize::MAX as usize).memory(u64::MAX).timeout(1e9).resolve().is_ok());
        assert!(refusal(Launch::new().network("carrier pigeons")).contains("carrier pigeons"));
        for network in ["threads+scrambled", "shared_memory:packets"] {
            assert!(refusal(Launch::new().network(network)).contains("add +hidden"), "{network}");
            assert!(Launch::new().network(network).ranks_per_node(1).resolve().is_ok(), "{network}");
        }
    }
}
