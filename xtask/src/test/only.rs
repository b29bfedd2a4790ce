//! What a run tests when it is not to test all.

use clap::ValueEnum;

/// One word after `--only`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Unit and integration tests, on the conduits of one machine
    Suites,
    /// Programs inside the documentation
    Documentation,
    /// Examples, on the conduits of one machine
    Examples,
    /// Products of matrices by a BLAS of the system; eigenvalues by faer
    Blas,
    /// Files of NumPy, h5py, xarray, zarr-python and PyVista
    Python,
    /// Programs over InfiniBand's verbs, in a virtual machine
    Vm,
    /// All under both MPI libraries
    Mpi,
    /// All under MPICH
    Mpich,
    /// All under Open MPI
    Openmpi,
    /// Ranks, hosts and cables that are ended, under both MPI libraries
    Kills,
    /// Memory, races, interleavings: of the long tier
    Checkers,
    /// `cargo xtask compare`: of the long tier
    Comparison,
}

impl Part {
    /// Whether it runs: if it was named, or if nothing was and it is of this tier.
    pub fn wanted(self, only: &[Part], long: bool) -> bool {
        match self {
            // Of MPI's.
            Part::Kills => only.contains(&self),
            _ if only.is_empty() => long || !matches!(self, Part::Checkers | Part::Comparison),
            Part::Mpich | Part::Openmpi => only.contains(&self) || only.contains(&Part::Mpi),
            _ => only.contains(&self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(only: &[Part], long: bool) -> Vec<Part> {
        Part::value_variants().iter().copied().filter(|part| *part != Part::Mpi && part.wanted(only, long)).collect()
    }

    #[test]
    fn without_a_choice_all_of_the_tier_run() {
        assert_eq!(chosen(&[], true).len(), 10);
        let standard = chosen(&[], false);
        assert_eq!(
            standard,
            [Part::Suites, Part::Documentation, Part::Examples, Part::Blas, Part::Python, Part::Vm, Part::Mpich, Part::Openmpi]
        );
    }

    #[test]
    fn what_is_named_runs_alone() {
        assert_eq!(chosen(&[Part::Openmpi], true), [Part::Openmpi]);
        assert_eq!(chosen(&[Part::Mpi, Part::Examples], false), [Part::Examples, Part::Mpich, Part::Openmpi]);
        assert_eq!(chosen(&[Part::Checkers], false), [Part::Checkers]);
    }
}
