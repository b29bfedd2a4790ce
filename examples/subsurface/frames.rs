//! Frames: the whole field at the times of output, as VTK XML files of a rectilinear grid (`.vtr`), which ParaView opens, and the
//! collection (`frames.pvd`) that gives each file its time.
//!
//! Each cell has its pressure head and hydraulic head [m], water content, conductivity along x [m/s] and number of its material.
//! Rank 0 reads the heads layer by layer, so it never holds the whole field; the other ranks wait for it at their next
//! exchange of borders. Arrays are appended to the XML text as raw little-endian numbers, each after its length in bytes.
//!
//! # Source
//! *VTK file formats*, <https://docs.vtk.org/en/latest/design_documents/VTKFileFormats.html>.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

use global_arrays::prelude::*;

use crate::cases::Case;
use crate::grid::Grid;
use crate::whole_file;

const COLLECTION: &str = "frames.pvd";

/// A value of a cell, from the cell and its pressure head.
type Value<'a> = dyn Fn([usize; 3], f64) -> f64 + 'a;

/// The frames of a run, in a folder.
pub(crate) struct Frames<'a> {
    folder: &'a Path,
    case: &'a dyn Case,
    times: Vec<f64>,
}

impl<'a> Frames<'a> {
    /// Frames of time zero and of the times of output.
    pub(crate) fn new(folder: &'a Path, case: &'a dyn Case) -> Frames<'a> {
        Frames { folder, case, times: [0.0].into_iter().chain(case.frames()).collect() }
    }

    /// Writes the frame of a time if there is one; heads are those of all cells. For one rank.
    ///
    /// # Errors
    /// One line that names the file.
    pub(crate) fn write(&self, time: f64, heads: &GlobalArray<f64, Ix3>) -> Result<(), Error> {
        let Some(number) = self.times.iter().position(|&frame| frame == time) else { return Ok(()) };
        let written = whole_file::write_with(&self.folder.join(name(number)), |out| write_frame(out, self.case, heads));
        written.and_then(|()| self.write_collection(number)).map_err(Error::other)
    }

    /// Lists the frames up to the last one; those before a resumed run are there if it goes on in the same folder.
    fn write_collection(&self, last: usize) -> Result<(), String> {
        let mut text = String::from("<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"1.0\">\n<Collection>\n");
        for (number, time) in self.times.iter().enumerate().take(last + 1) {
            if self.folder.join(name(number)).is_file() {
                let _ = writeln!(text, "<DataSet timestep=\"{time}\" file=\"{}\"/>", name(number));
            }
        }
        text += "</Collection>\n</VTKFile>\n";
        whole_file::write(&self.folder.join(COLLECTION), text.as_bytes())
    }
}

/// The file of a frame.
fn name(number: usize) -> String {
    format!("frame_{number:04}.vtr")
}

