//! Tasks that make more tasks: an integral by Simpson's rule, with short intervals where the function is steep.
//!
//! A task is an interval. Whoever takes it adds its integral to the result, or puts its two halves at the end of the queue. The queue is a
//! global array; counters tell where the next task is taken, where the next one is put, and how many are pending.

use global_arrays::prelude::*;

/// Places of the queue, and the error of an interval of length 1.
const TASKS: usize = 1 << 14;
const TOLERANCE: f64 = 1e-6;

/// A peak at 0.3.
const WIDTH: f64 = 1e-3;

fn f(x: f64) -> f64 {
    1.0 / ((x - 0.3).powi(2) + WIDTH * WIDTH)
}

fn simpson(a: f64, b: f64) -> f64 {
    (b - a) / 6.0 * (f(a) + 4.0 * f(a.midpoint(b)) + f(b))
}

fn main() -> Result<(), Error> {
    run(|job| {
        // The intervals, and 1 for each that is there.
        let queue = GlobalArray2::<f64>::builder(job, [TASKS, 2]).block_cyclic([16, 2]).name("queue").create()?;
        let ready = GlobalArray1::<i64>::builder(job, TASKS).block_cyclic([16]).name("ready").zeros().create()?;
        let integral = GlobalArray1::<f64>::builder(job, 1).name("integral").zeros().create()?;
        let pending = GlobalArray1::<i64>::builder(job, 1).name("pending tasks").fill(1).create()?;
        let (takes, puts) = (Counter::new(job)?, Counter::new(job)?);
        let put = |a: f64, b: f64| -> Result<(), Error> {
            let place = puts.next_below(TASKS)?.ok_or_else(|| Error::other("the queue is full"))?;
            queue.put(s![place, ..], &Array1::from(vec![a, b]))?;
            queue.fence()?; // the interval is there before it is ready
            ready.fetch_add(place, 1).map(|_| ())
        };
        // The next task, as soon as somebody has put it there; none if all are done.
        let take = || -> Result<Option<Array1<f64>>, Error> {
            let Some(place) = takes.next_below(TASKS)? else { return Ok(None) };
            while ready.fetch_add(place, 0)? == 0 {
                if pending.fetch_add(0, 0)? == 0 {
                    return Ok(None);
                }
                std::thread::yield_now();
            }
            queue.get(s![place, ..]).map(Some)
        };

        if job.rank() == 0 {
            put(0.0, 1.0)?;
        }
        let mut done = 0;
        while let Some(interval) = take()? {
            let (a, b) = (interval[0], interval[1]);
            let middle = a.midpoint(b);
            let (coarse, fine) = (simpson(a, b), simpson(a, middle) + simpson(middle, b));
            let error = (fine - coarse) / 15.0;
            if error.abs() < TOLERANCE * (b - a) {
                integral.accumulate(.., 1.0, &Array1::from(vec![fine + error]))?;
            } else {
                pending.fetch_add(0, 2)?; // before they can be taken
                put(a, middle)?;
                put(middle, b)?;
            }
            pending.fetch_add(0, -1)?;
            done += 1;
        }
        job.sync()?;

        let exact = ((0.7 / WIDTH).atan() + (0.3 / WIDTH).atan()) / WIDTH;
        let error = (integral.load(0)? - exact).abs();
        println!("rank {} did {done} of {} tasks; the integral's error is {error:.1e}", job.rank(), puts.get()?);
        if error < TOLERANCE { Ok(()) } else { Err(Error::other(format!("the integral is wrong by {error:e}"))) }
    })
}
