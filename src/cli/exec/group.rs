//! The command and all processes that it starts. They are one process group, which is signalled and ended as a whole.
//!
//! The kernel gives the command's process number to no other process until the command itself is collected,
//! so a signal to the group never hits a stranger. Therefore the group is killed first, and the command is
//! collected afterwards.

use std::ffi::OsString;
use std::io::{self, ErrorKind, IsTerminal};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, getpid, getppid, kill_process_group,
    set_child_subreaper, set_parent_process_death_signal, test_kill_process_group, wait, waitid,
};
use tokio::time::{Instant, sleep};

use crate::cli::exec::end::ExecEnd;
use crate::cli::exec::signals::PassedSignals;
use crate::client::LockGuard;

/// A killed process that still exists after this time hangs in the kernel.
const GONE_MOST: Duration = Duration::from_secs(5);

/// The interval of looks. This process is not notified of every end in the group.
const LOOK_EVERY: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub struct Group {
    id: Pid,
    status: Option<WaitStatus>,
}

impl Group {
    /// The command may act for the lease: it gets the secret under which the lease was granted.
    pub fn start(command: &[OsString], guard: &LockGuard, secret: &str) -> io::Result<Group> {
        // Orphans of the command become children of this process and not of init. On systems without this call, init
        // collects them.
        let _ = set_child_subreaper(Some(getpid()));
        let stdin = if io::stdin().is_terminal() { Stdio::null() } else { Stdio::inherit() };
        let mut child = Command::new(std::env::current_exe()?);
        child.args(["become", &getpid().as_raw_pid().to_string(), "--"]).args(command);
        child.env("ELDEST_TOKEN", guard.token().to_string()).env("ELDEST_LEASE_SECRET", secret);
        child.env("ELDEST_ROLE", guard.role()).env("ELDEST_INSTANCE_ID", guard.instance_id());
        let child = child.process_group(0).stdin(stdin).spawn()?;
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let id = id.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok(Group { id, status: None })
    }

    /// Signals the whole group. A process that has ended meanwhile needs no signal.
    pub fn signal(&self, signal: Signal) {
        if self.status.is_none() {
            let _ = kill_process_group(self.id, signal);
        }
    }

    /// Whether the command has ended. The command is not collected here; other processes that this process has
    /// inherited are.
    pub fn has_ended(&mut self) -> bool {
        loop {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            match waitid(WaitId::Pid(self.id), options) {
                Err(Errno::INTR) => {}
                Ok(None) if self.collect_one() => {}
                Ok(None) => return self.status.is_some(),
                Ok(Some(_)) | Err(_) => return true,
            }
        }
    }

    /// Kills the rest of the group, and waits until all processes are gone. Returns `false` if they do not end.
    pub async fn clear(&mut self, signals: &mut PassedSignals) -> bool {
        let deadline = Instant::now() + GONE_MOST;
        self.signal(Signal::KILL);
        loop {
            while self.collect_one() {}
            match test_kill_process_group(self.id) {
                Err(Errno::SRCH) => return true,
                _ if Instant::now() >= deadline => return false,
                _ => {}
            }
            // The first signal may have missed a process that was just being created.
            let _ = kill_process_group(self.id, Signal::KILL);
            tokio::select! {
                () = signals.child() => {}
                () = sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// The exit status of the command itself.
    pub fn end(&mut self) -> ExecEnd {
        self.signal(Signal::KILL);
        while self.status.is_none() && self.collect_one() {}
        match self.status.map(|status| (status.exit_status(), status.terminating_signal())) {
            Some((Some(code), _)) => ExecEnd::Code(code),
            Some((None, Some(number))) => ExecEnd::Signal(number),
            _ => ExecEnd::Failed { why: "the command's exit status is unknown".to_string() },
        }
    }

    /// Collects one child that has ended. Returns `false` if there is none.
    fn collect_one(&mut self) -> bool {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                if pid == self.id {
                    self.status = Some(status);
                }
                true
            }
            Err(Errno::INTR) => true,
            Ok(None) | Err(_) => false,
        }
    }
}

// The step between `eldest exec` and the command: the same program runs in the child, ties its life to its parent's,
// and then becomes the command. The kernel keeps the tie across that.

/// Returns only if it fails.
pub fn become_command(parent: i32, command: &[OsString]) -> ExecEnd {
    let (Some(name), arguments) = (command.first(), command.iter().skip(1)) else {
        return ExecEnd::Usage { why: "no command".to_string() };
    };
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return ExecEnd::Failed { why: error.to_string() };
    }
    // The parent may have died before the tie was made.
    if getppid().map(Pid::as_raw_pid) != Some(parent) {
        return ExecEnd::Failed { why: "the parent process has exited".to_string() };
    }
    let error = Command::new(name).args(arguments).exec();
    let command = name.to_string_lossy().into_owned();
    match error.kind() {
        ErrorKind::NotFound => ExecEnd::NotFound { command },
        _ => ExecEnd::CannotRun { command, why: error.to_string() },
    }
}
