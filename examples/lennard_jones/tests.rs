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
            ways: false,
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
        "--fcc 1 --density 0.7 --cutoff 6.6".to_owned(),
        "--fcc 1x4x2 --density 0.6 --cutoff 4".to_owned(),
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

/// Two atoms in a box that is narrower than twice the cut-off, so that each meets several images of the other, move as they do in eight such
/// boxes, in which no pair has more than one distance within the cut-off. They leave the box meanwhile.
#[test]
fn a_narrow_box_is_a_part_of_a_wide_one() {
    let folder = Folder::new("narrow");
    let of = |boxes: [usize; 3]| {
        let edges = [4.0, 3.7, 4.4];
        let file = folder.file(&format!("{}.xyz", boxes[0]));
        let mut atoms = String::new();
        for copy in 0..boxes.iter().product() {
            let cell = [copy % boxes[0], copy / boxes[0] % boxes[1], copy / boxes[0] / boxes[1]];
            for (at, v) in [([0.1, 0.2, 0.3], "-1.5 0.7 2"), ([2.1, 1.9, 2.5], "1.5 -0.7 -2")] {
                let at: [f64; 3] = std::array::from_fn(|d| at[d] + cell[d] as f64 * edges[d]);
                atoms += &format!("{} {} {} {v}\n", at[0], at[1], at[2]);
            }
        }
        let [x, y, z]: [f64; 3] = std::array::from_fn(|d| boxes[d] as f64 * edges[d]);
        let frame =
            format!("{}\nLattice=\"{x} 0 0 0 {y} 0 0 0 {z}\" Properties=pos:R:3:velo:R:3\n{atoms}", atoms.lines().count());
        std::fs::write(&file, frame).unwrap();
        after(1, "threads", &format!("--start {file} --cutoff 2.5 --potential shifted-force --skin 0.3 --steps 100"))
    };
    let (narrow, wide) = (of([1; 3]), of([2; 3]));
    for (atom, v) in wide.velocities.iter().enumerate() {
        (0..3).for_each(|d| assert_relative_eq!(v[d], narrow.velocities[atom % 2][d], epsilon = 1e-9));
    }
    // They have met.
    assert!((narrow.velocities[0][0] + 1.5).abs() > 0.01, "{narrow:?}");
}