/// Whether frames may be written to a folder.
///
/// # Errors
/// No folder; one that holds frames of an earlier run, unless that is gone on with.
pub(crate) fn check(folder: &Path, is_resumed: bool) -> Result<(), String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("no folder {} for frames: {error}", folder.display()))?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut stale = names.filter(|name| name == COLLECTION || name.starts_with("frame_") && name.ends_with(".vtr"));
    match stale.next() {
        Some(name) if !is_resumed => {
            Err(format!("{} holds {name} of an earlier run: remove its frames or name another folder", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Appended arrays by name, with the type and the bytes of each.
struct Table {
    elements: Vec<(&'static str, &'static str, u64)>,
}

impl Table {
    /// The elements that describe the arrays from `first` up to `end`.
    fn describe(&self, first: usize, end: usize) -> String {
        let mut offset: u64 = self.elements[..first].iter().map(|(_, _, bytes)| bytes + 8).sum();
        let mut text = String::new();
        for (name, kind, bytes) in &self.elements[first..end] {
            let _ = writeln!(text, "<DataArray type=\"{kind}\" Name=\"{name}\" format=\"appended\" offset=\"{offset}\"/>");
            offset += bytes + 8;
        }
        text
    }
}

/// Names of the arrays of cells; the last is one of whole numbers.
const CELL_ARRAYS: [&str; 5] = ["pressure_head", "head", "water_content", "conductivity", "material"];

/// A whole file.
fn write_frame(out: &mut impl Write, case: &dyn Case, heads: &GlobalArray<f64, Ix3>) -> io::Result<()> {
    let grid = case.grid();
    let [nz, nx, ny] = grid.extents();
    let cells = (nx * ny * nz) as u64;
    let kind = |name: &str| if name == "material" { ("Int32", 4) } else { ("Float64", 8) };
    let mut elements: Vec<_> = CELL_ARRAYS.map(|name| (name, kind(name).0, kind(name).1 * cells)).to_vec();
    let faces = [("x", nx), ("y", ny), ("z", nz)];
    elements.extend(faces.map(|(name, cells)| (name, "Float64", 8 * (cells as u64 + 1))));
    let table = Table { elements };
    let (of_cells, of_axes) = (table.describe(0, CELL_ARRAYS.len()), table.describe(CELL_ARRAYS.len(), table.elements.len()));
    write!(
        out,
        "<?xml version=\"1.0\"?>\n\
         <VTKFile type=\"RectilinearGrid\" version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\">\n\
         <RectilinearGrid WholeExtent=\"0 {nx} 0 {ny} 0 {nz}\">\n<Piece Extent=\"0 {nx} 0 {ny} 0 {nz}\">\n\
         <CellData Scalars=\"pressure_head\">\n{of_cells}</CellData>\n<Coordinates>\n{of_axes}</Coordinates>\n</Piece>\n\
         </RectilinearGrid>\n<AppendedData encoding=\"raw\">\n_"
    )?;
    let height = |cell: [usize; 3]| if case.weight() { grid.axes[0].centre(cell[0]) } else { 0.0 };
    let mut array = |bytes: u64, layers: &Layers<'_>| {
        out.write_all(&bytes.to_le_bytes())?;
        layers.write(out)
    };
    let values: [&Value<'_>; 4] =
        [&|_, head| head, &|cell, head| head + height(cell), &|cell, head| case.medium(cell).at(head).content, &|cell, _| {
            case.conductivity(1, cell)
        }];
    for value in values {
        array(8 * cells, &Layers { grid, heads, value, is_whole: false })?;
    }
    array(4 * cells, &Layers { grid, heads, value: &|cell, _| case.material(cell) as f64, is_whole: true })?;
    for axis in [1, 2, 0] {
        let faces = &grid.axes[axis].faces;
        out.write_all(&(8 * faces.len() as u64).to_le_bytes())?;
        faces.iter().try_for_each(|face| out.write_all(&face.to_le_bytes()))?;
    }
    out.write_all(b"\n</AppendedData>\n</VTKFile>\n")
}

/// One array of cells, written layer by layer in the order of VTK: x fastest, then y, then z.
struct Layers<'a> {
    grid: &'a Grid,
    heads: &'a GlobalArray<f64, Ix3>,
    value: &'a Value<'a>,
    is_whole: bool,
}

impl Layers<'_> {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let [nz, nx, ny] = self.grid.extents();
        for i in 0..nz {
            let layer = self.heads.get(s![i, .., ..]).map_err(io::Error::other)?;
            for (k, j) in (0..ny).flat_map(|k| (0..nx).map(move |j| (k, j))) {
                let value = (self.value)([i, j, k], layer[[j, k]]);
                if self.is_whole {
                    out.write_all(&(value as i32).to_le_bytes())?;
                } else {
                    out.write_all(&value.to_le_bytes())?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cases::heterogeneous::Heterogeneous;
    use crate::cli::Arguments;
    use crate::problem::Problem;

    /// The numbers of an array of a file.
    fn read(file: &[u8], name: &str) -> Vec<f64> {
        let begin = file.windows(3).position(|window| window == b">\n_").unwrap() + 3;
        let text = std::str::from_utf8(&file[..begin]).unwrap();
        let element = &text[text.find(&format!("Name=\"{name}\"")).unwrap()..];
        let digits = &element[element.find("offset=\"").unwrap() + 8..];
        let offset: usize = digits[..digits.find('"').unwrap()].parse().unwrap();
        let word = |at: usize| <[u8; 8]>::try_from(&file[at..at + 8]).unwrap();
        let (bytes, first) = (u64::from_le_bytes(word(begin + offset)) as usize, begin + offset + 8);
        (0..bytes / 8).map(|n| f64::from_le_bytes(word(first + 8 * n))).collect()
    }

    #[test]
    fn arrays_stand_where_the_text_says() {
        let line = "subsurface --case heterogeneous --cells 2x3x4";
        let case = Heterogeneous::new(&Arguments::try_parse_from(line.split(' ')).unwrap()).unwrap();
        let body = |job: &Job| {
            let heads = GlobalArray::<f64, Ix3>::builder(job, [2, 3, 4]).create()?;
            if job.rank() == 0 {
                heads.put(.., &Array3::from_shape_fn((2, 3, 4), |(i, j, k)| -((100 * i + 10 * j + k) as f64)))?;
            }
            job.sync()?;
            let mut file = Vec::new();
            write_frame(&mut file, &case, &heads).map_err(Error::other)?;
            // x is fastest, then y, then z.
            assert_eq!(read(&file, "pressure_head")[..6], [-0.0, -10.0, -20.0, -1.0, -11.0, -21.0]);
            assert_eq!(read(&file, "head")[12 + 3 * 2 + 1], -112.0 + case.grid().axes[0].centre(1));
            assert_eq!(read(&file, "conductivity")[23], case.conductivity(1, [1, 2, 3]));
            assert_eq!(read(&file, "z"), case.grid().axes[0].faces);
            assert_eq!(read(&file, "y").len(), 5);
            assert!(file.ends_with(b"</AppendedData>\n</VTKFile>\n"));
            Ok::<(), Error>(())
        };
        Launch::new().ranks(3).network("threads").run(body).unwrap();
    }

    #[test]
    fn frames_of_an_earlier_run_are_refused() {
        let folder = std::env::temp_dir().join(format!("subsurface-frames-{}", std::process::id()));
        assert!(check(&folder, false).unwrap_err().contains("no folder"));
        std::fs::create_dir_all(&folder).unwrap();
        assert!(check(&folder, false).is_ok());
        std::fs::write(folder.join("frame_0003.vtr"), "").unwrap();
        assert!(check(&folder, false).unwrap_err().contains("frame_0003.vtr of an earlier run"));
        assert!(check(&folder, true).is_ok());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
