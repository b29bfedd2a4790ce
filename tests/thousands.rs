//! What a rank costs among many: nothing that it keeps may grow as their number.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    env, fs,
    sync::{
        Mutex,
        atomic::{AtomicI64, Ordering},
    },
};

use global_arrays::prelude::*;

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
    /// All that is in memory, with stacks and control pages.
    resident: u64,
}

/// When it is looked at.
const MOMENTS: [&str; 3] = ["after a sync", "with groups of ranges", "with a group of a list"];

fn resident() -> u64 {
    let words = fs::read_to_string("/proc/self/statm").expect("the memory of this process");
    words.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("a number of pages") * 4096
}

/// Of a job whose ranks make groups of every second rank, a group of all but one, and an array of each.
fn costs(ranks: usize) -> [Cost; 3] {
    let costs = Mutex::new([Cost::default(); 3]);
    let (heap, pages) = (BYTES.load(Ordering::Relaxed), resident());
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
        drop((a, b));
        Ok::<(), Error>(())
    };
    Launch::new().network("threads").ranks(ranks).heap(1 << 20).run(body).expect("a job");
    costs.into_inner().expect("no panic")
}

#[test]
fn what_a_rank_keeps_grows_as_the_logarithm_of_their_number() {
    let long = env::var_os("GA_TEST_LONG").is_some();
    let all: Vec<_> = (6..=if long { 13 } else { 10 }).map(|log| (1 << log, costs(1 << log))).collect();
    for (moment, when) in MOMENTS.iter().enumerate() {
        println!("{when}: bytes of each rank\n ranks       heap   segment   in memory");
        for (ranks, costs) in &all {
            let Cost { heap, segments, resident } = costs[moment];
            println!("{ranks:6} {heap:10} {segments:9} {resident:11}");
        }
        for pair in all.windows(2) {
            let [less, more] = [0, 1].map(|at| pair[at].1[moment].heap);
            // Twice as many: a round more of each agreement, with a partner and a leader further on.
            assert!(more - less < 128, "{when}: {less} bytes with {} ranks, {more} with {}", pair[0].0, pair[1].0);
        }
    }
}
