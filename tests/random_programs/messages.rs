//! Random programs of active messages and mailboxes.
//!
//! All ranks draw one sequence of sends, calls, polls and syncs, and each carries out its own part. A message is a number that says all about
//! it: where it goes, what it carries, and which ones its handler sends on. So everybody knows what each member must have handled.

use std::collections::VecDeque;

use global_arrays::{
    active::{Handlers, Medium, Short},
    mailbox::{Any, Mailbox},
    prelude::*,
};

use crate::random::Random;

const FORWARD: Short<(u64, u64), u64> = Short::new("forward");
const CARRY: Medium<(u64, u64), u16, (usize, u64)> = Medium::new("carry");

fn hash(value: u64) -> u64 {
    Random::new(value ^ 0x5bd1_e995_7fb5_3aa1).next()
}

fn payload(message: u64) -> Vec<u16> {
    let len = if message.is_multiple_of(5) { hash(message) as usize % 4097 } else { message as usize % 40 };
    contents(message, len)
}

fn contents(message: u64, len: usize) -> Vec<u16> {
    (0..len).map(|k| (message as usize + 3 * k) as u16).collect()
}

/// What the handler of a message sends on, with so many generations to come: member, message.
fn sent_on(message: u64, generations: u64, members: usize) -> impl Iterator<Item = (usize, u64)> {
    let children = if generations == 0 { 0 } else { hash(message) % 3 };
    (0..children).map(move |child| hash(message ^ (child + 1) << 50)).map(move |child| (child as usize % members, child))
}

/// Number, and sum of hashes.
type Handled = Vec<(u64, u64)>;

/// Adds what comes of a message that goes to a member.
fn expect(all: &mut Handled, to: usize, message: u64, generations: u64) {
    all[to] = (all[to].0 + 1, all[to].1.wrapping_add(hash(message)));
    let members = all.len();
    sent_on(message, generations, members).for_each(|(to, child)| expect(all, to, child, generations - 1));
}

pub(crate) fn program(job: &Job, seed: u64) -> Result<(), Error> {
    let mut random = Random::new(seed + 9_000_000);
    for _ in 0..random.between(1, 3) {
        if random.chance(30) {
            mail(job, &mut random)?;
        } else {
            active(job, &mut random)?;
        }
    }
    job.sync()
}

fn active(job: &Job, random: &mut Random) -> Result<(), Error> {
    let (me, size) = (job.rank(), job.size());
    let mut messages = Handlers::new((0, 0))
        .room(if random.chance(50) { 0 } else { 1 << 16 })
        .on(FORWARD, |(count, sum): &mut (u64, u64), context, (message, generations)| {
            (*count, *sum) = (*count + 1, sum.wrapping_add(hash(message)));
            for (to, child) in sent_on(message, generations, size) {
                if child % 2 == 0 {
                    context.send(to, FORWARD, (child, generations - 1)).expect("a member and a kind");
                } else {
                    context.send_slice(to, CARRY, (child, generations - 1), &payload(child)).expect("a member and a kind");
                }
            }
            hash(message)
        })
        .on_slice(CARRY, |(count, sum), context, (message, generations), slice| {
            assert_eq!(slice, payload(message), "message {message} of member {}", context.from());
            (*count, *sum) = (*count + 1, sum.wrapping_add(hash(message)));
            for (to, child) in sent_on(message, generations, size) {
                context.send(to, FORWARD, (child, generations - 1)).expect("a member and a kind");
            }
            (slice.len(), hash(message))
        })
        .open(job)?;
    let (mut expected, mut replies) = (vec![(0, 0); size], VecDeque::new());
    for _ in 0..random.between(1, 60) {
        let (from, to, message, generations) =
            (random.below(size), random.below(size), random.next() >> 1, random.below(5) as u64);
        let way = random.below(6);
        if way < 5 {
            expect(&mut expected, to, message, generations);
        }
        if way == 5 && random.chance(20) {
            messages.sync()?;
            assert_eq!(*messages.state(), expected[me]);
            // Who goes on sends more.
            job.barrier()?;
        }
        if from != me {
            continue;
        }
        match way {
            0 => messages.send(to, FORWARD, (message, generations))?,
            1 => messages.send_slice(to, CARRY, (message, generations), &payload(message))?,
            2 => assert_eq!(messages.call(to, FORWARD, (message, generations))?, hash(message)),
            3 => {
                let answer = messages.call_slice(to, CARRY, (message, generations), &payload(message))?;
                assert_eq!(answer, (payload(message).len(), hash(message)));
            }
            4 => replies.push_back((messages.call_nb(to, FORWARD, (message, generations))?, message)),
            _ => messages.poll()?,
        }
        if replies.len() > random_depth(message) {
            let (reply, message) = replies.pop_front().expect("one at least");
            assert_eq!(reply.wait(&mut messages)?, hash(message));
        }
    }
    for (reply, message) in replies {
        assert_eq!(reply.wait(&mut messages)?, hash(message));
    }
    assert_eq!(messages.close()?, expected[me]);
    Ok(())
}

/// Calls that are open at once, by a number that no other rank needs.
fn random_depth(message: u64) -> usize {
    message as usize % 4
}

/// Each message goes from one member to another; what they have not received in between, by sender or tag, they receive in the end.
fn mail(job: &Job, random: &mut Random) -> Result<(), Error> {
    const TAGS: usize = 3;
    let (me, size) = (job.rank(), job.size());
    let mut mail: Mailbox<u16> = job.mailbox()?;
    // Of each sender with each tag, in order. A sender may be ahead of what this member has drawn.
    let (mut expected, mut came) = (vec![Vec::new(); size * TAGS], vec![Vec::new(); size * TAGS]);
    for _ in 0..random.between(1, 60) {
        let (from, to, tag) = (random.below(size), random.below(size), random.below(TAGS));
        let message = random.next() >> 1;
        // One that is fetched, in up to four parts.
        let long = || contents(message, 9000 + hash(message) as usize % 90_000);
        let data = if message.is_multiple_of(11) { long() } else { payload(message) };
        let tries = random.chance(30) && data.len() <= 4096;
        let receives = random.below(3 * size);
        if to == me {
            expected[from * TAGS + tag].push(data.clone());
        }
        if from == me && !(tries && mail.try_send(to, tag as u64, &data)?) {
            mail.send(to, tag as u64, &data)?;
        }
        if receives == me
            && let Some(got) = mail.try_receive(Any, Any)?
        {
            came[got.from * TAGS + got.tag as usize].push(got.data);
        }
    }
    while let Some(at) = (0..size * TAGS).rfind(|&at| came[at].len() < expected[at].len()) {
        let (from, tag) = (at / TAGS, (at % TAGS) as u64);
        let got = match at % 4 {
            0 => mail.receive(Any, Any)?,
            1 => mail.receive(from, Any)?,
            2 => mail.receive(Any, tag)?,
            _ => mail.receive(from, tag)?,
        };
        came[got.from * TAGS + got.tag as usize].push(got.data);
    }
    assert!(mail.try_receive(Any, Any)?.is_none() && came == expected, "other messages came");
    Ok(())
}
