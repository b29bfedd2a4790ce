//! Gets, puts and sums of patches, and collective copies.

use ndarray::{Array, ArrayView, ArrayViewD, ArrayViewMut, ArrayViewMutD, Axis, Dimension, IxDyn, Slice, Zip};

use super::{
    DiskArray,
    section::{Section, in_file},
};
use crate::{
    algebra::{IntoOperand, PatchMut},
    calls::located,
    element::Additive,
    error::{Error, Result},
    file::{
        erased::{Area, Erased, axes_of, check_in},
        kind::FileElement,
        road::{STAGE, Share, Way, Window},
        runs::for_each_chunk,
    },
    index::{IntoPatch, Patch, PatchError, Selection},
    sync::{Op, fingerprint, text_fingerprint},
};

/// # Patches
impl<T: FileElement, D: Dimension> DiskArray<T, D> {
    /// Reads a patch into the caller's view, which may have any strides. One-sided; complete on return. Patches and views are those of
    /// [`GlobalArray::get_into`](crate::GlobalArray::get_into).
    ///
    /// # Errors
    /// A patch outside the array; a view of the wrong shape; a system error.
    ///
    /// # Source
    /// GA: `NDRA_Read_section`, for one process.
    #[track_caller]
    pub fn get_into<'v, P: IntoPatch<D>>(&self, patch: P, to: impl Into<ArrayViewMut<'v, T, P::Output>>) -> Result<()> {
        located(move || {
            let selection = self.select("get_into", patch)?;
            let to = to.into();
            self.check_shape::<P::Output>("get_into", &selection, to.shape())?;
            self.get_selection("get_into", &selection, to)
        })
    }

    /// Reads a patch into a new array. One-sided; complete on return.
    ///
    /// # Errors
    /// Same as [`get_into`](Self::get_into).
    #[track_caller]
    pub fn get<P: IntoPatch<D>>(&self, patch: P) -> Result<Array<T, P::Output>> {
        located(move || {
            let selection = self.select("get", patch)?;
            let mut array = Array::from_elem(selection.kept.shape::<P::Output, D>(&selection.patch), T::zeroed());
            self.get_selection("get", &selection, array.view_mut())?;
            Ok(array)
        })
    }

    /// Writes the caller's view, which may have any strides, into a patch. One-sided. On return the view may be reused; the type says when
    /// others see the elements.
    ///
    /// # Errors
    /// A patch outside the array; a view of the wrong shape; an array that is open for reading only; a system error, such as a full disk.
    #[track_caller]
    pub fn put<'v, P: IntoPatch<D>>(&self, patch: P, from: impl Into<ArrayView<'v, T, P::Output>>) -> Result<()> {
        located(move || {
            const OPERATION: &str = "put";
            self.writable(OPERATION)?;
            let selection = self.select(OPERATION, patch)?;
            let from = from.into();
            self.check_shape::<P::Output>(OPERATION, &selection, from.shape())?;
            let is_reversed = self.is_reversed();
            let (from, mut stage) = (in_file(from, &selection, is_reversed), Vec::new());
            Section::of(&selection.patch, is_reversed).for_each_box(most::<T>(), &mut |at, there| {
                self.write_box(OPERATION, there, from.slice_each_axis(|axis| positions(at, axis.axis)), &mut stage)
            })
        })
    }

    /// Adds `alpha` times the caller's view to a patch. One-sided; atomic for each element with respect to other accumulates, as
    /// [`GlobalArray::accumulate`](crate::GlobalArray::accumulate). An accumulate and a put of one element at the same time give an unspecified
    /// value.
    ///
    /// # Errors
    /// Same as [`put`](Self::put); the end of the job.
    #[track_caller]
    pub fn accumulate<'v, P: IntoPatch<D>>(
        &self,
        patch: P,
        alpha: T::Scale,
        from: impl Into<ArrayView<'v, T, P::Output>>,
    ) -> Result<()>
    where
        T: Additive,
    {
        located(move || {
            const OPERATION: &str = "accumulate";
            let locks = self.writable(OPERATION)?;
            let selection = self.select(OPERATION, patch)?;
            let from = from.into();
            self.check_shape::<P::Output>(OPERATION, &selection, from.shape())?;
            let is_reversed = self.is_reversed();
            let (from, mut stage) = (in_file(from, &selection, is_reversed), Vec::new());
            Section::of(&selection.patch, is_reversed).for_each_box(most::<T>(), &mut |at, there| {
                let from = from.slice_each_axis(|axis| positions(at, axis.axis));
                let shape = &self.opened.placed().shape;
                for_each_chunk(shape, &self.tile, &there.start, &there.count, |number, _, inside, count| {
                    let start = there.start.iter().zip(inside).map(|(start, inside)| start + inside).collect();
                    let (area, inside) =
                        (Area { start, count: count.to_vec() }, Area { start: inside.to_vec(), count: count.to_vec() });
                    let guard = locks.lock(number % locks.len())?;
                    let mut sums = self.read_box(OPERATION, &area, &mut stage)?;
                    let from = from.slice_each_axis(|axis| positions(&inside, axis.axis));
                    Zip::from(&mut sums).and(&from).for_each(|sum, &x| *sum = sum.plus(x.scaled(alpha)));
                    let sums = stage[..count.iter().product()].as_ref();
                    self.write_bytes(OPERATION, &area, sums)?;
                    guard.unlock()
                })
            })
        })
    }

    fn get_selection<Out: Dimension>(
        &self,
        operation: &'static str,
        selection: &Selection<D>,
        to: ArrayViewMut<'_, T, Out>,
    ) -> Result<()> {
        let is_reversed = self.is_reversed();
        let (mut to, mut stage) = (in_file(to, selection, is_reversed), Vec::new());
        let (section, every) = Section::of(&selection.patch, is_reversed).filled_up(most::<T>());
        section.for_each_box(most::<T>(), &mut |at, there| {
            let last = there.count.len().wrapping_sub(1);
            let skips = |axis: Axis| every > 1 && axis.index() == last;
            let mut to = to.slice_each_axis_mut(|axis| if skips(axis.axis) { Slice::from(..) } else { positions(at, axis.axis) });
            if let Some(to) = to.as_slice_mut().filter(|_| every == 1) {
                return self.visit(operation).agreed(self.opened.read(&there.start, &there.count, bytemuck::cast_slice_mut(to)));
            }
            let elements = self.read_box(operation, there, &mut stage)?;
            let step = |axis: Axis| Slice::new(0, None, if skips(axis) { every as isize } else { 1 });
            to.assign(&elements.slice_each_axis(|axis| step(axis.axis)));
            Ok(())
        })
    }

    /// Reads a box of the file into the stage.
    fn read_box<'s>(&self, operation: &'static str, area: &Area, stage: &'s mut Vec<T>) -> Result<ArrayViewMutD<'s, T>> {
        let len = area.count.iter().product();
        if stage.len() < len {
            stage.resize(len, T::zeroed());
        }
        let elements = &mut stage[..len];
        let read = self.opened.read(&area.start, &area.count, bytemuck::cast_slice_mut(elements));
        self.visit(operation).agreed(read)?;
        Ok(ArrayViewMutD::from_shape(IxDyn(&area.count), elements).expect("a box of as many elements"))
    }

    fn write_box(&self, operation: &'static str, area: &Area, from: ArrayViewD<'_, T>, stage: &mut Vec<T>) -> Result<()> {
        if let Some(elements) = from.as_slice() {
            return self.write_bytes(operation, area, elements);
        }
        stage.clear();
        stage.extend(from.iter());
        self.write_bytes(operation, area, stage)
    }

    fn write_bytes(&self, operation: &'static str, area: &Area, elements: &[T]) -> Result<()> {
        self.visit(operation).agreed(self.opened.write(&area.start, &area.count, bytemuck::cast_slice(elements)))
    }

    pub(super) fn is_reversed(&self) -> bool {
        self.opened.placed().is_reversed
    }

    fn select<P: IntoPatch<D>>(&self, operation: &'static str, patch: P) -> Result<Selection<D>> {
        patch.into_patch(&self.extents).map_err(|source| self.patch_error(operation, source))
    }

    fn patch_error(&self, operation: &'static str, source: PatchError) -> Error {
        Error::Patch { array: self.name(), operation: operation.into(), extents: self.shape().to_vec(), source }
    }

    fn check_shape<Out: Dimension>(&self, operation: &'static str, selection: &Selection<D>, buffer: &[usize]) -> Result<()> {
        let patch = selection.kept.shape::<Out, D>(&selection.patch);
        if patch.slice() == buffer { Ok(()) } else { Err(self.shape_error(operation, patch.slice(), buffer)) }
    }

    pub(super) fn shape_error(&self, operation: &'static str, patch: &[usize], buffer: &[usize]) -> Error {
        Error::Shape { array: self.name(), operation: operation.into(), patch: patch.to_vec(), buffer: buffer.to_vec() }
    }
}

