//! Epochs that fail.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicUsize, Ordering},
};

use ndarray::Ix1;

use super::*;
use crate::{Error, Job, Launch};

type Fail = fn(&Job, &mut GlobalArray<f64, Ix1>, &mut GlobalArray<f64, Ix1>) -> Result<()>;

/// Every way in which an epoch of the first array, or of both, can fail.
const FAILURES: &[(Fail, [bool; 2])] = &[
    (|_, a, _| a.owner_epoch(|_| unwind()), [true, false]),
    (|_, a, _| a.read_epoch(|_, _| unwind()), [true, false]),
    (|job, a, b| job.epoch((a.owned_mut(), b.owned()), |_| unwind()), [true, true]),
    (|job, a, b| job.epoch((a.ghosts(), b.ghosts_mut()), |_| unwind()), [true, true]),
    // The second one cannot begin: the first one has.
    (
        |job, a, b| {
            b.poison();
            job.epoch((a.owned_mut(), b.owned()), |_| ())
        },
        [true, true],
    ),
    // It cannot end, because the job is over by then.
    (|_, a, b| a.owner_epoch(|_| b.engine().conduit().end("enough")), [true, false]),
];

fn unwind() {
    std::panic::resume_unwind(Box::new("no words"))
}

#[test]
fn what_fails_in_an_epoch_poisons_its_arrays_and_ends_the_job() {
    for &(fail, poisoned) in FAILURES {
        let reached = AtomicUsize::new(0);
        let body = |job: &Job| {
            let new = || GlobalArray::<f64, Ix1>::builder(job, [10]).zeros().create();
            let (mut a, mut b) = (new()?, new()?);
            let ended = catch_unwind(AssertUnwindSafe(|| fail(job, &mut a, &mut b)));
            let found = [&a, &b].map(|array| matches!(array.check_sound("epoch"), Err(Error::Poisoned { .. })));
            let over = a.check_job("epoch").is_err();
            if !matches!(ended, Ok(Ok(()))) && found == poisoned && over {
                reached.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<(), Error>(())
        };
        // The job is over, so only what its ranks counted says that all was well.
        let _ = Launch::new().ranks(1).network("threads").run(body);
        assert_eq!(reached.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn epochs_of_other_arrays_kinds_or_order_disagree() {
    type Epoch = fn(&Job, [&mut GlobalArray<f64, Ix1>; 4]) -> Result<()>;
    let epochs: &[Epoch] = &[
        |job, [a, b, ..]| job.epoch((a.owned_mut(), b.owned_mut()), |_| ()),
        |job, [a, b, ..]| job.epoch((b.owned_mut(), a.owned_mut()), |_| ()),
        |job, [a, b, ..]| job.epoch((a.owned_mut(), b.owned()), |_| ()),
        |job, [a, ..]| job.epoch(a.owned_mut(), |_| ()),
        |_, [_, b, ..]| b.owner_epoch(|_| ()),
        // Only the upper bits of the fingerprint differ.
        |job, [a, b, c, _]| job.epoch((a.owned(), b.owned(), c.owned()), |_| ()),
        |job, [a, b, _, d]| job.epoch((a.owned(), b.owned(), d.owned()), |_| ()),
    ];
    for (k, first) in epochs.iter().enumerate() {
        for (l, second) in epochs.iter().enumerate() {
            let ended = Launch::new().ranks(2).network("threads").run(|job| {
                let new = || GlobalArray::<f64, Ix1>::builder(job, [10]).zeros().create();
                let (mut a, mut b, mut c, mut d) = (new()?, new()?, new()?, new()?);
                let arrays = [&mut a, &mut b, &mut c, &mut d];
                if job.rank() == 0 { first(job, arrays) } else { second(job, arrays) }
            });
            assert_eq!(ended.is_ok(), k == l, "epochs {k} and {l}: {ended:?}");
        }
    }
}

#[test]
fn an_epoch_has_any_number_of_arrays() -> Result<()> {
    Launch::new().ranks(2).network("threads").run(|job| {
        let new = || GlobalArray::<f64, Ix1>::builder(job, [10]).zeros().create();
        let [mut a, mut b, mut c, mut d] = [new()?, new()?, new()?, new()?];
        let [mut e, mut f, mut g, mut h] = [new()?, new()?, new()?, new()?];
        let most = (a.owned(), b.owned(), c.owned(), d.owned(), e.owned(), f.owned_mut());
        // More than fit a fingerprint: each agrees for itself.
        job.epoch((most, g.owned_mut(), h.owned_mut()), |((.., mut f), mut g, mut h)| {
            [&mut f, &mut g, &mut h].into_iter().for_each(|part| part.fill(1.0));
        })?;
        assert_eq!((f.sum()?, g.sum()?, h.sum()?), (10.0, 10.0, 10.0));
        Ok(())
    })
}
