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
        let (outlets, inlets) = if me == 0 { (ranks - 1, 0) } else { (0, 1) };
        let (mut outlets, mut inlets) = job.channels(
            others().take(outlets).map(|rank| to(rank, 0, 100)).collect::<Vec<_>>(),
            (0..inlets).map(|_| from(0, 0)).collect::<Vec<_>>(),
        )?;
        let table = Array1::from_shape_fn(100, |k| (k as f64).sqrt());
        outlets.iter_mut().try_for_each(|out| out.put(&table))?;
        for inlet in &mut inlets {
            assert_eq!(*inlet.wait()?, *table.as_slice().expect("one axis"));
        }

        // All send a value to rank 0, which adds in the order of the ranks, whoever comes first.
        let (outlets, inlets) = if me == 0 { (0, ranks - 1) } else { (1, 0) };
        let (mut outlets, mut inlets) = job.channels(
            (0..outlets).map(|_| to(0, 0, 1)).collect::<Vec<_>>(),
            others().take(inlets).map(|rank| from(rank, 0)).collect::<Vec<_>>(),
        )?;
        let value = |rank: usize| 0.1_f64.powi(rank as i32);
        outlets.iter_mut().try_for_each(|out| out.put(&[value(me)]))?;
        if me == 0 {
            let sum = inlets.iter_mut().try_fold(value(0), |sum, inlet| Ok::<f64, Error>(sum + inlet.wait()?[0]))?;
            assert_eq!(sum.to_bits(), (1..ranks).fold(value(0), |sum, rank| sum + value(rank)).to_bits());
            println!("the sum of {ranks} values: {sum}");
        }
        job.sync()
    })
}
