//! The formats, by the ends of names, and what all of them tell of a file.

use std::{io, path::Path};

#[cfg(feature = "zarr")]
use super::zarr;
use super::{
    contents::Contents,
    hdf5, npy,
    placed::Placed,
    raw,
    variable::{Attributes, Compression, Variable},
    visit::Failure,
    vtk::{self, Grid},
};

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Npy,
    Raw,
    Vtk(Grid),
    Hdf5,
    Zarr,
    /// Files beside it have the arrays.
    Collection,
    Xdmf,
}

/// What a name ends with.
const ENDINGS: [(&str, Format); 13] = [
    ("npy", Format::Npy),
    ("raw", Format::Raw),
    ("bin", Format::Raw),
    ("vti", Format::Vtk(Grid::Image)),
    ("vtr", Format::Vtk(Grid::Rectilinear)),
    ("vtp", Format::Vtk(Grid::Particles)),
    ("pvd", Format::Collection),
    ("xdmf", Format::Xdmf),
    ("h5", Format::Hdf5),
    ("hdf5", Format::Hdf5),
    ("he5", Format::Hdf5),
    ("nc", Format::Hdf5),
    ("zarr", Format::Zarr),
];

/// What all arrays of a new file need.
pub(super) struct Plan<'a> {
    pub(super) variables: &'a [Variable],
    pub(super) attributes: &'a Attributes,
    /// The box of each array that chunks are cut from.
    #[cfg_attr(not(feature = "zarr"), expect(dead_code))]
    pub(super) blocks: &'a [Vec<usize>],
    /// The shape of chunks, if the program chose one.
    pub(super) tiles: Option<&'a [usize]>,
    pub(super) compression: Option<Compression>,
}

#[cfg(feature = "zarr")]
impl Plan<'_> {
    /// The chunks of each array: those of the program, or parts of a few MiB of blocks.
    fn chunks(&self) -> Result<Vec<Vec<usize>>, Failure> {
        const BYTES: usize = 8 << 20;
        let chunk = |(variable, block): (&Variable, &Vec<usize>)| {
            let axes = variable.shape.len();
            if let Some(tiles) = self.tiles.filter(|_| !variable.is_coordinate()) {
                let fits = tiles.len() == axes && !tiles.contains(&0);
                let wrong =
                    || Failure::Format(format!("cannot cut \"{}\" of {axes} axes into chunks of {tiles:?}", variable.name));
                return fits.then(|| tiles.to_vec()).ok_or_else(wrong);
            }
            let mut chunk: Vec<usize> = block.iter().map(|&extent| extent.max(1)).collect();
            for axis in 0..axes {
                let row = chunk[axis + 1..].iter().product::<usize>() * variable.kind.size();
                let most = (BYTES / row.max(1)).clamp(1, chunk[axis]);
                // Cuts meet the ends of blocks, if that does not make many small chunks.
                let even = (most / 4 + 1..=most).rev().find(|len| chunk[axis].is_multiple_of(*len));
                chunk[axis] = even.unwrap_or(most);
                if chunk[axis] > 1 {
                    break;
                }
            }
            Ok(chunk)
        };
        self.variables.iter().zip(self.blocks).map(chunk).collect()
    }
}

impl Format {
    /// By the end of a name.
    pub(super) fn of(path: &Path) -> Result<Format, Failure> {
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let refused = |what: String| Err(Failure::System(io::Error::other(what)));
        match ENDINGS.iter().find(|(known, _)| *known == ending) {
            Some((_, Format::Zarr)) if cfg!(not(feature = "zarr")) => {
                refused("the program was built without the feature `zarr` of global-arrays".into())
            }
            Some((_, format)) => Ok(*format),
            None => {
                let known: Vec<String> = ENDINGS.iter().map(|(ending, _)| format!(".{ending}")).collect();
                refused(format!("the end of its name is that of no format; known are {}", known.join(", ")))
            }
        }
    }

    /// Makes a file, and returns where the elements of each array go. For one member.
    pub(super) fn create(self, path: &Path, plan: &Plan<'_>) -> Result<Vec<Placed>, Failure> {
        let Plan { variables, attributes, .. } = *plan;
        if let Some(twice) = (1..variables.len()).find(|&k| variables[..k].iter().any(|other| other.name == variables[k].name)) {
            return Err(Failure::Format(format!("cannot hold two arrays \"{}\"", variables[twice].name)));
        }
        match self {
            Format::Npy => Ok(vec![npy::create(path, the_only(variables)?)?]),
            Format::Raw => Ok(vec![raw::create(path, the_only(variables)?)?]),
            Format::Vtk(grid) => vtk::create(path, grid, variables, attributes),
            Format::Hdf5 => hdf5::create(path, variables, attributes),
            #[cfg(feature = "zarr")]
            Format::Zarr => zarr::create(path, variables, attributes, &plan.chunks()?, plan.compression),
            _ => unreachable!("a text that names other files, or a feature that is missing"),
        }
    }

    /// What a file holds. For one member.
    pub(super) fn open(self, path: &Path) -> Result<Contents, Failure> {
        match self {
            Format::Npy => npy::open(path),
            Format::Raw => raw::open(path),
            Format::Vtk(_) => vtk::open(path),
            Format::Hdf5 => hdf5::open(path),
            #[cfg(feature = "zarr")]
            Format::Zarr => zarr::open(path),
            _ => Err(Failure::Format("is a text for ParaView; read the files that it names".into())),
        }
    }

    /// Adds a time step to a file, and returns where the elements of each array go. For one member.
    pub(super) fn begin_step(self, path: &Path, time: f64, plan: &Plan<'_>) -> Result<Vec<Placed>, Failure> {
        match self {
            #[cfg(feature = "zarr")]
            Format::Zarr => zarr::begin_step(path, time, plan.variables, plan.attributes, &plan.chunks()?, plan.compression),
            _ => hdf5::begin_step(path, time, plan.variables, plan.attributes),
        }
    }

    /// Enters the time of a step whose elements are on the disk. For one member.
    pub(super) fn end_step(self, path: &Path, time: f64) -> Result<(), Failure> {
        match self {
            #[cfg(feature = "zarr")]
            Format::Zarr => zarr::end_step(path, time),
            _ => hdf5::end_step(path, time),
        }
    }

    pub(super) fn is_folder(self) -> bool {
        self == Format::Zarr
    }
}

fn the_only(variables: &[Variable]) -> Result<&Variable, Failure> {
    match variables {
        [variable] => Ok(variable),
        _ => Err(Failure::Format(format!("holds one array, not {}; .h5, .zarr and .vti hold several", variables.len()))),
    }
}
