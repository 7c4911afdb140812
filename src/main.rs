//! `eldest`: the one binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    eldest::cli::run()
}
