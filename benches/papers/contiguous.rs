//! Figures 7, 8, 10 and 11, and those of ARMCI-ODCM: one contiguous transfer at a time.
//!
//! "There is only one outstanding message between the communicating processes": each call is complete when the next begins, a put with a
//! fence. Sizes double from one number to 4 MiB. One more is two numbers longer than 4096 bytes, where the other engine begins: among powers
//! of two, its longer start would be hidden by twice the bytes.

use global_arrays::prelude::*;
use ndarray::ArrayViewMut1;

use crate::mean_micros;

/// Whose memory is read and written.
const OTHER: usize = 1;
const LEAST: usize = 8;
const MOST: usize = 4 << 20;
const ABOVE_SWITCH: usize = 4096 + 16;
const TIMES: usize = 20;

pub(crate) fn get(job: &Job) -> Result<Vec<(usize, f64)>, Error> {
    each_size(job, |array, patch, local| array.get_into(patch, local))
}

pub(crate) fn put(job: &Job) -> Result<Vec<(usize, f64)>, Error> {
    each_size(job, |array, patch, local| array.put(patch, local.view()).and_then(|()| job.fence(OTHER)))
}

pub(crate) fn accumulate(job: &Job) -> Result<Vec<(usize, f64)>, Error> {
    each_size(job, |array, patch, local| array.accumulate(patch, 1.0, local.view()).and_then(|()| job.fence(OTHER)))
}

/// The sizes of transfers, and the microseconds of one; rank 0 has them.
fn each_size(
    job: &Job,
    transfer: impl Fn(&GlobalArray<f64, Ix1>, std::ops::Range<usize>, ArrayViewMut1<'_, f64>) -> Result<(), Error>,
) -> Result<Vec<(usize, f64)>, Error> {
    let numbers = MOST / 8;
    let array = GlobalArray::<f64, Ix1>::builder(job, [2 * numbers]).fill(1.0).create()?;
    let mut local = vec![1.0; numbers];
    let mut times = Vec::new();
    if job.rank() == 0 {
        let doubled = std::iter::successors(Some(LEAST), |bytes| Some(2 * bytes)).take_while(|&bytes| bytes <= MOST);
        let mut sizes: Vec<usize> = doubled.chain([ABOVE_SWITCH]).collect();
        sizes.sort_unstable();
        for bytes in sizes {
            let len = bytes / 8;
            let micros =
                mean_micros(job, TIMES, || transfer(&array, numbers..numbers + len, ArrayViewMut1::from(&mut local[..len])))?;
            times.push((bytes, micros));
        }
    }
    job.sync()?;
    Ok(times)
}
