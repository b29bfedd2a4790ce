//! Checkpoint and restart, with any number of ranks: the state is saved now and then, and a run resumes from the newest checkpoint.
//!
//! The state is a board of Conway's Game of Life whose edges meet. A glider moves by one cell along both axes in four generations.
//!
//! ```text
//! GA_RANKS=2 cargo run --release --example checkpoint -- my-folder
//! GA_RANKS=3 cargo run --release --example checkpoint -- my-folder
//! ```

use std::env;

use global_arrays::{file::Checkpoint, prelude::*};

const N: usize = 48;
const GLIDER: [[usize; 2]; 5] = [[0, 1], [1, 2], [2, 0], [2, 1], [2, 2]];

/// Generations of a run, and from one checkpoint to the next.
const RUN: usize = 100;
const BETWEEN: usize = 40;

fn main() -> Result<(), Error> {
    let folder = env::args().nth(1).ok_or_else(|| Error::other("usage: checkpoint FOLDER"))?;
    run(|job| {
        let board = || GlobalArray2::<u8>::builder(job, [N, N]).ghosts([1, 1]).name("board").zeros().create();
        let (mut old, mut new) = (board()?, board()?);
        let mut start = 0;
        if let Some(saved) = Checkpoint::restore(job, &folder)? {
            saved.read("board", old.at_mut(..))?;
            start = saved.value("generation")?;
        } else if job.rank() == 0 {
            old.scatter(&GLIDER, &[1; GLIDER.len()])?;
        }
        job.sync()?;

        for generation in start + 1..=start + RUN {
            job.epoch((old.ghosts(), new.owned_mut()), |(old, mut new)| {
                let cells = old.view(); // one cell more on each side
                for ((i, j), next) in new.view_mut().indexed_iter_mut() {
                    let living = cells.slice(s![i..i + 3, j..j + 3]).sum();
                    *next = u8::from(living == 3 || living == 4 && cells[[i + 1, j + 1]] == 1);
                }
            })?;
            std::mem::swap(&mut old, &mut new);
            if generation % BETWEEN == 0 || generation == start + RUN {
                // Whole, or not at all; the one before is removed.
                Checkpoint::new(&folder).array("board", &old).value("generation", &generation).save()?;
            }
        }

        let end = start + RUN;
        let expected = GLIDER.map(|[i, j]| [(i + end / 4) % N, (j + end / 4) % N]);
        let mut living = [0; GLIDER.len()];
        old.gather(&expected, &mut living)?;
        if old.get(..)?.iter().filter(|&&cell| cell == 1).count() != GLIDER.len() || living != [1; GLIDER.len()] {
            return Err(Error::other(format!("the glider is not where it should be in generation {end}")));
        }
        if job.rank() == 0 {
            println!("generations {} to {end} by {} ranks; the glider is where it should be", start + 1, job.size());
        }
        Ok(())
    })
}
