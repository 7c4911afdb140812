//! Messages to the service manager that started this process, by the protocol of `sd_notify`: that the node takes
//! calls, which node leads, that the loop is alive, and that the node stops. Without a service manager nothing
//! happens.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::time::Duration;

use tokio::time::sleep;

use crate::driver::Handle;
use crate::driver::handle::Status;

/// The interval at which the status is updated if the manager has no watchdog.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Three messages fit into the time after which the manager ends a silent process.
const FEEDS: u32 = 3;

/// The bound of a status line. It is for people, and the names of a cluster do not make it longer than this.
const STATUS_MOST: usize = 200;

#[derive(Debug)]
pub struct Notify {
    socket: UnixDatagram,
    manager: SocketAddr,
    /// The time for which the manager accepts silence, if it has a watchdog.
    watchdog: Option<Duration>,
}

impl Notify {
    /// Reads the variables that a service manager sets. Returns `None` if there is no manager, or if its socket
    /// cannot be used, which is logged.
    pub fn from_environment() -> Option<Notify> {
        let name = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty())?;
        let text = |name: &str| std::env::var(name).ok();
        let watchdog =
            watchdog(text("WATCHDOG_USEC").as_deref(), text("WATCHDOG_PID").as_deref(), std::process::id());
        match Notify::to(&name, watchdog) {
            Ok(notify) => Some(notify),
            Err(error) => {
                tracing::warn!(%error, socket = %name.display(), "cannot notify the service manager");
                None
            }
        }
    }

    fn to(name: &OsStr, watchdog: Option<Duration>) -> std::io::Result<Notify> {
        let socket = UnixDatagram::unbound()?;
        // A manager that reads nothing must not block this process.
        socket.set_nonblocking(true)?;
        Ok(Notify { socket, manager: address(name)?, watchdog })
    }

    pub fn ready(&self) {
        self.tell("READY=1\nSTATUS=accepting calls");
    }

    pub fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=handing over and stopping");
    }

    /// Sends messages until the loop has ended. Each watchdog message needs an answer of the loop, so a blocked loop
    /// sends none.
    pub async fn follow(&self, handle: &Handle) {
        self.follow_by(|| handle.status()).await;
    }

    async fn follow_by<F: Future<Output = Option<Status>>>(&self, ask: impl Fn() -> F) {
        let every = self.watchdog.map_or(LOOK_EVERY, |watchdog| watchdog / FEEDS);
        let mut told = String::new();
        while let Some(status) = ask().await {
            let line = in_words(&status);
            let mut lines = Vec::new();
            if self.watchdog.is_some() {
                lines.push("WATCHDOG=1".to_string());
            }
            if line != told {
                // The ready message is repeated: if the manager had no room for the first one, it would wait for it
                // and end this process.
                lines.extend(["READY=1".to_string(), format!("STATUS={line}")]);
            }
            if lines.is_empty() || self.tell(&lines.join("\n")) {
                told = line;
            }
            sleep(every).await;
        }
    }

    /// Sends a message, and returns whether there was room for it. A manager that has gone, or reads too slowly,
    /// changes nothing for the node.
    fn tell(&self, text: &str) -> bool {
        self.socket.send_to_addr(text.as_bytes(), &self.manager).is_ok()
    }
}

/// The address: a path, or behind an `@` an abstract name that is in no file system.
fn address(name: &OsStr) -> std::io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    if let Some(name) = name.as_bytes().strip_prefix(b"@") {
        use std::os::linux::net::SocketAddrExt;
        return SocketAddr::from_abstract_name(name);
    }
    SocketAddr::from_pathname(Path::new(name))
}

/// The time of the watchdog. Returns `None` if there is none, or if it is meant for another process.
fn watchdog(usec: Option<&str>, pid: Option<&str>, me: u32) -> Option<Duration> {
    let meant = pid.is_none_or(|pid| pid.parse() == Ok(me));
    let usec = usec?.parse().ok().filter(|usec| *usec > 0 && meant)?;
    Some(Duration::from_micros(usec))
}

