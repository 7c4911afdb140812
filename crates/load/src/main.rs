//! `eldest-load`: the load generators that are not part of the product.

use std::process::ExitCode;

use clap::Parser;
use eldest_load::Tool;

fn main() -> ExitCode {
    match Tool::parse().run_here() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("eldest-load: {error}");
            ExitCode::FAILURE
        }
    }
}
