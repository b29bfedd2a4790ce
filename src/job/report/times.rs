//! The time of ranks: a table of all calls by name, for each phase that the program names.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use super::{
    collect::{LONGEST_LINE, collect},
    quoted,
    table::bytes,
};
use crate::{
    calls::record::{Record, Sum},
    error::Result,
    job::Job,
};

/// Rows of the table; the rest are one row.
const MOST_ROWS: usize = 20;

/// All ranks' times, by phase; the name of time outside of phases is empty.
#[derive(Debug, Default)]
pub(super) struct Times {
    ranks: usize,
    phases: BTreeMap<String, Phase>,
}

/// All ranks' times in a phase, all ranks together.
#[derive(Debug, Default)]
struct Phase {
    whole: Duration,
    calls: BTreeMap<String, Total>,
}

/// Calls of one name on all ranks together. Computing that the program declares in them is not theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Total {
    calls: u64,
    time: Duration,
    waited: Duration,
    /// Of the rank that spent most.
    most: Duration,
    /// Bytes read from files or written to them.
    in_files: u64,
}

/// Brings all ranks' times to rank 0. Collective.
pub(super) fn gather(job: &Job, record: &Record) -> Result<Option<Times>> {
    let short = |name: &str| name.replace(['\t', '\n'], " ").chars().take(LONGEST_LINE / 16).collect::<String>();
    let mut lines = String::new();
    for (phase, (whole, calls)) in &record.phases {
        let phase = short(phase);
        let _ = writeln!(lines, "{phase}\t\t{}", whole.as_nanos());
        for (name, Sum { calls, time, waited, worked, in_files }) in calls {
            let time = time.saturating_sub(*worked).as_nanos();
            let _ = writeln!(lines, "{phase}\t{}\t{time}\t{calls}\t{}\t{in_files}", short(name), waited.as_nanos());
        }
    }
    let mut times = Times { ranks: job.size(), ..Times::default() };
    collect(job, &lines, |_, text| {
        text.lines().for_each(|line| times.add(line));
        Ok(())
    })?;
    Ok((job.rank() == 0).then_some(times))
}

impl Times {
    fn add(&mut self, line: &str) {
        let mut words = line.split('\t');
        let phase = self.phases.entry(words.next().unwrap_or_default().to_owned()).or_default();
        let name = words.next().unwrap_or_default();
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).unwrap_or_default();
        let time = Duration::from_nanos(number());
        if name.is_empty() {
            phase.whole += time;
            return;
        }
        let total = phase.calls.entry(name.to_owned()).or_default();
        total.time += time;
        total.calls += number();
        total.waited += Duration::from_nanos(number());
        total.in_files += number();
        total.most = total.most.max(time);
    }

    pub(super) fn text(&self) -> String {
        let ranks = if self.ranks == 1 { "1 rank".into() } else { format!("{} ranks", self.ranks) };
        let many = self.phases.len() > 1;
        let mut text = String::new();
        for (name, phase) in &self.phases {
            let name = match name.as_str() {
                "" if many => " outside of phases".into(),
                "" => String::new(),
                name => format!(" in phase {name}"),
            };
            let _ = writeln!(text, "time of {ranks}{name}, the mean of all: {}", seconds(mean(phase.whole, self.ranks)));
            phase.table(self.ranks, &mut text);
        }
        text
    }

    /// As members of a JSON object: mean seconds of a rank.
    pub(super) fn json(&self) -> String {
        let mut json = String::from("\"phases\":[");
        for (at, (name, phase)) in self.phases.iter().enumerate() {
            let _ = write!(json, "{}{{\"name\":{},{}}}", if at > 0 { "," } else { "" }, quoted(name), phase.json(self.ranks));
        }
        json + "]"
    }
}

/// Seconds of a rank.
fn mean(time: Duration, ranks: usize) -> f64 {
    time.as_secs_f64() / ranks as f64
}

impl Phase {
    /// What is not in calls.
    fn rest(&self) -> Duration {
        self.whole.saturating_sub(self.calls.values().map(|total| total.time).sum())
    }

    /// Those that took the longest first, and the others as one.
    fn rows(&self) -> Vec<(String, Total)> {
        let mut rows: Vec<_> = self.calls.iter().map(|(name, &total)| (name.clone(), total)).collect();
        rows.sort_by(|a, b| b.1.time.cmp(&a.1.time).then_with(|| a.0.cmp(&b.0)));
        if rows.len() > MOST_ROWS {
            let others = rows.split_off(MOST_ROWS - 1);
            let name = format!("{} others", others.len());
            let sum = others.iter().fold(Total::default(), |sum, (_, total)| Total {
                calls: sum.calls + total.calls,
                time: sum.time + total.time,
                waited: sum.waited + total.waited,
                most: sum.most.max(total.most),
                in_files: sum.in_files + total.in_files,
            });
            rows.push((name, sum));
        }
        rows
    }

