//! New files and files that are there.

use std::{io, marker::PhantomData, path::Path};

use ndarray::{Dimension, IntoDimension};

use super::{DiskArray, space};
use crate::{
    calls::located,
    error::{Error, Result},
    file::{
        erased::axes_of,
        format::{Format, Plan},
        kind::{FileElement, Kind},
        placed::{Place, Placed},
        raw,
        reader::FileReader,
        road::STAGE,
        variable::Variable,
        visit::{Failure, Visit},
        whole::{Unfinished, sync_folder, unfinished},
    },
    file_names::directory,
    sync::{Group, Locks, Op, fingerprint, text_fingerprint},
};

/// Locks of each member.
const LOCKS: usize = 64;
/// Bytes of the tiles of a transposition that a member holds, unless the program says otherwise.
const MEMORY: usize = 64 << 20;

/// # Creation
impl<T: FileElement, D: Dimension> DiskArray<T, D> {
    /// Creates a file of zeros, in the format of its name's ending. Collective.
    ///
    /// The space on the disk is reserved, if the file system can do that. So a disk that is full is an error here and not in a later `put`.
    ///
    /// # Errors
    /// A file that exists, which is never replaced; a folder that does not; too little space; a format that holds no array of this kind;
    /// members that name different files or shapes; a system error on any member, reported on all; the end of the job. No file is left.
    #[doc(alias("DRA_Create", "NDRA_Create"))]
    #[track_caller]
    pub fn create<I>(group: &(impl AsRef<Group> + ?Sized), path: impl AsRef<Path>, shape: I) -> Result<Self>
    where
        I: IntoDimension<Dim = D>,
    {
        located(move || {
            let (path, shape) = (path.as_ref(), shape.into_dimension());
            let visit = Visit { group: group.as_ref(), operation: "create", path };
            settle(&visit, shape.slice())?;
            let format = visit.agreed(Format::of(path))?;
            if matches!(format, Format::Collection | Format::Xdmf) {
                return Err(visit.format("is a text that names other files; choose .npy".into()));
            }
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let variables = [Variable::new(name, Kind::of::<T>(), shape.slice())];
            let blocks = [variables[0].shape.clone()];
            let plan = Plan { variables: &variables, attributes: &Vec::new(), blocks: &blocks, tiles: None, compression: None };
            let placed = visit.first(|| {
                space::new_file(path, || Ok(format.create(path, &plan)?.remove(0))).and_then(|placed| {
                    sync_folder(directory(path))?;
                    Ok(placed)
                })
            })?;
            let unfinished = Unfinished::new(path);
            let array = Self::opened(&visit, shape, placed, true)?;
            unfinished.keep();
            Ok(array)
        })
    }

    /// Creates an array of zeros in a file without a name, in a folder on a fast disk. Collective. The file goes with the job, however that ends.
    ///
    /// Member 0 creates the file under a temporary name (`.scratch.….part`) and removes the name when all members have it open. Only a kill between
    /// the two leaves it. All members must see the folder. On NFS, members of other machines cannot use a file without a name.
    ///
    /// # Errors
    /// Those of [`create`](Self::create).
    #[track_caller]
    pub fn scratch<I>(group: &(impl AsRef<Group> + ?Sized), folder: impl AsRef<Path>, shape: I) -> Result<Self>
    where
        I: IntoDimension<Dim = D>,
    {
        located(move || Self::nameless(group.as_ref(), folder.as_ref(), shape.into_dimension(), None))
    }

    /// As [`scratch`](Self::scratch), with each tile of this shape in one piece of the file. A patch of whole tiles is then read in few long
    /// runs.
    ///
    /// # Errors
    /// Those of [`create`](Self::create); a tile with another number of axes, or without elements.
    #[track_caller]
    pub fn scratch_tiled<I>(
        group: &(impl AsRef<Group> + ?Sized),
        folder: impl AsRef<Path>,
        shape: I,
        tile: impl AsRef<[usize]>,
    ) -> Result<Self>
    where
        I: IntoDimension<Dim = D>,
    {
        located(move || Self::nameless(group.as_ref(), folder.as_ref(), shape.into_dimension(), Some(tile.as_ref())))
    }

    fn nameless(group: &Group, folder: &Path, shape: D, tile: Option<&[usize]>) -> Result<Self> {
        let visit = Visit { group, operation: "scratch", path: folder };
        settle(&visit, &[shape.slice(), tile.unwrap_or_default()].concat())?;
        let counts = |tile: &[usize]| shape.slice().iter().zip(tile).map(|(n, tile)| n.div_ceil(*tile)).collect::<Vec<_>>();
        let is_wrong = |tile: &[usize]| {
            let all = || Variable::new("", Kind::of::<T>(), &[&counts(tile)[..], tile].concat()).bytes();
            tile.len() != shape.ndim() || tile.contains(&0) || all().is_none()
        };
        if let Some(tile) = tile.filter(|tile| is_wrong(tile)) {
            return Err(Error::argument(
                "scratch",
                format_args!("tiles of shape {tile:?} in an array of shape {:?}", shape.slice()),
            ));
        }
        let kind = Kind::of::<T>();
        let placed = visit.first(|| {
            let path = unfinished(folder, "scratch")?;
            let tiles = tile.map(|tile| counts(tile).iter().product::<usize>());
            let in_file = match (tile, tiles) {
                (Some(tile), Some(tiles)) => [&[tiles], tile].concat(),
                _ => shape.slice().to_vec(),
            };
            let mut placed = space::new_file(&path, || raw::create(&path, &Variable::new("", kind, &in_file)))?;
            placed.shape = shape.slice().to_vec();
            if let (Some(tile), Some(tiles)) = (tile, tiles) {
                let bytes = placed.bytes(tile) as u64;
                let begins = (0..tiles as u64).map(|number| number * bytes).collect();
                placed.place = Place::Chunks { file: path, chunk: tile.to_vec(), begins };
            }
            Ok(placed)
        })?;
        let file = placed.file().map(Path::to_owned);
        let opened = Self::opened(&visit, shape, placed, true);
        let removed = file.filter(|_| group.member() == 0).map_or(Ok(()), std::fs::remove_file);
        let array = opened?;
        visit.agree(removed.map_err(Failure::System))?;
        Ok(array)
    }

