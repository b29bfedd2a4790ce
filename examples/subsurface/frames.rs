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
use program::whole_file;

use crate::cases::Case;
use crate::grid::Grid;

const COLLECTION: &str = "frames.pvd";

/// A value of a cell, from the cell and its pressure head.
type Value<'a> = dyn Fn([usize; 3], f64) -> f64 + 'a;

/// The frames of a run, in a folder.
pub(crate) struct Frames<'a> {
    folder: &'a Path,
    case: &'a dyn Case,
    times: Vec<f64>,
    /// Times and numbers of those that are there.
    written: Vec<(f64, usize)>,
}

impl<'a> Frames<'a> {
    /// Frames of time zero and of the times of output. A run that goes on from a time keeps the frames up to it.
    ///
    /// # Errors
    /// One line that names the folder or its collection.
    pub(crate) fn new(folder: &'a Path, case: &'a dyn Case, resumed: Option<f64>) -> Result<Frames<'a>, String> {
        let written = resumed.map_or(Ok(Vec::new()), |time| kept(folder, time))?;
        Ok(Frames { folder, case, times: [0.0].into_iter().chain(case.frames()).collect(), written })
    }

    /// Writes the frame of a time if there is one; heads are those of all cells. For one rank.
    ///
    /// # Errors
    /// One line that names the file.
    pub(crate) fn write(&mut self, time: f64, heads: &GlobalArray<f64, Ix3>) -> Result<(), Error> {
        if !self.times.contains(&time) {
            return Ok(());
        }
        let number = self.written.last().map_or(0, |(_, last)| last + 1);
        let written = whole_file::write_with(&self.folder.join(name(number)), |out| write_frame(out, self.case, heads));
        self.written.push((time, number));
        written.and_then(|()| self.write_collection()).map_err(Error::other)
    }

    /// Lists the frames.
    fn write_collection(&self) -> Result<(), String> {
        let mut text = String::from("<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"1.0\">\n<Collection>\n");
        for (time, number) in &self.written {
            let _ = writeln!(text, "{TIME}{time}{FILE}{}\"/>", name(*number));
        }
        text += "</Collection>\n</VTKFile>\n";
        whole_file::write(&self.folder.join(COLLECTION), text.as_bytes())
    }
}

/// What stands in the collection before a time, and before the file of it.
const TIME: &str = "<DataSet timestep=\"";
const FILE: &str = "\" file=\"";

/// The file of a frame.
fn name(number: usize) -> String {
    format!("frame_{number:04}.vtr")
}

/// A collection or a frame in a folder, if there is any.
fn stale(folder: &Path) -> Result<Option<String>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("no folder {} for frames: {error}", folder.display()))?;
    let mut names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names.find(|name| name == COLLECTION || name.starts_with("frame_") && name.ends_with(".vtr")))
}

/// Times and numbers of the frames of an earlier run up to a time, as its collection lists them.
fn kept(folder: &Path, until: f64) -> Result<Vec<(f64, usize)>, String> {
    let Some(frame) = stale(folder)? else { return Ok(Vec::new()) };
    let file = folder.join(COLLECTION);
    let unread = |error| format!("{} holds {frame}, and {COLLECTION} cannot be read: {error}", folder.display());
    let text = std::fs::read_to_string(&file).map_err(unread)?;
    let entry = |line: &str| {
        let (time, rest) = line.strip_prefix(TIME)?.split_once(FILE)?;
        let number = rest.strip_prefix("frame_")?.strip_suffix(".vtr\"/>")?;
        Some((time.parse::<f64>().ok()?, number.parse::<usize>().ok()?))
    };
    let mut written = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| line.starts_with("<DataSet")) {
        written.push(entry(line).ok_or_else(|| format!("{}: no entry of this program: {line}", file.display()))?);
    }
    if !written.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1) {
        return Err(format!("{}: times and numbers do not ascend", file.display()));
    }
    written.retain(|(time, _)| *time <= until);
    Ok(written)
}

/// Whether frames may be written to a folder, from the time on from which a run goes on.
///
/// # Errors
/// No folder; one that holds frames of an earlier run, unless that is gone on with and has listed them.
pub(crate) fn check(folder: &Path, resumed: Option<f64>) -> Result<(), String> {
    match (stale(folder)?, resumed) {
        (Some(name), None) => {
            Err(format!("{} holds {name} of an earlier run: remove its frames or name another folder", folder.display()))
        }
        (_, Some(time)) => kept(folder, time).map(|_| ()),
        (None, None) => Ok(()),
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
        assert!(check(&folder, None).unwrap_err().contains("no folder"));
        std::fs::create_dir_all(&folder).unwrap();
        assert!(check(&folder, None).is_ok());
        std::fs::write(folder.join("frame_0003.vtr"), "").unwrap();
        assert!(check(&folder, None).unwrap_err().contains("frame_0003.vtr of an earlier run"));
        // A run that goes on has to know the times of the frames.
        assert!(check(&folder, Some(5.0)).unwrap_err().contains("frames.pvd cannot be read"));
        let text = format!("<Collection>\n{TIME}0{FILE}frame_0000.vtr\"/>\n{TIME}5{FILE}frame_0003.vtr\"/>\n</Collection>\n");
        std::fs::write(folder.join(COLLECTION), &text).unwrap();
        assert_eq!(kept(&folder, 5.0).unwrap(), [(0.0, 0), (5.0, 3)]);
        assert_eq!(kept(&folder, 4.0).unwrap(), [(0.0, 0)]);
        std::fs::write(folder.join(COLLECTION), text.replace("frame_0003", "other")).unwrap();
        assert!(check(&folder, Some(5.0)).unwrap_err().contains("no entry of this program"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
