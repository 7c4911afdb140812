//! The cluster under test: started from nothing, and removed with its data, also when a test fails.

use std::process::Output;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::Client;
use crate::engine::{docker, script, try_docker};

pub const NODES: [u32; 3] = [1, 2, 3];

/// The project differs from that of a user who runs the same file by hand. Names and addresses are the same,
/// so this test fails at once if such a cluster runs, and neither tests nor removes it.
const PROJECT: &str = "eldest-compose-test";

/// Names an image to be tested as it is; without it, one is built.
const IMAGE_VARIABLE: &str = "ELDEST_IMAGE";

const OWN_IMAGE: &str = "eldest:compose-test";

/// Elections take a second or two here; a container takes longer to start while the machine
/// compiles something else.
const SETTLES_WITHIN: Duration = Duration::from_secs(60);

const LOOK_EVERY: Duration = Duration::from_millis(100);

pub struct Cluster {
    pub client: Client,
    refusals: AtomicU64,
}

pub fn name(node: u32) -> String {
    format!("eldest-{node}")
}

pub fn address(node: u32) -> String {
    format!("172.30.90.1{node}")
}

fn network() -> String {
    format!("{PROJECT}_peers")
}

fn compose(command: &[&str], mode: &str) {
    let image = given_image().unwrap_or_else(|| OWN_IMAGE.to_string());
    let environment = [("COMPOSE_PROJECT_NAME", PROJECT), (IMAGE_VARIABLE, &image), ("ELDEST_MODE", mode)];
    script("scripts/cluster", command, &environment);
}

fn given_image() -> Option<String> {
    std::env::var(IMAGE_VARIABLE).ok().filter(|image| !image.is_empty())
}

impl Cluster {
    pub async fn up(mode: &str) -> Cluster {
        if given_image().is_none() {
            // The containers are under test here: a build that takes a third of the time is enough.
            script("scripts/image", &[OWN_IMAGE], &[("ELDEST_PROFILE", "dev")]);
        }
        compose(&["down", "--data"], mode);
        let cluster = Cluster { client: Client::new(), refusals: AtomicU64::new(0) };
        compose(&["up"], mode);
        cluster.leader().await;
        cluster
    }

    /// The node that answers that it may serve as the leader now.
    pub async fn leader(&self) -> u32 {
        self.leader_among(&NODES).await
    }

    pub async fn leader_among(&self, nodes: &[u32]) -> u32 {
        let look = async || {
            for &node in nodes {
                if self.client.get(node, "/leader").await.is_some_and(|answer| answer.status == 200) {
                    return Some(node);
                }
            }
            None
        };
        until(&format!("one of {nodes:?} leads"), look).await
    }

    /// Waits until every node serves and has all that the leader has.
    pub async fn whole(&self) {
        let look = async || {
            let mut applied = Vec::new();
            for node in NODES {
                let ready = self.client.get(node, "/readyz").await?.status == 200;
                let status = self.client.get(node, "/v1/status").await?.body;
                applied.push((ready, status["applied_index"].as_u64()?, status["digest"].clone()));
            }
            applied.iter().all(|one| one.0 && *one == applied[0]).then_some(())
        };
        until("all nodes are ready and equal", look).await;
    }

    /// Waits until a node that was away serves again; the state changes meanwhile.
    pub async fn ready(&self, node: u32) {
        let look = async || (self.client.get(node, "/readyz").await?.status == 200).then_some(());
        until(&format!("node {node} is ready"), look).await;
    }

    pub fn followers(&self, leader: u32) -> [u32; 2] {
        let others: Vec<u32> = NODES.into_iter().filter(|node| *node != leader).collect();
        [others[0], others[1]]
    }

    pub fn kill(&self, node: u32) {
        docker(&["kill", &name(node)]);
        // `docker kill` does not wait for the container's end, and a container that has not
        // ended is not started again.
        docker(&["wait", &name(node)]);
    }

    pub fn start(&self, node: u32) {
        docker(&["start", &name(node)]);
    }

    /// Sends SIGTERM, waits for the end of the process, and starts it again.
    pub fn restart(&self, node: u32) {
        docker(&["restart", "--time", "30", &name(node)]);
    }

    pub fn freeze(&self, node: u32) {
        docker(&["pause", &name(node)]);
    }

    pub fn thaw(&self, node: u32) {
        docker(&["unpause", &name(node)]);
    }

    pub fn cut(&self, node: u32) {
        docker(&["network", "disconnect", &network(), &name(node)]);
    }

    pub fn mend(&self, node: u32) {
        docker(&["network", "connect", "--ip", &address(node), &network(), &name(node)]);
    }

    /// A call from inside the container, which needs no network. `/eldest` is the only program there.
    pub fn call_within(&self, node: u32, arguments: &[&str]) -> Output {
        let name = name(node);
        let mut whole = vec!["exec", &name, "/eldest", "call"];
        whole.extend(arguments);
        try_docker(&whole)
    }

    /// Returns the key of a write that was refused with 503: it is certain not to be applied, now or later.
    pub async fn refuses_within(&self, node: u32) -> String {
        let look = async || {
            let key = format!("refused/{node}-{}", self.refusals.fetch_add(1, Ordering::Relaxed));
            let output = self.call_within(node, &["PUT", &format!("/v1/docs/{key}"), "1"]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            // Right after the cut an old leader cannot know yet: the outcome of a write that it
            // accepts then is unknown.
            let told = matches!(output.status.code(), Some(4 | 9))
                && (said.contains(", 503)") || said.contains(", 504)"));
            assert!(told, "node {node} without a majority: {said}, {}", output.status);
            said.contains(", 503)").then_some(key)
        };
        let key = until(&format!("node {node} refuses writes"), look).await;
        let is_leader = self.call_within(node, &["POST", "/is_leader"]);
        let says = String::from_utf8_lossy(&is_leader.stdout);
        assert_eq!(says.trim(), "false", "node {node} believes that it leads");
        key
    }

    /// Makes a write through a node that can only be reached from inside its container.
    pub async fn put_within(&self, node: u32, key: &str, value: &str) {
        let path = format!("/v1/docs/{key}");
        let look = async || self.call_within(node, &["PUT", &path, value]).status.success().then_some(());
        until(&format!("node {node} takes a write"), look).await;
    }

    pub async fn lacks(&self, key: &str) {
        for node in NODES {
            let found = document(&self.client, node, key).await;
            assert_eq!(found, None, "{key} was refused, and node {node} has it");
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for node in NODES {
                let output = try_docker(&["logs", "--tail", "40", &name(node)]);
                println!("{}:\n{}", name(node), String::from_utf8_lossy(&output.stderr));
            }
        }
        // A panic within a panic would hide the first failure.
        let removed = std::panic::catch_unwind(|| compose(&["down", "--data"], "safe"));
        if removed.is_err() {
            println!("the containers of {PROJECT} could not be removed");
        }
    }
}

/// Asks repeatedly; panics with a description of the condition if it takes too long.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(began.elapsed() < SETTLES_WITHIN, "not within {} s: {what}", SETTLES_WITHIN.as_secs());
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The text of a document, if it exists. Any other answer is asked for again: a busy machine may be
/// without a leader at any time.
pub async fn document(client: &Client, node: u32, key: &str) -> Option<Value> {
    let path = format!("/v1/docs/{key}");
    let look = async || client.get(node, &path).await.filter(|answer| matches!(answer.status, 200 | 404));
    let answer = until(&format!("node {node} says whether it has {key}"), look).await;
    (answer.status == 200).then_some(answer.body)
}
