//! Closures of a program on the threads of a rank, with the feature `rayon`.
//!
//! Each thread works on private copies of its own positions, as the sequential operations do. No two threads have the same position, and
//! no element depends on another one. So results are those of the sequential operations.

use ndarray::Dimension;

use super::{
    Elements, IntoOperand, Operand, PatchMut, PatchRef, buffer_elements,
    walk::{cut, piece_elements},
};
use crate::{array::GlobalArray, calls::located, distribution::Piece, element::Element, error::Result};

/// Pieces for each thread: the last ones are over at about the same time, whatever a closure costs.
const PIECES: usize = 8;

/// # Algebra, on the threads of a rank
impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// Replaces each element `x` by `f(x)`, like [`map`](Self::map), on the threads of [`pool`](crate::Group::pool). Collective; each member
    /// calls `f` for the elements that it owns, in unspecified order and from several threads at once. The elements become the same.
    ///
    /// A rank with one core calls `f` from its own thread. So it is in virtual time.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    ///
    /// # Panics
    /// If `f` does.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(1).network("threads").run(|job| {
    ///     let mut a = GlobalArray2::<f64>::builder(job, [400, 60]).fill(4.0).create()?;
    ///     let b = GlobalArray2::<f64>::builder(job, [400, 60]).fill(0.5).create()?;
    ///     a.par_map(f64::sqrt)?;
    ///     a.par_zip_with(&b, |x, y| x + y)?;
    ///     assert_eq!(a.sum()?, 2.5 * 24_000.0);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    #[track_caller]
    pub fn par_map(&mut self, f: impl Fn(T) -> T + Send + Sync) -> Result<()> {
        located(move || self.all().par_map(f))
    }

    /// Replaces each element `x` by `f(x, y)`, where `y` is the element of `a` at the same position, like [`zip_with`](Self::zip_with) on the
    /// threads of [`pool`](crate::Group::pool); otherwise like [`par_map`](Self::par_map). Collective. Threads fetch what they need of an
    /// `a` of another distribution.
    ///
    /// # Errors
    /// Same as [`zip_with`](Self::zip_with).
    ///
    /// # Panics
    /// If `f` does.
    #[doc(alias = "par_zip")]
    #[track_caller]
    pub fn par_zip_with<A: Element>(&mut self, a: impl IntoOperand<A, D>, f: impl Fn(T, A) -> T + Send + Sync) -> Result<()> {
        located(move || self.all().par_zip_with(a.into_operand(), f))
    }
}

impl<T: Element, D: Dimension, S: Dimension> PatchMut<'_, T, D, S> {
    /// Replaces each element `x` by `f(x)`; see [`GlobalArray::par_map`]. Collective.
    ///
    /// # Errors
    /// A patch outside the array; the errors of that method.
    ///
    /// # Panics
    /// If `f` does.
    #[track_caller]
    pub fn par_map(&mut self, f: impl Fn(T) -> T + Send + Sync) -> Result<()> {
        located(move || self.resolve("par_map")?.par_map(f))
    }

    /// Replaces each element `x` by `f(x, y)`; see [`GlobalArray::par_zip_with`]. Collective.
    ///
    /// # Errors
    /// A patch outside the array; the errors of that method.
    ///
    /// # Panics
    /// If `f` does.
    #[track_caller]
    pub fn par_zip_with<A: Element>(&mut self, a: impl IntoOperand<A, D>, f: impl Fn(T, A) -> T + Send + Sync) -> Result<()> {
        located(move || self.resolve("par_zip_with")?.par_zip_with(a.into_operand(), f))
    }
}

