//! Programs in which ranks wait for each other's handlers and letters: deadlocks, ends, and one that is only slow.

use global_arrays::{
    active::{ActiveMessages, Handlers, Short},
    mailbox::Any,
    prelude::*,
};

use crate::programs::{CULPRIT, compute, kill_soon};

const FIND: Short<u64, u64> = Short::new("find");

fn open(job: &Job) -> Result<ActiveMessages<'static, ()>, Error> {
    Handlers::new(()).on(FIND, |(), _, key| key + 1).open(job)
}

pub(crate) const BODIES: &[(&str, crate::programs::Body)] = &[
    ("call_to_a_rank_in_a_collective", |job| {
        let mut messages = open(job)?;
        if job.rank() == 0 {
            messages.call(CULPRIT, FIND, 1)?;
        }
        job.barrier()
    }),
    ("sync_of_messages_beside_a_collective", |job| {
        let mut messages = open(job)?;
        if job.rank() == CULPRIT { job.barrier() } else { messages.sync() }
    }),
    ("receive_in_a_ring", |job| {
        let mut mail = job.mailbox::<f64>()?;
        let (left, right) = ((job.rank() + job.size() - 1) % job.size(), (job.rank() + 1) % job.size());
        // What nobody waits for is no help.
        mail.send(right, 6, &[1.0])?;
        mail.receive(left, 5)?;
        mail.send(right, 5, &[1.0])
    }),
    ("receive_from_anybody", |job| job.mailbox::<f64>()?.receive(Any, Any).map(drop)),
    ("returns_while_another_calls", |job| {
        let mut messages = open(job)?;
        if job.rank() == 0 { messages.call(CULPRIT, FIND, 1).map(drop) } else { Ok(()) }
    }),
    ("panics_in_a_handler", |job| {
        let mut messages = Handlers::new(()).on(FIND, |(), _, _| panic!("the culprit's own words")).open(job)?;
        if job.rank() == 0 {
            messages.call(CULPRIT, FIND, 1)?;
        }
        messages.sync()
    }),
    ("killed_while_others_call", |job| {
        let mut messages = open(job)?;
        if job.rank() == CULPRIT {
            kill_soon();
            compute(10.0);
        }
        messages.call(CULPRIT, FIND, 1).map(drop)
    }),
    // For longer than any search for a deadlock takes, one after the other; the others serve each other in between.
    ("computes_while_others_call", |job| {
        let mut messages = open(job)?;
        for late in 0..job.size() {
            if job.rank() == late {
                compute(1.5);
            }
            for to in 0..job.size() {
                assert_eq!(messages.call(to, FIND, 1)?, 2);
            }
            messages.sync()?;
        }
        let mut mail = job.mailbox()?;
        if job.rank() == CULPRIT {
            compute(3.0);
            mail.send(2, 0, &[1_u8])?;
            mail.receive(0, 0)?;
        } else if job.rank() == 2 {
            let mail_of = mail.receive(Any, 0)?;
            mail.send(0, 0, &mail_of.data)?;
        } else {
            let mail_of = mail.receive(2, Any)?;
            mail.send(CULPRIT, 0, &mail_of.data)?;
        }
        job.sync()
    }),
];
