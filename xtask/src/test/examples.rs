//! Examples as tests: a command line, how it must end, what it must say.

use super::counts::Report;
use super::{Tier, environment};
use crate::{cargo, child};
use anyhow::Result;
use std::process::Command;

/// One start of an example.
struct Case {
    example: &'static str,
    arguments: &'static [&'static str],
    succeeds: bool,
    /// Must stand in what it prints, on either stream.
    says: &'static str,
    long: bool,
}

const fn good(example: &'static str, arguments: &'static [&'static str], says: &'static str) -> Case {
    Case { example, arguments, succeeds: true, says, long: false }
}

const fn bad(example: &'static str, arguments: &'static [&'static str], says: &'static str) -> Case {
    Case { example, arguments, succeeds: false, says, long: false }
}

const fn long(example: &'static str, arguments: &'static [&'static str], says: &'static str) -> Case {
    Case { example, arguments, succeeds: true, says, long: true }
}

#[rustfmt::skip]
static CASES: &[Case] = &[
    good("hello", &[], "rank 0 of"),
    good("put_get", &[], "neighbours' blocks"),
    good("reversal", &[], "elements reversed"),
    good("matmul_tasks", &[], "largest error"),
    good("jacobi", &[], "largest error"),
    good("lu", &["--ranks", "2", "--matrix", "examples/lu/data/west0479.mtx", "--json"], "\"passed\":true"),
    good("lu", &["--ranks", "2", "--n", "512", "--block", "64", "--json"], "\"passed\":true"),
    good("lu", &["--ranks", "1", "--n", "200", "--block", "32", "--json"], "\"passed\":true"),
    good("lu", &["--ranks", "4", "--n", "300", "--block", "50", "--json"], "\"passed\":true"),
    good("lu", &["--ranks", "2", "--n", "512", "--network", "threads", "--json"], "\"passed\":true"),
    good("lu", &["--ranks", "4", "--n", "100", "--block", "100", "--json"], "\"passed\":true"),
    good("lu", &["--ranks", "2", "--n", "10", "--block", "64", "--json"], "\"passed\":true"),
    good("lu", &["--ranks", "7", "--n", "150", "--block", "16", "--json"], "\"passed\":true"),
    good("lu", &["--ranks", "3", "--n", "1", "--json"], "\"passed\":true"),
    good("lu", &["--ranks", "6", "--n", "210", "--block", "16", "--grid", "3x2", "--network", "threads", "--json"], "\"passed\":true"),
    good("lu", &["--ranks", "4", "--n", "96", "--block", "16", "--network", "shared_memory:unmapped", "--json"], "\"passed\":true"),
    good("matmul", &["--ranks", "2", "--n", "600", "--json"], "\"passed\":true"),
    good("matmul", &["--ranks", "1", "--n", "100", "--json"], "\"passed\":true"),
    good("matmul", &["--ranks", "4", "--n", "1030", "--cube", "2x1x2", "--rounds", "1", "--json"], "\"passed\":true"),
    good("matmul", &["--ranks", "3", "--n", "50", "--cube", "1x1x3", "--network", "threads", "--json"], "\"passed\":true"),
    good("matmul", &["--ranks", "8", "--n", "101", "--cube", "2x2x2", "--network", "shared_memory:unmapped", "--json"], "\"passed\":true"),
    good("matmul", &["--ranks", "7", "--n", "3"], "PASSED"),
    bad("matmul", &["--ranks", "2", "--n", "10", "--cube", "2x2x1"], "needs 4 ranks, not 2"),
    bad("matmul", &["--ranks", "2", "--n", "400000000"], "asks for"),
    long("matmul", &["--ranks", "2", "--n", "4096", "--json"], "\"passed\":true"),
    bad("lu", &["--ranks", "0", "--n", "100"], "ranks"),
    bad("lu", &["--ranks", "2", "--matrix", "examples/lu/data/no-such-file.mtx"], "no-such-file.mtx"),
    good("stencil", &["--n", "16", "--sweeps", "10", "--json"], "\"passed\":true"),
    good("stencil", &["--ranks", "1", "--n", "24", "--sweeps", "7", "--periodic", "--depth", "7", "--json"], "\"passed\":true"),
    good("stencil", &["--ranks", "2", "--n", "64", "--sweeps", "16", "--periodic", "--json"], "\"passed\":true"),
    good("stencil", &["--ranks", "3", "--n", "17", "--sweeps", "11", "--depth", "3", "--tile", "5", "--json"], "\"passed\":true"),
    good("stencil", &["--ranks", "4", "--n", "20", "--sweeps", "9", "--network", "threads", "--json"], "\"passed\":true"),
    good("stencil", &["--ranks", "7", "--n", "5", "--sweeps", "9", "--periodic", "--json"], "\"passed\":true"),
    good("stencil", &["--ranks", "7", "--n", "2", "--sweeps", "3", "--json"], "\"passed\":true"),
    good("stencil", &["--ranks", "2", "--n", "10", "--sweeps", "6", "--network", "shared_memory:unmapped", "--json"], "\"passed\":true"),
    good("stencil", &["--ranks", "2", "--n", "8", "--sweeps", "4", "--convergence"], "order of convergence 2.00"),
    good("stencil", &["--n", "8", "--sweeps", "4", "--tile", "18446744073709551615", "--json"], "\"passed\":true"),
    bad("stencil", &["--ranks", "2", "--n", "4294967296", "--sweeps", "1"], "too many"),
    bad("stencil", &["--ranks", "2", "--n", "8", "--sweeps", "4", "--convergence", "--plot", "no/such/folder.svg"], "no/such/folder.svg"),
    long("stencil", &["--ranks", "2", "--n", "256", "--sweeps", "100", "--json"], "\"passed\":true"),
    long("stencil", &["--ranks", "2", "--n", "256", "--sweeps", "100", "--periodic", "--json"], "\"passed\":true"),
    good("lennard_jones", &["--ranks", "2", "--config", "examples/lennard_jones/data/lj_sample_config_periodic1.txt", "--cutoff", "3", "--potential", "truncated-tail", "--expect", "potential_energy=-4351.5:5e-5", "--expect", "virial=-568.67:5e-5", "--expect", "tail_energy=-198.49:5e-5", "--json"], "\"passed\":true"),
    good("lennard_jones", &["--ranks", "3", "--config", "examples/lennard_jones/data/lj_sample_config_periodic2.txt", "--cutoff", "3", "--potential", "shifted-force", "--expect", "potential_energy=-620.12:5e-5", "--expect", "virial=-445.33:5e-5", "--json"], "\"passed\":true"),
    good("lennard_jones", &["--ranks", "2", "--fcc", "20", "--steps", "0", "--expect", "temperature=1.44:1e-7", "--expect", "potential_energy_per_atom=-6.7733681+-5e-8", "--expect", "total_energy_per_atom=-4.6134356+-5e-8", "--expect", "pressure=-5.0197073+-5e-8", "--json"], "\"passed\":true"),
    good("lennard_jones", &["--ranks", "1", "--start", "examples/lennard_jones/data/lj4000_init.dump.gz", "--forces", "examples/lennard_jones/data/lj4000_force0.dump.gz", "--trace", "examples/lennard_jones/data/lj4000_thermo_exactlist.txt", "--json"], "\"passed\":true"),
    good("lennard_jones", &["--ranks", "2", "--start", "examples/lennard_jones/data/lj4000_init.dump.gz", "--forces", "examples/lennard_jones/data/lj4000_force0.dump.gz", "--trace", "examples/lennard_jones/data/lj4000_thermo_exactlist.txt", "--json"], "\"passed\":true"),
    good("lennard_jones", &["--ranks", "7", "--start", "examples/lennard_jones/data/lj4000_init.dump.gz", "--trace", "examples/lennard_jones/data/lj4000_thermo_exactlist.txt", "--network", "threads", "--json"], "\"passed\":true"),
    good("lennard_jones", &["--ranks", "4", "--start", "examples/lennard_jones/data/lj4000_init.dump.gz", "--trace", "examples/lennard_jones/data/lj4000_thermo_exactlist.txt", "--network", "shared_memory:unmapped", "--json"], "\"passed\":true"),
    good("lennard_jones", &["--ranks", "7", "--fcc", "1", "--steps", "10", "--temperature", "0", "--json"], "\"passed\":true"),
    bad("lennard_jones", &["--config", "no-such-file.txt"], "no-such-file.txt"),
    bad("lennard_jones", &["--start", "examples/lennard_jones/data/nist_lj_md_nve.csv"], "line 1"),
    bad("lennard_jones", &["--ranks", "2", "--fcc", "4", "--dt", "1"], "time step"),
    bad("lennard_jones", &["--ranks", "2", "--fcc", "4", "--steps", "2", "--thermo", "/dev/full"], "/dev/full"),
    bad("lennard_jones", &["--ranks", "2", "--fcc", "4", "--steps", "2", "--trajectory", "/dev/full"], "/dev/full"),
    bad("lennard_jones", &["--ranks", "2", "--fcc", "4", "--steps", "0", "--expect", "pressure=0:0"], "pressure is"),
    bad("lennard_jones", &["--ranks", "2", "--fcc", "4", "--slow", "2"], "no rank 2"),
    bad("lennard_jones", &["--fcc", "4", "--plot", "picture.gif"], "picture.gif"),
    // The total energies are those of NIST's rows: potential energy and temperature, with 3 N - 3 degrees of freedom. Tolerances: README.
    long("lennard_jones", &["--ranks", "2", "--fcc", "5", "--density", "0.776", "--cutoff", "3", "--potential", "truncated-tail", "--equilibrate", "10000", "--energy", "-4.243053", "--steps", "100000", "--every", "10", "--expect", "average_temperature=0.851+-0.006", "--expect", "average_configurational_energy_per_atom=-5.517+-0.009", "--expect", "average_pressure=0.03+-0.06", "--json"], "\"passed\":true"),
    long("lennard_jones", &["--ranks", "2", "--fcc", "5", "--density", "0.82", "--cutoff", "3", "--potential", "truncated-tail", "--equilibrate", "10000", "--energy", "-4.527556", "--steps", "100000", "--every", "10", "--expect", "average_temperature=0.852+-0.006", "--expect", "average_configurational_energy_per_atom=-5.803+-0.009", "--expect", "average_pressure=0.573+-0.06", "--json"], "\"passed\":true"),
    long("lennard_jones", &["--ranks", "2", "--fcc", "5", "--density", "0.86", "--cutoff", "3", "--potential", "truncated-tail", "--equilibrate", "10000", "--energy", "-4.756047", "--steps", "100000", "--every", "10", "--expect", "average_temperature=0.849+-0.006", "--expect", "average_configurational_energy_per_atom=-6.027+-0.009", "--expect", "average_pressure=1.282+-0.06", "--json"], "\"passed\":true"),
    long("lennard_jones", &["--ranks", "2", "--fcc", "10", "--potential", "shifted-force", "--temperature", "0.8", "--equilibrate", "2000", "--steps", "10000", "--expect", "energy_drift=0+-2e-5", "--json"], "\"passed\":true"),
    long("lu", &["--ranks", "2", "--n", "4096", "--block", "128", "--json"], "\"passed\":true"),
    good("random_access", &["--ranks", "2", "--log2-size", "18", "--json"], "\"way\":\"lists\""),
    good("random_access", &["--ranks", "2", "--log2-size", "18", "--way", "buckets", "--json"], "\"errors\":0"),
    good("random_access", &["--ranks", "3", "--log2-size", "14", "--way", "lists", "--json"], "\"errors\":0"),
    good("random_access", &["--ranks", "4", "--log2-size", "12", "--way", "elements", "--network", "threads", "--json"], "\"errors\":0"),
    good("random_access", &["--ranks", "7", "--log2-size", "2", "--way", "buckets", "--json"], "\"errors\":0"),
    good("random_access", &["--ranks", "7", "--log2-size", "13", "--stats", "--json"], "\"distinct_peers\":6"),
    good("random_access", &["--ranks", "3", "--log2-size", "13", "--network", "shared_memory:unmapped", "--json"], "\"way\":\"buckets\""),
    good("random_access", &["--ranks", "2", "--log2-size", "9", "--way", "lists", "--network", "threads:unmapped", "--json"], "\"errors\":0"),
    bad("random_access", &["--ranks", "2", "--log2-size", "45"], "asks for"),
    long("random_access", &["--ranks", "2", "--log2-size", "26", "--json"], "\"errors\":0"),
    good("pair_calculator", &["--ranks", "2", "--json"], "\"passed\":true"),
    good("pair_calculator", &["--ranks", "3", "--states", "20", "--planes", "3", "--points", "50", "--grain", "8", "--json"], "\"passed\":true"),
    good("pair_calculator", &["--ranks", "4", "--states", "33", "--planes", "5", "--points", "40", "--iterations", "3", "--network", "threads", "--json"], "\"passed\":true"),
    good("pair_calculator", &["--ranks", "7", "--states", "1", "--planes", "1", "--points", "4", "--json"], "\"passed\":true"),
    good("pair_calculator", &["--ranks", "3", "--states", "12", "--planes", "2", "--points", "30", "--grain", "5", "--network", "shared_memory:unmapped", "--json"], "\"passed\":true"),
    good("pair_calculator", &["--ranks", "4", "--states", "32", "--grain", "4", "--stats", "--json"], "\"distinct_peers\":3"),
    bad("pair_calculator", &["--ranks", "2", "--states", "100", "--planes", "2", "--points", "10"], "coefficients"),
    bad("pair_calculator", &["--ranks", "2", "--states", "8", "--plot", "/no/such/folder/plot.svg"], "plot.svg"),
    long("pair_calculator", &["--ranks", "2", "--states", "512", "--planes", "32", "--points", "512", "--json"], "\"passed\":true"),
    good("subsurface", &["--case", "infiltration", "--ranks", "2", "--json"], "\"passed\":true"),
    good("subsurface", &["--case", "infiltration", "--cells", "4", "--ranks", "7", "--json"], "\"passed\":true"),
    good("subsurface", &["--case", "infiltration", "--cells", "40", "--ranks", "3", "--network", "shared_memory:unmapped", "--json"], "\"passed\":true"),
    good("subsurface", &["--case", "theis", "--cells", "65", "--accuracy", "0.02", "--ranks", "2", "--json"], "\"passed\":true"),
    good("subsurface", &["--case", "theis", "--cells", "63", "--accuracy", "0.1", "--ranks", "4", "--network", "threads", "--json"], "\"passed\":true"),
    good("subsurface", &["--case", "heterogeneous", "--cells", "6x9x10", "--ranks", "4", "--json"], "\"passed\":true"),
    good("subsurface", &["--case", "heterogeneous", "--cells", "5x6x7", "--ranks", "3", "--network", "threads:unmapped", "--json"], "\"passed\":true"),
    bad("subsurface", &["--case", "lake"], "lake"),
    bad("subsurface", &["--case", "theis", "--cells", "0"], "at least 1"),
    bad("subsurface", &["--case", "infiltration", "--end-time=-1"], "above 0"),
    bad("subsurface", &["--case", "theis", "--reference", "no-such-file.csv"], "no-such-file.csv"),
    bad("subsurface", &["--case", "infiltration", "--first-step", "1e9", "--shortest-step", "1e9"], "time step fell below"),
    bad("subsurface", &["--case", "heterogeneous", "--cells", "1000x1000x1000"], "cells need"),
    bad("subsurface", &["--case", "infiltration", "--plot", "picture.gif"], "picture.gif"),
    bad("subsurface", &["--case", "infiltration", "--cells", "20", "--output", "/dev/full"], "/dev/full"),
    long("lu", &["--ranks", "2", "--n", "4096", "--block", "128", "--json"], "\"passed\":true"),
    long("subsurface", &["--case", "theis", "--cells", "257", "--accuracy", "0.001", "--ranks", "2", "--json"], "\"passed\":true"),
    long("subsurface", &["--case", "heterogeneous", "--cells", "15x64x64", "--end-time", "864000", "--ranks", "2", "--json"], "\"passed\":true"),
];

pub fn run(tier: Tier) -> Result<Vec<Report>> {
    let known = cargo::targets("example")?;
    let mut reports: Vec<Report> = known
        .iter()
        .filter(|name| !CASES.iter().any(|case| case.example == **name))
        .map(|name| Report::skipped(&format!("example {name}"), "no command line for it is in the table"))
        .inspect(|report| println!("{report}"))
        .collect();
    let built = if known.is_empty() { Vec::new() } else { cargo::build(&["build", "--release", "--examples"])? };
    for case in CASES.iter().filter(|case| tier.long || !case.long) {
        let name = format!("example {} {}", case.example, case.arguments.join(" "));
        let report = match built.iter().find(|program| program.kind == "example" && program.name == case.example) {
            None => Report::single(&name, Err("there is no such example".into())),
            Some(program) => {
                let mut command = Command::new(&program.path);
                command.args(case.arguments).current_dir(cargo::root());
                environment(&mut command, tier);
                let outcome = child::run(&mut command, tier.limit)?;
                let mut report = Report::single(&name, case.judge(&outcome));
                report.seconds = outcome.elapsed.as_secs_f64();
                report
            }
        };
        println!("{report}");
        reports.push(report);
    }
    Ok(reports)
}

impl Case {
    /// A refusal is an ordinary non-zero exit: neither a signal nor a panic nor a hang.
    fn judge(&self, outcome: &child::Outcome) -> Result<(), String> {
        let ended = match outcome.end {
            child::End::Exit(0) => self.succeeds,
            child::End::Exit(_) => !self.succeeds && !outcome.stderr.contains("panicked at"),
            child::End::Signal(_) | child::End::TimedOut(_) => false,
        };
        let said = |text: &str| text.replace("\": ", "\":").contains(self.says);
        if !ended {
            Err(format!("{}\n{}", outcome.end, outcome.tail(20)))
        } else if !outcome.left_behind.is_empty() {
            Err(format!("left behind: {}", outcome.left_behind.join("; ")))
        } else if !said(&outcome.stdout) && !said(&outcome.stderr) {
            Err(format!("does not say {:?}\n{}", self.says, outcome.tail(20)))
        } else {
            Ok(())
        }
    }
}
