//! Rows of messages: one goes there by a channel and another comes back, and half of the time counts.
//!
//! A message of 100 bytes is copied by the receiver, as the peers' programs do; of a longer one it is seen that it came. Beside them what a program
//! without channels does: a put with a signal, and a get of the 100 bytes.

use std::hint::black_box;

use global_arrays::{
    channel::{from, to},
    prelude::*,
};

use crate::{measure::Bench, patch::size_name};

const SHORT: usize = 100;
const LENGTHS: [usize; 4] = [SHORT, 1024, 64 * 1024, 500 * 1024];

pub(crate) fn message(bench: &Bench<'_>) -> Result<(), Error> {
    LENGTHS.iter().try_for_each(|&bytes| one_way(bench, bytes, "ns").and_then(|()| put_signal(bench, bytes)))
}

/// A message of a channel.
pub(crate) fn one_way(bench: &Bench<'_>, bytes: usize, unit: &str) -> Result<(), Error> {
    let (rank, other) = (bench.job.rank(), 1 - bench.job.rank());
    let ([mut out], [mut inlet]) = bench.job.channels([to::<u8>(other, 0, bytes)], [from(other, 0)])?;
    let mut local = vec![1_u8; bytes];
    let stat = bench.measure_together(|| {
        if rank == 0 {
            out.put(&local)?;
        }
        let message = inlet.wait()?;
        match bytes {
            SHORT => local.copy_from_slice(&message),
            _ => _ = black_box(&message),
        }
        drop(message);
        if rank == 1 { out.put(&local) } else { Ok(()) }
    })?;
    bench.row("message", &size_name(bytes), unit, stat, 2.0);
    Ok(())
}

fn put_signal(bench: &Bench<'_>, bytes: usize) -> Result<(), Error> {
    let (rank, other) = (bench.job.rank(), 1 - bench.job.rank());
    let (a, signal) = (GlobalArray::<u8, Ix1>::builder(bench.job, [2 * bytes]).create()?, Signal::new(bench.job)?);
    let own = |rank: usize| s![rank * bytes..(rank + 1) * bytes];
    let (mut local, mut sent) = (Array1::from_elem(bytes, 1_u8), 0);
    let stat = bench.measure_together(|| {
        sent += 1;
        if rank == 0 {
            a.put_signal(own(other), &local, signal.at(other, 0))?;
        }
        signal.wait_at_least(0, sent)?;
        if bytes == SHORT {
            a.get_into(own(rank), &mut local)?;
        }
        if rank == 1 { a.put_signal(own(other), &local, signal.at(other, 0)) } else { Ok(()) }
    })?;
    bench.row("message", &format!("{} put_signal", size_name(bytes)), "ns", stat, 2.0);
    a.destroy()
}