    fn table(&self, ranks: usize, text: &mut String) {
        let share = |time: Duration, of: Duration| 100.0 * time.as_secs_f64() / of.as_secs_f64().max(1e-12);
        let _ = writeln!(text, "{:>12}{:>12}{:>8}{:>9}{:>12}  call", "calls", "time", "share", "waiting", "most");
        for (name, total) in self.rows() {
            let in_files = match total.in_files {
                0 => String::new(),
                // All ranks at the same time.
                moved => {
                    format!(": {} of files, {}/s", bytes(moved), bytes((moved as f64 / mean(total.time, ranks).max(1e-9)) as u64))
                }
            };
            let _ = writeln!(
                text,
                "{:>12}{:>12}{:>6.1} %{:>7.1} %{:>12}  {name}{in_files}",
                total.calls,
                seconds(mean(total.time, ranks)),
                share(total.time, self.whole),
                share(total.waited, total.time),
                seconds(total.most.as_secs_f64()),
            );
        }
        let rest = self.rest();
        let _ = writeln!(
            text,
            "{:>12}{:>12}{:>6.1} %{:>9}{:>12}  (computing, and all else between calls)",
            "",
            seconds(mean(rest, ranks)),
            share(rest, self.whole),
            "",
            ""
        );
    }

    fn json(&self, ranks: usize) -> String {
        let (whole, rest) = (mean(self.whole, ranks), mean(self.rest(), ranks));
        let mut json = format!("\"seconds\":{whole:.9},\"computing\":{rest:.9},\"calls\":[");
        for (at, (name, total)) in self.rows().iter().enumerate() {
            let _ = write!(
                json,
                "{}{{\"name\":{},\"calls\":{},\"seconds\":{:.9},\"waiting\":{:.9},\"most\":{:.9},\"in_files\":{}}}",
                if at > 0 { "," } else { "" },
                quoted(name),
                total.calls,
                mean(total.time, ranks),
                mean(total.waited, ranks),
                total.most.as_secs_f64(),
                total.in_files
            );
        }
        json + "]"
    }
}

fn seconds(seconds: f64) -> String {
    match seconds {
        seconds if seconds >= 1.0 => format!("{seconds:.3} s"),
        seconds if seconds >= 1e-3 => format!("{:.3} ms", 1e3 * seconds),
        seconds => format!("{:.3} us", 1e6 * seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_add_up_and_the_rest_is_computing() {
        let mut times = Times { ranks: 2, ..Times::default() };
        for line in
            ["\t\t1000", "\tget\t300\t3\t100", "\tsync\t100\t1\t90", "\t\t3000", "\tget\t500\t4\t500", "\tsave\t300\t1\t0\t3000"]
        {
            times.add(line);
        }
        let nanos = Duration::from_nanos;
        let phase = &times.phases[""];
        assert_eq!(phase.calls["get"], Total { calls: 7, time: nanos(800), waited: nanos(600), most: nanos(500), in_files: 0 });
        assert_eq!(phase.rest(), nanos(2800));
        let text = times.text();
        assert!(text.starts_with("time of 2 ranks, the mean of all: 2.000 us\n"), "{text}");
        assert!(text.contains("           7    0.400 us  20.0 %   75.0 %    0.500 us  get\n"), "{text}");
        assert!(text.contains("1.400 us  70.0 %"), "{text}");
        assert!(text.contains("  save: 2.93 KiB of files, 18.6 GiB/s\n"), "{text}");
        assert!(
            phase
                .json(2)
                .starts_with("\"seconds\":0.000002000,\"computing\":0.000001400,\"calls\":[{\"name\":\"get\",\"calls\":7,")
        );
    }

    #[test]
    fn many_names_end_in_one_row() {
        let mut times = Times { ranks: 1, ..Times::default() };
        (0..50).for_each(|name| times.add(&format!("\tcall {name:02}\t{}\t1\t0", 100 - name)));
        let rows = times.phases[""].rows();
        assert_eq!((rows.len(), rows[0].0.as_str(), rows[MOST_ROWS - 1].0.as_str()), (MOST_ROWS, "call 00", "31 others"));
        assert_eq!(rows.iter().map(|row| row.1.calls).sum::<u64>(), 50);
    }
}
