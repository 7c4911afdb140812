//! A scratch node on this machine, in a new folder, without the cluster's configuration. It holds all data of the
//! cluster, so it listens on loopback only, needs a random token, and its files are readable by this user alone.
//!
//! The node gets a port that is free now. Another process may take that port before the node does, so nothing is sent to
//! it before the node's own log says that the node listens there. Before each call the drill checks that the node still
//! runs.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::cli::client::Target;
use crate::cli::exit::Failure;
use crate::cli::out::note;
use crate::cli::target::TokenSource;
use crate::client::{Request, random_id};

const LOOK_EVERY: Duration = Duration::from_millis(50);

const LOG: &str = "node.log";

/// The greatest value of this setting: the scratch node takes what any cluster holds.
const STATE_BYTES_MOST: u64 = 1 << 40;

/// The log of the node, its snapshot, and the backup of it are each about as large as the first backup.
const COPIES_TO_COME: u64 = 3;

/// A killed process ends at once, unless its disk does not answer.
const END_MAX: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Scratch {
    pub folder: PathBuf,
    pub target: Target,
    child: Option<Child>,
}

impl Scratch {
    /// Makes the folder. The node is started later.
    pub fn prepare() -> Result<Scratch, Failure> {
        let folder = std::env::temp_dir().join(format!("eldest-drill-{}", random_id()));
        DirBuilder::new().mode(0o700).create(&folder).map_err(Failure::file(&folder))?;
        Ok(Scratch { folder, target: Target::default(), child: None })
    }

    /// Fails if the folder has no room for the copies that a backup of this size will have.
    pub fn has_room(&self, backup_bytes: u64) -> Result<(), Failure> {
        // A file system that does not report its free space is not refused.
        let Ok(found) = rustix::fs::statvfs(&self.folder) else { return Ok(()) };
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        lacks_room(free, backup_bytes).map_or(Ok(()), |what| {
            Err(Failure::file(std::env::temp_dir())(io::Error::new(io::ErrorKind::StorageFull, what)))
        })
    }

    /// Starts the node, and waits until it takes calls.
    pub async fn start(&mut self, mode: &str, within: Duration) -> Result<(), Failure> {
        let (port, token) = (free_port().map_err(Failure::file("127.0.0.1:0"))?, random_id());
        let topology = json!({ "cluster": "drill", "clusters": [{ "name": "scratch", "ip": "127.0.0.1", "port": port, "id": 1 }] });
        let config = format!(
            "mode = {mode:?}\nanonymous = \"none\"\nadmin_token = {token:?}\nlimits.state_bytes = {STATE_BYTES_MOST}\n"
        );
        let file = |name: &str, text: &str| write(&self.folder.join(name), text);
        file("topology.json", &topology.to_string())?;
        file("config.toml", &config)?;
        let log = self.folder.join(LOG);
        let log = File::create(&log).map_err(Failure::file(log))?;
        let failed = |error: io::Error| failed(error.to_string());
        let mut serve = Command::new(std::env::current_exe().map_err(failed)?);
        serve.current_dir(&self.folder).args(["serve", "--exit-with-stdin", "--node", "1", "--data", "data"]);
        serve.args(["--topology", "topology.json", "--config", "config.toml"]);
        // The settings and tokens of the cluster may be in the environment. Ctrl-C is for the drill, which then ends the node.
        serve.env_clear().process_group(0).kill_on_drop(true);
        serve.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        self.child = Some(serve.spawn().map_err(failed)?);
        let until = Instant::now() + within;
        let address = self.address(until, within).await?;
        let url = format!("http://{address}");
        self.target = scratch_target(url, token);
        self.is_ready(until, within).await
    }

