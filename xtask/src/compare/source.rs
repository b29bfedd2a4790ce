//! Whose figures there are.

/// Whose figure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    Us,
    /// Our own conduit of one node, for what another conduit of ours does inside one.
    SharedMemory,
    /// What the machine does without any library between two processes; OpenBLAS for `matmul` and `lu`.
    Limit,
    OpenMpi,
    Mpich,
    GlobalArrays,
    ScaLapack,
    Hpl,
    /// `hpcc`, of which HPL is a part, with its other benchmarks.
    Hpcc,
    /// Our own C program over Open MPI's two-sided messages.
    Mpi,
    Lammps,
    PySph,
}

impl Source {
    pub const ALL: [Source; 12] = [
        Source::Us,
        Source::SharedMemory,
        Source::Limit,
        Source::OpenMpi,
        Source::Mpich,
        Source::GlobalArrays,
        Source::ScaLapack,
        Source::Hpl,
        Source::Hpcc,
        Source::Mpi,
        Source::Lammps,
        Source::PySph,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Source::Us => "us",
            Source::SharedMemory => "shared memory",
            Source::Limit => "limit",
            Source::OpenMpi => "Open MPI",
            Source::Mpich => "MPICH",
            Source::GlobalArrays => "Global Arrays",
            Source::ScaLapack => "ScaLAPACK",
            Source::Hpl => "HPL",
            Source::Hpcc => "HPCC",
            Source::Mpi => "C + MPI",
            Source::Lammps => "LAMMPS",
            Source::PySph => "PySPH",
        }
    }

    pub fn is_peer(self) -> bool {
        !matches!(self, Source::Us | Source::SharedMemory | Source::Limit)
    }
}
