//! Channels in a ring, a multicast, and a reduction with the same bits each time: `cargo run --release --example channels`.

use global_arrays::{
    channel::{from, to},
    prelude::*,
};

fn main() -> Result<(), Error> {
    run(|job| {
        let (me, ranks) = (job.rank(), job.size());
        let (left, right) = ((me + ranks - 1) % ranks, (me + 1) % ranks);

        // A token goes round the ring, and each rank adds its number.
        let ([mut out], [mut inlet]) = job.channels([to::<usize>(right, 0, 1)], [from(left, 0)])?;
        if me == 0 {
            out.put(&[0])?;
        }
        let token = inlet.wait()?[0] + me;
        if me == 0 {
            println!("the token has come round: {token}");
            assert_eq!(token, ranks * (ranks - 1) / 2);
        } else {
            out.put(&[token])?;
        }

        // One buffer goes to all others: a loop over outlets.
        let others = || (0..ranks).filter(|&rank| rank != me);
        let table = Array1::from_shape_fn(100, |k| (k as f64).sqrt());
        if me == 0 {
            let (mut outlets, []) = job.channels(others().map(|rank| to(rank, 0, 100)).collect::<Vec<_>>(), [])?;
            outlets.iter_mut().try_for_each(|out| out.put(&table))?;
        } else {
            let ([], [mut inlet]) = job.channels([], [from::<f64>(0, 0)])?;
            assert_eq!(inlet.wait()?.view(), table);
        }

        // All send a value to rank 0, which adds in the order of the ranks, whoever comes first: the same bits each time.
        let value = |rank: usize| 0.1_f64.powi(rank as i32);
        if me == 0 {
            let ([], mut inlets) = job.channels([], others().map(|rank| from::<f64>(rank, 0)).collect::<Vec<_>>())?;
            let sum = inlets.iter_mut().try_fold(value(0), |sum, inlet| Ok::<f64, Error>(sum + inlet.wait()?[0]))?;
            assert_eq!(sum.to_bits(), (1..ranks).fold(value(0), |sum, rank| sum + value(rank)).to_bits());
            println!("the sum of {ranks} values: {sum}");
        } else {
            let ([mut out], []) = job.channels([to::<f64>(0, 0, 1)], [])?;
            out.put(&[value(me)])?;
        }
        job.sync()
    })
}
