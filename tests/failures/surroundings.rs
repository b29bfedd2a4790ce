//! Programs in surroundings that lack something.

use std::{
    fs::File,
    io::{Read, Write, pipe},
    os::fd::OwnedFd,
};

use global_arrays::prelude::*;
use rustix::{
    fs::{OFlags, fcntl_setfl},
    mount::{MountFlags, MountPropagationFlags, mount, mount_change},
    thread::{UnshareFlags, unshare_unsafe},
};

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
    vec![case("a_late_reader_of_output_that_does_not_wait", late_reader), case("ranks_without_proc", without_proc)]
}

/// A file system of its own hides `/proc` from this case alone.
fn without_proc() {
    // SAFETY: descriptors and memory stay as they are; the process has one thread.
    let apart = unsafe { unshare_unsafe(UnshareFlags::NEWNS) };
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    let hidden =
        apart.and_then(|()| mount_change("/", private)).and_then(|()| mount("none", "/proc", "tmpfs", MountFlags::empty(), None));
    if let Err(error) = hidden {
        runner::skip(&format!("hiding /proc needs root: {error}"));
    }
    for network in ["shared_memory", "shared_memory:unmapped", "ib:sockets"] {
        let done = Launch::new().ranks(3).network(network).ranks_per_node(1).run(|job| {
            let a = GlobalArray::<u64, Ix1>::builder(job, [9]).zeros().create()?;
            a.accumulate(.., 1, &Array1::ones(9))?;
            job.sync()?;
            if a.sum()? == 27 { Ok(()) } else { Err(Error::other("a wrong sum")) }
        });
        done.unwrap_or_else(|error| panic!("{network}: {error}"));
    }
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
