//! What a program costs that calls libfabric itself, between two processes of this machine: a put until it is visible, and a get.
//!
//! ```text
//! cargo bench --package global-arrays-benches --features device --bench ofi -- "tcp;ofi_rxm" sockets
//! ```
//!
//! Each figure is the median of many. Both processes look at their queues all the time, which providers without threads need.

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

use global_arrays::bench::BareEndpoint;

/// Of a card.
const CARD: usize = 80;
const LONGEST: usize = 1 << 20;
const SIZES: [usize; 3] = [8, 4096, LONGEST];

/// Providers that Debian's library has, if none are named.
const PROVIDERS: [&str; 4] = ["tcp;ofi_rxm", "net", "sockets", "shm"];

/// Measurements of each figure, and what one takes about.
const REPEATS: usize = 21;
const TIME: Duration = Duration::from_millis(5);

/// Says to this program that it is the other side.
const OTHER: &str = "GA_BENCH_OFI_PROVIDER";

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    if let Ok(provider) = env::var(OTHER) {
        return other(&provider);
    }
    let named: Vec<String> = env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let providers = if named.is_empty() { PROVIDERS.map(str::to_owned).to_vec() } else { named };
    println!("{:16} {:>10} {:>14} {:>14}", "provider", "bytes", "put, µs", "get, µs");
    for provider in providers {
        if let Err(error) = measure(&provider) {
            println!("{provider:16} skipped: {error}");
        }
    }
    Ok(())
}

fn measure(provider: &str) -> Outcome<()> {
    let mut bare = BareEndpoint::open(provider, 2 * LONGEST)?;
    let mut child =
        Command::new(env::current_exe()?).env(OTHER, provider).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (mut to, mut from) = (child.stdin.take().ok_or("no pipe")?, child.stdout.take().ok_or("no pipe")?);
    let mut card = [0; CARD];
    to.write_all(&bare.card()?)?;
    from.read_exact(&mut card)?;
    bare.meet(&card)?;
    for bytes in SIZES {
        let put = median(|| bare.put(bytes))?;
        let get = median(|| bare.get(bytes))?;
        println!("{provider:16} {bytes:10} {put:14.2} {get:14.2}");
    }
    // The other side ends when its input does.
    drop(to);
    child.wait()?;
    Ok(())
}

/// Microseconds of a call.
fn median(mut call: impl FnMut() -> Result<(), String>) -> Outcome<f64> {
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
    times.sort_by(f64::total_cmp);
    Ok(times[REPEATS / 2])
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
