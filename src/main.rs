//! `eldest`: the one binary.

use std::process::ExitCode;

/// Chosen by measurement (`docs/performance.md`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    eldest::cli::run()
}
