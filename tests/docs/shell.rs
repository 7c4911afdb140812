//! The shell that a document's commands are typed into: a folder and a group of processes of its own, and a bound for each command.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

/// Longer than any command takes on a busy machine; only one that would never end is ended by it.
const COMMAND_MOST_S: u32 = 120;

/// The same for what may have to compile the workspace first.
const BUILD_MOST_S: u32 = 1800;

/// How `timeout` ends where it has ended a command.
const TIMED_OUT: i32 = 124;

pub struct Shell {
    /// Instead of /tmp, where other runs have files of the same names.
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
    /// `name` is that of no other shell of this process.
    pub fn open(name: &str, path: String) -> std::io::Result<Shell> {
        let folder = std::env::temp_dir().join(format!("eldest-docs-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let first =
            Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0).spawn()?;
        Ok(Shell { folder, first, path })
    }

    /// Runs a command to its end; what it has started in the background goes on. Fails if the command does not end in time.
    pub fn run(&self, root: &Path, command: &str) -> Result<Printed, String> {
        let most = most_s(command);
        let (out, err) = (self.folder.join("out"), self.folder.join("err"));
        // Files, and no pipes, which what goes on in the background would keep open.
        let to = |path| File::create(path).map_err(|error| format!("{command}: {error}"));
        let status = Command::new("timeout")
            .args(["--foreground", "--kill-after", "5", &most.to_string(), "bash", "-c", &self.here(command)])
            .env("PATH", &self.path)
            .env("TMPDIR", &self.folder)
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
        // The number of the group is nobody else's before its first process has been waited for.
        let _ = kill_process_group(Pid::from_child(&self.first), Signal::KILL);
        let _ = self.first.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
