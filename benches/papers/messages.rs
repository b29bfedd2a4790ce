//! Channels and mailboxes side by side: E. Bohm and others, *CkDirect* (2009), tables 1 and 2, figures 2 and 3.
//!
//! A channel stands for CkDirect, a mailbox for the messages of Charm++: they name their sender and go to one place for all. Copies that a rank
//! makes of messages take no time in the model.
//!
//! | benchmark | what a step is |
//! |---|---|
//! | `channel`, `mailbox` | a message to the other rank and back |
//! | `stencil_…` | each rank sends the faces of its 8 blocks of 1024 × 1024 × 512 cells to the ranks around, and computes when it has theirs; then all meet |
//! | `multicast_…` | a product of matrices of 2048 × 2048 on a cube of ranks, each of which sends its share of A, of B and of C along one axis |

use global_arrays::{
    channel::{Channels, Inlet, Outlet, from, to},
    mailbox::Mailbox,
    prelude::*,
    simulation::Work,
};

use crate::mean_micros;

const TIMES: usize = 10;

type Measured = Result<Vec<(usize, f64)>, Error>;

/// How messages go.
#[derive(Clone, Copy)]
pub(crate) enum By {
    Channels,
    Mailbox,
}

/// A message that a rank sends in each step.
struct Message {
    to: usize,
    /// The same at both ends. No two messages of one pair of ranks have one.
    tag: u64,
    /// The rank that sends this one the message of this tag.
    from: usize,
    /// In bytes.
    len: usize,
}

/// The messages of a rank, ready to go in each step.
struct Exchange {
    messages: Vec<Message>,
    data: Vec<u8>,
    ends: Ends,
}

enum Ends {
    Channels(Vec<Outlet<u8>>, Vec<Inlet<u8>>),
    Mailbox(Mailbox<u8>),
}

impl Exchange {
    fn new(job: &Job, by: By, messages: Vec<Message>) -> Result<Self, Error> {
        let ends = match by {
            By::Channels => {
                let outlets: Vec<_> = messages.iter().map(|message| to(message.to, message.tag, message.len)).collect();
                let inlets: Vec<_> = messages.iter().map(|message| from(message.from, message.tag)).collect();
                let (outlets, inlets) = Channels::new(job).open(outlets, inlets)?;
                Ends::Channels(outlets, inlets)
            }
            By::Mailbox => Ends::Mailbox(job.mailbox()?),
        };
        let most = messages.iter().map(|message| message.len).max();
        Ok(Exchange { data: vec![1; most.unwrap_or(0)], messages, ends })
    }

    fn send(&mut self) -> Result<(), Error> {
        let Exchange { messages, data, ends } = self;
        messages.iter().enumerate().try_for_each(|(number, message)| match ends {
            Ends::Channels(outlets, _) => outlets[number].put(&data[..message.len]),
            Ends::Mailbox(mail) => mail.send(message.to, message.tag, &data[..message.len]),
        })
    }

    fn receive(&mut self) -> Result<(), Error> {
        let Exchange { messages, ends, .. } = self;
        messages.iter().enumerate().try_for_each(|(number, message)| {
            let received = match ends {
                Ends::Channels(_, inlets) => inlets[number].wait()?.len(),
                Ends::Mailbox(mail) => mail.receive(message.from, message.tag)?.data.len(),
            };
            assert_eq!(received, message.len);
            Ok(())
        })
    }
}

/// Bytes of a message, and the microseconds of it to the other rank and back.
pub(crate) fn ping_pong(job: &Job, by: By) -> Measured {
    /// Of the tables.
    const BYTES: [usize; 10] = [100, 1000, 5000, 10_000, 20_000, 30_000, 40_000, 70_000, 100_000, 500_000];
    let other = 1 - job.rank();
    let mut measured = Vec::new();
    for bytes in BYTES {
        let mut exchange = Exchange::new(job, by, vec![Message { to: other, tag: 0, from: other, len: bytes }])?;
        let mut turn = || {
            if job.rank() == 0 {
                exchange.send()?;
                exchange.receive()
            } else {
                exchange.receive()?;
                exchange.send()
            }
        };
        turn()?;
        measured.push((bytes, mean_micros(job, TIMES, turn)?));
    }
    Ok(if job.rank() == 0 { measured } else { Vec::new() })
}

