//! The heat equation on a square plate whose left side is hot and whose other sides are cold.
//!
//! The program writes the state to `heat.npy` in a folder, and to `heat.vti` for ParaView. A later run goes on from there, with any number
//! of ranks.
//!
//! ```text
//! GA_RANKS=2 cargo run --release --example heat -- my-folder 200
//! GA_RANKS=3 cargo run --release --example heat -- my-folder 200
//! ```

use std::{
    env,
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use global_arrays::prelude::*;

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
        let mean = old.sum()? / old.len() as f64;
        if let Some(u) = old.get_on(0, ..)? {
            write_vti(&image, &u).map_err(|error| Error::other(format!("cannot write {}: {error}", image.display())))?;
            println!("{steps} steps by {} ranks; the mean temperature is {mean:.6}", job.size());
            if !u.iter().all(|u| (COLD..=HOT).contains(u)) {
                return Err(Error::other("a temperature is below that of the cold sides or above that of the hot one"));
            }
        }
        Ok(())
    })
}

/// Writes an image for ParaView, as text.
fn write_vti(path: &Path, u: &Array2<f64>) -> io::Result<()> {
    let extent = format!("0 {} 0 {} 0 0", u.ncols() - 1, u.nrows() - 1);
    let mut file = BufWriter::new(File::create(path)?);
    writeln!(file, r#"<VTKFile type="ImageData" version="0.1" byte_order="LittleEndian">"#)?;
    writeln!(file, r#"<ImageData WholeExtent="{extent}" Origin="0 0 0" Spacing="1 1 1"><Piece Extent="{extent}">"#)?;
    writeln!(file, r#"<PointData Scalars="u"><DataArray type="Float64" Name="u" format="ascii">"#)?;
    for row in u.rows() {
        row.iter().try_for_each(|u| write!(file, "{u} "))?;
        writeln!(file)?;
    }
    writeln!(file, "</DataArray></PointData></Piece></ImageData></VTKFile>")?;
    file.flush()
}
