//! What must not happen, happens: each time the job ends within seconds, says who and why, and leaves nothing behind.
//!
//! Each case starts a program of `programs` or `waits` (the same binary under another name), which prints the error of its job and exits.

mod blas;
mod checkpoints;
mod checks;
mod forks;
mod inherited;
mod launchers;
mod layers;
mod messages;
mod nested;
mod programs;
mod root;
#[path = "../runner/mod.rs"]
mod runner;
mod saving;
mod shims;
mod simulated;
mod starts;
mod surroundings;
mod values;
mod waits;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut cases = checks::all();
    cases.extend(programs::all());
    cases.extend(blas::programs());
    cases.extend(blas::cases());
    cases.extend(checkpoints::programs());
    cases.extend(checkpoints::cases());
    cases.extend(nested::programs());
    cases.extend(nested::cases());
    cases.extend(forks::programs());
    cases.extend(forks::cases());
    cases.extend(inherited::programs());
    cases.extend(inherited::cases());
    cases.extend(launchers::cases());
    cases.extend(root::cases());
    cases.extend(layers::programs());
    cases.extend(layers::cases());
    cases.extend(values::cases());
    cases.extend(shims::cases());
    cases.extend(simulated::cases());
    cases.extend(starts::programs());
    cases.extend(starts::cases());
    cases.extend(surroundings::programs());
    cases.extend(surroundings::cases());
    // They wait for time-outs and for processes to end.
    runner::main_together(cases, 5)
}