    /// The address at which the node says that it listens.
    async fn address(&mut self, until: Instant, within: Duration) -> Result<SocketAddr, Failure> {
        loop {
            self.still_runs()?;
            if let Some(address) = listens_at(&self.log()) {
                return Ok(address);
            }
            if Instant::now() > until {
                return Err(failed(format!("it does not listen after {within:?}")));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    async fn is_ready(&mut self, until: Instant, within: Duration) -> Result<(), Failure> {
        loop {
            self.still_runs()?;
            if self.target.ask(&Request::get("/readyz")).await.is_ok() {
                return self.still_runs();
            }
            if Instant::now() > until {
                return Err(failed(format!("it is not ready after {within:?}")));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Fails if the node has ended. Its port may then belong to another process.
    pub fn still_runs(&mut self) -> Result<(), Failure> {
        let ended = self.child.as_mut().map(Child::try_wait).transpose();
        match ended.map_err(|error| failed(error.to_string()))?.flatten() {
            None => Ok(()),
            Some(status) => {
                let log = self.log();
                Err(failed(format!("it has ended ({status}): {}", log.lines().last().unwrap_or_default())))
            }
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join(LOG)).unwrap_or_default()
    }

    /// Ends the node and removes the folder.
    pub async fn end(mut self) -> Result<(), Failure> {
        if let Some(child) = &mut self.child {
            let pid = child.id();
            // It may have ended already. Its data are not needed any more, so it is killed.
            let _ = child.start_kill();
            if timeout(END_MAX, child.wait()).await.is_err() {
                note(&format!(
                    "the scratch node was killed and has not ended yet: process {}",
                    pid.unwrap_or(0)
                ));
            }
        }
        fs::remove_dir_all(&self.folder).map_err(Failure::file(&self.folder))
    }
}

fn failed(why: String) -> Failure {
    Failure::Command { command: "eldest serve".to_string(), why }
}

/// A text if this many free bytes are too few.
fn lacks_room(free: u64, backup_bytes: u64) -> Option<String> {
    let needed = backup_bytes.saturating_mul(COPIES_TO_COME);
    (free < needed).then(|| {
        format!("the drill needs {needed} more bytes here, and {free} are free; set TMPDIR to a folder with more room")
    })
}

/// The address in the line by which a node says that it takes calls.
fn listens_at(log: &str) -> Option<SocketAddr> {
    // The last line may not be complete yet.
    let (log, _) = log.rsplit_once('\n')?;
    let line = log.lines().find_map(|line| line.split_once(": ready node=1 "))?.1;
    line.split(' ').find_map(|word| word.strip_prefix("listen="))?.parse().ok()
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(Failure::file(path))?;
    file.write_all(text.as_bytes()).map_err(Failure::file(path))
}

fn scratch_target(url: String, token: String) -> Target {
    let token = TokenSource::Given { token, from: "the drill".to_string() };
    Target { url: vec![url], token, ..Target::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: &str = "2026-01-01T00:00:00.000000Z  INFO eldest::cli::serve::run: ready node=1 name=\"scratch\" \
        listen=127.0.0.1:9004 cluster=drill mode=safe\n";

    #[test]
    fn only_the_ready_line_names_the_address() {
        let address = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 9004)));
        assert_eq!(listens_at(&format!("INFO eldest: begins\n{READY}INFO eldest: leads\n")), address);
        for log in ["", "INFO eldest: listen=127.0.0.1:9004\n", &READY[..READY.len() - 1], &READY[..120]] {
            assert_eq!(listens_at(log), None, "{log}");
        }
    }

    #[test]
    fn three_more_copies_need_room() {
        assert_eq!(lacks_room(300, 100), None);
        let refused = lacks_room(299, 100).expect("too little");
        assert!(refused.contains("needs 300 more bytes") && refused.contains("TMPDIR"), "{refused}");
    }

    /// A stranger holds the port, and the node that should have it has ended: nothing is sent.
    #[tokio::test]
    async fn no_call_without_the_node() {
        let stranger = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        stranger.set_nonblocking(true).expect("a socket");
        let mut scratch = Scratch::prepare().expect("a folder");
        let child = Command::new("false").spawn().expect("a process");
        scratch.child = Some(child);
        let url = format!("http://{}", stranger.local_addr().expect("an address"));
        scratch.target = scratch_target(url, "t".to_string());
        scratch.child.as_mut().expect("a process").wait().await.expect("it ends");
        let (until, within) = (Instant::now(), Duration::ZERO);
        let failure = scratch.is_ready(until, within).await.expect_err("it has ended");
        assert!(failure.to_string().contains("it has ended"), "{failure}");
        assert_eq!(stranger.accept().expect_err("no call").kind(), io::ErrorKind::WouldBlock);
        let folder = scratch.folder.clone();
        scratch.end().await.expect("removed");
        assert!(!folder.exists());
    }
}
