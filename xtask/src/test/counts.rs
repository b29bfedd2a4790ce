//! Counting what suites say of themselves.
//!
//! Understood are libtest's `test result:` lines and the plain closing line `N passed, N failed, N skipped` of suites
//! with a `main` of their own; a suite that says neither counts as one test. What was skipped is told by libtest's
//! `ignored, REASON` and by lines that begin with `skipped: `.

use crate::child::Outcome;
use anyhow::Result;
use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// One suite's result.
#[derive(Debug)]
pub struct Report {
    pub name: String,
    pub counts: Counts,
    pub seconds: f64,
    /// What was skipped and why.
    pub skipped: Vec<String>,
    /// What went wrong, with the end of what was printed.
    pub failure: Option<String>,
}

impl Report {
    /// One test that is not a suite.
    pub fn single(name: &str, result: Result<(), String>) -> Self {
        let failed = usize::from(result.is_err());
        let counts = Counts { passed: 1 - failed, failed, skipped: 0 };
        Self { name: name.to_owned(), counts, seconds: 0.0, skipped: Vec::new(), failure: result.err() }
    }

    /// One test that could not be run.
    pub fn skipped(name: &str, why: &str) -> Self {
        let counts = Counts { skipped: 1, ..Counts::default() };
        Self { name: name.to_owned(), counts, seconds: 0.0, skipped: vec![why.to_owned()], failure: None }
    }

    /// The reports of a part; one failed test if it could not run.
    pub fn of_part(name: &str, reports: Result<Vec<Report>>) -> Vec<Report> {
        reports.unwrap_or_else(|error| vec![Self::single(name, Err(format!("{error:#}"))).said()])
    }

    /// Prints it.
    pub fn said(self) -> Self {
        println!("{self}");
        self
    }

    /// The same with the time of a program.
    pub fn lasting(self, time: Duration) -> Self {
        Self { seconds: time.as_secs_f64(), ..self }
    }

    /// What a suite's output says; a bad end or a process left behind is a failure whatever it counted.
    pub fn of(name: &str, outcome: &Outcome) -> Self {
        let mut counts = Counts::default();
        let mut counted = false;
        for line in outcome.stdout.lines() {
            if let Some(more) = libtest(line).or_else(|| plain(line)) {
                counts += more;
                counted = true;
            }
        }
        let mut failure = None;
        if !outcome.success() {
            // The end of the output need not name what failed: the error stream comes last.
            let failed: String =
                outcome.stdout.lines().filter(|line| line.ends_with(" ... FAILED")).map(|line| format!("{line}\n")).collect();
            failure = Some(format!("{}\n{failed}{}", outcome.end, outcome.tail(40)));
        } else if !outcome.left_behind.is_empty() {
            failure = Some(format!("left behind: {}", outcome.left_behind.join("; ")));
        }
        if failure.is_some() {
            counts.failed = counts.failed.max(1);
        } else if !counted {
            counts.passed = 1;
        }
        let skipped = outcome.stdout.lines().filter_map(reason).collect();
        Self { name: name.to_owned(), counts, seconds: outcome.elapsed.as_secs_f64(), skipped, failure }
    }

    /// A failure if no test was run: a filter that matches nothing any more looks like success.
    pub fn not_empty(mut self) -> Self {
        if self.failure.is_none() && self.counts.passed == 0 {
            self.counts.failed = 1;
            self.failure = Some("no test was run".to_owned());
        }
        self
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.counts {
            Counts { failed: 1.., .. } => "FAILED",
            Counts { passed: 0, skipped: 1.., .. } => "skip",
            _ => "ok",
        };
        write!(f, "{mark:6} {:44} {} ({:.1} s)", self.name, self.counts, self.seconds)?;
        for skipped in &self.skipped {
            write!(f, "\n         skipped: {skipped}")?;
        }
        if let Some(failure) = &self.failure {
            write!(f, "\n         {}", failure.replace('\n', "\n         "))?;
        }
        Ok(())
    }
}

