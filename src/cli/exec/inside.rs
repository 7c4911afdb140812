//! The step between `eldest exec` and the command: the same program, in the child, ties its life to its parent's and then
//! becomes the command. The kernel keeps the tie across that.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use super::end::ExecEnd;

/// Returns only if it fails.
pub fn become_command(parent: i32, command: &[OsString]) -> ExecEnd {
    let (Some(name), arguments) = (command.first(), command.iter().skip(1)) else {
        return ExecEnd::Usage { why: "no command".to_string() };
    };
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return ExecEnd::Failed { why: error.to_string() };
    }
    // The parent may have died before it was tied to.
    if getppid().map(Pid::as_raw_pid) != Some(parent) {
        return ExecEnd::Failed { why: "whoever started this has gone".to_string() };
    }
    let error = Command::new(name).args(arguments).exec();
    let command = name.to_string_lossy().into_owned();
    match error.kind() {
        ErrorKind::NotFound => ExecEnd::NotFound { command },
        _ => ExecEnd::CannotRun { command, why: error.to_string() },
    }
}
