//! Matrices as ScaLAPACK and ELPA describe them.

use ndarray::{Dimension, Ix2};

use super::GlobalArray;
use crate::{
    calls::located,
    distribution::{Distribution, Order},
    element::Element,
    error::{Error, Result},
};

/// A matrix and one member's part of it, in the terms of ScaLAPACK and ELPA; [`GlobalArray::scalapack`] returns it.
///
/// Pairs are those of rows and columns. The first block belongs to the first process: `RSRC_` and `CSRC_` are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockCyclic {
    /// Elements of the matrix: `M_` and `N_`.
    pub shape: [i32; 2],
    /// Elements of a block: `MB_` and `NB_`. ELPA, and most of ScaLAPACK, need both to be equal.
    pub block: [i32; 2],
    /// Processes of the grid: `NPROW` and `NPCOL`. Members lie on it in row-major order, which is order `R` of `BLACS_GRIDINIT`.
    pub grid: [i32; 2],
    /// This member's place in the grid, from 0: `MYROW` and `MYCOL`. A member beyond the grid has none, and BLACS gives it the context -1.
    pub place: Option<[i32; 2]>,
    /// Elements of this member's part: what `NUMROC` returns. Some members may have none.
    pub local: [i32; 2],
    /// Elements from one column of the part to the next: `LLD_`, at least 1.
    pub leading_dimension: i32,
}

impl BlockCyclic {
    /// The array descriptor of a dense matrix on a BLACS context.
    ///
    /// # Source
    /// ScaLAPACK Users' Guide, 4.3.3, table 4.7.
    #[must_use]
    pub fn descriptor(&self, context: i32) -> [i32; 9] {
        const DENSE: i32 = 1;
        let ([m, n], [mb, nb]) = (self.shape, self.block);
        [DENSE, context, m, n, mb, nb, 0, 0, self.leading_dimension]
    }

    /// The description, or why there is none.
    fn of(distribution: &Distribution<Ix2>, member: usize) -> Result<Self, String> {
        let block = distribution.block_shape().filter(|_| !distribution.is_tiled());
        let block = block.ok_or_else(|| format!("{} parts: only block-cyclic ones and equal blocks", distribution.kind()))?;
        if distribution.ghosts().is_some() {
            return Err("parts with ghost cells: only parts without".into());
        }
        if distribution.owners().is_some() {
            return Err("parts of some members: create the array on a group of these".into());
        }
        if distribution.order() == Order::RowMajor {
            return Err("parts in row-major order: create the array with `.order(Order::ColumnMajor)`".into());
        }
        let columns = distribution.grid()[1];
        let place = [member / columns, member % columns];
        let local = pair(distribution.local_shape(member).slice())?;
        Ok(Self {
            shape: pair(distribution.shape())?,
            block: pair(block)?,
            grid: pair(distribution.grid())?,
            place: (place[0] < distribution.grid()[0]).then(|| pair(&place)).transpose()?,
            local,
            leading_dimension: local[0].max(1),
        })
    }
}

fn pair(numbers: &[usize]) -> Result<[i32; 2], String> {
    let number = |n| i32::try_from(n).map_err(|_| format!("the number {n}: it has integers of 32 bits"));
    Ok([number(numbers[0])?, number(numbers[1])?])
}

