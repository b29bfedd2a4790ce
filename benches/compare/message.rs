//! Rows of messages: one goes there by a channel and another comes back, and half of the time counts.
//!
//! A message of 100 bytes is copied by the receiver, as the peers' programs do; of a longer one it is seen that it came. Beside them what a program
//! without channels does: a put with a signal, and a get of the 100 bytes.

use std::hint::black_box;

use global_arrays::{
    active::{Handlers, Medium},
    channel::{from, to},
    prelude::*,
};

use crate::{measure::Bench, patch::size_name};

const SHORT: usize = 100;
/// Messages between two syncs.
const CALLS: usize = 1000;
const LETTERS: [usize; 4] = [8, 100, 8192, 1 << 20];
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

const CALL: Medium<(), u8, u64> = Medium::new("call");
const FLOOD: Medium<(), u8> = Medium::new("flood");

/// Calls there and back, floods one way, the sync of an endpoint, and a mailbox, one way.
pub(crate) fn active(bench: &Bench<'_>) -> Result<(), Error> {
    let (rank, other) = (bench.job.rank(), 1 - bench.job.rank());
    let mut messages = Handlers::new(0_u64)
        .on_slice(CALL, |sum, _, (), slice| {
            *sum += u64::from(slice[0]);
            *sum
        })
        .on_slice(FLOOD, |sum, _, (), slice| *sum += u64::from(slice[0]))
        .open(bench.job)?;
    let local = vec![1_u8; 8192];
    // Rank 1 serves in a sync as often as rank 0 asks in one.
    let stat = bench.measure_together(|| {
        if rank == 0 {
            for _ in 0..CALLS {
                messages.call_slice(other, CALL, (), &local[..64])?;
            }
        }
        messages.sync()
    })?;
    bench.row("call", "64B", "ns", stat, CALLS as f64);
    for bytes in [8, 64, 4096] {
        let stat = bench.measure_together(|| {
            if rank == 0 {
                for _ in 0..CALLS {
                    messages.send_slice(other, FLOOD, (), &local[..bytes])?;
                }
            }
            messages.sync()
        })?;
        bench.row("flood", &size_name(bytes), "ns", stat, CALLS as f64);
    }
    let stat = bench.measure_together(|| messages.sync())?;
    bench.row("call", "sync", "ns", stat, 1.0);
    let stat = bench.measure_together(|| bench.job.sync())?;
    bench.row("call", "job.sync", "ns", stat, 1.0);
    messages.close()?;
    let mut mail = bench.job.mailbox::<u8>()?;
    for bytes in LETTERS {
        let (sent, mut to) = (vec![1_u8; bytes], vec![0; bytes]);
        let stat = bench.measure_together(|| {
            if rank == 0 {
                mail.send(other, 0, &sent)?;
            }
            mail.receive_into(other, 0, &mut to)?;
            if rank == 1 { mail.send(other, 0, &sent) } else { Ok(()) }
        })?;
        bench.row("mailbox", &size_name(bytes), "ns", stat, 2.0);
    }
    Ok(())
}
