//! The shell that a document's commands are typed into: it has its own folder, its own group of processes,
//! and a bound for each command.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

/// Longer than any command takes on a busy machine; it ends only a command that would never end.
const COMMAND_MOST_S: u32 = 120;

/// The same for a command that may have to compile the workspace first.
const BUILD_MOST_S: u32 = 1800;

/// The exit status of `timeout` when it has ended a command.
const TIMED_OUT: i32 = 124;

pub struct Shell {
    /// It replaces /tmp, where other runs have files of the same names.
    pub folder: PathBuf,
    /// The first process of the group. It does nothing, and ends with this process.
    first: Child,
    path: String,
}

pub struct Printed {
    pub succeeded: bool,
    pub out: String,
    pub err: String,
}

impl Shell {
    /// No other shell of this process has the same `name`.
    pub fn open(name: &str, path: String) -> std::io::Result<Shell> {
        let folder = std::env::temp_dir().join(format!("eldest-docs-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let first =
            Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0).spawn()?;
        Ok(Shell { folder, first, path })
    }

    /// Runs a command to its end; processes that it started in the background continue. Fails if the
    /// command does not end in time.
    pub fn run(&self, root: &Path, command: &str) -> Result<Printed, String> {
        let most = most_s(command);
        let (out, err) = (self.folder.join("out"), self.folder.join("err"));
        // Files instead of pipes, because a background process would keep a pipe open.
        let to = |path| File::create(path).map_err(|error| format!("{command}: {error}"));
        let status = Command::new("timeout")
            .args(["--foreground", "--kill-after", "5", &most.to_string(), "bash", "-c", &self.here(command)])
            .env("PATH", &self.path)
            .env("TMPDIR", &self.folder)
            .env("ELDEST_CONTEXTS", self.folder.join("contexts.json"))
            .current_dir(root)
            .stdin(Stdio::null())
            .stdout(to(&out)?)
            .stderr(to(&err)?)
            .process_group(self.first.id() as i32)
            .status()
            .map_err(|error| format!("{command}: {error}"))?;
        let text = |path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        let (out, err) = (text(&out), text(&err));
        if status.code() == Some(TIMED_OUT) || status.signal().is_some() {
            return Err(format!("$ {command}\ndid not end within {most} s; it printed:\n{out}{err}"));
        }
        Ok(Printed { succeeded: status.success(), out, err })
    }

    fn here(&self, command: &str) -> String {
        command.replace("/tmp/", &format!("{}/", self.folder.display()))
    }
}

fn most_s(command: &str) -> u32 {
    let builds = ["cargo ", "scripts/"].iter().any(|word| command.starts_with(word));
    if builds { BUILD_MOST_S } else { COMMAND_MOST_S }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // The number of the group cannot be reused before its first process has been waited for.
        let _ = kill_process_group(Pid::from_child(&self.first), Signal::KILL);
        let _ = self.first.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
