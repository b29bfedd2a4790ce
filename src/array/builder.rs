//! Creation of arrays.

use std::{any::type_name, sync::Arc};

use ndarray::{Array, Dimension, IntoDimension};

use super::{GlobalArray, ghost::Plan};
use crate::{
    calls::located,
    distribution::{Boundary, Distribution, DistributionError, Ghosts, Order},
    element::{Additive, Element},
    error::{Error, Result},
    memory::heap::ALIGN,
    sync::{Group, Op, fingerprint, text_fingerprint},
};

#[derive(Clone, Debug)]
enum Layout {
    Block { least: Option<Vec<usize>> },
    BlockCyclic { block: Vec<usize> },
    Irregular { cuts: Vec<Vec<usize>> },
    Tiled { tile: Vec<usize> },
    TiledIrregular { cuts: Vec<Vec<usize>> },
}

/// The description of a new array; [`create`](Self::create) creates it.
///
/// Defaults: one block per member, on a process grid that suits the extents; parts in row-major order; unspecified contents.
#[derive(Clone, Debug)]
#[must_use = "nothing is created before `create`"]
pub struct Builder<'g, T, D> {
    group: &'g Group,
    extents: D,
    layout: Layout,
    order: Order,
    name: Option<String>,
    first: Option<T>,
    grid: Option<Vec<usize>>,
    owners: Option<Vec<usize>>,
    /// Widths of the ghost cells.
    ghosts: Option<Vec<usize>>,
    boundaries: Option<Vec<Boundary>>,
    corners: bool,
    hollow: bool,
}

/// # Creation
// The element is a bound of the methods: so the compiler says what is wrong with it, and not that there is no such method.
impl<T, D: Dimension> GlobalArray<T, D> {
    /// Starts the description of an array over all members of a group. (A job is its world group.)
    #[doc(alias("NGA_Create", "NGA_Create_config", "GA_Create_handle", "GA_Set_data", "GA_Set_pgroup"))]
    pub fn builder<I: IntoDimension<Dim = D>>(group: &(impl AsRef<Group> + ?Sized), extents: I) -> Builder<'_, T, D>
    where
        T: Element,
    {
        Builder {
            group: group.as_ref(),
            extents: extents.into_dimension(),
            layout: Layout::Block { least: None },
            order: Order::RowMajor,
            name: None,
            first: None,
            grid: None,
            owners: None,
            ghosts: None,
            boundaries: None,
            corners: true,
            hollow: false,
        }
    }

    /// A new array of zeros with the default distribution. Collective.
    ///
    /// # Errors
    /// Same as [`Builder::create`].
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let a = GlobalArray2::<f64>::zeros(job, [4, 3])?;
    ///     let b = GlobalArray2::<f64>::from_fn(job, [4, 3], |(i, j)| (10 * i + j) as f64)?;
    ///     let c = GlobalArray2::from_member(job, 0, || Ok::<_, Error>(Array2::<f64>::eye(3)))?;
    ///     assert_eq!((a.load([3, 2])?, b.load([3, 2])?, c.load([2, 2])?), (0.0, 32.0, 1.0));
    ///     let row = b.get_on(1, s![2, ..])?; // on member 1 alone
    ///     assert_eq!(row, (job.rank() == 1).then(|| Array1::from(vec![20.0, 21.0, 22.0])));
    ///     job.sync()
    /// })
    /// # }
    /// ```
    #[track_caller]
    pub fn zeros<I: IntoDimension<Dim = D>>(group: &(impl AsRef<Group> + ?Sized), extents: I) -> Result<Self>
    where
        T: Additive,
    {
        located(move || Self::builder(group, extents).zeros().create())
    }

    /// A new array with the default distribution and the elements `f(index)`, with the index as in [`map_indexed`](Self::map_indexed).
    /// Collective; each member calls `f` for the elements that it owns.
    ///
    /// # Errors
    /// Same as [`Builder::create`].
    #[doc(alias = "from_shape_fn")]
    #[track_caller]
    pub fn from_fn<I: IntoDimension<Dim = D>>(
        group: &(impl AsRef<Group> + ?Sized),
        extents: I,
        mut f: impl FnMut(D::Pattern) -> T,
    ) -> Result<Self>
    where
        T: Element,
    {
        located(move || {
            let mut array = Self::builder(group, extents).create()?;
            array.map_indexed(|index, _| f(index))?;
            Ok(array)
        })
    }

