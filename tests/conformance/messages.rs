//! Active messages and mailboxes: every message once, in order, whole; what handlers may do.

use std::collections::HashMap;

use global_arrays::{
    active::{ActiveMessages, Handlers, Medium, Reply, Short},
    mailbox::Any,
    prelude::*,
};

const INSERT: Short<(u64, f64)> = Short::new("insert");
const FIND: Short<u64, Option<f64>> = Short::new("find");

/// A table whose keys lie with the members in turns.
pub(crate) fn table(job: &Job) -> Result<(), Error> {
    const KEYS: u64 = 100;
    let (me, size) = (job.rank() as u64, job.size() as u64);
    let owner = |key: u64| (key % size) as usize;
    let mut map = Handlers::new(HashMap::new())
        .on(INSERT, |map, _, (key, value)| _ = map.insert(key, value))
        .on(FIND, |map, _, key| map.get(&key).copied())
        .open(job)?;
    let value = |key: u64| key as f64 + 0.5;
    for key in (0..KEYS).filter(|key| key / 3 % size == me) {
        map.send(owner(key), INSERT, (key, value(key)))?;
    }
    map.sync()?;
    for key in 0..KEYS + size {
        assert_eq!(map.call(owner(key), FIND, key)?, (key < KEYS).then_some(value(key)), "key {key}");
    }
    let asked: Vec<Reply<_>> = (0..20).map(|key| map.call_nb(owner(key), FIND, key)).collect::<Result<_, _>>()?;
    for (key, reply) in asked.into_iter().enumerate().rev() {
        assert_eq!(reply.wait(&mut map)?, Some(value(key as u64)));
    }
    assert_eq!(map.state().len() as u64, (0..KEYS).filter(|key| key % size == me).count() as u64);
    let own = map.close()?;
    assert!(own.iter().all(|(&key, &found)| key % size == me && found == value(key)));
    job.sync()
}

const ORDERED: Medium<u64, u32> = Medium::new("ordered");
const SUM: Medium<(u8, bool), f64, (f64, usize)> = Medium::new("sum");

/// Any length up to 8 KiB comes whole and in order, also through a ring with room for a few; what a handler returns may depend on it.
pub(crate) fn slices(job: &Job) -> Result<(), Error> {
    let (me, size) = (job.rank(), job.size());
    let element = |from: usize, number: u64, k: usize| (from as u32) << 24 ^ (number as u32) << 12 ^ k as u32;
    let mut messages = Handlers::new(vec![0_u64; size])
        .room(0)
        .on_slice(ORDERED, |next: &mut Vec<u64>, context, number, slice: &[u32]| {
            let from = context.from();
            assert_eq!(number, next[from], "of member {from}");
            next[from] += 1;
            assert_eq!(slice.len(), number as usize * 37 % 2049);
            assert!(slice.iter().enumerate().all(|(k, &got)| got == element(from, number, k)), "message {number}");
        })
        .on_slice(SUM, |_, _, (_, negative), slice| (slice.iter().sum::<f64>() * if negative { -1.0 } else { 1.0 }, slice.len()))
        .open(job)?;
    const MESSAGES: u64 = 60;
    for number in 0..MESSAGES {
        for to in 0..size {
            let slice: Vec<u32> = (0..number as usize * 37 % 2049).map(|k| element(me, number, k)).collect();
            messages.send_slice(to, ORDERED, number, &slice)?;
        }
    }
    assert_eq!(messages.call_slice((me + 1) % size, SUM, (1, true), &[1.0; 1024])?, (-1024.0, 1024));
    assert_eq!(messages.call_slice(me, SUM, (1, false), &[])?, (0.0, 0));
    messages.sync()?;
    assert_eq!(*messages.state(), vec![MESSAGES; size]);
    let long = messages.send_slice(0, ORDERED, 0, &[0; 2049]).expect_err("too long").to_string();
    assert!(long.contains("8196 bytes of payload") && long.contains("up to 8192"), "{long}");
    messages.close()?;
    job.sync()
}

