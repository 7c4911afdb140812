//! A scratch node on this machine, in a new folder, without the cluster's configuration. It holds all data of the
//! cluster, so it listens on loopback only, needs a random token, and its files are readable by this user alone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use crate::cli::client::{CredentialArgs, Target};
use crate::cli::exit::Failure;
use crate::client::{Request, random_id};

const LOOK_EVERY: Duration = Duration::from_millis(50);

const LOG: &str = "node.log";

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

    /// Starts the node with room for a state of this size, and waits until it takes calls.
    pub async fn start(&mut self, mode: &str, bytes: u64, within: Duration) -> Result<(), Failure> {
        let (port, token) = (free_port().map_err(Failure::file("127.0.0.1:0"))?, random_id());
        let topology = json!({ "cluster": "drill", "clusters": [{ "name": "scratch", "ip": "127.0.0.1", "port": port, "id": 1 }] });
        let room = bytes.saturating_mul(2).max(1 << 30);
        let config = format!(
            "mode = {mode:?}\nanonymous = \"none\"\nadmin_token = {token:?}\nlimits.state_bytes = {room}\n"
        );
        let file = |name: &str, text: &str| write(&self.folder.join(name), text);
        file("topology.json", &topology.to_string())?;
        file("config.toml", &config)?;
        let log = self.folder.join(LOG);
        let log = File::create(&log).map_err(Failure::file(log))?;
        let failed = |error: io::Error| self.failed(error.to_string());
        let mut serve = Command::new(std::env::current_exe().map_err(failed)?);
        serve.current_dir(&self.folder).args(["serve", "--exit-with-stdin", "--node", "1", "--data", "data"]);
        serve.args(["--topology", "topology.json", "--config", "config.toml"]);
        // The settings and tokens of the cluster may be in the environment. Ctrl-C is for the drill, which then ends the node.
        serve.env_clear().process_group(0).kill_on_drop(true);
        serve.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        self.child = Some(serve.spawn().map_err(failed)?);
        let url = format!("http://127.0.0.1:{port}");
        self.target = Target { url: vec![url], token: CredentialArgs::of(token), ..Target::default() };
        self.is_ready(within).await
    }

    async fn is_ready(&mut self, within: Duration) -> Result<(), Failure> {
        let until = Instant::now() + within;
        loop {
            if self.target.ask(&Request::get("/readyz")).await.is_ok() {
                return Ok(());
            }
            let ended = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
            if let Some(status) = ended {
                let log = fs::read_to_string(self.folder.join(LOG)).unwrap_or_default();
                let last = log.lines().last().unwrap_or_default();
                return Err(self.failed(format!("{status}: {last}")));
            }
            if Instant::now() > until {
                return Err(self.failed(format!("it is not ready after {within:?}")));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    fn failed(&self, why: String) -> Failure {
        Failure::Command { command: "eldest serve".to_string(), why }
    }

    /// Ends the node and removes the folder.
    pub async fn end(mut self) -> Result<(), Failure> {
        if let Some(child) = &mut self.child {
            // It may have ended already.
            let _ = child.kill().await;
        }
        fs::remove_dir_all(&self.folder).map_err(Failure::file(&self.folder))
    }
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
