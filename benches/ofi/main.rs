//! What the layers add to libfabric, between two processes of this machine: transfers of a `GlobalArray` over `ofi`, beside a program that makes
//! the same calls of libfabric itself.
//!
//! ```text
//! cargo bench --package global-arrays-benches --features device --bench ofi -- "tcp;ofi_rxm" sockets
//! ```
//!
//! First comes what the layer between active messages and the library costs: words by an adapter that completes at once, alone and under it.
//!
//! A put lasts until it is visible. All processes look at their queues all the time, which providers without threads need. The programs run in
//! turns; each figure is the median of their medians.

use std::{
    env,
    error::Error,
    io::{Read, Write},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use global_arrays::{
    bench::{BareEndpoint, RmaAtOnce},
    prelude::*,
};

/// Of a card.
const CARD: usize = 80;
const LONGEST: usize = 1 << 20;
const SIZES: [usize; 3] = [8, 4096, LONGEST];

/// Providers that Debian's library has, if none are named.
const PROVIDERS: [&str; 4] = ["tcp;ofi_rxm", "net", "sockets", "shm"];

/// Turns of each program, its measurements of each figure in a turn, and what one takes about.
const TURNS: usize = 5;
const REPEATS: usize = 11;
const TIME: Duration = Duration::from_millis(4);

/// Says to this program that it is the other side of the bare one, or the one with layers.
const OTHER: &str = "GA_BENCH_OFI_PROVIDER";
const LAYERS: &str = "GA_BENCH_OFI_NETWORK";

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Microseconds of a put and of a get of each size.
type Times = [[f64; 2]; SIZES.len()];

fn main() -> Outcome<()> {
    if let Ok(provider) = env::var(OTHER) {
        return other(&provider);
    }
    if let Ok(network) = env::var(LAYERS) {
        return layers(&network);
    }
    layer()?;
    let named: Vec<String> = env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let providers = if named.is_empty() { PROVIDERS.map(str::to_owned).to_vec() } else { named };
    println!("{:16} {:>9} {:5} {:>12} {:>12} {:>8}", "provider", "bytes", "", "bare, µs", "ours, µs", "ratio");
    for provider in providers {
        if let Err(error) = compare(&provider) {
            println!("{provider:16} skipped: {error}");
        }
    }
    Ok(())
}

fn moved(has_ended: bool) -> Outcome<()> {
    has_ended.then_some(()).ok_or_else(|| "a word did not move".into())
}

/// A word that is put and is visible, and one that is got, by an adapter that completes at once.
fn layer() -> Outcome<()> {
    let mut words = RmaAtOnce::new();
    println!("{:16} {:>9} {:5} {:>12} {:>12} {:>8}", "adapter", "bytes", "", "alone, ns", "under, ns", "more");
    for (reads, name) in [(false, "put"), (true, "get")] {
        let mut times = [const { Vec::new() }; 2];
        for _ in 0..TURNS {
            times[0].push(1e3 * measure(|| moved(words.alone(reads)))?);
            times[1].push(1e3 * measure(|| moved(words.under(reads)))?);
        }
        let [alone, under] = times.map(median);
        println!("{:16} {:9} {name:5} {alone:12.0} {under:12.0} {:8.0}", "at once", 8, under - alone);
    }
    Ok(())
}

fn compare(provider: &str) -> Outcome<()> {
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        turns.push([bare(provider)?, ours(&format!("ofi:{provider}+hidden"))?]);
    }
    for (size, bytes) in SIZES.into_iter().enumerate() {
        for (transfer, name) in ["put", "get"].into_iter().enumerate() {
            let [bare, ours] = [0, 1].map(|which| median(turns.iter().map(|turn| turn[which][size][transfer]).collect()));
            println!("{provider:16} {bytes:9} {name:5} {bare:12.2} {ours:12.2} {:8.2}", ours / bare);
        }
    }
    Ok(())
}

/// The times of a program that calls libfabric.
fn bare(provider: &str) -> Outcome<Times> {
    let mut bare = BareEndpoint::open(provider, 2 * LONGEST)?;
    let mut child =
        Command::new(env::current_exe()?).env(OTHER, provider).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (mut to, mut from) = (child.stdin.take().ok_or("no pipe")?, child.stdout.take().ok_or("no pipe")?);
    let mut card = [0; CARD];
    to.write_all(&bare.card()?)?;
    from.read_exact(&mut card)?;
    bare.meet(&card)?;
    let mut times = Times::default();
    for (bytes, times) in SIZES.into_iter().zip(&mut times) {
        *times = [measure(|| Ok(bare.put(bytes)?))?, measure(|| Ok(bare.get(bytes)?))?];
    }
    // The other side ends when its input does.
    drop(to);
    child.wait()?;
    Ok(times)
}

/// The times of transfers of an array.
fn ours(network: &str) -> Outcome<Times> {
    let output = Command::new(env::current_exe()?).env(LAYERS, network).stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8(output.stdout)?;
    let mut numbers = text.split_whitespace().map(str::parse);
    let mut times = Times::default();
    for time in times.as_flattened_mut() {
        *time = numbers.next().ok_or("the program with layers failed")??;
    }
    Ok(times)
}

/// Prints the times of transfers of an array.
fn layers(network: &str) -> Outcome<()> {
    Launch::new().network(network).ranks(2).run(|job| -> Outcome<()> {
        let words = LONGEST / size_of::<f64>();
        let array = GlobalArray::builder(job, [2, words]).grid([2, 1]).fill(1.0).create()?;
        if job.rank() == 0 {
            let mut values = Array1::<f64>::ones(words);
            for bytes in SIZES {
                let words = bytes / size_of::<f64>();
                let put = measure(|| {
                    array.put(s![1, ..words], values.slice(s![..words]))?;
                    Ok(array.fence()?)
                })?;
                let get = measure(|| Ok(array.get_into(s![1, ..words], values.slice_mut(s![..words]))?))?;
                println!("{put} {get}");
            }
        }
        Ok(job.barrier()?)
    })?;
    Ok(())
}

/// Microseconds of a call.
fn measure(mut call: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
    let start = Instant::now();
    let mut count = 0_u32;
    while start.elapsed() < TIME {
        call()?;
        count += 1;
    }
    let mut times = Vec::with_capacity(REPEATS);
    for _ in 0..REPEATS {
        let start = Instant::now();
        (0..count).try_for_each(|_| call())?;
        times.push(1e6 * start.elapsed().as_secs_f64() / f64::from(count));
    }
    Ok(median(times))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Answers until there is no more input.
fn other(provider: &str) -> Outcome<()> {
    let mut bare = BareEndpoint::open(provider, 2 * LONGEST)?;
    let (mut from, mut card) = (std::io::stdin(), [0; CARD]);
    from.read_exact(&mut card)?;
    bare.meet(&card)?;
    let mut to = std::io::stdout();
    to.write_all(&bare.card()?)?;
    to.flush()?;
    let is_over = Arc::new(AtomicBool::new(false));
    let over = is_over.clone();
    // There is nothing more to read; it ends.
    thread::spawn(move || {
        let _ = from.read(&mut [0]);
        over.store(true, Ordering::Relaxed);
    });
    while !is_over.load(Ordering::Relaxed) {
        bare.poll()?;
    }
    Ok(())
}