/// Bytes of a face of a block, and the microseconds of a step.
pub(crate) fn stencil(job: &Job, by: By) -> Measured {
    const CELLS: [usize; 3] = [1024, 1024, 512];
    /// Of a rank, along each axis.
    const BLOCKS: usize = 2;
    /// Six additions and a product.
    const FLOPS: usize = 7;
    let grid = sides(job.size());
    let place = [job.rank() / (grid[1] * grid[2]), job.rank() / grid[2] % grid[1], job.rank() % grid[2]];
    let block: [usize; 3] = std::array::from_fn(|axis| CELLS[axis] / grid[axis] / BLOCKS);
    let beside = |axis: usize, step: usize| {
        let mut at = place;
        at[axis] = (at[axis] + step) % grid[axis];
        (at[0] * grid[1] + at[1]) * grid[2] + at[2]
    };
    let mut messages = Vec::new();
    for axis in 0..3 {
        let face = 8 * block.iter().product::<usize>() / block[axis];
        let (next, last) = (beside(axis, 1), beside(axis, grid[axis] - 1));
        for part in 0..BLOCKS * BLOCKS {
            let tag = ((axis * BLOCKS * BLOCKS + part) * 2) as u64;
            messages.push(Message { to: next, tag, from: last, len: face });
            messages.push(Message { to: last, tag: tag + 1, from: next, len: face });
        }
    }
    let bytes = messages[0].len;
    let cells = CELLS.iter().product::<usize>() / job.size();
    let work = Work::flops((FLOPS * cells) as f64) + Work::bytes((16 * cells) as f64);
    let mut exchange = Exchange::new(job, by, messages)?;
    steps(job, bytes, || {
        exchange.send()?;
        exchange.receive()?;
        job.simulation().work(work);
        job.sync()
    })
}

/// Bytes of a share of a matrix, and the microseconds of a step.
pub(crate) fn multicast(job: &Job, by: By) -> Measured {
    const ORDER: usize = 2048;
    let side = (1..).find(|side| side * side * side >= job.size()).unwrap_or(1);
    if side * side * side != job.size() {
        return Err(Error::other(format!("a cube of ranks is needed, and there are {}", job.size())));
    }
    let len = 8 * (ORDER * ORDER / job.size());
    // Along each axis, to all others on a line.
    let along = |stride: usize| -> Vec<Message> {
        let at = job.rank() / stride % side;
        let rank = |place: usize| job.rank() - at * stride + place % side * stride;
        (1..side).map(|k| Message { to: rank(at + k), tag: (stride * side + k) as u64, from: rank(at + side - k), len }).collect()
    };
    let mut operands = Exchange::new(job, by, [along(1), along(side)].into_iter().flatten().collect())?;
    let mut results = Exchange::new(job, by, along(side * side))?;
    let block = ORDER / side;
    let work = Work::flops(2.0 * (block * block) as f64 * block as f64);
    steps(job, len, || {
        operands.send()?;
        operands.receive()?;
        job.simulation().work(work);
        results.send()?;
        results.receive()
    })
}

/// The microseconds of a step, until the last rank is through; rank 0 has them.
fn steps(job: &Job, bytes: usize, mut step: impl FnMut() -> Result<(), Error>) -> Measured {
    step()?;
    job.sync()?;
    let micros = mean_micros(job, TIMES, step)?;
    let slowest = job.all_reduce_one(micros, ops::max)?;
    Ok(if job.rank() == 0 { vec![(bytes, slowest)] } else { Vec::new() })
}

/// Three sides of about the same length, the longest first: those of a power of two.
fn sides(ranks: usize) -> [usize; 3] {
    let exponent = ranks.trailing_zeros();
    [exponent.div_ceil(3), (exponent + 1) / 3, exponent / 3].map(|power| 1 << power)
}