fn in_words(status: &Status) -> String {
    let name = |id: u32| {
        let member = status.members.iter().find(|member| member.id == id);
        member.map_or_else(|| format!("node {id}"), |member| member.name.clone())
    };
    let text = match &status.leader {
        Some(leader) => format!("{} leads in epoch {}", name(leader.id), status.epoch),
        None => "no leader".to_string(),
    };
    text.chars().filter(|c| !c.is_control()).take(STATUS_MOST).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::os::linux::net::SocketAddrExt;

    use super::*;
    use crate::driver::handle::{LeaderStatus, NodeStatus};

    const WATCHDOG: Duration = Duration::from_secs(9);

    fn status(leader: Option<u32>) -> Status {
        Status {
            cluster: "c".into(),
            mode: "safe",
            node: NodeStatus { id: 1, name: "a".into() },
            role: "follower",
            leader: leader.map(|id| LeaderStatus { id, url: String::new() }),
            epoch: "7.1".into(),
            commit_index: 0,
            applied_index: 0,
            last_index: 0,
            snapshot_id: 0,
            digest: String::new(),
            state_bytes: 0,
            state_bytes_most: 0,
            admitted: true,
            replaced: false,
            heir: None,
            service_down: false,
            disk_full: false,
            cluster_id: None,
            remark: None,
            members: Vec::new(),
        }
    }

    /// A manager of this name, and a notifier that sends to it.
    fn manager(name: &str, watchdog: Option<Duration>) -> (UnixDatagram, Notify) {
        let name = format!("eldest-notify-{name}-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let manager = UnixDatagram::bind_addr(&address).expect("a socket");
        manager.set_nonblocking(true).expect("a socket");
        let notify = Notify::to(OsStr::new(&format!("@{name}")), watchdog).expect("a socket");
        (manager, notify)
    }

    fn told(manager: &UnixDatagram) -> Vec<String> {
        let mut bytes = [0; 1024];
        let next =
            || manager.recv(&mut bytes).ok().map(|n| String::from_utf8_lossy(&bytes[..n]).into_owned());
        std::iter::from_fn(next).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn each_feed_is_an_answer_of_the_loop() {
        let (manager, notify) = manager("answers", Some(WATCHDOG));
        let asked = Cell::new(0);
        let ask = || async {
            asked.set(asked.get() + 1);
            match asked.get() {
                1 => Some(status(None)),
                2 | 3 => Some(status(Some(2))),
                // The loop is blocked from now on.
                _ => std::future::pending().await,
            }
        };
        let followed = tokio::time::timeout(WATCHDOG * 10, notify.follow_by(ask)).await;
        assert!(followed.is_err(), "the loop has not ended");
        assert_eq!(
            told(&manager),
            [
                "WATCHDOG=1\nREADY=1\nSTATUS=no leader",
                "WATCHDOG=1\nREADY=1\nSTATUS=node 2 leads in epoch 7.1",
                "WATCHDOG=1"
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn where_nobody_watches_only_news_are_told_until_the_loop_ends() {
        let (manager, notify) = manager("news", None);
        let asked = Cell::new(0);
        notify
            .follow_by(|| async {
                asked.set(asked.get() + 1);
                (asked.get() < 4).then(|| status(Some(1)))
            })
            .await;
        assert_eq!(told(&manager), ["READY=1\nSTATUS=node 1 leads in epoch 7.1"]);
    }

    #[test]
    fn a_manager_that_has_gone_is_no_failure() {
        let (manager, notify) = manager("gone", None);
        drop(manager);
        notify.ready();
    }

    #[test]
    fn who_watches_whom() {
        assert_eq!(watchdog(Some("2000000"), None, 7), Some(Duration::from_secs(2)));
        assert_eq!(watchdog(Some("2000000"), Some("7"), 7), Some(Duration::from_secs(2)));
        for (usec, pid) in [
            (None, None),
            (Some("0"), None),
            (Some("x"), None),
            (Some("1"), Some("8")),
            (Some("1"), Some("")),
        ] {
            assert_eq!(watchdog(usec, pid, 7), None, "{usec:?} {pid:?}");
        }
        assert!(address(OsStr::new(&"x".repeat(200))).is_err());
    }
}