/// # Other libraries
impl<T: Element> GlobalArray<T, Ix2> {
    /// This matrix in the terms of ScaLAPACK and ELPA, which then work on its parts in place. Local.
    ///
    /// The matrix is in column-major order, and either [block-cyclic](crate::Builder::block_cyclic) or of one block for each member, which is
    /// block-cyclic with one round. The libraries get
    ///
    /// * the communicator of [`Group::mpi_comm`](crate::Group), whose processes are the members in their order. It makes the BLACS context, on
    ///   which members lie in row-major order;
    /// * the numbers of this method;
    /// * the part, in an epoch: `part.view_mut().as_mut_ptr()`. The library may write it, because no member does anything else with the array
    ///   until the epoch ends.
    ///
    /// ELPA takes `na` from the shape, `nblk` from the block, `local_nrows` from the leading dimension, `local_ncols` from the local columns,
    /// `process_row` and `process_col` from the place. All processes of its communicator must have a place.
    ///
    /// [The cookbook](crate::guide::cookbook#call-scalapack-or-elpa) has a program that calls ScaLAPACK.
    ///
    /// # Errors
    /// Parts in row-major order, irregular or tiled parts, ghost cells, an array [restricted](crate::Builder::restrict) to some members;
    /// numbers above 2³¹ - 1.
    ///
    /// # Examples
    /// The descriptor of a matrix:
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(6).network("threads").run(|job| {
    ///     let cyclic = GlobalArray2::<f64>::builder(job, [100, 70]).block_cyclic([16, 16]).grid([2, 3]);
    ///     let a = cyclic.order(Order::ColumnMajor).zeros().create()?;
    ///     let described = a.scalapack()?;
    ///     if job.rank() == 5 {
    ///         assert_eq!((described.grid, described.place, described.local), ([2, 3], Some([1, 2]), [48, 16]));
    ///         let context = 0; // of Cblacs_gridinit(&mut context, "R", 2, 3)
    ///         assert_eq!(described.descriptor(context), [1, context, 100, 70, 16, 16, 0, 0, 48]);
    ///     }
    ///     job.sync()
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// ScaLAPACK Users' Guide, 4.3.1 and 4.3.2. GA copies, by `ga_to_SL` and `ga_from_SL`.
    #[doc(alias("ga_to_SL", "ga_from_SL", "ELPA", "DESCINIT"))]
    #[track_caller]
    pub fn scalapack(&self) -> Result<BlockCyclic> {
        located(|| {
            let described = BlockCyclic::of(&self.distribution, self.group.member());
            described.map_err(|what| {
                Error::argument("scalapack", format_args!("array \"{}\": ScaLAPACK does not take {what}", self.name))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Dim;

    use super::*;

    const ORDER: Order = Order::ColumnMajor;

    /// `NUMROC` with the first block at process 0.
    fn numroc(n: usize, block: usize, process: usize, processes: usize) -> usize {
        let (blocks, rest) = (n / block, n % block);
        let extra = match process.cmp(&(blocks % processes)) {
            std::cmp::Ordering::Less => block,
            std::cmp::Ordering::Equal => rest,
            std::cmp::Ordering::Greater => 0,
        };
        blocks / processes * block + extra
    }

    /// Compares all numbers, and the places of all elements (`INDXG2P`, `INDXG2L`), with ScaLAPACK's formulas.
    fn check(distribution: &Distribution<Ix2>) {
        let all: Vec<BlockCyclic> =
            (0..distribution.members()).map(|member| BlockCyclic::of(distribution, member).unwrap()).collect();
        let [n, block, grid] = [all[0].shape, all[0].block, all[0].grid].map(|pair| pair.map(|number| number as usize));
        assert_eq!((n.as_slice(), grid.as_slice()), (distribution.shape(), distribution.grid()));
        for (member, described) in all.iter().enumerate() {
            let place = [member / grid[1], member % grid[1]];
            let is_inside = place[0] < grid[0];
            assert_eq!(described.place, is_inside.then_some(place.map(|at| at as i32)));
            let count = |axis: usize| if is_inside { numroc(n[axis], block[axis], place[axis], grid[axis]) as i32 } else { 0 };
            assert_eq!(described.local, [0, 1].map(count), "member {member} of {distribution:?}");
            let ([m, n], [mb, nb]) = (described.shape, described.block);
            assert_eq!(described.descriptor(7), [1, 7, m, n, mb, nb, 0, 0, described.local[0].max(1)]);
        }
        for index in ndarray::indices(n).into_iter().map(|(i, j)| [i, j]) {
            let at = distribution.locate(&Dim(index));
            let process = [0, 1].map(|axis| index[axis] / block[axis] % grid[axis]);
            let local = [0, 1].map(|axis| index[axis] / (block[axis] * grid[axis]) * block[axis] + index[axis] % block[axis]);
            assert_eq!(at.member, process[0] * grid[1] + process[1]);
            assert_eq!(at.offset, local[0] + local[1] * all[at.member].leading_dimension as usize);
        }
    }

    #[test]
    fn numbers_and_places_are_those_of_scalapack() {
        for shape in [[1, 1], [7, 7], [24, 18], [37, 5], [0, 4], [4, 0]].map(Dim) {
            for grid in [[1, 1], [1, 3], [3, 1], [2, 2], [3, 5]] {
                for block in [[1, 1], [4, 4], [5, 2], [64, 64]] {
                    check(&Distribution::block_cyclic(&shape, &block, 16, Some(&grid), ORDER).unwrap());
                }
                check(&Distribution::block_with_grid(&shape, &grid, ORDER).unwrap());
            }
            for members in [1, 4, 7] {
                check(&Distribution::block(&shape, members, None, ORDER).unwrap());
                check(&Distribution::block_cyclic(&shape, &[3, 3], members, None, ORDER).unwrap());
            }
        }
    }

    #[test]
    fn what_it_cannot_take_is_said() {
        let shape = Dim([12, 10]);
        let plain = Distribution::block(&shape, 4, None, ORDER).unwrap();
        let ghosts =
            crate::distribution::Ghosts { widths: Dim([1, 1]), boundaries: vec![crate::Boundary::Open; 2], corners: true };
        let long = Dim([1 << 31, 1]);
        let refused = [
            (Distribution::block_cyclic(&shape, &[2, 2], 4, None, Order::RowMajor), "`.order(Order::ColumnMajor)`"),
            (Distribution::irregular(&shape, &[vec![0, 7], vec![0]], 4, ORDER), "irregular parts"),
            (Distribution::tiled(&shape, &[2, 2], 4, None, ORDER), "tiled parts"),
            (plain.clone().with_ghosts(ghosts), "ghost cells"),
            (plain.restricted(&[4, 0, 2, 1], 5), "parts of some members"),
            (Distribution::block_cyclic(&long, &[64, 64], 4, None, ORDER), "the number 2147483648"),
        ];
        for (distribution, why) in refused {
            let said = BlockCyclic::of(&distribution.unwrap(), 0).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }
}