    /// A new array with the default distribution and the shape and contents of an array that one member has. Collective; only that member
    /// calls `f`, and if it fails, all members get the error.
    ///
    /// # Errors
    /// The error of `f`, as in [`Group::from_member`]; the errors of [`Builder::create`].
    #[doc(alias = "from_rank")]
    #[track_caller]
    pub fn from_member<E>(
        group: &(impl AsRef<Group> + ?Sized),
        member: usize,
        f: impl FnOnce() -> Result<Array<T, D>, E>,
    ) -> Result<Self, E>
    where
        T: Element,
        E: From<Error> + std::fmt::Display,
    {
        let (group, mut mine) = (group.as_ref(), None);
        let shape = group.from_member(member, || {
            let array = f()?;
            Ok::<_, E>(mine.insert(array).shape().to_vec())
        })?;
        let created = located(|| {
            let mut extents = D::zeros(shape.len());
            extents.slice_mut().copy_from_slice(&shape);
            let array = Self::builder(group, extents).create()?;
            let put = mine.map_or(Ok(()), |mine| array.put(.., &mine)).and_then(|()| group.fence_all(Op::Algebra));
            array.settle("from_member", array.id, put)?;
            Ok(array)
        });
        Ok(created?)
    }
}

impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// A new array with the same extents and distribution. The contents are not copied. Collective.
    ///
    /// # Errors
    /// Same as [`Builder::create`].
    #[doc(alias = "GA_Duplicate")]
    #[track_caller]
    pub fn duplicate(&self, name: &str) -> Result<Self> {
        located(move || Self::create(&self.group, self.distribution.clone(), name.into(), None, self.hollow))
    }

    /// A `hollow` array has no contents if the conduit skips.
    fn create(group: &Group, distribution: Distribution<D>, name: Arc<str>, first: Option<T>, hollow: bool) -> Result<Self> {
        let inner = &group.inner;
        let part_len = distribution.max_part_len();
        let empty = hollow && inner.engine().conduit().skips();
        let own_len = if empty { 0 } else { distribution.part_len(inner.me()) };
        let too_large = || Error::HeapFull {
            operation: "create".into(),
            what: format!("array \"{name}\""),
            asked: u64::MAX,
            available: 0,
            heap: inner.engine().conduit().segment_len() as u64,
        };
        if size_of::<T>() == 0 || align_of::<T>() > ALIGN {
            let (size, align) = (size_of::<T>(), align_of::<T>());
            let what = format!(
                "array \"{name}\": elements of {size} bytes aligned to {align}; from 1 byte and up to {ALIGN} are possible"
            );
            return Err(Error::Argument { operation: "create".into(), what });
        }
        let bytes = |len: usize| len.checked_mul(size_of::<T>()).ok_or_else(too_large);
        let call = fingerprint(&[
            distribution.fingerprint(),
            size_of::<T>() as u64,
            text_fingerprint(type_name::<T>()),
            text_fingerprint(&name),
        ]);
        let what = || format!("array \"{name}\" of {:?} elements of {} bytes", distribution.shape(), size_of::<T>());
        let (offset, id) = inner.job.allocate(group, bytes(part_len)?, bytes(own_len)?, Op::Create, call, &what)?;
        if empty {
            inner.engine().conduit().set_contents(offset..offset + bytes(part_len)?, false);
        }
        let array = GlobalArray {
            extents: distribution.extents().clone(),
            ghost_plan: Plan::new::<T>(&distribution, group),
            distribution,
            offset,
            placement: inner.segments.placement(offset, part_len),
            group: group.clone(),
            id,
            name,
            poisoned: false,
            destroyed: false,
            hollow,
        };
        if let Some(value) = first.filter(|_| !empty) {
            array.fill_own(value);
            // Nobody touches it before everybody has filled its part.
            group.barrier()?;
        }
        Ok(array)
    }
}

