//! Ranks are killed at any moment of a checkpoint: there is always a whole one, on any number of ranks and in any distribution.

use std::{env, time::Duration};

use global_arrays::{file::Checkpoint, prelude::*};

use crate::{
    checks::{SOON, run},
    programs::{end, send_own},
    runner::{self, Case, case, program},
};

/// Where the checkpoints are, when ranks die, in microseconds after the first save, and how many of them.
const FOLDER: &str = "GA_TEST_FOLDER";
const MOMENT: &str = "GA_TEST_MOMENT";
const KILLED: &str = "GA_TEST_KILLED";

const SHAPE: [usize; 2] = [301, 211];

fn state(job: &Job, name: &str, kind: usize) -> Result<GlobalArray2<f64>, Error> {
    let builder = GlobalArray2::builder(job, SHAPE).name(name);
    match kind % 3 {
        0 => builder.create(),
        1 => builder.block_cyclic([7, 5]).create(),
        _ => builder.order(Order::ColumnMajor).create(),
    }
}

/// The elements of a step.
fn value(step: u64, [i, j]: [usize; 2]) -> f64 {
    (step as f64).sin() + (i * SHAPE[1] + j) as f64
}

fn number(name: &str) -> usize {
    env::var(name).ok().and_then(|text| text.parse().ok()).expect("a number")
}

/// Saves until ranks are killed.
fn saves() {
    let folder = env::var(FOLDER).expect("a folder");
    end(global_arrays::run(|job: &Job| -> Result<(), Error> {
        let mut arrays = [state(job, "u", 0)?, state(job, "v", 1)?];
        for step in 0_u64.. {
            for a in &mut arrays {
                a.map_indexed(|(i, j), _| value(step, [i, j]))?;
            }
            if step == 1 && job.rank() < number(KILLED) {
                let moment = Duration::from_micros(number(MOMENT) as u64);
                std::thread::spawn(move || {
                    std::thread::sleep(moment);
                    send_own(libc::SIGKILL);
                });
            }
            Checkpoint::new(&folder).keep(2).array("u", &arrays[0]).array("v", &arrays[1]).value("step", &step).save()?;
        }
        Ok(())
    }));
}

/// Restores what there is, and looks at every bit.
fn restores() {
    let folder = env::var(FOLDER).expect("a folder");
    end(global_arrays::run(|job: &Job| -> Result<(), Error> {
        let Some(saved) = Checkpoint::restore(job, &folder)? else { return Err(Error::other("there is no checkpoint")) };
        let step: u64 = saved.value("step")?;
        for (kind, name) in ["u", "v"].into_iter().enumerate() {
            let mut a = state(job, name, kind + job.size())?;
            saved.read(name, a.at_mut(..))?;
            let expected = Array2::from_shape_fn(SHAPE, |(i, j)| value(step, [i, j]));
            if a.get(..)? != expected {
                return Err(Error::other(format!("\"{name}\" is not that of step {step}")));
            }
            job.sync()?;
        }
        if job.rank() == 0 {
            println!("restored step {step}");
        }
        Ok(())
    }));
}

/// One rank is killed, or both, at moments that spread over several saves.
fn killed() {
    let folder = env::temp_dir().join(format!("checkpoints-{}", std::process::id()));
    let moments = if runner::long() { 100 } else { 12 };
    let mut steps = 0;
    for k in 0..moments {
        let _ = std::fs::remove_dir_all(&folder);
        let folder = folder.to_str().expect("text");
        let moment = (k * 7919 % moments * 60_000 / moments).to_string();
        let killed = (1 + k % 2).to_string();
        let variables =
            [(FOLDER, folder), (MOMENT, &*moment), (KILLED, &*killed), ("GA_RANKS", "2"), ("GA_NETWORK", "shared_memory")];
        let (status, text) = run("saves_checkpoints", &variables, SOON);
        assert!(status != Some(0) && text.contains("SIGKILL"), "{text}");
        let ranks = (1 + k % 5).to_string();
        let variables = [(FOLDER, folder), ("GA_RANKS", &*ranks), ("GA_NETWORK", "shared_memory")];
        let (status, text) = run("restores_checkpoints", &variables, 2 * SOON);
        let step = text.lines().find_map(|line| line.strip_prefix("restored step ")?.parse::<u64>().ok());
        assert!(status == Some(0), "after {moment} µs, on {ranks} ranks: {text}");
        steps += step.expect("a step");
    }
    println!("{steps} checkpoints in {moments} runs");
    assert!(steps > 0, "no run came to its second checkpoint");
    std::fs::remove_dir_all(&folder).expect("the folder of checkpoints");
}

pub(crate) fn programs() -> Vec<Case> {
    vec![program("saves_checkpoints", saves), program("restores_checkpoints", restores)]
}

pub(crate) fn cases() -> Vec<Case> {
    vec![case("checkpoints::killed_while_saving".to_owned(), killed)]
}
