//! Programs in surroundings that lack something.

use std::{
    fs::File,
    io::{Read, Write, pipe},
    os::fd::OwnedFd,
};

use rustix::fs::{OFlags, fcntl_setfl};

use crate::{
    checks::SOON,
    programs::end,
    runner::{self, Case, case, program},
};

const LINES: usize = 40_000;

pub(crate) fn programs() -> Vec<Case> {
    vec![program("prints_many_lines", || {
        end(global_arrays::run(|job| {
            (0..LINES).for_each(|line| println!("rank {} line {line}", job.rank()));
            job.sync()
        }));
    })]
}

pub(crate) fn cases() -> Vec<Case> {
    vec![case("a_late_reader_of_output_that_does_not_wait", late_reader)]
}

/// Nobody reads before the pipe is full.
fn late_reader() {
    let (mut reader, writer) = pipe().expect("a pipe");
    fcntl_setfl(&writer, OFlags::NONBLOCK).expect("writes that do not wait");
    let mut writer = File::from(OwnedFd::from(writer));
    while writer.write(&[b'\n'; 4096]).is_ok() {}
    let mut program = runner::start("prints_many_lines", &[("GA_RANKS", "2")], &writer);
    drop(writer);
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("what the ranks print");
    let status = runner::finish(&mut program, SOON);
    assert!(status.is_some_and(|status| status.success()), "{status:?}");
    assert_eq!(text.lines().filter(|line| !line.is_empty()).count(), 2 * LINES);
}
