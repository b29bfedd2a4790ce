//! The heat equation on a square plate whose left side is hot and whose other sides are cold.
//!
//! The program writes the state to `heat.npy` in a folder, and to `heat.vti` for ParaView. A later run goes on from there, with any number
//! of ranks.
//!
//! ```text
//! GA_RANKS=2 cargo run --release --example heat -- my-folder 200
//! GA_RANKS=3 cargo run --release --example heat -- my-folder 200
//! ```

use std::{env, fs, path::PathBuf};

use global_arrays::{file::FileWriter, prelude::*};

/// Points along each side, and the time step times the diffusivity, divided by the square of the spacing.
const N: usize = 100;
const R: f64 = 0.2;

/// Temperatures beyond the left side and beyond the others.
const HOT: f64 = 1.0;
const COLD: f64 = 0.0;

fn main() -> Result<(), Error> {
    let usage = || Error::other("usage: heat FOLDER STEPS");
    let mut arguments = env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or_else(usage)?);
    let steps: usize = arguments.next().ok_or_else(usage)?.parse().map_err(|_| usage())?;
    fs::create_dir_all(&folder).map_err(|error| Error::other(format!("cannot make {}: {error}", folder.display())))?;
    let (state, image) = (folder.join("heat.npy"), folder.join("heat.vti"));
    let resumes = state.exists();
    run(|job| {
        let field = |name| {
            let field = GlobalArray2::<f64>::builder(job, [N, N]).name(name).ghosts([1, 1]).corners(false);
            field.boundaries([Boundary::Open; 2]).fill(COLD).create()
        };
        let (mut old, mut new) = (field("old")?, field("new")?);
        // Epochs leave the cells beyond the sides as they are.
        job.epoch((old.ghosts_mut(), new.ghosts_mut()), |(mut old, mut new)| {
            old.beyond_mut(1, Side::Low).fill(HOT);
            new.beyond_mut(1, Side::Low).fill(HOT);
        })?;
        if resumes {
            old.read(&state)?;
        }

        for _ in 0..steps {
            job.epoch((old.ghosts(), new.owned_mut()), |(old, mut new)| {
                let u = old.cells();
                for (at, next) in new.indexed_iter_mut() {
                    let neighbors = u.near(at, [-1, 0]) + u.near(at, [1, 0]) + u.near(at, [0, -1]) + u.near(at, [0, 1]);
                    *next = u.near(at, [0, 0]) + R * (neighbors - 4.0 * u.near(at, [0, 0]));
                }
            })?;
            std::mem::swap(&mut old, &mut new);
        }

        old.save(&state)?;
        FileWriter::new(&image).array("u", &old).spacing(&[1.0, 1.0]).save()?;
        let mean = old.sum()? / old.len() as f64;
        if let Some(u) = old.get_on(0, ..)? {
            println!("{steps} steps by {} ranks; the mean temperature is {mean:.6}", job.size());
            if !u.iter().all(|u| (COLD..=HOT).contains(u)) {
                return Err(Error::other("a temperature is below that of the cold sides or above that of the hot one"));
            }
        }
        Ok(())
    })
}
