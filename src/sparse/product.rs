//! Products of a sparse matrix with vectors.
//!
//! What a member multiplies depends on where the vector's elements lie. So for each distribution that is met the matrix is split once: the
//! entries whose columns this member owns, which find their elements in its part, and the others, which find them in the *halo*, the
//! elements that a plan fetches. Each kind has its entries in the order of rows, with indices of 32 bits: the product reads 12 bytes for
//! each entry of `f64`, and memory is what limits it.
//!
//! A transposed product goes the same way backward: sums of own columns are written, sums of the halo are added by the plan.

use std::sync::{Arc, Mutex, PoisonError};

use ndarray::{ArrayView1, ArrayViewMut1, Ix1, s};

use super::SparseMatrix;
use crate::{
    array::{Elements, GatherPlan, GlobalArray},
    calls::located,
    element::Number,
    error::{Error, Result},
    memory::large_pages,
    sync::{Op, fingerprint},
};

/// Rows whose sums are written at a time: few enough for the first-level cache.
const CHUNK: usize = 1024;

/// A member's rows for vectors of one distribution.
pub(super) struct Split<T> {
    halo: GatherPlan<Ix1>,
    /// Of each row, the number of its entries whose columns are this member's.
    own_lengths: Vec<u32>,
    own: Entries<T>,
    /// The rows that have other entries, and the number of these.
    far_lengths: Vec<(u32, u32)>,
    far: Entries<T>,
    /// Room for the halo and for the sums of the rows of `far`: fresh memory would cost a fault for each page.
    room: Mutex<[Vec<T>; 2]>,
}

/// Entries of rows, one row after the other.
struct Entries<T> {
    /// Where the element of the vector lies, in the own part or in the halo.
    places: Vec<u32>,
    values: Vec<T>,
}

impl<T: Number> SparseMatrix<T> {
    /// `y = A x`. Collective; starts and ends with a sync. `x` and `y` may have any distributions; if `y` has the default one, each member
    /// writes its own elements. The first product with a distribution of `x` finds owners, which later ones know.
    ///
    /// # Errors
    /// Vectors of other lengths or over other ranks; a member with more than 2³² elements of `x`; a transfer that failed; the end of the
    /// job.
    ///
    /// # Source
    /// PETSc: `MatMult`, whose `VecScatter` is the plan.
    #[track_caller]
    pub fn matvec(&self, x: &GlobalArray<T, Ix1>, y: &mut GlobalArray<T, Ix1>) -> Result<()> {
        located(move || {
            const OPERATION: &str = "matvec";
            self.check(OPERATION, "A x", x, y, self.shape)?;
            let section = y.enter(OPERATION, &[self.fingerprint(), x.id()], Elements::All)?;
            let multiplied = self.split(OPERATION, x).and_then(|split| self.multiply(&split, x, y));
            section.leave(multiplied)
        })
    }

    /// `y = Aᵀ x`. Collective; starts and ends with a sync. `x` and `y` may have any distributions. Members add to each other's sums in any
    /// order, so the last bits may differ from call to call.
    ///
    /// # Errors
    /// Same as [`matvec`](Self::matvec), with the lengths exchanged.
    ///
    /// # Source
    /// PETSc: `MatMultTranspose`.
    #[track_caller]
    pub fn matvec_transposed(&self, x: &GlobalArray<T, Ix1>, y: &mut GlobalArray<T, Ix1>) -> Result<()> {
        located(move || {
            const OPERATION: &str = "matvec_transposed";
            let [rows, columns] = self.shape;
            self.check(OPERATION, "Aᵀ x", x, y, [columns, rows])?;
            let section = y.enter(OPERATION, &[self.fingerprint(), x.id()], Elements::All)?;
            let sums = self.split(OPERATION, y).and_then(|split| {
                let sums = self.sum_columns(&split, x, y)?;
                Ok((split, sums))
            });
            // Before others add, the owners have written.
            let (split, sums) = y.settle(OPERATION, y.id(), sums)?;
            section.leave(split.halo.add(y, &sums).and_then(|()| self.group.fence_all(Op::Algebra)))
        })
    }

