//! What a rank costs among many: nothing that it keeps may grow as their number.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    env, fs,
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Instant,
};

use global_arrays::{
    active::{Handlers, Short},
    prelude::*,
};

/// Bytes that this process has allocated and not freed.
static BYTES: AtomicI64 = AtomicI64::new(0);

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Bytes of each rank.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    /// On the process's heap.
    heap: i64,
    /// Of the segments, for groups and arrays.
    segments: u64,
    /// All that is in memory, with stacks and control pages, beyond what the process had before.
    resident: u64,
}

/// When it is looked at.
const MOMENTS: [&str; 4] = ["after a sync", "with groups of ranges", "with a group of a list", "with messages between neighbors"];

const VALUE: Short<u64> = Short::new("value");

fn resident() -> u64 {
    let words = fs::read_to_string("/proc/self/statm").expect("the memory of this process");
    words.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("a number of pages") * 4096
}

/// Bytes on the heap, once the threads of the job before have given theirs back.
fn before() -> i64 {
    let mut last = i64::MIN;
    loop {
        let now = BYTES.load(Ordering::Relaxed);
        if now == last {
            return now;
        }
        last = now;
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// Of a job whose ranks make groups of every second rank, a group of all but one, an array of each, and an endpoint that sends to neighbors.
fn costs(network: &str, split: Option<usize>, ranks: usize) -> [Cost; 4] {
    let costs = Mutex::new([Cost::default(); 4]);
    let (heap, pages) = (before(), resident());
    let measure = |job: &Job, moment: usize| {
        job.sync()?;
        if job.rank() == 0 {
            let size = job.size() as u64;
            costs.lock().expect("no panic")[moment] = Cost {
                heap: (BYTES.load(Ordering::Relaxed) - heap) / size as i64,
                segments: job.memory().committed,
                resident: resident().saturating_sub(pages) / size,
            };
        }
        job.sync()
    };
    let body = |job: &Job| {
        let (rank, size) = (job.rank(), job.size());
        measure(job, 0)?;
        let half = job.subgroup_range(rank % 2..size, 2)?;
        let a = GlobalArray1::<u64>::builder(&half, [size]).zeros().create()?;
        measure(job, 1)?;
        let others = || (0..size).filter(|&other| other != 1).collect::<Vec<_>>();
        let others = (rank != 1).then(|| job.subgroup(&others())).transpose()?;
        let b = others.as_ref().map(|others| GlobalArray1::<u64>::builder(others, [size]).zeros().create());
        let b = b.transpose()?;
        measure(job, 2)?;
        with_neighbors(job, || measure(job, 3))?;
        drop((a, b));
        Ok::<(), Error>(())
    };
    let launch = Launch::new().network(network).ranks(ranks).heap(1 << 20);
    let launch = split.into_iter().fold(launch, Launch::ranks_per_node);
    launch.run(body).expect("a job");
    costs.into_inner().expect("no panic")
}

/// Looks at a job whose ranks have sent to their neighbors.
fn with_neighbors(job: &Job, look: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    let (rank, size) = (job.rank(), job.size());
    let mut sums = Handlers::new(0).room(8 << 10).on(VALUE, |sum, _, value| *sum += value).open(job)?;
    for neighbor in [rank + 1, rank + size - 1] {
        sums.send(neighbor % size, VALUE, 1)?;
    }
    sums.sync()?;
    look()?;
    assert_eq!(sums.close()?, 2);
    Ok(())
}

/// What is printed begins here.
const FIRST: usize = 64;
/// Boxes of a group are smaller from more members on, and groups have half the ranks: it grows from here.
const LEAST: usize = 256;

/// Twice as many ranks: each agreement has a round more, with a box, a partner and a leader farther on.
const MORE_HEAP: i64 = 100;
/// A table that doubles its room.
const ONE_STEP: i64 = 512;
/// A box for each of three groups; segments grow by pieces.
const MORE_SEGMENT: u64 = 3 * (64 << 10);

fn measure(network: &str, split: Option<usize>, most: u32) {
    let all: Vec<(usize, _)> = (FIRST.ilog2()..=most).map(|log| (1_usize << log, costs(network, split, 1 << log))).collect();
    for (moment, when) in MOMENTS.iter().enumerate() {
        let nodes = split.map_or(String::new(), |ranks| format!(" in nodes of {ranks}"));
        println!("{network}{nodes}, {when}: bytes of each rank\n ranks       heap   segment   in memory beyond before");
        for (ranks, costs) in &all {
            let Cost { heap, segments, resident } = costs[moment];
            println!("{ranks:6} {heap:10} {segments:9} {resident:23}");
        }
        let from = all.iter().position(|(ranks, _)| *ranks == LEAST).unwrap_or(0);
        let [(few, first), .., (many, last)] = &all[from..] else { unreachable!("several numbers") };
        let doublings = (many / few).ilog2();
        let more = last[moment].heap - first[moment].heap;
        assert!(
            more <= i64::from(doublings) * MORE_HEAP + ONE_STEP,
            "{network}, {when}: {more} bytes of heap more with {many} ranks than with {few}"
        );
        let more = last[moment].segments - first[moment].segments;
        assert!(
            more <= u64::from(doublings) * MORE_SEGMENT,
            "{network}, {when}: {more} bytes more with {many} ranks than with {few}"
        );
    }
}

#[test]
fn what_a_rank_keeps_grows_as_the_logarithm_of_their_number() {
    let long = env::var_os("GA_TEST_LONG").is_some();
    measure("threads", None, if long { 13 } else { 10 });
    measure("threads", Some(64), if long { 11 } else { 9 });
    measure("threads:unmapped", None, if long { 11 } else { 9 });
}

/// Modelled ranks are coroutines, which only the environment may choose.
#[test]
fn what_a_modelled_rank_with_messages_keeps() {
    let mut command = Command::new(env::current_exe().expect("the path of this program"));
    let status = command.args(["--exact", "modelled", "--ignored", "--nocapture"]).env("GA_COROUTINES", "1").status();
    assert!(status.expect("this program again").success());
}

#[test]
#[ignore = "started by what_a_modelled_rank_with_messages_keeps"]
fn modelled() {
    println!("simulated:gemini, messages between neighbors: bytes of each rank on the heap, and seconds");
    let first = Mutex::new(None);
    for ranks in [1_usize << 8, 1 << 10, if env::var_os("GA_TEST_LONG").is_some() { 1 << 13 } else { 1 << 11 }] {
        let (heap, start) = (before(), Instant::now());
        let look = |job: &Job| {
            let each = (BYTES.load(Ordering::Relaxed) - heap) / job.size() as i64;
            let allowed =
                *first.lock().expect("no panic").get_or_insert(each) + MORE_HEAP * i64::from(ranks.ilog2() - 8) + ONE_STEP;
            println!("{ranks:6} {each:10} {:7.1}", start.elapsed().as_secs_f64());
            assert!(each <= allowed, "{each} bytes with {ranks} ranks, and {allowed} are allowed");
        };
        let launch = Launch::new().network("simulated:gemini-ports").ranks(ranks).heap(1 << 22);
        let body = |job: &Job| {
            with_neighbors(job, || {
                (job.rank() == 0).then(|| look(job));
                Ok(())
            })
        };
        launch.run(body).expect("a job");
    }
}