/// # Collective copies
impl<T: FileElement, D: Dimension> DiskArray<T, D> {
    /// Fills an array or a patch in memory with a patch of this array, which has no steps: `disk.read(s![3, ..], a.at_mut(..))`. Collective. Each member
    /// reads a part of the file in long runs.
    ///
    /// # Errors
    /// A patch outside its array, or with steps; another shape; an array of another group; a system error on any member, reported on all; the end of
    /// the job. If reading fails, the contents are unspecified.
    #[track_caller]
    pub fn read<P: IntoPatch<D>, S: Dimension>(&self, patch: P, target: PatchMut<'_, T, P::Output, S>) -> Result<()> {
        located(move || {
            let selection = self.select("read", patch)?;
            self.copy("read", Way::FromFile, &selection, &target.resolve("read")?)
        })
    }

    /// Writes an array or a patch in memory to a patch of this array, which has no steps: `disk.write(s![3, ..], &a)`. Collective. Each member writes a
    /// part of the file in long runs. When it returns, all members can read the elements; a [`sync`](Self::sync) brings them to the disk.
    ///
    /// # Errors
    /// Those of [`read`](Self::read); an array that is open for reading only.
    #[track_caller]
    pub fn write<P: IntoPatch<D>>(&self, patch: P, source: impl IntoOperand<T, P::Output>) -> Result<()> {
        located(move || {
            self.writable("write")?;
            let selection = self.select("write", patch)?;
            self.copy("write", Way::ToFile, &selection, &source.into_operand().resolve("write")?)
        })
    }

