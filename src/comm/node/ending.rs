//! The end of a job, as the ranks of a machine tell each other, and how a process ended.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use super::Fabric;

/// `over` while the job runs.
const RUNNING: u32 = 0;
/// A rank is writing the cause.
const ENDING: u32 = 1;
/// The job is over.
const OVER: u32 = 2;
/// This process was forked by a rank: the job is its parent's. Nothing that a network shares with the parent may be touched, and nobody
/// touches this process's memory for the job: transfers under way are the parent's.
pub(super) const INHERITED: u32 = 3;

/// The longest that a rank takes to write why it ends the job, if it is not killed meanwhile.
const LAST_WORDS: Duration = Duration::from_millis(200);

impl Fabric {
    /// Counts a rank of this process that has no object left whose memory is here.
    pub(crate) fn let_go(&self) {
        // Release pairs with the Acquire below.
        self.empty_handed.fetch_add(1, Ordering::Release);
    }

    fn have_let_go(&self, ranks: usize) -> bool {
        self.empty_handed.load(Ordering::Acquire) == ranks
    }

    /// Ends a job whose ranks are this process, or threads of it, and have ended. Handles that outlive it find it over. Its file
    /// is closed, whether or not handles remain. Its memory is given back, unless that is an object's.
    pub(crate) fn end_here(self: Arc<Self>) {
        self.end(None, "it has ended");
        // Without a handle all is unmapped at once.
        if Arc::strong_count(&self) > 1 {
            let segments = self.first..self.segment_start(self.ranks);
            let pages = if self.have_let_go(self.ranks) { segments.clone() } else { 0..0 };
            self.mapping.retire(segments, pages, true);
        }
    }

    /// As [`end_here`](Self::end_here), for a rank of this process where other processes are ranks too. They may read its memory
    /// until all have finished, and must not find zeros there.
    pub(crate) fn end_of(&self, local: usize) {
        self.end(None, "it has ended");
        let segments = self.first..self.segment_start(self.ranks);
        let is_free = self.have_let_go(1) && (0..self.ranks).all(|rank| self.finished(rank));
        let pages = if is_free { self.segment_start(local)..self.segment_start(local + 1) } else { 0..0 };
        self.mapping.retire(segments, pages, false);
    }

    /// Returns true if this process was forked by one that takes part in the job. What stands here is its own then.
    #[inline]
    pub(crate) fn is_inherited(&self) -> bool {
        self.over().load(Ordering::Relaxed) == INHERITED
    }

    pub(crate) fn over(&self) -> &AtomicU32 {
        &self.header().over
    }

    /// Ends the job for everyone because of a rank, or of none; the first cause stays. Returns true if this is the first.
    pub(crate) fn end(&self, culprit: Option<usize>, cause: &str) -> bool {
        let header = self.header();
        let first = header.over.compare_exchange(RUNNING, ENDING, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if first {
            header.culprit.store(culprit.map_or(0, |rank| rank as u32 + 1), Ordering::Relaxed);
            header.cause.set(cause);
            // Release pairs with the Acquire in `failure`.
            header.over.store(OVER, Ordering::Release);
        }
        first
    }

    /// As [`end`](Self::end), because of a rank whose machine does not answer any more.
    pub(crate) fn end_with_lost(&self, culprit: usize, cause: &str) -> bool {
        self.header().lost.store(1, Ordering::Relaxed);
        self.end(Some(culprit), cause)
    }

    /// Returns true if a machine is lost: nobody there will report why the job is over.
    pub(crate) fn has_lost(&self) -> bool {
        self.header().lost.load(Ordering::Relaxed) != 0
    }

    /// The rank that ended the job and the cause, once it is over. Waits for a rank that is about to write them. Otherwise
    /// another rank, which only saw that the job ends, could be taken for the culprit.
    pub(crate) fn failure(&self) -> Option<(Option<usize>, String)> {
        let header = self.header();
        if header.over.load(Ordering::Relaxed) == ENDING {
            let start = Instant::now();
            while header.over.load(Ordering::Relaxed) == ENDING && start.elapsed() < LAST_WORDS {
                std::thread::yield_now();
            }
        }
        let rank = || (header.culprit.load(Ordering::Relaxed) as usize).checked_sub(1);
        (header.over.load(Ordering::Acquire) >= OVER).then(|| (rank(), header.cause.get()))
    }

    /// The cause of the job's end, for people.
    pub(crate) fn cause(&self) -> String {
        match self.failure() {
            Some((Some(rank), cause)) => format!("rank {rank} {cause}"),
            Some((None, cause)) => cause,
            None => "it is being ended".into(),
        }
    }

    /// Records that the body of a rank returned well.
    pub(crate) fn set_finished(&self, rank: usize) {
        self.control(rank).finished.store(1, Ordering::Release);
    }

    /// Returns true if the body of a rank returned well.
    pub(crate) fn finished(&self, rank: usize) -> bool {
        self.control(rank).finished.load(Ordering::Acquire) == 1
    }

    /// The last words that a rank left.
    pub(crate) fn last_words(&self, rank: usize) -> Option<String> {
        Some(self.control(rank).last_words.get()).filter(|words| !words.is_empty())
    }

    /// Leaves a rank's last words for its supervisor.
    pub(crate) fn set_last_words(&self, rank: usize, words: &str) {
        self.control(rank).last_words.set(words);
    }
}

/// What a signal did to a rank, to stand behind "rank 1". Only SIGKILL "killed" it: other signals have other reasons.
pub fn ended_by(signal: i32) -> String {
    let name = match signal {
        libc::SIGKILL => return "was killed by SIGKILL (kill -9, or the OOM killer)".into(),
        libc::SIGTERM => "SIGTERM (kill, its launcher, or a batch system)",
        libc::SIGINT => "SIGINT",
        libc::SIGHUP => "SIGHUP",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGBUS => "SIGBUS",
        libc::SIGABRT => "SIGABRT",
        libc::SIGILL => "SIGILL",
        libc::SIGFPE => "SIGFPE",
        libc::SIGXCPU => "SIGXCPU (CPU time limit)",
        _ => return format!("was ended by signal {signal}"),
    };
    format!("was ended by {name}")
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn who_is_about_to_end_the_job_is_waited_for() {
        let fabric = Fabric::new(2, 1 << 20, false).unwrap();
        assert_eq!(fabric.failure(), None);
        let header = fabric.header();
        header.over.store(ENDING, Ordering::Relaxed);
        std::thread::scope(|scope| {
            let seen = scope.spawn(|| fabric.failure());
            std::thread::sleep(Duration::from_millis(20));
            header.culprit.store(2, Ordering::Relaxed);
            header.cause.set("has had enough");
            header.over.store(OVER, Ordering::Release);
            assert_eq!(seen.join().unwrap(), Some((Some(1), "has had enough".into())));
        });
        // A rank that was killed before it wrote the cause.
        header.over.store(ENDING, Ordering::Relaxed);
        assert_eq!((fabric.failure(), fabric.cause()), (None, "it is being ended".into()));
    }

    #[test]
    fn killed_is_who_was_killed() {
        assert!(ended_by(libc::SIGKILL).starts_with("was killed by SIGKILL"));
        for (signal, name) in [(libc::SIGTERM, "SIGTERM"), (libc::SIGSEGV, "SIGSEGV"), (libc::SIGUSR1, "signal 10")] {
            let text = ended_by(signal);
            assert!(text.starts_with(&format!("was ended by {name}")) && !text.contains("kill -9"), "{text}");
        }
    }
}