    fn multiply(&self, split: &Split<T>, x: &GlobalArray<T, Ix1>, y: &GlobalArray<T, Ix1>) -> Result<()> {
        let mut room = split.room.lock().unwrap_or_else(PoisonError::into_inner);
        let [halo, far_sums] = &mut *room;
        split.halo.fetch(x, halo)?;
        // One kind of entries after the other, so that the caches have half as much to hold.
        let mut far = split.far.by_rows();
        for (sum, &(_, len)) in far_sums.iter_mut().zip(&split.far_lengths) {
            *sum = far.next(len).fold(T::ZERO, |sum, (place, value)| sum.plus(value.scaled(halo[place])));
        }
        let (x, part) = (x.own_part(), y.own_part());
        let own_block = y.own_blocks().next().filter(|block| block.patch.range(0) == self.rows);
        let (mut far_rows, mut far_sums) = (split.far_lengths.as_slice(), far_sums.as_slice());
        let (mut own, mut sums) = (split.own.by_rows(), [T::ZERO; CHUNK]);
        for (chunk, lengths) in split.own_lengths.chunks(CHUNK).enumerate() {
            let (first, sums) = (chunk * CHUNK, &mut sums[..lengths.len()]);
            for (sum, &len) in sums.iter_mut().zip(lengths) {
                *sum = own.next(len).fold(T::ZERO, |sum, (place, value)| sum.plus(value.scaled(x.load(place))));
            }
            let (now, later) = far_rows.split_at(far_rows.partition_point(|&(row, _)| (row as usize) < first + sums.len()));
            let (adds, behind) = far_sums.split_at(now.len());
            now.iter().zip(adds).for_each(|(&(row, _), &add)| sums[row as usize - first] = sums[row as usize - first].plus(add));
            (far_rows, far_sums) = (later, behind);
            match &own_block {
                Some(block) => part.write_slice(block.offset + first, sums),
                None => {
                    let first = self.rows.start + first;
                    y.put(s![first..first + sums.len()], ArrayView1::from(&*sums))?;
                }
            }
        }
        self.group.fence_all(Op::Algebra)
    }

    /// Writes to `y` what this member's rows contribute to its own columns; returns what they contribute to the halo.
    fn sum_columns(&self, split: &Split<T>, x: &GlobalArray<T, Ix1>, y: &GlobalArray<T, Ix1>) -> Result<Vec<T>> {
        let mut factors = vec![T::ZERO; self.rows.len()];
        x.get_into(s![self.rows.clone()], ArrayViewMut1::from(&mut factors))?;
        let part = y.own_part();
        let (mut sums, mut halo) = (vec![T::ZERO; part.len()], vec![T::ZERO; split.halo.len()]);
        let (mut own, mut far) = (split.own.by_rows(), split.far.by_rows());
        for (&factor, &len) in factors.iter().zip(&split.own_lengths) {
            own.next(len).for_each(|(place, value)| sums[place] = sums[place].plus(value.scaled(factor)));
        }
        for &(row, len) in &split.far_lengths {
            let factor = factors[row as usize];
            far.next(len).for_each(|(place, value)| halo[place] = halo[place].plus(value.scaled(factor)));
        }
        // Ghost cells lie between blocks, and are nobody's.
        y.own_blocks().for_each(|block| part.write_slice(block.offset, &sums[block.offset..][..block.patch.len()]));
        Ok(halo)
    }

    /// Vectors of these lengths, `y` and `x`, over the same ranks.
    fn check(
        &self,
        operation: &'static str,
        formula: &str,
        x: &GlobalArray<T, Ix1>,
        y: &GlobalArray<T, Ix1>,
        [y_len, x_len]: [usize; 2],
    ) -> Result<()> {
        y.check_members(operation, x)?;
        let [rows, columns] = self.shape;
        let what = if !self.group.is_like(y.group()) {
            let (own, theirs) = (self.group.size(), y.group().size());
            format!(
                "the matrix is spread over {own} ranks, \"{}\" over {theirs}: they must be the same ranks of one job in the same order",
                y.name()
            )
        } else if [y.len(), x.len()] != [y_len, x_len] {
            let (y, x) = (format!("\"{}\" of {}", y.name(), y.len()), format!("\"{}\" of {}", x.name(), x.len()));
            format!(
                "y = {formula} of {rows} x {columns} takes x of {x_len} and gives y of {y_len} elements, not x = {x} and y = {y}"
            )
        } else {
            return Ok(());
        };
        Err(Error::Mismatch { operation: operation.into(), what })
    }

