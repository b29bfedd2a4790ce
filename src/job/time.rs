//! Time of a job: the one clock that programs read, and what they say about their computing.

use std::{ops::Add, time::Duration};

use crate::{calls::record, comm::Conduit, sync::Group};

/// How much a rank has computed, for [`Simulation::work`].
///
/// # Examples
/// ```
/// use global_arrays::simulation::Work;
/// let (m, n, k) = (100.0, 200.0, 50.0);
/// let product = Work::flops(2.0 * m * n * k) + Work::bytes(8.0 * (m * k + k * n + 2.0 * m * n));
/// assert_eq!(product, Work::bytes(440_000.0) + Work::flops(2e6));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[must_use]
pub struct Work {
    flops: f64,
    bytes: f64,
}

impl Work {
    /// So many floating-point operations.
    ///
    /// # Panics
    /// If that is negative, or not a finite number.
    #[track_caller]
    pub fn flops(flops: f64) -> Self {
        Work { flops: amount(flops), bytes: 0.0 }
    }

    /// So many bytes read from memory and written to it, not counting what caches keep.
    ///
    /// # Panics
    /// If that is negative, or not a finite number.
    #[track_caller]
    pub fn bytes(bytes: f64) -> Self {
        Work { flops: 0.0, bytes: amount(bytes) }
    }
}

#[track_caller]
fn amount(value: f64) -> f64 {
    assert!(value.is_finite() && value >= 0.0, "{value} is no amount of work");
    value
}

/// Both together: operations overlap with accesses to memory.
impl Add for Work {
    type Output = Work;

    fn add(self, other: Work) -> Work {
        Work { flops: self.flops + other.flops, bytes: self.bytes + other.bytes }
    }
}

impl Group {
    /// Time since the job began, as this rank sees it: real time, or virtual time over a simulated network. Use it for whatever a program
    /// measures of itself. Local.
    #[doc(alias = "GA_Wtime")]
    #[must_use]
    pub fn now(&self) -> Duration {
        self.conduit().now()
    }

    /// Runs `body` as a phase of the program with a name. `GA_STATS=1` has a table of times for each phase, and a trace shows it. A phase in
    /// a phase has its time for itself. Otherwise the call does nothing. Local.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let mut a = job.phase("reading the input", || GlobalArray::<f64, Ix1>::builder(job, [100]).zeros().create())?;
    ///     job.phase("solving", || a.fill(1.0))
    /// })
    /// # }
    /// ```
    pub fn phase<R>(&self, name: &'static str, body: impl FnOnce() -> R) -> R {
        record::phase(name, body)
    }

    /// What a program may ask and say where time is virtual.
    #[must_use]
    pub fn simulation(&self) -> Simulation<'_> {
        Simulation(self.conduit())
    }

    fn conduit(&self) -> &Conduit {
        self.inner.engine().conduit()
    }
}

/// What a program may ask and say over a simulated network, which runs it in virtual time on a model of a machine; see
/// [its page](crate::guide::virtual_cluster). Over other networks it changes nothing. [`Group::simulation`] returns it.
#[derive(Clone, Copy, Debug)]
pub struct Simulation<'a>(&'a Conduit);

impl Simulation<'_> {
    /// Whether the program is to leave out what it computes (`GA_COMPUTING=skip`, over a simulated network only). It then only says what it
    /// would compute, by [`work`](Self::work), and communicates as if it had. Arrays that it creates as
    /// [`hollow`](crate::Builder::hollow) have no contents; all other communication brings what was sent. So a run shows the communication
    /// and the time of a problem that is too large to be computed or stored here. Local.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::{prelude::*, simulation::{Computing, Machine, Work}};
    /// # fn main() -> Result<(), Error> {
    /// Launch::simulated(Machine::new("gemini-ports").computing(Computing::Skip)).ranks(4).run(|job| {
    ///     let n = 100_000; // 80 GB
    ///     let a = GlobalArray::<f64, Ix2>::builder(job, [n, n]).hollow().create()?;
    ///     let row = a.get(s![job.rank(), ..])?; // takes the time of 800 kB
    ///     if !job.simulation().skips() {
    ///         assert!(row.sum().is_finite());
    ///     }
    ///     job.simulation().work(Work::flops(n as f64));
    ///     job.sync()
    /// })
    /// # }
    /// ```
    #[must_use]
    pub fn skips(&self) -> bool {
        self.0.skips()
    }

    /// Says that this rank has computed so much. Over a simulated network it takes the time that the machine's model says, the longer of
    /// those of its operations and of its accesses to memory. Over others the call does nothing. Local.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::{prelude::*, simulation::{Machine, Work}};
    /// # fn main() -> Result<(), Error> {
    /// Launch::simulated(Machine::new("gemini")).ranks(2).run(|job| {
    ///     let begin = job.now();
    ///     job.simulation().work(Work::flops(8.4e9));
    ///     assert!((job.now() - begin).as_secs_f64() >= 1.0);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    pub fn work(&self, work: Work) {
        record::work(|| self.0.compute(work.flops, work.bytes));
    }
}