const VISIT: Short<(u64, u64)> = Short::new("visit");

/// Distances in a graph, by handlers that send on; each member has its part of them.
pub(crate) fn handlers_that_send(job: &Job) -> Result<(), Error> {
    const NODES: u64 = 300;
    let size = job.size() as u64;
    let neighbours = |node: u64| [(7 * node + 3) % NODES, (node + 1) % NODES, node / 2];
    let mut messages = Handlers::new(HashMap::<u64, u64>::new())
        .room(0)
        .on(VISIT, |found, context, (node, distance)| {
            if found.get(&node).is_some_and(|&known| known <= distance) {
                return;
            }
            found.insert(node, distance);
            for next in neighbours(node) {
                context.send((next % size) as usize, VISIT, (next, distance + 1)).expect("a member and a kind");
            }
        })
        .open(job)?;
    // Twice: the second time finds everything known.
    for _ in 0..2 {
        if job.rank() == 0 {
            messages.send(0, VISIT, (0, 0))?;
        }
        messages.sync()?;
    }
    let found = messages.close()?;
    let mut expected = HashMap::from([(0, 0)]);
    let mut front = vec![0];
    while let Some(node) = front.pop() {
        for next in neighbours(node) {
            let distance = expected[&node] + 1;
            if expected.get(&next).is_none_or(|&known| known > distance) {
                expected.insert(next, distance);
                front.push(next);
            }
        }
    }
    assert_eq!(job.all_reduce_one(found.len(), ops::sum)?, expected.len());
    assert!(found.iter().all(|(node, distance)| expected[node] == *distance && node % size == job.rank() as u64));
    job.sync()
}

const LOOK: Short<usize> = Short::new("look");

/// A handler sees what its sender put before, may use arrays, and may borrow.
pub(crate) fn behind_puts(job: &Job) -> Result<(), Error> {
    let (me, size) = (job.rank(), job.size());
    let a = GlobalArray::<f64, Ix2>::builder(job, [size, 4 * size]).grid([size, 1]).zeros().create()?;
    let mut seen = vec![0; size];
    let mut messages = Handlers::new(())
        .on(LOOK, |(), context, round| {
            let from = context.from();
            let got = a.get(s![me, 4 * from..4 * from + 4]).expect("own elements");
            assert!(got.iter().all(|&x| x >= round as f64), "round {round} of member {from}: {got}");
            seen[from] += 1;
        })
        .open(job)?;
    for round in 1..20 {
        for to in 0..size {
            a.put(s![to..to + 1, 4 * me..4 * me + 4], &Array2::from_elem((1, 4), round as f64))?;
            messages.send(to, LOOK, round)?;
        }
    }
    messages.close()?;
    assert_eq!(seen, vec![19; size]);
    job.sync()
}

