//! Checkpoint and restart, with any number of ranks: the state is saved now and then, and a run resumes from the newest file.
//!
//! The state is a board of Conway's Game of Life whose edges meet. A glider moves by one cell along both axes in four generations.
//!
//! ```text
//! GA_RANKS=2 cargo run --release --example checkpoint -- my-folder
//! GA_RANKS=3 cargo run --release --example checkpoint -- my-folder
//! ```

use std::{env, fs, path::Path};

use global_arrays::prelude::*;

const N: usize = 48;
const GLIDER: [[usize; 2]; 5] = [[0, 1], [1, 2], [2, 0], [2, 1], [2, 2]];

/// Generations of a run, and from one file to the next.
const RUN: usize = 100;
const BETWEEN: usize = 40;

fn main() -> Result<(), Error> {
    let folder = env::args().nth(1).ok_or_else(|| Error::other("usage: checkpoint FOLDER"))?;
    let folder = Path::new(&folder);
    fs::create_dir_all(folder).map_err(|error| Error::other(format!("cannot make {}: {error}", folder.display())))?;
    let file = |generation: usize| folder.join(format!("generation-{generation}.npy"));
    run(|job| {
        // Rank 0 looks for all, so that all have the same answer.
        let mut start = [if job.rank() == 0 { saved(folder)?.into_iter().max() } else { None }.unwrap_or(0)];
        job.broadcast(0, &mut start)?;
        let start = start[0];
        let board = || GlobalArray2::<u8>::builder(job, [N, N]).ghosts([1, 1]).name("board").zeros().create();
        let (mut old, mut new) = (board()?, board()?);
        if start > 0 {
            old.read(file(start))?;
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
                old.save(file(generation))?; // whole, or not at all
                if job.rank() == 0 {
                    let older = saved(folder)?.into_iter().filter(|&other| other < generation);
                    older.for_each(|other| drop(fs::remove_file(file(other)))); // or the next run does it
                }
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

/// The generations of which there are files.
fn saved(folder: &Path) -> Result<Vec<usize>, Error> {
    let number = |name: &str| name.strip_prefix("generation-")?.strip_suffix(".npy")?.parse().ok();
    let files = fs::read_dir(folder).map_err(|error| Error::other(format!("cannot read {}: {error}", folder.display())))?;
    Ok(files.flatten().filter_map(|file| number(file.file_name().to_str()?)).collect())
}
