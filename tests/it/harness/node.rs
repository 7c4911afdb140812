//! One node: its files and its process.

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use super::addresses::PORT;
use super::run::bounded;
use super::wait::DEADLINE;

/// The lines of the log that a failure prints.
const TAIL_LINES: usize = 40;

#[derive(Debug)]
pub struct Node {
    pub id: u32,
    pub ip: Ipv4Addr,
    /// Topology, configuration and log of the process.
    folder: PathBuf,
    pub data: PathBuf,
    /// The words before the binary: none, or `ip netns exec` and a name.
    launcher: Vec<String>,
    /// It is called by https://.
    tls: Mutex<bool>,
    /// The program that the next start runs.
    binary: Mutex<PathBuf>,
    process: Mutex<Option<Child>>,
}

impl Node {
    pub fn new(id: u32, ip: Ipv4Addr, folder: PathBuf, data: PathBuf, launcher: Vec<String>) -> Node {
        fs::create_dir_all(&folder).expect("a node's folder");
        let binary = Mutex::new(PathBuf::from(env!("CARGO_BIN_EXE_eldest")));
        Node { id, ip, folder, data, launcher, tls: Mutex::new(false), binary, process: Mutex::new(None) }
    }

    pub fn move_to(&mut self, ip: Ipv4Addr) {
        assert!(!self.runs(), "n{} runs: it cannot move", self.id);
        self.ip = ip;
    }

    pub fn url(&self) -> String {
        let scheme = if *self.tls.lock().expect("nobody panics with it") { "https" } else { "http" };
        format!("{scheme}://{}:{PORT}", self.ip)
    }

    /// From now on it is called by https://, or not.
    pub fn speaks_tls(&self, speaks: bool) {
        *self.tls.lock().expect("nobody panics with it") = speaks;
    }

    /// From the next start on it runs this program.
    pub fn runs_program(&self, binary: &Path) {
        *self.binary.lock().expect("nobody panics with it") = binary.to_path_buf();
    }

    pub fn topology_path(&self) -> PathBuf {
        self.folder.join("topology.json")
    }

    pub fn write_topology(&self, text: &str) {
        fs::write(self.folder.join("topology.json"), text).expect("the topology file");
    }

    pub fn write_config(&self, text: &str) {
        fs::write(self.folder.join("eldest.toml"), text).expect("the configuration file");
    }

    pub fn stderr_path(&self) -> PathBuf {
        self.folder.join("stderr.log")
    }

    pub fn start(&self) {
        self.start_with(&[]);
    }

    /// Adds these words to the command, for this start only.
    pub fn start_with(&self, words: &[&str]) {
        let extra = words;
        let mut process = self.process.lock().expect("no start has panicked");
        assert!(process.is_none(), "n{} runs already", self.id);
        let log = File::options().create(true).append(true).open(self.stderr_path()).expect("the log file");
        let binary = self.binary.lock().expect("nobody panics with it").display().to_string();
        let mut words = self.launcher.iter().chain([&binary]);
        let mut command = Command::new(words.next().expect("at least the binary"));
        command
            .args(words)
            .arg("serve")
            .args([Path::new("--topology"), &self.folder.join("topology.json")])
            .args([Path::new("--config"), &self.folder.join("eldest.toml")])
            .args([Path::new("--data"), &self.data])
            .args(extra)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a second handle of the log file"))
            .stderr(log);
        *process = Some(command.spawn().expect("the binary starts"));
    }

    /// The digest of mode and timings, as peers compare it.
    pub fn settings_digest(&self) -> String {
        let checked = bounded()
            .arg("check")
            .args([Path::new("--topology"), &self.folder.join("topology.json")])
            .args([Path::new("--config"), &self.folder.join("eldest.toml")])
            .output()
            .expect("the binary starts");
        let text = String::from_utf8_lossy(&checked.stdout).into_owned();
        let line = text.lines().find(|line| line.trim_start().starts_with("digest"));
        let word = line.and_then(|line| line.split_whitespace().nth(1));
        word.unwrap_or_else(|| panic!("no digest in {text}")).to_string()
    }

    /// The process id, or None if the node does not run, as far as this test has seen.
    pub fn pid(&self) -> Option<u32> {
        self.process.lock().expect("no start has panicked").as_ref().map(Child::id)
    }

    pub fn runs(&self) -> bool {
        self.pid().is_some()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = self.pid().unwrap_or_else(|| panic!("n{} does not run", self.id));
        let pid = Pid::from_raw(pid as i32).expect("a process id is not zero");
        kill_process(pid, signal).expect("our own process takes signals");
    }

    /// Stops every thread. A signal takes a moment to reach each of them, and a thread that has not
    /// received it may still answer.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
        // A thread that waits for its disk (D) takes no signal before it returns, and does
        // nothing else in the meantime.
        self.until_threads(|state| "TtDZX".contains(state), "stop");
    }

    /// Lets a stopped process continue.
    pub fn cont(&self) {
        self.signal(Signal::CONT);
        self.until_threads(|state| state != 'T', "go on");
    }

    /// Waits until the kernel reports such a state for each thread.
    fn until_threads(&self, wanted: impl Fn(char) -> bool, what: &str) {
        let pid = self.pid().unwrap_or_else(|| panic!("n{} does not run", self.id));
        let tasks = PathBuf::from(format!("/proc/{pid}/task"));
        let began = Instant::now();
        loop {
            let threads = fs::read_dir(&tasks).expect("a running process has threads").flatten();
            // A thread that has ended since has no state.
            let mut states = threads.filter_map(|thread| state_in(&thread.path().join("stat")));
            if states.all(&wanted) {
                return;
            }
            assert!(began.elapsed() < DEADLINE, "n{} does not {what}", self.id);
            std::thread::yield_now();
        }
    }

    /// To the process this looks like a power loss: it ends at once, at any point.
    pub fn kill9(&self) {
        if let Some(mut child) = self.process.lock().expect("no start has panicked").take() {
            child.kill().expect("our own process can be killed");
            child.wait().expect("our own process can be waited for");
        }
    }

    /// True if the process is still there; a dead one stays to be reaped.
    pub fn alive(&self) -> bool {
        let Some(pid) = self.pid() else {
            return false;
        };
        state_in(Path::new(&format!("/proc/{pid}/stat"))).is_some_and(|state| state != 'Z')
    }

    /// The exit status if the process has ended; the node then counts as not running.
    pub fn ended(&self) -> Option<ExitStatus> {
        let mut process = self.process.lock().expect("no start has panicked");
        let status = process.as_mut()?.try_wait().expect("our own process can be waited for")?;
        *process = None;
        Some(status)
    }

    /// Memory in use, in KiB.
    pub fn resident_kib(&self) -> u64 {
        let pid = self.pid().expect("it runs");
        let status =
            fs::read_to_string(format!("/proc/{pid}/status")).expect("a running process has a status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
        line.trim().trim_end_matches(" kB").trim().parse().expect("a number of kB")
    }

    pub fn log_tail(&self) -> String {
        let log = fs::read(self.stderr_path()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }
}

/// The letter for the state of a process or thread, if it is still there. The name before it
/// may hold anything but `) `.
fn state_in(stat: &Path) -> Option<char> {
    let text = fs::read_to_string(stat).ok()?;
    text.rsplit(") ").next()?.chars().next()
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill9();
        if std::thread::panicking() {
            eprintln!("--- n{} ({}), the end of its log:\n{}", self.id, self.ip, self.log_tail());
        }
    }
}