    fn copy(&self, operation: &'static str, way: Way, selection: &Selection<D>, array: &dyn Erased) -> Result<()> {
        check_in(operation, array, &self.group)?;
        let visit = self.visit(operation);
        let Selection { patch, kept } = selection;
        if !patch.is_unit_step() {
            return Err(Error::argument(operation, "patches of collective copies have no steps"));
        }
        let axes = [patch.start().slice(), patch.count().slice()];
        let placed = self.opened.placed();
        let selection = Selection { patch: Patch::block(IxDyn(axes[0]), IxDyn(axes[1])), kept: *kept };
        let window = Window::of(placed, Some(&selection));
        let shape = axes_of(&window.shape, placed.is_reversed);
        if shape != array.shape() {
            return Err(self.shape_error(operation, &shape, &array.shape()));
        }
        let mut parts = vec![text_fingerprint(operation), text_fingerprint(&self.name()), array.fingerprint()];
        parts.extend(axes.concat().iter().map(|&number| number as u64));
        self.group.settle(Op::File, fingerprint(&parts))?;
        let share = Share::of_window(&self.group, array, placed, window)?;
        visit.agree(share.go_in(&self.opened, way, |_| ()))?;
        if way == Way::FromFile { self.group.sync() } else { Ok(()) }
    }
}

/// Elements that are moved at once.
fn most<T>() -> usize {
    STAGE / size_of::<T>().max(1)
}

fn positions(area: &Area, Axis(axis): Axis) -> Slice {
    Slice::from(area.start[axis]..area.start[axis] + area.count[axis])
}
