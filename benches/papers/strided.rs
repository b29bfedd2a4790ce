//! Figures 9 and 12, and those of ARMCI-ODCM: a patch of rows, each of which is a contiguous chunk.
//!
//! "A data transfer of M bytes is split in j chunks, each with contiguous size of s bytes (M = j·s)." M is [`PATCH`] here; the paper does
//! not name it. The chunks of one call go in a pipeline, without packing.

use global_arrays::prelude::*;
use ndarray::ArrayViewMut2;

use crate::mean_micros;

/// M.
pub(crate) const PATCH: usize = 1 << 20;
/// Whose memory is read and written.
const OTHER: usize = 1;
const LEAST: usize = 16;
const TIMES: usize = 3;

pub(crate) fn get(job: &Job) -> Result<Vec<(usize, f64)>, Error> {
    each_chunk(job, |array, (rows, columns), local| array.get_into(s![rows, ..columns], local))
}

pub(crate) fn put(job: &Job) -> Result<Vec<(usize, f64)>, Error> {
    each_chunk(job, |array, (rows, columns), local| array.put(s![rows, ..columns], local.view()).and_then(|()| job.fence(OTHER)))
}

pub(crate) fn accumulate(job: &Job) -> Result<Vec<(usize, f64)>, Error> {
    each_chunk(job, |array, (rows, columns), local| {
        array.accumulate(s![rows, ..columns], 1.0, local.view()).and_then(|()| job.fence(OTHER))
    })
}

/// Rows of the other rank, and the columns of a chunk.
type Chunks = (std::ops::Range<usize>, usize);

/// The sizes of chunks, and the microseconds of a patch; rank 0 has them. Rows of the array are twice as long as a chunk.
fn each_chunk(
    job: &Job,
    transfer: impl Fn(&GlobalArray<f64, Ix2>, Chunks, ArrayViewMut2<'_, f64>) -> Result<(), Error>,
) -> Result<Vec<(usize, f64)>, Error> {
    let mut times = Vec::new();
    for chunk in std::iter::successors(Some(LEAST), |bytes| Some(4 * bytes)).take_while(|&bytes| bytes <= PATCH) {
        let (rows, columns) = (PATCH / chunk, chunk / 8);
        let array = GlobalArray::<f64, Ix2>::builder(job, [2 * rows, 2 * columns]).grid([2, 1]).fill(1.0).create()?;
        if job.rank() == 0 {
            let mut local = Array2::from_elem((rows, columns), 1.0);
            let micros = mean_micros(job, TIMES, || transfer(&array, (rows..2 * rows, columns), local.view_mut()))?;
            times.push((chunk, micros));
        }
        array.destroy()?;
    }
    Ok(times)
}
