//! The MPI conduit beside its peers: where ranks are, and how each MPI library is started and told so.
//!
//! On one machine a library has to be told that its ranks share no node. Ours is told by `GA_RANKS_PER_NODE=1`; MPICH by
//! `MPIR_CVAR_NOLOCAL` and UCX's list of transports; Open MPI by the components that it may use. Of its one-sided components
//! only `pt2pt` works over TCP (`benches/peers/README.md`). All programs of a library get the same settings.
//!
//! Where it may, all that goes between nodes runs in a network namespace with TCP's Reno. Some machines' default, BBR, paces what
//! leaves by timers, and CUBIC slows its start by delays that it sees: made for long ways, both stretch 1 MiB over the loopback interface from
//! 115 µs to 160 in one run and not in the next, for whoever sends.

use super::source::Source;
use std::fmt;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// An MPI library of Debian's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Library {
    Mpich,
    OpenMpi,
}

/// Where the ranks of a row are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// One node, without MPI.
    Here,
    /// One node, started by a library's `mpirun`.
    Inside(Library),
    /// A node for each rank, as the library takes it.
    Between(Library),
}

impl Library {
    pub const ALL: [Library; 2] = [Library::Mpich, Library::OpenMpi];

    /// As Debian's programs, packages and our peers' files have it.
    pub fn name(self) -> &'static str {
        match self {
            Library::Mpich => "mpich",
            Library::OpenMpi => "openmpi",
        }
    }

    /// Its bare one-sided calls.
    pub fn source(self) -> Source {
        match self {
            Library::Mpich => Source::Mpich,
            Library::OpenMpi => Source::OpenMpi,
        }
    }

    /// The beginning of a command that starts ranks.
    pub fn mpirun(self, ranks: &str, place: Place) -> Command {
        let mpirun = format!("mpirun.{}", self.name());
        let network = if let Place::Between(_) = place { *NETWORK } else { None };
        let mut command = network.map_or_else(|| Command::new(&mpirun), Network::command);
        if network.is_some() {
            command.arg(&mpirun);
        }
        command.args(["-n", ranks]);
        if self == Library::OpenMpi {
            command.args(["--oversubscribe", "--bind-to", "none"]);
        }
        // `mpirun` makes our programs choose MPI, and the machine is one node unless told otherwise.
        command.env_remove("GA_NETWORK").env_remove("GA_RANKS_PER_NODE");
        if let Place::Between(_) = place {
            command.env("GA_RANKS_PER_NODE", "1");
            match self {
                Library::Mpich => command.env("MPIR_CVAR_NOLOCAL", "1").env("UCX_TLS", "tcp,self"),
                Library::OpenMpi => command.args(["--mca", "pml", "ob1", "--mca", "btl", "self,tcp", "--mca", "osc", "pt2pt"]),
            };
            if network.is_some() && self == Library::OpenMpi {
                // There is no other interface, and Open MPI leaves this one out unless told.
                command.args(["--mca", "btl_tcp_if_include", "lo"]);
            }
        }
        command
    }
}

/// What may make a network namespace: the superuser, or anybody where the kernel lets them.
#[derive(Clone, Copy, Debug)]
enum Network {
    Superuser,
    User,
}

/// How programs between nodes get a network of their own here, if they can.
static NETWORK: LazyLock<Option<Network>> = LazyLock::new(|| {
    let works = |network: &Network| {
        let mut command = network.command();
        let status = command.arg("true").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    [Network::Superuser, Network::User].into_iter().find(works)
});

impl Network {
    /// The beginning of a command that is run there.
    fn command(self) -> Command {
        let script = "ip link set lo up && echo reno >/proc/sys/net/ipv4/tcp_congestion_control && exec \"$0\" \"$@\"";
        let mut command = Command::new("unshare");
        if let Network::User = self {
            command.args(["--user", "--map-root-user"]);
        }
        command.args(["--net", "sh", "-c", script]);
        command
    }
}

/// Before a group's name; nothing where there is no MPI.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Here => Ok(()),
            Place::Inside(library) => write!(f, "inside_{}/", library.name()),
            Place::Between(library) => write!(f, "between_{}/", library.name()),
        }
    }
}

/// Settings of Global Arrays that are worth trying: as they come, and without guarding what its programs need not have guarded.
pub const GLOBAL_ARRAYS: &[&[(&str, &str)]] = &[&[], &[("ARMCI_RMA_ATOMICITY", "0"), ("ARMCI_NO_FLUSH_LOCAL", "1")]];

/// Bare one-sided calls: as they come, and with an allocator that keeps what is freed. MPICH takes the temporary memory of large
/// accumulates from it, and pays for every page each time otherwise.
pub const BARE: &[&[(&str, &str)]] = &[&[], &[("MALLOC_MMAP_THRESHOLD_", "33554432"), ("MALLOC_TRIM_THRESHOLD_", "268435456")]];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_libraries_are_told_that_ranks_share_no_node() {
        for library in Library::ALL {
            let told = |place| format!("{:?}", library.mpirun("2", place));
            assert!(told(Place::Between(library)).contains("GA_RANKS_PER_NODE=\"1\""));
            assert!(told(Place::Between(library)).contains("tcp"));
            assert!(!told(Place::Inside(library)).contains("tcp"));
        }
    }
}
