//! The project's own commands: `cargo xtask test`, `cargo xtask compare`, `cargo xtask scale`, `cargo xtask validate`, `cargo xtask calibrate`,
//! `cargo xtask lint`, `cargo xtask faults`, `cargo xtask papers`.

mod calibrate;
mod cargo;
mod child;
mod compare;
mod faults;
mod lint;
mod packages;
mod papers;
mod quiet;
mod scale;
mod test;
mod validate;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tests, measures and checks the crate")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every suite, example and documentation test; prints counts and ends with one line of totals
    Test(test::Options),
    /// Measure the crate beside what a user would take instead, on this machine, in one run
    Compare(compare::Options),
    /// Run a program on modelled machines with more and more ranks; writes a table as CSV and a picture as SVG
    Scale(scale::Options),
    /// Compare the virtual cluster with SimGrid, on machines of the same parameters
    Validate(validate::Options),
    /// Fit a model to MPI between two ranks of this machine, and predict programs with it
    Calibrate(calibrate::Options),
    /// Check the rules between the layers that the compiler does not
    Lint(lint::Options),
    /// Put each fault of `tests/faults.txt` into the sources and look whether a test finds it
    Faults(faults::Options),
    /// Print the figures of published papers beside what the models of the virtual cluster give
    Papers(papers::Options),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = child::guard().and_then(|()| match arguments.command {
        Command::Test(options) => test::run(&options),
        Command::Compare(options) => compare::run(&options),
        Command::Scale(options) => scale::run(&options),
        Command::Validate(options) => validate::run(&options),
        Command::Calibrate(options) => calibrate::run(&options),
        Command::Lint(options) => lint::run(&options),
        Command::Faults(options) => faults::run(&options),
        Command::Papers(options) => papers::run(&options),
    });
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
