//! A timeline of all ranks, in the format of Chrome's traces, for <https://ui.perfetto.dev>: a process for each node, a thread for each
//! rank, calls with the waits in them.

use std::{
    fmt::Write as _,
    fs::File,
    io::{BufWriter, Write as _},
    path::Path,
    time::Duration,
};

use super::{
    beginning, cannot_write, check_length,
    collect::{LONGEST_LINE, collect},
    quoted,
};
use crate::{
    calls::record::{Record, What},
    comm::kit::say::say,
    error::Result,
    job::Job,
};

const OPERATION: &str = "writing the trace";

/// What a trace begins with.
const BEGIN: &str = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";

/// Bytes of a name and of a place at most. In JSON they may have six times as many.
const LONGEST_TEXT: usize = LONGEST_LINE / 16;

/// Writes what all ranks have recorded into a file. Collective.
///
/// # Errors
/// The file cannot be written; the end of the job.
pub(super) fn write(job: &Job, path: Option<&Path>, record: &Record) -> Result<()> {
    let origin = origin(job, record)?;
    let node = job.node();
    let lines: String = record.slices.iter().map(|slice| {
        let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
        let (category, name) = match slice.what {
            What::Call => ("call", slice.name.to_string()),
            What::Wait => ("wait", format!("waits in {}", slice.name)),
            What::Work => ("computing", slice.name.to_string()),
                What::Phase => ("phase", slice.name.to_string()),
        };
        let name = beginning(&name, LONGEST_TEXT);
        let line: String = slice.line.map_or(String::new(), |at| {
            let place = format!("{}:{}", at.file(), at.line());
            let place = beginning(&place, LONGEST_TEXT);
            format!(",\"args\":{{\"at\":{}}}", quoted(place))
        });
        format!(
            "{{\"name\":{},\"cat\":\"{category}\",\"ph\":\"X\",\"ts\":{:.3},\"dur\":{:.3},\"pid\":{node},\"tid\":{}{line}}},\n",
            quoted(name),
            origin.after(slice.begin),
            micros(slice.end.saturating_sub(slice.begin)),
            job.rank()
        )
    }).collect();
    // Rank 0 has a path.
    let path = path.unwrap_or(Path::new(""));
    let failed = cannot_write(OPERATION, path);
    let (mut file, mut len) = (None, 0);
    let mut fits = |text: &str| {
        len += text.len() as u64;
        check_length(path, len)
    };
    if job.rank() == 0 {
        // Before the trace that stands there is emptied.
        fits(BEGIN).map_err(&failed)?;
        let mut created = BufWriter::new(File::create(path).map_err(&failed)?);
        created.write_all(BEGIN.as_bytes()).map_err(&failed)?;
        file = Some(created);
    }
    let mut write =
        |file: &mut BufWriter<File>, text: &str| fits(text).and_then(|()| file.write_all(text.as_bytes())).map_err(&failed);
    collect(job, &lines, |_, text| file.as_mut().map_or(Ok(()), |file| write(file, text)))?;
    let lost = job.all_reduce_one(record.lost, |a, b| a + b)?;
    let Some(mut file) = file else { return Ok(()) };
    write(&mut file, &names(job))?;
    file.flush().map_err(&failed)?;
    if lost > 0 {
        say(format_args!("{} has the beginning of the run only: {lost} slices of time are not in it", path.display()));
    }
    Ok(())
}

/// The beginning of all ranks on the clock of this one.
struct Origin {
    began: Duration,
    /// Other clocks: how much to add.
    ahead: Duration,
}

impl Origin {
    /// In microseconds.
    fn after(&self, time: Duration) -> f64 {
        (time + self.ahead).saturating_sub(self.began).as_nanos() as f64 / 1e3
    }
}

/// Ranks that read another clock than rank 0 take it to have ended when they did: after a barrier, which all have just left.
fn origin(job: &Job, record: &Record) -> Result<Origin> {
    let (clock, _) = job.inner.conduit().stamp();
    let mut first = [clock as u64, record.ended.as_nanos() as u64];
    job.broadcast(0, &mut first)?;
    let is_common = first[0] == clock as u64;
    let began = if is_common { record.began.as_nanos() as u64 } else { u64::MAX };
    let began = Duration::from_nanos(job.all_reduce_one(began, u64::min)?);
    if is_common {
        return Ok(Origin { began, ahead: Duration::ZERO });
    }
    // Times of another clock may be of before or after those of rank 0's: both are taken from the end.
    let length = Duration::from_nanos(first[1]).saturating_sub(began);
    match record.ended.checked_sub(length) {
        Some(began) => Ok(Origin { began, ahead: Duration::ZERO }),
        None => Ok(Origin { began: Duration::ZERO, ahead: length - record.ended }),
    }
}

/// The names of processes and threads, and the end of the file.
fn names(job: &Job) -> String {
    let mut text = String::new();
    let topology = job.inner.conduit().topology();
    let mut last = None;
    for rank in 0..job.size() {
        let node = topology.node(rank);
        if last != Some(node) {
            let _ = writeln!(text, "{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{node},\"args\":{{\"name\":\"node\"}}}},");
            last = Some(node);
        }
        let comma = if rank + 1 < job.size() { "," } else { "" };
        let _ = writeln!(
            text,
            "{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{node},\"tid\":{rank},\"args\":{{\"name\":\"rank\"}}}}{comma}"
        );
    }
    text + "]}\n"
}
