//! Runs of the whole program over threads, against a plain double loop and against results from outside.

use std::path::PathBuf;
use std::sync::Mutex;

use approx::assert_relative_eq;
use clap::Parser;
use global_arrays::prelude::*;

use crate::cli::Arguments;
use crate::potential::Potential;
use crate::run::{Task, run};
use crate::simulation::{Method, Simulation, Snapshot};
use crate::start::Start;
use crate::{prepare, report::Report};

fn task(line: &str) -> Task {
    let words = std::iter::once("lennard_jones").chain(line.split_whitespace());
    prepare(Arguments::parse_from(words)).unwrap()
}

fn data(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data").join(name).display().to_string()
}

/// The report of a run over threads.
fn report(ranks: usize, line: &str) -> Report {
    let task = task(line);
    let kept = Mutex::new(None);
    let body = |job: &Job| {
        let report = run(job, &task)?;
        if job.rank() == 0 {
            *kept.lock().unwrap() = Some(report);
        }
        Ok::<(), Error>(())
    };
    Launch::new().ranks(ranks).network("threads").run(body).unwrap();
    kept.into_inner().unwrap().unwrap()
}

/// All atoms after some steps.
fn after(ranks: usize, network: &str, line: &str) -> Snapshot {
    let task = task(line);
    let Task { arguments, start, steps, .. } = &task;
    let kept = Mutex::new(None);
    let body = |job: &Job| {
        let method = Method {
            potential: task.potential.clone(),
            masses: task.masses.clone(),
            step: arguments.dt,
            block: arguments.block.unwrap_or(64),
            skin: arguments.skin,
            slow: None,
        };
        let mut simulation = Simulation::new(job, start, method)?;
        (0..*steps).try_for_each(|_| simulation.step(false))?;
        job.sync()?;
        if job.rank() == job.size() - 1 {
            *kept.lock().unwrap() = Some(simulation.snapshot()?);
        }
        job.sync()
    };
    Launch::new().ranks(ranks).network(network).run(body).unwrap();
    kept.into_inner().unwrap().unwrap()
}

/// Energy, virial and forces by a double loop over all atoms and images, each atom's own images included.
fn naive(start: &Start, potential: &Potential) -> (f64, f64, Vec<[f64; 3]>) {
    let reach: [i64; 3] = start.lengths.map(|edge| (potential.cutoff() / edge).ceil() as i64);
    let (mut energy, mut virial, mut forces) = (0.0, 0.0, vec![[0.0; 3]; start.positions.len()]);
    for (i, a) in start.positions.iter().enumerate() {
        for (j, b) in start.positions.iter().enumerate() {
            let law = potential.laws(usize::from(start.kind_of[i]))[usize::from(start.kind_of[j])];
            for x in -reach[0]..=reach[0] {
                for y in -reach[1]..=reach[1] {
                    for z in -reach[2]..=reach[2] {
                        let image = [x, y, z];
                        let d: [f64; 3] = std::array::from_fn(|k| a[k] - b[k] - image[k] as f64 * start.lengths[k]);
                        let r = d.iter().map(|d| d * d).sum::<f64>().sqrt();
                        if r == 0.0 {
                            continue;
                        }
                        let (pair, pull) = law.pair(r);
                        energy += 0.5 * pair;
                        virial += 0.5 * pull;
                        (0..3).for_each(|k| forces[i][k] += pull / (r * r) * d[k]);
                    }
                }
            }
        }
    }
    (energy, virial, forces)
}

#[test]
fn forces_are_those_of_a_double_loop() {
    // Boxes with many images of each atom, odd numbers of atoms, one atom alone, a box longer than wide, mixtures.
    let ase = data("ase.extxyz");
    let mixture = "--fcc 3x4x3 --density 0.9 --composition 0.55,0.25,0.2 --pair 1,1,1,1 --pair 2,2,0.5,0.88,2.2 --pair 3,3,2,1.1,3 \
                   --pair 2,1,1.5,0.8,2";
    let config = data("lj_sample_config_periodic2.txt");
    for line in [
        "--fcc 1 --density 0.7 --temperature 3".to_owned(),
        "--fcc 2 --density 1.0 --temperature 1 --potential shifted-force".to_owned(),
        format!("--config {config} --cutoff 4 --potential shifted"),
        format!("--config {config} --cutoff 9"),
        mixture.to_owned(),
        format!("{mixture} --mix arithmetic --potential shifted"),
        format!("{mixture} --potential shifted-force"),
        format!("--start {ase} --pair Ar,Ar,1,1 --pair Kr,Kr,1.3,1.1"),
    ] {
        let task = task(&(line.clone() + " --steps 0"));
        let (energy, virial, forces) = naive(&task.start, &task.potential);
        for ranks in [1, 3] {
            let report = report(ranks, &(line.clone() + " --steps 0"));
            assert_relative_eq!(report.last.potential_energy, energy, max_relative = 1e-12);
            assert_relative_eq!(report.last.virial, virial, max_relative = 1e-11);
            let own = after(ranks, "threads", &(line.clone() + " --steps 0")).forces;
            assert_eq!(crate::checks::same_forces(&own, &forces), Ok(()), "{line}");
        }
    }
}