    /// Opens the array of a file for reading and writing. Collective. The file must hold one array; that of a `.raw` file has one axis.
    ///
    /// # Errors
    /// A file that is not there, or may not be read and written; another element type or number of axes; several arrays; numbers that begin with their
    /// most significant byte; members that name different files; a system error on any member, reported on all; the end of the job.
    #[doc(alias = "DRA_Open")]
    #[track_caller]
    pub fn open(group: &(impl AsRef<Group> + ?Sized), path: impl AsRef<Path>) -> Result<Self> {
        located(|| Self::open_for("open", group.as_ref(), path.as_ref(), true))
    }

    /// As [`open`](Self::open), for reading only.
    ///
    /// # Errors
    /// Those of [`open`](Self::open), but for files that may not be written.
    #[track_caller]
    pub fn open_read_only(group: &(impl AsRef<Group> + ?Sized), path: impl AsRef<Path>) -> Result<Self> {
        located(|| Self::open_for("open_read_only", group.as_ref(), path.as_ref(), false))
    }

    fn open_for(operation: &'static str, group: &Group, path: &Path, writes: bool) -> Result<Self> {
        let file = FileReader::open_for(operation, group, path)?;
        let visit = Visit { group, operation, path };
        let (variable, placed) = file.find(&visit, "")?;
        let kind = Kind::of::<T>();
        // A raw file has as many elements as its bytes are.
        let elements = [variable.bytes().unwrap_or(0) as usize / kind.size().max(1)];
        let placed = file.checked(&visit, variable, placed, kind, &elements)?;
        let axes = placed.shape.len();
        if D::NDIM.is_some_and(|expected| expected != axes) {
            let expected = D::NDIM.unwrap_or(axes);
            return Err(visit.format(format!("has shape {:?}, {axes} axes; the array has {expected}", variable.shape())));
        }
        if writes && placed.is_swapped {
            return Err(visit.format("has numbers that begin with their most significant byte, and can only be read".into()));
        }
        if writes && placed.is_encoded() {
            return Err(visit
                .format("has compressed chunks, which members cannot change at the same time; open it for reading only".into()));
        }
        let mut extents = D::zeros(axes);
        extents.slice_mut().copy_from_slice(&axes_of(&placed.shape, placed.is_reversed));
        Self::opened(&visit, extents, placed, writes)
    }

    /// Opens the files on each member.
    fn opened(visit: &Visit<'_>, extents: D, placed: Placed, writes: bool) -> Result<Self> {
        let group = visit.group;
        let tile = placed.chunk().map_or_else(|| tile(&placed.shape, STAGE / placed.kind.size().max(1)), <[usize]>::to_vec);
        let (mine, opened) = match placed.open(writes) {
            Ok(opened) => (Ok(()), Some(opened)),
            Err(failure) => (Err(failure), None),
        };
        visit.agree(mine)?;
        let opened = opened.ok_or_else(|| visit.system(io::ErrorKind::NotFound.into()))?;
        let locks = writes.then(|| Locks::with_count(group, LOCKS * group.size())).transpose()?;
        let path = visit.path.to_owned();
        Ok(DiskArray { group: group.clone(), path, extents, opened, tile, locks, memory: MEMORY, element: PhantomData })
    }

    /// Sets the bytes that a member holds besides its stage during a transposition; 64 MiB unless you call this.
    #[must_use]
    pub fn with_memory(self, bytes: usize) -> Self {
        DiskArray { memory: bytes, ..self }
    }
}

/// Members name one file and one shape.
fn settle(visit: &Visit<'_>, numbers: &[usize]) -> Result<()> {
    let mut parts = vec![text_fingerprint(visit.operation), text_fingerprint(&visit.path.to_string_lossy())];
    parts.extend(numbers.iter().map(|&number| number as u64));
    visit.group.settle(Op::File, fingerprint(&parts))
}

/// The shape of a box of at most `most` elements that is one run of the file.
fn tile(shape: &[usize], most: usize) -> Vec<usize> {
    let (mut tile, mut left) = (vec![1; shape.len()], most.max(1));
    for (tile, &extent) in tile.iter_mut().zip(shape).rev() {
        *tile = extent.clamp(1, left);
        left = if *tile < extent { 1 } else { left / *tile };
    }
    tile
}