/// What does not fit together is an error of the member that sees it, or of all.
pub(crate) fn refusals(job: &Job) -> Result<(), Error> {
    let contains = |error: Error, words: &[&str]| {
        let text = error.to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    const OTHER: Short<u8> = Short::new("insert");
    let mut messages: ActiveMessages<'_, ()> = Handlers::new(()).on(OTHER, |(), _, _| ()).open(job)?;
    contains(messages.send(0, INSERT, (1, 2.0)).expect_err("other types"), &["no handler for messages \"insert\"", "f64"]);
    contains(messages.send(job.size(), OTHER, 1).expect_err("no member"), &["member", "of a group of"]);
    messages.close()?;
    contains(
        Handlers::new(()).on(OTHER, |(), _, _| ()).on(OTHER, |(), _, _| ()).open(job).expect_err("twice"),
        &["two handlers", "insert"],
    );
    if job.size() > 1 {
        // The group cannot be used any more.
        let (group, handlers) = (job.split(0)?, Handlers::new(()));
        let handlers = if job.rank() == 0 { handlers } else { handlers.on(OTHER, |(), _, _| ()) };
        handlers.open(&group).expect_err("members with different kinds");
    }
    let mut mail = job.mailbox::<u8>()?;
    contains(mail.send(job.size(), 0, &[]).expect_err("no member"), &["member", "of a group of"]);
    contains(mail.receive(job.size(), Any).expect_err("no member"), &["member", "of a group of"]);
    contains(mail.try_send(0, 0, &[0; 8193]).expect_err("too long"), &["8193 elements", "up to 8192"]);
    mail.send(job.rank(), 3, &[1, 2, 3])?;
    contains(mail.receive_into(Any, Any, &mut [0; 2]).expect_err("too short"), &["3 elements into 2"]);
    let mut to = [0; 4];
    assert_eq!(mail.receive_into(Any, 3, &mut to)?, (3, job.rank()));
    assert_eq!(to, [1, 2, 3, 0]);
    job.sync()
}

/// Any lengths, taken in another order than they came; all send long messages to all at once.
pub(crate) fn mailbox(job: &Job) -> Result<(), Error> {
    let (me, size) = (job.rank(), job.size());
    let mut mail = job.mailbox::<u16>()?;
    let data =
        |from: usize, tag: u64, len: usize| (0..len).map(|k| (from * 31 + tag as usize * 7 + k) as u16).collect::<Vec<_>>();
    assert_eq!(mail.try_receive(Any, Any)?, None);
    job.barrier()?;
    let lengths = [0, 1, 4096, 4097, 60_000, 400_000];
    for to in 0..size {
        for (tag, &len) in lengths.iter().enumerate() {
            mail.send(to, tag as u64, &data(me, tag as u64, len))?;
        }
    }
    for (tag, &len) in lengths.iter().enumerate().rev() {
        for from in (0..size).rev() {
            let got = mail.receive(from, tag as u64)?;
            assert_eq!((got.from, got.tag, &got.data), (from, tag as u64, &data(from, tag as u64, len)));
        }
    }
    // Of one sender in order, whoever is first.
    let mut next = vec![0; size];
    for number in 0..30 {
        for to in 0..size {
            while !mail.try_send(to, 9, &[number])? {
                // Who is not looked after may be full.
                if let Some(got) = mail.try_receive(Any, 9)? {
                    assert_eq!(got.data, [next[got.from]]);
                    next[got.from] += 1;
                }
            }
        }
    }
    while next.iter().any(|&next| next < 30) {
        let got = mail.receive(Any, Any)?;
        assert_eq!((got.tag, got.data), (9, vec![next[got.from]]));
        next[got.from] += 1;
    }
    // A member may end when it has sent a long message, which a ring holds. The receiver takes it after that: first it waits for another message,
    // which never comes.
    let mut never = job.mailbox::<u16>()?;
    if me == 0 {
        mail.send(size - 1, 1, &data(0, 1, 20_000))?;
    }
    if me == size - 1 {
        if size > 1 {
            let ended = never.receive(0, Any).expect_err("nothing was sent").to_string();
            assert!(ended.contains("rank 0 has ended"), "{ended}");
        }
        assert_eq!(mail.receive(Any, 1)?.data, data(0, 1, 20_000));
    }
    Ok(())
}

/// Endpoints of two groups and of the job at once, whose numbers of members differ; they come and go.
pub(crate) fn of_groups(job: &Job) -> Result<(), Error> {
    let (me, size) = (job.rank(), job.size());
    let half = job.split(me % 2)?;
    for _ in 0..3 {
        let mut all = Handlers::new(0).on(LOOK, |sum, _, value| *sum += value).open(job)?;
        let mut some = Handlers::new(0).on(LOOK, |sum, context, value| *sum += value + context.from()).open(&half)?;
        all.send((me + 1) % size, LOOK, 1)?;
        some.send((half.member() + 1) % half.size(), LOOK, 10)?;
        assert_eq!(some.close()?, 10 + (half.member() + half.size() - 1) % half.size());
        assert_eq!(all.close()?, 1);
    }
    job.sync()
}
