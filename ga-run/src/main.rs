//! `ga-run -n 8 [--hosts FILE] program …`

use std::process::ExitCode;

fn main() -> ExitCode {
    ga_run::main(std::env::args_os())
}
