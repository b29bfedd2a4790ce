//! A modelled machine, and what a job over it may choose that no other job can.

use super::options::Computing;

/// A modelled machine, and how to simulate a job on it, for [`Launch::simulated`](crate::Launch::simulated). Values that the program does
/// not set come from the environment.
///
/// | method | variable | default |
/// |---|---|---|
/// | [`computing`](Self::computing) | `GA_COMPUTING` | `declared`; the time that computing takes |
/// | [`seed`](Self::seed) | `GA_SEED` | 0; the order of what happens at one time |
/// | [`faults`](Self::faults) | `GA_FAULTS` | none; what goes wrong |
/// | [`stack`](Self::stack) | `GA_STACK` | 256K; bytes of the stack of each rank |
/// | none | `GA_COROUTINES` | 0: ranks are threads; 1, for thousands: [coroutines](crate::guide::virtual_cluster#ranks-that-are-coroutines) |
///
/// # Examples
/// ```
/// use global_arrays::{prelude::*, simulation::{Computing, Machine}};
/// # fn main() -> Result<(), Error> {
/// let machine = Machine::new("infiniband").computing(Computing::Zero).seed(3);
/// Launch::simulated(machine).ranks(4).ranks_per_node(2).run(|job| job.sync())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Machine {
    pub(super) model: String,
    pub(super) computing: Option<Computing>,
    pub(super) seed: Option<u64>,
    pub(super) faults: Option<String>,
    pub(super) stack: Option<usize>,
}

impl Machine {
    /// The machine of a [name](crate::guide::virtual_cluster#machines), such as `gemini`, or of a file.
    pub fn new(model: impl Into<String>) -> Self {
        Machine { model: model.into(), computing: None, seed: None, faults: None, stack: None }
    }

    /// The time that computing takes.
    pub fn computing(mut self, computing: Computing) -> Self {
        self.computing = Some(computing);
        self
    }

    /// Another order of what happens at one time. The same seed gives the same run. 0 is the order in which ranks are numbered.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// What goes wrong, at which time: `die:3@0.5`, rank 3 dies after 0.5 s; `stall:2@0.1+0.05`, the adapter of node 2
    /// sends and receives nothing for 0.05 s, from 0.1 s on; `delay:0.01*20`, a hundredth of all messages between nodes leaves up to 20 µs
    /// late, by the seed, and what is behind it in its adapter too. Several are separated by commas. A death ends the job, as on any network.
    ///
    /// This is the text of `GA_FAULTS`, whose grammar the simulator owns, as [`Launch::network`](crate::Launch::network) is that of `GA_NETWORK`.
    pub fn faults(mut self, faults: impl Into<String>) -> Self {
        self.faults = Some(faults.into());
        self
    }

    /// Bytes of the stack of each rank, at least 64 KiB.
    pub fn stack(mut self, bytes: usize) -> Self {
        self.stack = Some(bytes);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, Launch};

    #[test]
    fn only_a_simulated_network_has_a_machine() {
        let ended = Launch::simulated(Machine::new("gemini").seed(1)).network("threads").run(|_| Ok::<(), Error>(()));
        assert!(ended.is_err_and(|error| error.to_string().contains("is not simulated")));
    }
}