#[test]
fn nist_sample_configurations() {
    let reference = std::fs::read_to_string(data("nist_lj_reference.csv")).unwrap();
    let rows: Vec<Vec<&str>> = reference.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 6);
    for row in rows {
        let [config, _, _, scheme, cutoff, energy, virial, tail] = row[..] else { panic!("{row:?}") };
        let potential = if scheme == "LFS" { "shifted-force" } else { "truncated-tail" };
        let file = data(&format!("lj_sample_config_periodic{config}.txt"));
        let report = report(2, &format!("--config {file} --cutoff {cutoff} --potential {potential}"));
        let number = |text: &str| text.parse::<f64>().unwrap();
        assert_relative_eq!(report.last.potential_energy, number(energy), max_relative = 5e-5);
        assert_relative_eq!(report.last.virial, number(virial), max_relative = 5e-5);
        assert_relative_eq!(report.last.tail_energy, number(tail), max_relative = 5e-5);
    }
}

/// A mixture of two kinds with other masses and a potential of its own between them, after 100 steps of LAMMPS: positions and
/// velocities of all atoms.
#[test]
fn a_mixture_as_lammps() {
    let (file, end) = (data("mixture.data.gz"), data("mixture_step100.dump.gz"));
    let lammps = crate::read::start(end.as_ref()).unwrap();
    assert_eq!((lammps.step, lammps.counts()), (100, vec![1098, 274]));
    for ranks in [1, 2, 5] {
        let own = after(ranks, "threads", &format!("--start {file} --steps 100"));
        for atom in 0..lammps.positions.len() {
            for d in 0..3 {
                let edge = lammps.lengths[d];
                let off = own.positions[atom][d] - lammps.positions[atom][d];
                let off = off - edge * (off / edge).round();
                assert!(off.abs() < 1e-9, "{ranks} ranks, atom {atom}: {off:e}");
                let off = own.velocities[atom][d] - lammps.velocities[atom][d];
                assert!(off.abs() < 1e-9, "{ranks} ranks, atom {atom}: {off:e}");
            }
        }
    }
}

#[test]
fn one_trajectory_on_any_number_of_ranks_and_network() {
    // 50 steps from a hot lattice: lists are made a dozen times, the order once.
    let line = "--fcc 6 --density 0.8442 --temperature 3 --steps 50 --skin 0.2";
    let one = after(1, "threads", line);
    let machines = [(3, "threads:unmapped"), (7, "simulated:gemini"), (40, "simulated:gemini")];
    for (ranks, network) in [2, 3, 4, 7].map(|ranks| (ranks, "threads")).into_iter().chain(machines) {
        let other = after(ranks, network, line);
        for atom in 0..one.positions.len() {
            for d in 0..3 {
                assert!((one.velocities[atom][d] - other.velocities[atom][d]).abs() < 1e-10, "{ranks} ranks, atom {atom}");
            }
        }
    }
}

#[test]
fn more_ranks_than_blocks() {
    let report = report(5, "--fcc 2 --steps 10");
    assert_eq!((report.failure, report.tasks_by_rank.len()), (None, 5));
}

#[test]
fn an_atom_alone_flies_straight() {
    let snapshot = after(2, "threads", "--fcc 1 --density 0.001 --cutoff 2 --temperature 0 --steps 3");
    assert!(snapshot.velocities.iter().flatten().all(|v| *v == 0.0));
}

#[test]
fn what_fails_is_told() {
    assert!(report(1, "--fcc 2 --steps 0 --expect pressure=7:1e-3").failure.unwrap().contains("pressure"));
    let trace = data("lj4000_thermo_exactlist.txt");
    assert!(report(1, &format!("--fcc 2 --steps 0 --trace {trace}")).failure.unwrap().contains("step 0"));
}

/// A lone atom, at rest or moving, keeps its energy; where that is 0 no part of it drifts.
#[test]
fn a_lone_atom_does_not_drift() {
    let file = std::env::temp_dir().join(format!("lennard_jones-{}-lone.xyz", std::process::id()));
    for (velocity, ending) in [("0 0 0", "truncated"), ("0.5 0 0", "truncated"), ("0.5 0 0", "truncated-tail")] {
        let atom = format!("1\nLattice=\"9 0 0 0 9 0 0 0 9\" Properties=pos:R:3:velo:R:3\n-1 2 11 {velocity}\n");
        std::fs::write(&file, atom).unwrap();
        let report = report(2, &format!("--start {} --potential {ending} --steps 20 --every 5", file.display()));
        assert_eq!((report.averages.drift(), &report.failure), (0.0, &None), "{velocity} {ending}");
        assert!(report.json().as_object().unwrap().values().all(|value| !value.is_null()));
    }
    std::fs::remove_file(&file).unwrap();
}