#[test]
fn a_cutoff_over_too_many_images_is_told() {
    let folder = Folder::new("box");
    let [data, dump, xyz, config] = ["a.data", "a.dump", "a.xyz", "a.txt"].map(|name| folder.file(name));
    let atom = "1 1 0.1 0.1 0.1\n";
    let write = |file: &str, text: String| std::fs::write(file, text).unwrap();
    write(&data, format!("\n1 atoms\n1 atom types\n0 9 xlo xhi\n0 0.5 ylo yhi\n0 9 zlo zhi\n\nAtoms\n\n{atom}"));
    let bounds = "ITEM: BOX BOUNDS pp pp pp\n0 9\n0 0.5\n0 9\n";
    write(&dump, format!("ITEM: TIMESTEP\n0\nITEM: NUMBER OF ATOMS\n1\n{bounds}ITEM: ATOMS id type x y z\n{atom}"));
    write(&xyz, "1\nLattice=\"9 0 0 0 0.5 0 0 0 9\" Properties=pos:R:3\n0.1 0.1 0.1\n".to_owned());
    write(&config, "9 0.5 9\n1\n1 0.1 0.1 0.1\n".to_owned());
    for line in [
        "--fcc 1 --density 32",
        &format!("--config {config}"),
        &format!("--start {data}"),
        &format!("--start {dump}"),
        &format!("--start {xyz}"),
    ] {
        let words = ["lennard_jones"].into_iter().chain(line.split(' '));
        let problem = prepare(Arguments::parse_from(words)).unwrap_err();
        assert!(
            problem.contains("2.5 and the skin 0.45 reach over 5.9 edges") && problem.contains("wider box"),
            "{line}: {problem}"
        );
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
    let own = after(5, "threads", &format!("--start {file} --steps 100"));
    for atom in 0..lammps.positions.len() {
        for d in 0..3 {
            let edge = lammps.lengths[d];
            let off = own.positions[atom][d] - lammps.positions[atom][d];
            let off = off - edge * (off / edge).round();
            assert!(off.abs() < 1e-9, "atom {atom}: {off:e}");
            let off = own.velocities[atom][d] - lammps.velocities[atom][d];
            assert!(off.abs() < 1e-9, "atom {atom}: {off:e}");
        }
    }
}

/// Momenta of ASE become velocities; both are printed there.
#[test]
fn a_file_of_ase() {
    let start = crate::read::start(data("ase.extxyz").as_ref()).unwrap();
    let kinds: Vec<(&str, Option<f64>)> = start.kinds.iter().map(|kind| (&kind.name[..], kind.mass)).collect();
    assert_eq!((kinds, start.counts()), (vec![("Ar", Some(1.0)), ("Kr", Some(2.0))], vec![16, 16]));
    assert_eq!(start.velocities[..2], [[-0.80193143, -1.32435900, -0.24836162], [0.21022262, 0.568023265, 0.0548532]]);
    assert_eq!(start.positions[1], [3.3592 - 0.02393192, 0.80373421, 0.81381201]);
}

/// A folder of a test, removed when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("lennard_jones-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// The numbers of a table that the program has written, without its header.
    fn table(&self, name: &str) -> Vec<Vec<f64>> {
        let text = std::fs::read_to_string(self.0.join(name)).unwrap();
        text.lines().skip(1).map(|line| line.split(',').map(|word| word.parse().unwrap()).collect()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

/// The numbers of the lines of a reference that have so many, in words.
fn rows(name: &str, columns: usize) -> Vec<Vec<f64>> {
    let text = std::fs::read_to_string(data(name)).unwrap();
    let row = |line: &str| line.split_whitespace().map(|word| word.parse().ok()).collect::<Option<Vec<f64>>>();
    text.lines().filter_map(row).filter(|row| row.len() == columns).collect()
}

/// Both as `compute rdf` and `compute msd` of LAMMPS have them, of all atoms and of each kind, also beyond the cut-off. The skin is so thin
/// that atoms are ordered anew on the way.
#[test]
fn distributions_and_displacements_as_lammps() {
    let folder = Folder::new("observed");
    let (start, rdf, msd) = (data("mixture.data.gz"), folder.file("rdf.csv"), folder.file("msd.csv"));
    let (shells, ways) = (rows("mixture_rdf.txt", 10), rows("mixture_msd.txt", 4));
    assert_eq!((shells.len(), ways.len()), (200, 11));
    assert_eq!(report(3, &format!("--start {start} --steps 0 --rdf-range 5 --rdf {rdf}")).failure, None);
    let own = folder.table("rdf.csv");
    assert_eq!(own.len(), 200);
    for (shell, own) in own.iter().enumerate() {
        // LAMMPS prints six digits, and behind each g the number of neighbors.
        let theirs = &shells[shell];
        assert_relative_eq!(own[0], theirs[1], max_relative = 1e-5);
        (0..4).for_each(|g| assert_relative_eq!(own[1 + g], theirs[2 + 2 * g], max_relative = 1e-5, epsilon = 1e-12));
    }
    assert_eq!(report(2, &format!("--start {start} --steps 100 --skin 0.06 --msd {msd} --every 10")).failure, None);
    for (own, theirs) in folder.table("msd.csv").iter().zip(&ways) {
        assert_relative_eq!(own[0], 0.005 * theirs[0], max_relative = 1e-12);
        (1..4).for_each(|column| assert_relative_eq!(own[column], theirs[column], max_relative = 1e-9));
    }
}

/// A run of 60 steps, and one of 20 with 40 more from its restart file, on other ranks: the same atoms, the same random numbers, the same
/// ways. The box is small and hot, so that atoms leave it and lists are made often.
#[test]
fn a_run_goes_on_from_its_restart_file() {
    let folder = Folder::new("restart");
    let (whole, half) = (folder.file("whole.xyz"), folder.file("half.xyz"));
    let more = "--potential shifted-force --skin 0.2 --thermostat 3 --relaxation 0.1 --every 10 --seed 5";
    let mixture =
        "--fcc 5 --cutoff 2 --temperature 3 --composition 0.6,0.4 --pair 1,1,1,1 --pair 2,2,0.5,0.9,1.8 --mass 1=1 --mass 2=3";
    let msd = folder.file("msd.csv");
    let run = |ranks: usize, line: &str| {
        let report = report(ranks, &format!("{line} {more}"));
        assert_eq!(report.failure, None, "{line}");
        report
    };
    let uninterrupted = run(2, &format!("{mixture} --steps 60 --restart {whole} --msd {msd}"));
    run(2, &format!("{mixture} --steps 20 --restart {half} --msd {msd}"));
    let report = run(3, &format!("--start {half} --steps 40 --restart {half} --msd {msd}"));
    let [whole, half] = [whole, half].map(|file| crate::read::start(file.as_ref()).unwrap());
    assert_eq!((half.step, half.kinds.len(), half.counts()), (60, 2, vec![300, 200]));
    assert_eq!((&half.kinds, &half.coefficients), (&whole.kinds, &whole.coefficients));
    assert_relative_eq!(half.time.unwrap(), whole.time.unwrap(), max_relative = 1e-12);
    assert_relative_eq!(half.heat, whole.heat, max_relative = 1e-9);
    for atom in 0..500 {
        for d in 0..3 {
            assert!((half.positions[atom][d] - whole.positions[atom][d]).abs() < 1e-9, "atom {atom}");
            assert!((half.velocities[atom][d] - whole.velocities[atom][d]).abs() < 1e-9, "atom {atom}");
            assert!((half.ways[atom][d] - whole.ways[atom][d]).abs() < 1e-9, "atom {atom}");
        }
    }
    // Ways begin at 0 behind equilibration.
    run(2, &format!("{mixture} --equilibrate 20 --steps 20 --msd {msd}"));
    let ways = folder.table("msd.csv");
    assert!(ways[0][1..] == [0.0; 3] && ways[1][1] > 0.0, "{ways:?}");
    // The thermostat has worked, and the energy less its work is conserved, as far as steps are short.
    let [first, .., last] = uninterrupted.averages.rows() else { panic!("no rows") };
    assert!((last.total_energy - first.total_energy).abs() > 10.0, "{first:?} {last:?}");
    assert!((last.conserved_energy - first.conserved_energy).abs() < 5.0, "{first:?} {last:?}");
    assert_relative_eq!(report.ways.last().unwrap().all, uninterrupted.ways.last().unwrap().all, max_relative = 1e-9);
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

/// What a run would empty or mix is refused before it begins; only a restart file may take the place of the start.
#[test]
fn each_file_has_one_use() {
    let folder = Folder::new("uses");
    let [start, other] = ["start.xyz", "other.csv"].map(|name| folder.file(name));
    let frame = "1\nLattice=\"9 0 0 0 9 0 0 0 9\" Properties=pos:R:3\n1 2 3\n";
    std::fs::write(&start, frame).unwrap();
    let told = |line: &str| {
        let words = ["lennard_jones"].into_iter().chain(line.split(' '));
        crate::prepare(Arguments::parse_from(words)).map(drop)
    };
    for (line, flags) in [
        (format!("--start {start} --trajectory {start}"), "--trajectory and --start"),
        (format!("--fcc 1 --thermo {other} --trajectory {other}"), "--thermo and --trajectory"),
        (format!("--fcc 1 --rdf {other} --msd {other}"), "--rdf and --msd"),
        (format!("--fcc 1 --thermo {other} --restart {other}"), "--restart and --thermo"),
    ] {
        let why = told(&line).unwrap_err();
        assert!(why.contains(&format!("{flags} name the same file")), "{why}");
    }
    assert!(told(&format!("--fcc 1 --rdf {other}.none/a.csv")).unwrap_err().contains("there is no folder"));
    assert_eq!(told(&format!("--start {start} --restart {start}")), Ok(()));
    assert_eq!(std::fs::read_to_string(&start).unwrap(), frame);
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