/// The suites that took longest, the longest first.
pub fn slowest(reports: &[Report], most: usize) -> Vec<&Report> {
    let mut reports: Vec<&Report> = reports.iter().filter(|report| report.seconds > 0.0).collect();
    reports.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    reports.truncate(most);
    reports
}

/// `test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s`
fn libtest(line: &str) -> Option<Counts> {
    let numbers = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let number = |what: &str| numbers.split("; ").find_map(|part| part.strip_suffix(what)?.trim().parse().ok());
    Some(Counts { passed: number(" passed")?, failed: number(" failed")?, skipped: number(" ignored")? })
}

/// `12 passed, 0 failed` with `, 1 skipped` after it or not
fn plain(line: &str) -> Option<Counts> {
    let mut parts = line.trim().split(", ");
    let mut number = |what: &str| parts.next().map(|part| part.strip_suffix(what)?.parse().ok());
    let (passed, failed) = (number(" passed")??, number(" failed")??);
    let skipped = match number(" skipped") {
        None => 0,
        Some(skipped) => skipped?,
    };
    Some(Counts { passed, failed, skipped })
}

fn reason(line: &str) -> Option<String> {
    if let Some(rest) = line.strip_prefix("skipped: ") {
        return Some(rest.to_owned());
    }
    let (name, rest) = line.strip_prefix("test ")?.split_once(" ... ignored")?;
    Some(format!("{name}{}", rest.replacen(", ", ": ", 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::End;

    fn outcome(end: End, stdout: &str) -> Outcome {
        let (stdout, stderr) = (stdout.to_owned(), String::new());
        Outcome { end, stdout, stderr, elapsed: Duration::ZERO, left_behind: Vec::new() }
    }

    #[test]
    fn both_ways_of_counting_are_read() {
        let both = "test a ... ignored, needs two nodes\nskipped: b: no atomics\n\
                    test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.02s\n\
                    4 passed, 0 failed, 1 skipped\n5 passed, 0 failed\n12 passed tests, 0 failed\n";
        let report = Report::of("suite", &outcome(End::Exit(0), both));
        assert_eq!(report.counts, Counts { passed: 21, failed: 0, skipped: 2 });
        assert_eq!(report.skipped, ["a: needs two nodes", "b: no atomics"]);
    }

    #[test]
    fn what_failed_is_named() {
        let mut bad = outcome(End::Exit(1), "test first ... ok\ntest second ... FAILED\ntest third ... ok\n");
        bad.stderr = "a line of many\n".repeat(100);
        assert!(Report::of("suite", &bad).failure.unwrap().contains("test second ... FAILED\n"));
    }

    #[test]
    fn a_bad_end_is_a_failure_whatever_was_counted() {
        let counts = |end, text| Report::of("suite", &outcome(end, text)).counts;
        assert_eq!(counts(End::Exit(0), "").passed, 1);
        assert_eq!(counts(End::Exit(1), ""), Counts { passed: 0, failed: 1, skipped: 0 });
        assert_eq!(counts(End::Signal(11), "3 passed, 0 failed").failed, 1);
        assert_eq!(counts(End::Exit(1), "3 passed, 2 failed").failed, 2);
        assert_eq!(counts(End::TimedOut(Duration::from_secs(1)), "").failed, 1);
    }

    #[test]
    fn the_slowest_come_first() {
        let report = |seconds| Report { seconds, ..Report::single("suite", Ok(())) };
        let reports = [report(1.0), report(3.0), report(0.0), report(2.0)];
        let seconds = |most| slowest(&reports, most).iter().map(|report| report.seconds).collect::<Vec<_>>();
        assert_eq!((seconds(2), seconds(9)), (vec![3.0, 2.0], vec![3.0, 2.0, 1.0]));
    }

    #[test]
    fn a_filter_that_matches_nothing_is_a_failure() {
        let report = |text| Report::of("suite", &outcome(End::Exit(0), text)).not_empty();
        let nothing = report("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.00s");
        assert_eq!((nothing.counts.failed, nothing.failure.is_some()), (1, true));
        assert!(report("1 passed, 0 failed").failure.is_none());
    }
}