    fn fingerprint(&self) -> u64 {
        fingerprint(&[self.shape[0] as u64, self.shape[1] as u64, self.nnz as u64])
    }

    /// The split for a vector's distribution, which is made if there is none.
    fn split(&self, operation: &'static str, x: &GlobalArray<T, Ix1>) -> Result<Arc<Split<T>>> {
        let mut splits = self.splits.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(split) = splits.iter().find(|split| split.halo.is_for(x)) {
            return Ok(split.clone());
        }
        let split = Arc::new(Split::new(operation, self, x)?);
        splits.push(split.clone());
        Ok(split)
    }
}

impl<T: Number> Split<T> {
    fn new(operation: &'static str, matrix: &SparseMatrix<T>, x: &GlobalArray<T, Ix1>) -> Result<Self> {
        let me = matrix.group.member();
        let own_place = |column: usize| {
            let location = x.distribution().locate(&Ix1(column));
            (location.member == me).then_some(location.offset)
        };
        let mut columns: Vec<usize> = matrix.columns.iter().copied().filter(|&column| own_place(column).is_none()).collect();
        let far = columns.len();
        columns.sort_unstable();
        columns.dedup();
        if x.own_part().len().max(columns.len()).max(matrix.rows.len()) > u32::MAX as usize {
            let what = format!("member {me} has 2³² rows, or needs as many elements of \"{}\": use more ranks", x.name());
            return Err(Error::argument(operation, what));
        }
        let entries = |count| Entries { places: with_room(count), values: with_room(count) };
        let (halo, own, far) = (x.gather_plan(&columns)?, entries(matrix.columns.len() - far), entries(far));
        let (own_lengths, far_lengths) = (Vec::with_capacity(matrix.rows.len()), Vec::new());
        let mut split = Split { halo, own_lengths, own, far_lengths, far, room: Mutex::default() };
        for (row, (_, row_columns, values)) in matrix.rows().enumerate() {
            let before = (split.own.places.len(), split.far.places.len());
            for (&column, &value) in row_columns.iter().zip(values) {
                match own_place(column) {
                    Some(place) => split.own.push(place, value),
                    None => split.far.push(columns.partition_point(|&other| other < column), value),
                }
            }
            split.own_lengths.push((split.own.places.len() - before.0) as u32);
            let far = split.far.places.len() - before.1;
            if far > 0 {
                split.far_lengths.push((row as u32, far as u32));
            }
        }
        split.room = Mutex::new([columns.len(), split.far_lengths.len()].map(|len| {
            let mut room = with_room(len);
            room.resize(len, T::ZERO);
            room
        }));
        Ok(split)
    }
}

/// An empty list with room for so many, in large pages if there are any: the elements of the halo are read in any order.
fn with_room<T>(len: usize) -> Vec<T> {
    let mut list = Vec::with_capacity(len);
    large_pages::wish(list.spare_capacity_mut());
    list
}

impl<T: Number> Entries<T> {
    fn push(&mut self, place: usize, value: T) {
        self.places.push(place as u32);
        self.values.push(value);
    }

    fn by_rows(&self) -> Rows<'_, T> {
        Rows { places: &self.places, values: &self.values }
    }
}

/// The entries of the rows that are left.
struct Rows<'a, T> {
    places: &'a [u32],
    values: &'a [T],
}

impl<'a, T: Number> Rows<'a, T> {
    /// Those of the next row, `len` of them.
    #[inline(always)]
    fn next(&mut self, len: u32) -> impl Iterator<Item = (usize, T)> + use<'a, T> {
        let (places, rest) = self.places.split_at(len as usize);
        let (values, behind) = self.values.split_at(len as usize);
        (self.places, self.values) = (rest, behind);
        places.iter().zip(values).map(|(&place, &value)| (place as usize, value))
    }
}
