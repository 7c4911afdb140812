//! The messages to a service manager, over a socket of its kind.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::process::Signal;

use crate::harness::{Cluster, Plan, wait_for};

/// It only makes a test fail.
const PATIENCE: Duration = Duration::from_secs(60);

/// One node that is started by such a manager, which watches it.
fn managed(socket: &str) -> Cluster {
    let words = ["env", &format!("NOTIFY_SOCKET={socket}"), "WATCHDOG_USEC=1500000"].map(str::to_string);
    Plan::new(1).launchers(vec![words.to_vec()]).prepare()
}

/// Reads until a message contains this text.
fn hears(manager: &UnixDatagram, wanted: &str) -> String {
    manager.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let mut bytes = [0; 1024];
    let mut heard = String::new();
    loop {
        let read =
            manager.recv(&mut bytes).unwrap_or_else(|error| panic!("{wanted}: {error}; heard: {heard}"));
        let said = String::from_utf8_lossy(&bytes[..read]).into_owned();
        if said.contains(wanted) {
            return said;
        }
        heard.push_str(&said);
    }
}

#[tokio::test]
async fn a_manager_hears_that_it_is_ready_lives_leads_and_ends() {
    // Names of sockets are short; the folders of tests, and TMPDIR, may be long.
    let path = std::path::PathBuf::from(format!("/tmp/eldest-notify-{}", std::process::id()));
    let _ = fs::remove_file(&path);
    let manager = UnixDatagram::bind(&path).expect("a socket");
    let cluster = managed(&path.display().to_string());
    cluster.start(1);
    hears(&manager, "READY=1");
    let fed = hears(&manager, "WATCHDOG=1");
    if !fed.contains("node-1 leads") {
        hears(&manager, "STATUS=node-1 leads in epoch");
    }
    hears(&manager, "WATCHDOG=1");
    cluster.node(1).signal(Signal::TERM);
    hears(&manager, "STOPPING=1");
    let status = wait_for("the process ends", async || cluster.node(1).ended()).await;
    assert_eq!(status.code(), Some(0), "{status}");
    fs::remove_file(&path).expect("our own socket");
}

#[tokio::test]
async fn a_socket_may_have_a_name_in_no_file_system() {
    let name = format!("eldest-it-notify-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let manager = UnixDatagram::bind_addr(&address).expect("a socket");
    let cluster = managed(&format!("@{name}"));
    cluster.start(1);
    hears(&manager, "READY=1");
    cluster.is_ready(1).await;
}

#[tokio::test]
async fn a_manager_that_cannot_be_told_does_not_keep_a_node_from_running() {
    let cluster = managed("/no/such/folder/socket");
    cluster.start(1);
    cluster.is_ready(1).await;
    cluster.term(1).await;
}

/// The binary accepts the command that the unit starts, and the exit code after which the unit does not
/// restart is the one for mistakes.
#[test]
fn the_unit_fits_the_binary() {
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/systemd/eldest.service");
    let unit = fs::read_to_string(unit).expect("the unit");
    let value =
        |name: &str| unit.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_string();
    let start = value("ExecStart=");
    let words: Vec<&str> = start.split(' ').skip(1).collect();
    // Its files are not here: the errors are mistakes in the configuration, and not wrong
    // usage, which prints `Usage:`.
    let output = crate::harness::eldest(&words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        words.first() == Some(&"serve") && said.contains("topology.json") && !said.contains("Usage:"),
        "{said}"
    );
    assert_eq!(output.status.code().map(|code| code.to_string()), Some(value("RestartPreventExitStatus=")));
    assert_eq!((value("Type=").as_str(), value("KillSignal=").as_str()), ("notify", "SIGTERM"));
    assert!(value("WatchdogSec=").parse::<u64>().is_ok_and(|seconds| seconds > 0));
}
