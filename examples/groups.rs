//! A study of many cases by groups of ranks: each group takes the next case from a shared counter and computes it with arrays of its own.
//!
//! A case is a rod that cools with its ends at zero, with its own time step. The initial temperature is a mode of the rod, so what is left
//! of it is known.

use global_arrays::prelude::*;

/// Inner points of the rod, time steps, cases, and ranks of a group.
const N: usize = 63;
const STEPS: usize = 200;
const CASES: usize = 12;
const SIZE: usize = 2;

/// The time step of a case, divided by the square of the grid spacing.
fn step(case: usize) -> f64 {
    0.5 * (case + 1) as f64 / CASES as f64
}

/// The temperature at a point in the middle, by the ranks of a group.
fn cools(group: &Group, r: f64) -> Result<f64, Error> {
    // With the two ends, which stay zero.
    let mut old = GlobalArray1::<f64>::builder(group, N + 2).name("temperature").zeros().create()?;
    let mut new = old.duplicate("next")?;
    let mine = old.blocks(group.member()).next().map_or(1..1, |block| {
        let (start, count) = (block.patch.start()[0], block.patch.count()[0]);
        start.max(1)..(start + count).min(N + 1).max(start.max(1))
    });
    let wave = |i: usize| (std::f64::consts::PI * i as f64 / (N + 1) as f64).sin();
    old.put(s![mine.clone()], &mine.clone().map(wave).collect::<Array1<f64>>())?;
    group.sync()?;
    for _ in 0..STEPS {
        let u = old.get(s![mine.start - 1..mine.end + 1])?;
        let n = mine.len();
        let next = &u.slice(s![1..=n]) + r * (&u.slice(s![..n]) - 2.0 * &u.slice(s![1..=n]) + u.slice(s![2..]));
        new.put(s![mine.clone()], &next)?;
        group.sync()?;
        std::mem::swap(&mut old, &mut new);
    }
    old.load(N.div_ceil(2))
}

fn main() -> Result<(), Error> {
    run(|job| {
        let group = job.split(job.rank() / SIZE)?;
        let results = GlobalArray1::<f64>::builder(job, CASES).name("results").zeros().create()?;
        let cases = Counter::new(job)?;
        let mut computed = 0;
        loop {
            // One rank asks for the group.
            let mut case = [if group.member() == 0 { cases.fetch_add(1)? } else { 0 }];
            group.broadcast(0, &mut case)?;
            let [case] = case;
            if case >= CASES {
                break;
            }
            let temperature = cools(&group, step(case))?;
            if group.member() == 0 {
                results.store(case, temperature)?;
                computed += 1;
            }
        }
        job.sync()?;

        // Each step multiplies a mode by the same factor.
        let left = |r: f64| 1.0 - 4.0 * r * (std::f64::consts::FRAC_PI_2 / (N + 1) as f64).sin().powi(2);
        let error = |(case, u): (usize, &f64)| (u - left(step(case)).powi(STEPS as i32)).abs();
        let larger = |a: f64, b: f64| if a.is_nan() || b <= a { a } else { b };
        let worst = results.get(..)?.iter().enumerate().map(error).fold(0.0, larger);
        if group.member() == 0 {
            println!("a group of {} computed {computed} of {CASES} cases; largest error {worst:.1e}", group.size());
        }
        if worst < 1e-12 { Ok(()) } else { Err(Error::other(format!("a temperature is wrong by {worst:e}"))) }
    })
}
