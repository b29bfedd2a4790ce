//! What our layers add to the software devices of Gemini and EXTOLL: transfers between two ranks that one thread drives, by the calls of the device
//! alone and by a wire.
//!
//! ```text
//! cargo bench --package global-arrays-benches --features device --bench soft
//! ```
//!
//! A put lasts until it is visible. Both run in turns; each figure is the median of medians.

use std::time::{Duration, Instant};

use global_arrays::bench::SoftPair;

const SIZES: [usize; 3] = [8, 4096, 1 << 20];
const TURNS: usize = 7;
const REPEATS: usize = 11;
/// What a measurement takes about.
const TIME: Duration = Duration::from_millis(4);

fn main() {
    println!("{:8} {:>9} {:5} {:>12} {:>12} {:>10} {:>8}", "device", "bytes", "", "alone, ns", "ours, ns", "more, ns", "ratio");
    for (name, mut pair) in [("gemini", SoftPair::gemini()), ("extoll", SoftPair::extoll())] {
        for bytes in SIZES {
            for (reads, what) in [(false, "put"), (true, "get")] {
                let mut times = [const { Vec::new() }; 2];
                for _ in 0..TURNS {
                    times[0].push(nanos(|| pair.alone(bytes, reads)));
                    times[1].push(nanos(|| pair.layered(bytes, reads)));
                }
                let [alone, ours] = times.map(median);
                println!("{name:8} {bytes:9} {what:5} {alone:12.0} {ours:12.0} {:10.0} {:8.3}", ours - alone, ours / alone);
            }
        }
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Nanoseconds of one call: the median of some measurements, behind one that warms up.
fn nanos(mut call: impl FnMut() -> bool) -> f64 {
    let mut measure = |calls: usize| {
        let start = Instant::now();
        (0..calls).for_each(|_| assert!(call(), "bytes that did not move"));
        1e9 * start.elapsed().as_secs_f64() / calls as f64
    };
    let calls = (1e9 * TIME.as_secs_f64() / measure(100)).clamp(1.0, 1e6) as usize;
    median((0..REPEATS).map(|_| measure(calls)).collect())
}
