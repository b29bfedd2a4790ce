//! What a job costs to start beyond MPI: a program of ours with an empty body beside one in C that begins and ends MPI, under the
//! same `mpirun`, in turn.
//!
//! `mpirun` itself takes a quarter of a second, and not always the same: the figure is the median of the differences of
//! neighbours, which share the machine's mood. A pair of which one fails is left out, said, and another one started for it: MPICH 4.0.2 over UCX's TCP does
//! not always come out of `MPI_Finalize` with four ranks, with any program that has exchanged messages. A difference below the clock's noise counts as 10 µs.

use super::mpi::{Library, Place};
use super::results::Figure;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const RANKS: &str = "4";
const PAIRS: usize = 11;
const PAIRS_QUICK: usize = 3;
/// So often as many may be started.
const ATTEMPTS: usize = 4;
const LEAST_MS: f64 = 0.01;

/// `run` gives the time of a command that ended well.
pub fn figure(
    library: Library,
    (ours, theirs): (&Path, &Path),
    quick: bool,
    mut run: impl FnMut(&mut Command) -> Result<Duration, String>,
) -> Result<Figure, String> {
    let mut differences = Vec::new();
    let pairs = if quick { PAIRS_QUICK } else { PAIRS };
    for pair in 0..ATTEMPTS * pairs {
        if differences.len() == pairs {
            break;
        }
        let mut one = |program: &Path| {
            let mut command = library.mpirun(RANKS, Place::Between(library));
            command.arg(program);
            if program == ours {
                command.arg("start");
            }
            run(&mut command).map(|time| time.as_secs_f64() * 1e3)
        };
        // Each goes first in every other pair.
        let (us, them) = if pair % 2 == 0 {
            let us = one(ours);
            (us, one(theirs))
        } else {
            let them = one(theirs);
            (one(ours), them)
        };
        if let (Ok(us), Ok(them)) = (us, them) {
            differences.push(us - them);
        }
    }
    if 2 * differences.len() <= pairs {
        return Err(format!("{}: most of the starts under {} failed", ours.display(), library.name()));
    }
    differences.sort_by(f64::total_cmp);
    let value = differences[differences.len() / 2].max(LEAST_MS);
    Ok(Figure { op: "start".to_owned(), shape: format!("{RANKS} ranks"), value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figure_is_the_median_of_the_differences() {
        let (ours, theirs) = (Path::new("/ours"), Path::new("/theirs"));
        let figure = |ours_ms: u64| {
            let mut calls = 0;
            let figure = super::figure(Library::Mpich, (ours, theirs), true, |command| {
                calls += 1;
                let us = command.get_args().any(|word| word == "/ours");
                let outlier = if calls == 1 { 500 } else { 0 };
                Ok(Duration::from_millis(if us { ours_ms } else { 200 } + outlier))
            });
            figure.map(|figure| figure.value.round())
        };
        assert_eq!(figure(215), Ok(15.0));
        assert_eq!(figure(190), Ok(0.0));
        let failing = |every: usize| {
            let mut calls = 0;
            super::figure(Library::Mpich, (ours, theirs), true, |_| {
                calls += 1;
                if calls % every == 0 { Err("still running".to_owned()) } else { Ok(Duration::from_millis(1)) }
            })
        };
        assert!(failing(3).is_ok());
        assert!(failing(2).is_err());
    }
}
