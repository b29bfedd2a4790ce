//! A hash table, a breadth-first search and a task farm: `cargo run --release --example messages`.

use std::collections::HashMap;

use global_arrays::{
    active::{Handlers, Short},
    mailbox::Any,
    prelude::*,
};

const INSERT: Short<(u64, f64)> = Short::new("insert");
const FIND: Short<u64, Option<f64>> = Short::new("find");
const VISIT: Short<(u64, u64)> = Short::new("visit");

fn main() -> Result<(), Error> {
    run(|job| {
        let (me, ranks) = (job.rank(), job.size());
        let owner = |key: u64| (key % ranks as u64) as usize;

        // A table whose keys lie with all ranks: any rank inserts and finds any key.
        let mut table = Handlers::new(HashMap::new())
            .on(INSERT, |map, _, (key, value)| _ = map.insert(key, value))
            .on(FIND, |map, _, key| map.get(&key).copied())
            .open(job)?;
        for key in (0..1000).filter(|key| key % ranks as u64 == (me + 1) as u64 % ranks as u64) {
            table.send(owner(key), INSERT, (key, (key as f64).sqrt()))?;
        }
        table.sync()?;
        assert_eq!(table.call(owner(49), FIND, 49)?, Some(7.0));
        assert_eq!(table.call(owner(1000), FIND, 1000)?, None);
        let keys = job.all_reduce_one(table.close()?.len(), ops::sum)?;

        // Steps from 1 to each number by n -> 2n and n -> n - 1 below a bound. A handler that finds a shorter way tells it to the owners of the next numbers.
        const BOUND: u64 = 10_001;
        let mut search = Handlers::new(HashMap::new())
            .on(VISIT, |steps: &mut HashMap<u64, u64>, context, (number, way)| {
                if number == 0 || number >= BOUND || steps.get(&number).is_some_and(|&known| known <= way) {
                    return;
                }
                steps.insert(number, way);
                for next in [2 * number, number - 1] {
                    context.send(owner(next), VISIT, (next, way + 1)).expect("a member and a kind that exist");
                }
            })
            .open(job)?;
        if me == 0 {
            search.send(owner(1), VISIT, (1, 0))?;
        }
        search.sync()?;
        let steps = search.close()?;
        let longest = job.all_reduce_one(steps.values().copied().max().unwrap_or(0), ops::max)?;
        assert_eq!(job.all_reduce_one(steps.len(), ops::sum)?, BOUND as usize - 1);

        // Rank 0 hands out tasks that differ in length, to whoever is free.
        const READY: u64 = 0;
        let mut mail = job.mailbox::<u64>()?;
        let mut sum = 0;
        if me == 0 {
            let mut tasks = 1..=100_u64;
            let mut workers = ranks - 1;
            while workers > 0 {
                let ready = mail.receive(Any, READY)?;
                sum += ready.data.iter().sum::<u64>();
                let task: Vec<u64> = tasks.next().into_iter().collect();
                workers -= usize::from(task.is_empty());
                mail.send(ready.from, READY, &task)?;
            }
            // Nobody else.
            sum += tasks.sum::<u64>();
        } else {
            let mut result = Vec::new();
            loop {
                mail.send(0, READY, &result)?;
                let task = mail.receive(0, READY)?.data;
                if task.is_empty() {
                    break;
                }
                result = task.iter().map(|&n| (1..=n).sum::<u64>() * 2 / (n + 1)).collect();
            }
        }
        if me == 0 {
            println!("{keys} keys in the table; at most {longest} steps; the tasks sum up to {sum}");
            assert_eq!((keys, sum), (1000, 5050));
        }
        job.sync()
    })
}
