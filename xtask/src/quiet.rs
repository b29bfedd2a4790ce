//! Waiting until nothing else runs: programs that poll slow down several times when they share
//! their cores, and a figure taken then says nothing.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

const SAMPLES: usize = 5;
const BETWEEN_SAMPLES: Duration = Duration::from_millis(40);
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// How long one command may wait in all, so that a machine that is never quiet still gives figures.
#[derive(Debug)]
pub struct Patience {
    left: Duration,
    /// Measurements that were started although something else ran.
    pub disturbed: usize,
}

impl Patience {
    pub fn new(total: Duration) -> Self {
        Self { left: total, disturbed: 0 }
    }

    pub fn wait(&mut self) {
        let start = Instant::now();
        let limit = self.left.min(LONGEST_WAIT);
        while !quiet() {
            if start.elapsed() >= limit {
                self.disturbed += 1;
                break;
            }
            thread::sleep(Duration::from_millis(200));
        }
        self.left = self.left.saturating_sub(start.elapsed());
    }
}

/// Only this process is runnable in each of a few samples.
fn quiet() -> bool {
    (0..SAMPLES).all(|_| {
        thread::sleep(BETWEEN_SAMPLES);
        runnable().is_none_or(|count| count <= 1)
    })
}

fn runnable() -> Option<u32> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("procs_running "))?.trim().parse().ok()
}
