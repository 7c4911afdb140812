//! The binary as a command that ends.

use std::process::{Command, Output};

/// It only makes a test fail.
const LONGEST_S: &str = "180";

/// No context of the user who runs the tests counts in them.
pub const NO_CONTEXTS: (&str, &str) = ("ELDEST_CONTEXTS", "/dev/null/contexts.json");

/// The binary, ended by a signal if it hangs. A test needs no handling for that: the exit code shows it.
pub fn bounded() -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=10", LONGEST_S, env!("CARGO_BIN_EXE_eldest")]);
    command.env(NO_CONTEXTS.0, NO_CONTEXTS.1);
    command
}

/// One run of the binary, to its end.
pub fn eldest(words: &[&str]) -> Output {
    bounded().args(words).env_remove("ELDEST_CA").output().expect("the binary runs")
}
