//! The binary as a command that ends.

use std::process::{Command, Output};

/// It only makes a test fail.
const LONGEST_S: &str = "180";

/// The binary, ended by a signal if it hangs. A test needs no handling for that: the exit code shows it.
pub fn bounded() -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=10", LONGEST_S, env!("CARGO_BIN_EXE_eldest")]);
    command
}

/// One run of the binary, to its end.
pub fn eldest(words: &[&str]) -> Output {
    bounded().args(words).env_remove("ELDEST_CA").output().expect("the binary runs")
}