impl<T: Element, D: Dimension> Builder<'_, T, D> {
    /// The name, used in messages. The default is `GlobalArray` and the extents.
    #[doc(alias = "GA_Set_array_name")]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The program does not need the contents where [`simulation::Simulation::skips`](crate::simulation::Simulation::skips) says so: what is read of the array is then meaningless, and
    /// puts and gets take their time but move nothing. The array uses memory only for what is touched in an epoch, by atomic operations, or by
    /// operations on the whole array, and that memory is not checked against what is left. Elsewhere this changes nothing.
    pub fn hollow(mut self) -> Self {
        self.hollow = true;
        self
    }

    /// One block per member, with edges of at least these lengths. If an edge equals the extent, that axis is not cut.
    #[doc(alias = "GA_Set_chunk")]
    pub fn min_block(mut self, edges: impl AsRef<[usize]>) -> Self {
        self.layout = Layout::Block { least: Some(edges.as_ref().to_vec()) };
        self
    }

    /// Blocks of this shape, dealt out cyclically to the process grid along each axis, as in ScaLAPACK.
    #[doc(alias("GA_Set_block_cyclic", "GA_Set_block_cyclic_proc_grid"))]
    pub fn block_cyclic(mut self, block: impl AsRef<[usize]>) -> Self {
        self.layout = Layout::BlockCyclic { block: block.as_ref().to_vec() };
        self
    }

    /// One block per member, with cuts of your choice: for each axis, the first index of each block, ascending from 0.
    #[doc(alias("NGA_Create_irreg", "NGA_Create_irreg_config", "GA_Set_irreg_distr"))]
    pub fn irregular(mut self, cuts: impl Into<Vec<Vec<usize>>>) -> Self {
        self.layout = Layout::Irregular { cuts: cuts.into() };
        self
    }

    /// Tiles of this shape, dealt out cyclically to the process grid along each axis. Each tile is contiguous in its owner's memory,
    /// so a part is not one dense array.
    ///
    /// # Source
    /// GA: `GA_Set_tiled_proc_grid`.
    #[doc(alias = "GA_Set_tiled_proc_grid")]
    pub fn tiled(mut self, tile: impl AsRef<[usize]>) -> Self {
        self.layout = Layout::Tiled { tile: tile.as_ref().to_vec() };
        self
    }

    /// Tiles with cuts of your choice: for each axis, the first index of each tile, ascending from 0. They are dealt out and stored as
    /// with [`tiled`](Self::tiled).
    ///
    /// # Source
    /// GA: `GA_Set_tiled_irreg_proc_grid`.
    #[doc(alias = "GA_Set_tiled_irreg_proc_grid")]
    pub fn tiled_irregular(mut self, cuts: impl Into<Vec<Vec<usize>>>) -> Self {
        self.layout = Layout::TiledIrregular { cuts: cuts.into() };
        self
    }

    /// Restricts ownership to these members of the group: a list or a range, in the order of the process grid. Works with any layout.
    /// All members of the group may still use the array, and take part in collective calls.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(4).network("threads").run(|job| {
    ///     let a = GlobalArray::<f64, Ix1>::builder(job, [100]).restrict(1..3).fill(1.0).create()?;
    ///     assert_eq!((a.owner([0])?, a.owner([99])?), (1, 2));
    ///     assert_eq!(a.blocks(3).count(), 0);
    ///     assert_eq!(a.sum()?, 100.0);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// GA: `GA_Set_restricted`, `GA_Set_restricted_range`.
    #[doc(alias("GA_Set_restricted", "GA_Set_restricted_range"))]
    pub fn restrict(mut self, members: impl IntoIterator<Item = usize>) -> Self {
        self.owners = Some(members.into_iter().collect());
        self
    }

    /// The process grid: the number of members along each axis. Members are arranged in row-major order.
    pub fn grid(mut self, grid: impl AsRef<[usize]>) -> Self {
        self.grid = Some(grid.as_ref().to_vec());
        self
    }

    /// Order of the elements in each member's part.
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Ghost cells around each member's block: for each axis, how many on either side. The layout must have one block per member;
    /// a block-cyclic or tiled array cannot have ghost cells.
    ///
    /// The widths may exceed the blocks, or even the array. [`update_ghosts`](GlobalArray::update_ghosts) fills them, and an
    /// epoch of [`ghosts`](GlobalArray::ghosts) reads them.
    ///
    /// # Examples
    /// One sweep of Jacobi's method on a square whose boundary values are 1:
    /// ```
    /// use global_arrays::{Boundary, prelude::*};
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let square = || GlobalArray::<f64, Ix2>::builder(job, [6, 6]).ghosts([1, 1]).boundaries([Boundary::Open; 2]);
    ///     let (mut x, mut y) = (square().fill(1.0).create()?, square().fill(1.0).create()?);
    ///     x.zero()?; // the elements; the ghost cells stay as they are
    ///     job.epoch((x.ghosts(), y.ghosts_mut()), |(x, mut y)| {
    ///         let x = x.view();
    ///         for ((i, j), y) in y.interior_mut().indexed_iter_mut() {
    ///             let (i, j) = (i + 1, j + 1); // the view begins one cell before the block
    ///             *y = 0.25 * (x[[i - 1, j]] + x[[i + 1, j]] + x[[i, j - 1]] + x[[i, j + 1]]);
    ///         }
    ///     })?;
    ///     assert_eq!((y.load([0, 0])?, y.load([0, 3])?, y.load([3, 3])?), (0.5, 0.25, 0.0));
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// GA: `NGA_Create_ghosts`, `GA_Set_ghosts`.
    #[doc(alias(
        "NGA_Create_ghosts",
        "NGA_Create_ghosts_config",
        "NGA_Create_ghosts_irreg",
        "NGA_Create_ghosts_irreg_config",
        "GA_Set_ghosts"
    ))]
    pub fn ghosts(mut self, widths: impl AsRef<[usize]>) -> Self {
        self.ghosts = Some(widths.as_ref().to_vec());
        self
    }

    /// What ghost cells beyond the array's edges represent, for each axis: the other end (the default) or nothing.
    pub fn boundaries(mut self, boundaries: impl AsRef<[Boundary]>) -> Self {
        self.boundaries = Some(boundaries.as_ref().to_vec());
        self
    }

    /// Whether updates fill the ghost cells that lie beyond the block on more than one axis. The default is `true`; a stencil along
    /// the axes does not need them.
    ///
    /// # Source
    /// GA: `NGA_Set_ghost_corner_flag`.
    #[doc(alias = "GA_Set_ghost_corner_flag")]
    pub fn corners(mut self, filled: bool) -> Self {
        self.corners = filled;
        self
    }

    /// Sets all elements of the new array, and its ghost cells.
    pub fn fill(mut self, value: T) -> Self {
        self.first = Some(value);
        self
    }

    /// Sets all elements of the new array, and its ghost cells, to zero.
    pub fn zeros(self) -> Self
    where
        T: Additive,
    {
        self.fill(T::ZERO)
    }

    /// Creates the array. Collective over the group.
    ///
    /// Contents are unspecified (initialized, but meaningless) unless you call [`fill`](Self::fill) or [`zeros`](Self::zeros) first.
    ///
    /// # Errors
    /// An impossible distribution; more than 64 axes; members that describe different arrays; [`Error::OutOfMemory`] with the bytes
    /// needed and available, on all members and with nothing allocated; the end of the job.
    #[doc(alias = "GA_Allocate")]
    #[track_caller]
    pub fn create(self) -> Result<GlobalArray<T, D>> {
        located(move || {
            let extents = &self.extents;
            let members = self.owners.as_ref().map_or(self.group.size(), Vec::len);
            let name = self.name.clone().unwrap_or_else(|| format!("GlobalArray{:?}", extents.slice()));
            let grid = self.grid.as_deref();
            let distribution = match (&self.layout, grid) {
                (Layout::Block { .. }, Some(grid)) => Distribution::block_with_grid(extents, grid, self.order),
                (Layout::Block { least }, None) => Distribution::block(extents, members, least.as_deref(), self.order),
                (Layout::BlockCyclic { block }, grid) => Distribution::block_cyclic(extents, block, members, grid, self.order),
                (Layout::Irregular { cuts }, _) => Distribution::irregular(extents, cuts, members, self.order),
                (Layout::Tiled { tile }, grid) => Distribution::tiled(extents, tile, members, grid, self.order),
                (Layout::TiledIrregular { cuts }, grid) => {
                    Distribution::tiled_irregular(extents, cuts, members, grid, self.order)
                }
            };
            let impossible = |source| Error::Distribution { array: name.clone(), source, operation: "create".into() };
            let distribution = distribution.and_then(|distribution| self.pad(distribution)).map_err(impossible)?;
            if distribution.members() != members {
                return Err(Error::argument(
                    "create",
                    format_args!("the process grid {:?} has {} places for {members} members", self.grid, distribution.members()),
                ));
            }
            let distribution = match &self.owners {
                Some(owners) => distribution.restricted(owners, self.group.size()).map_err(impossible)?,
                None => distribution,
            };
            GlobalArray::create(self.group, distribution, name.into(), self.first, self.hollow)
        })
    }

    fn pad(&self, distribution: Distribution<D>) -> Result<Distribution<D>, DistributionError> {
        let (Some(given), axes) = (&self.ghosts, self.extents.ndim()) else {
            let bare = self.boundaries.is_some() || !self.corners;
            return if bare { Err(DistributionError::NoGhosts) } else { Ok(distribution) };
        };
        if given.len() != axes {
            return Err(DistributionError::AxisCount { what: "ghost widths", given: given.len(), expected: axes });
        }
        let mut widths = D::zeros(axes);
        widths.slice_mut().copy_from_slice(given);
        let boundaries = self.boundaries.clone().unwrap_or_else(|| vec![Boundary::default(); axes]);
        distribution.with_ghosts(Ghosts { widths, boundaries, corners: self.corners })
    }
}
