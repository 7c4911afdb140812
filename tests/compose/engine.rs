//! The container engine, through its command line.

use std::path::PathBuf;
use std::process::{Command, Output};

/// Longer than any command of the engine takes; it ends only a command that hangs.
const ENGINE_MOST_S: &str = "300";

/// The same for scripts, which may have to compile everything.
const SCRIPT_MOST_S: &str = "1800";

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

pub fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A program that is ended when it runs longer than this many seconds.
fn bounded(most_s: &str, program: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after", "10", most_s, program]);
    command
}

/// A missing engine is a failure: an untested cluster must not look like one that passed.
pub fn require() {
    let found = bounded(ENGINE_MOST_S, "docker").arg("version").output();
    let works = found.is_ok_and(|output| output.status.success());
    assert!(works, "no container engine answers `docker version`; ELDEST_SKIP_COMPOSE=1 goes on without");
}

/// Returns stdout; panics if the command failed.
pub fn docker(arguments: &[&str]) -> String {
    let output = try_docker(arguments);
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "docker {}: {}\n{stdout}{}",
        arguments.join(" "),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    stdout
}

pub fn try_docker(arguments: &[&str]) -> Output {
    bounded(ENGINE_MOST_S, "docker").args(arguments).output().expect("docker runs")
}

pub fn script(path: &str, arguments: &[&str], environment: &[(&str, &str)]) {
    let output = bounded(SCRIPT_MOST_S, &root().join(path).to_string_lossy())
        .args(arguments)
        .envs(environment.iter().copied())
        .output()
        .unwrap_or_else(|error| panic!("{path}: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{path} {}: {}\n{stderr}", arguments.join(" "), output.status);
}
