//! The container engine, by its own command line.

use std::path::PathBuf;
use std::process::{Command, Output};

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

pub fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// No engine is a failure: what was not tested must not look like what passed.
pub fn require() {
    let found = Command::new("docker").arg("version").output();
    let works = found.is_ok_and(|output| output.status.success());
    assert!(works, "no container engine answers `docker version`; ELDEST_SKIP_COMPOSE=1 goes on without");
}

/// What it printed on stdout; panics if it failed.
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
    Command::new("docker").args(arguments).output().expect("docker runs")
}

pub fn script(path: &str, arguments: &[&str], environment: &[(&str, &str)]) {
    let output = Command::new(root().join(path))
        .args(arguments)
        .envs(environment.iter().copied())
        .output()
        .unwrap_or_else(|error| panic!("{path}: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{path} {}: {}\n{stderr}", arguments.join(" "), output.status);
}