impl<T: Element, D: Dimension, S: Dimension> Operand<'_, T, D, S> {
    fn par_map(&self, f: impl Fn(T) -> T + Send + Sync) -> Result<()> {
        let section = self.array.enter("par_map", &[self.fingerprint()], Elements::Own)?;
        if !self.is_whole() {
            let mapped = self.share_own_boxes(buffer_elements::<T>(), |own| {
                let mut values = vec![T::zeroed(); own.count.size()];
                self.read_box(own, &mut self.box_view(&own.count, &mut values));
                values.iter_mut().for_each(|x| *x = f(*x));
                self.write_box(own, &self.box_view(&own.count, &mut values).view());
                Ok(())
            });
            return section.leave(mapped);
        }
        let most = buffer_elements::<T>();
        self.share_own_groups(2, self.fair_piece(), |runs| {
            let part = self.array.own_part();
            let mut buffer = vec![T::zeroed(); most.min(part.len())];
            for run in runs.iter().flat_map(|run| cut(run.clone(), most)) {
                let values = &mut buffer[..run.len()];
                part.read_slice(run.start, values);
                values.iter_mut().for_each(|x| *x = f(*x));
                part.write_slice(run.start, values);
            }
        });
        section.leave(Ok(()))
    }

    fn par_zip_with<A: Element, R: Dimension>(
        &self,
        a: PatchRef<'_, A, D, R>,
        f: impl Fn(T, A) -> T + Send + Sync,
    ) -> Result<()> {
        const OPERATION: &str = "par_zip_with";
        let a = a.resolve(OPERATION)?;
        self.check_operand(OPERATION, &a)?;
        let section = self.array.enter(OPERATION, &[self.fingerprint(), a.fingerprint()], self.uses(&a))?;
        let most = buffer_elements::<T>().min(buffer_elements::<A>());
        let zip = |values: &mut [T], others: &[A]| values.iter_mut().zip(others).for_each(|(x, y)| *x = f(*x, *y));
        if !self.matches(&a) {
            let zipped = self.share_own_boxes(most, |own| {
                let len = own.count.size();
                let (mut values, mut others) = (vec![T::zeroed(); len], vec![A::zeroed(); len]);
                self.read_box(own, &mut self.box_view(&own.count, &mut values));
                a.read(&own.start, &own.count, self.box_view(&own.count, &mut others))?;
                zip(&mut values, &others);
                self.write_box(own, &self.box_view(&own.count, &mut values).view());
                Ok(())
            });
            return section.leave(zipped);
        }
        self.array.streamed::<A>(self.array.own_part().len());
        self.share_own_groups(2, self.fair_piece(), |runs| {
            let (own, other) = (self.array.own_part(), a.array.own_part());
            let room = most.min(own.len());
            let (mut values, mut others) = (vec![T::zeroed(); room], vec![A::zeroed(); room]);
            for run in runs.iter().flat_map(|run| cut(run.clone(), most)) {
                let (values, others) = (&mut values[..run.len()], &mut others[..run.len()]);
                own.read_slice(run.start, values);
                other.read_slice(run.start, others);
                zip(values, others);
                own.write_slice(run.start, values);
            }
        });
        section.leave(Ok(()))
    }

    /// Elements of a piece, some for each thread even of a short part: a closure may cost much.
    fn fair_piece(&self) -> usize {
        let pieces = PIECES * self.array.group.inner.job.sharers();
        self.array.own_part().len().div_ceil(pieces).clamp(1, piece_elements::<T>())
    }

    /// As [`own_boxes`](Self::own_boxes), of at most `most` elements, of which several threads may have some at once.
    fn share_own_boxes(&self, most: usize, f: impl Fn(&Piece<D>) -> Result<()> + Send + Sync) -> Result<()> {
        let mut boxes = Vec::new();
        let pieces = PIECES * self.array.group.inner.job.sharers();
        let most = most.min(self.selection.patch.len().div_ceil(pieces * self.array.group.size())).max(1);
        let elements = self.own_boxes(self.edges(most), |own| {
            boxes.push(own.clone());
            Ok(())
        })?;
        self.array.streamed::<T>(2 * elements);
        self.array.group.inner.job.share(boxes.len(), |at| f(&boxes[at])).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Dim, Ix2, IxDyn, s};
    use rayon::prelude::*;

    use super::*;
    use crate::{Builder, Job, Launch, distribution::Order, ops};

    /// Each pool has several threads here. Elements are compared by their bits.
    fn on_ranks(body: impl Fn(&Job) -> Result<()> + Sync) {
        for network in ["threads", "threads:unmapped"] {
            for ranks in 1..=3 {
                Launch::new().ranks(ranks).network(network).run(&body).unwrap();
            }
        }
    }

    fn number(at: usize) -> f64 {
        (at as f64 * 0.37).sin() + 2.0
    }

    /// Parallel operations on an array of each layout, and sequential ones on private memory.
    fn check(job: &Job, shape: &[usize]) -> Result<()> {
        type Layout = fn(Builder<'_, f64, IxDyn>, usize) -> Builder<'_, f64, IxDyn>;
        let layouts: [Layout; 5] = [
            |array, _| array,
            |array, _| array.order(Order::ColumnMajor),
            |array, axes| array.block_cyclic(vec![7; axes]),
            |array, axes| array.tiled(vec![5; axes]).order(Order::ColumnMajor),
            |array, axes| array.ghosts(vec![1; axes]),
        ];
        let index = |position: &IxDyn| position.slice().iter().zip(shape).fold(0, |at, (i, n)| at * n + i);
        let make = |layout: Layout| {
            let mut array = layout(GlobalArray::<f64, IxDyn>::builder(job, shape.to_vec()), shape.len()).create()?;
            array.map_indexed(|at, _| number(index(&at)))?;
            Ok::<_, crate::Error>(array)
        };
        for layout in layouts {
            let (mut a, same, plain) = (make(layout)?, make(layout)?, make(layouts[0])?);
            let mut expected = a.get(..)?;
            job.sync()?;
            a.par_map(|x| x.sqrt() + 1.0)?;
            a.par_zip_with(&same, |x, y| x * y)?;
            a.par_zip_with(&plain, |x, y| x / (1.0 + y))?;
            expected.mapv_inplace(|x| (x.sqrt() + 1.0) * x / (1.0 + x));
            assert_eq!(a.get(..)?, expected);
            job.sync()?;
            let sum = a.sum()?;
            let own = |array: &GlobalArray<f64, IxDyn>| array.map_reduce(0.0, |x| x, ops::sum);
            assert_eq!(sum.to_bits(), own(&a)?.to_bits(), "by one thread and by several");
            a.scaled_add(0.5, &same)?;
            expected.zip_mut_with(&same.get(..)?, |x, y| *x += 0.5 * y);
            assert_eq!(a.get(..)?, expected);
            job.sync()?;
            let pool = job.pool()?;
            a.owner_epoch(|mut part| {
                let blocks = part.blocks().count();
                pool.install(|| {
                    part.par_blocks().for_each(|(block, mut view)| {
                        let start = block.patch.start().clone();
                        view.indexed_iter_mut().for_each(|(at, x)| {
                            let at: Vec<usize> = at.slice().iter().zip(start.slice()).map(|(i, first)| i + first).collect();
                            *x = -number(index(&IxDyn(&at)));
                        });
                    });
                    assert_eq!(part.par_blocks().count(), blocks);
                });
            })?;
            let elements = a.get(..)?;
            assert!(elements.indexed_iter().all(|(at, x)| *x == -number(index(&at))));
            job.sync()?;
        }
        Ok(())
    }

    #[test]
    fn parallel_operations_are_the_sequential_ones() {
        for shape in [&[1][..], &[0], &[20_011], &[100_003], &[13, 1], &[0, 5], &[61, 83], &[5, 7, 9]] {
            on_ranks(|job| check(job, shape));
        }
    }

    #[test]
    fn parallel_operations_on_patches() {
        on_ranks(|job| {
            let mut a = GlobalArray::<f64, Ix2>::from_fn(job, [40, 50], |(i, j)| number(50 * i + j))?;
            let b = GlobalArray::<f64, Ix2>::from_fn(job, [50, 40], |(i, j)| number(40 * i + j))?;
            let (mut expected, other) = (a.get(..)?, b.get(..)?);
            job.sync()?;
            a.at_mut(s![3..37;2, 5..]).par_map(|x| 1.0 / x)?;
            a.par_zip_with(b.t(), |x, y| x - y)?;
            a.at_mut(s![7, ..]).par_zip_with(b.at(s![.., 3]), |x, y| x * y)?;
            expected.slice_mut(s![3..37;2, 5..]).mapv_inplace(|x| 1.0 / x);
            expected -= &other.t();
            expected.row_mut(7).zip_mut_with(&other.column(3), |x, y| *x *= y);
            assert_eq!(a.get(..)?, expected);
            let shapes = a.par_zip_with(&b, |x, _| x);
            assert!(matches!(shapes, Err(crate::Error::Mismatch { .. })), "{:?}", Dim([40, 50]));
            job.sync()
        });
    }
}
