//! A cluster of processes: its files, its life, and the questions that every test asks it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::addresses;
use super::call::{Answer, Call, Silence, client, client_with};
use super::certs::Certs;
use super::disk::{LogLine, log_lines};
use super::folder::Folder;
use super::node::Node;
use super::topology::Topology;
use super::wait::{wait_for, watch_for};

/// Timings by which a busy machine looks like a healthy one: silence of less than ten seconds changes no
/// leader. A killed process is still noticed at once, because its port refuses connections. The time is
/// shorter than the deadline of a wait, so that changes that depend on silence still happen.
const CALM: &str = "timing.dead_after_ms = 10000\ntiming.window_ms = 10000\n";

/// The description of a cluster. Nodes are numbered from 1, as in its topology.
#[derive(Debug)]
pub struct Plan {
    addresses: Vec<Ipv4Addr>,
    config: String,
    brisk: bool,
    launchers: Vec<Vec<String>>,
    data: BTreeMap<u32, PathBuf>,
    /// Further lines of the table [tls], if there is one.
    tls: Option<String>,
}

impl Plan {
    pub fn new(nodes: u32) -> Plan {
        Plan::at(addresses::claim(nodes))
    }

    pub fn at(addresses: Vec<Ipv4Addr>) -> Plan {
        let launchers = vec![Vec::new(); addresses.len()];
        Plan { addresses, config: String::new(), brisk: false, launchers, data: BTreeMap::new(), tls: None }
    }

    /// Leaves the last node out and returns its address for other use.
    pub fn take_last(&mut self) -> Ipv4Addr {
        self.launchers.pop();
        self.addresses.pop().expect("at least one node")
    }

    /// These lines are added to every node's configuration.
    pub fn config(mut self, config: &str) -> Plan {
        self.config = config.to_string();
        self
    }

    /// Uses the timings of a release: for tests in which a silent node must be noticed. The machine may be
    /// busy, so such a test expects a change of leader at any time.
    pub fn brisk(mut self) -> Plan {
        self.brisk = true;
        self
    }

    /// Uses certificates of the cluster's own CA, and adds these lines to the table `[tls]`.
    pub fn tls(mut self, more: &str) -> Plan {
        self.tls = Some(more.to_string());
        self
    }

    /// The i-th of these commands starts node i.
    pub fn launchers(mut self, launchers: Vec<Vec<String>>) -> Plan {
        self.launchers = launchers;
        self
    }

    /// This node keeps its data in this folder.
    pub fn data(mut self, node: u32, folder: PathBuf) -> Plan {
        self.data.insert(node, folder);
        self
    }

    /// Writes the files, and starts nothing.
    pub fn prepare(self) -> Cluster {
        let folder = Folder::new();
        let nodes = self.addresses.iter().zip(&self.launchers).zip(1..).map(|((ip, launcher), id)| {
            let own = folder.path().join(format!("n{id}"));
            let data = self.data.get(&id).cloned().unwrap_or_else(|| own.join("data"));
            Node::new(id, *ip, own, data, launcher.clone())
        });
        let mut cluster =
            Cluster { nodes: nodes.collect(), client: client(), brisk: self.brisk, certs: None, folder };
        cluster.ids().for_each(|id| cluster.place(id, &cluster.topology()));
        if self.tls.is_some() {
            let certs = Certs::init(&cluster.node(1).topology_path(), cluster.folder.path().join("certs"));
            cluster.client = client_with(&certs.files(None));
            cluster.certs = Some(certs);
        }
        for id in cluster.ids() {
            cluster.node(id).speaks_tls(self.tls.is_some());
            let table =
                cluster.certs.as_ref().zip(self.tls.as_ref()).map(|(certs, more)| certs.table(id, more));
            cluster.configure(id, &(self.config.clone() + &table.unwrap_or_default()));
        }
        cluster
    }

    pub async fn start(self) -> Cluster {
        let cluster = self.prepare();
        cluster.ids().for_each(|id| cluster.start(id));
        cluster.ready().await;
        cluster
    }
}

/// Beyond loopback a node takes no call without a token, unless its configuration says so. Tests of tokens
/// set `anonymous` themselves.
fn openness(ip: Ipv4Addr, config: &str) -> &'static str {
    if ip.is_loopback() || config.contains("anonymous") { "" } else { "anonymous = \"read,write,watch *\"\n" }
}

#[derive(Debug)]
pub struct Cluster {
    /// They are dropped before the folder that they write to.
    nodes: Vec<Node>,
    client: reqwest::Client,
    brisk: bool,
    certs: Option<Certs>,
    folder: Folder,
}

impl Cluster {
    /// A cluster of this many nodes, formed and led, whose leader stays unless its
    /// process ends or hands over.
    pub async fn of(nodes: u32) -> Cluster {
        Plan::new(nodes).start().await
    }

    /// The same with the timings of a release.
    pub async fn brisk(nodes: u32) -> Cluster {
        Plan::new(nodes).brisk().start().await
    }

    pub fn ids(&self) -> impl Iterator<Item = u32> + use<> {
        1..=self.nodes.len() as u32
    }

    pub fn others(&self, not: u32) -> Vec<u32> {
        self.ids().filter(|id| *id != not).collect()
    }

    pub fn node(&self, id: u32) -> &Node {
        &self.nodes[id as usize - 1]
    }

    pub fn running(&self) -> Vec<u32> {
        self.ids().filter(|id| self.node(*id).runs()).collect()
    }

    /// The topology that every node starts with.
    pub fn topology(&self) -> Topology {
        let addresses: Vec<Ipv4Addr> = self.nodes.iter().map(|node| node.ip).collect();
        Topology::new(&addresses)
    }

    /// Writes the topology of one node, valid from its next start on.
    pub fn place(&self, id: u32, topology: &Topology) {
        self.node(id).write_topology(&topology.text(id));
    }

    /// Writes the configuration of one node, valid from its next start on.
    pub fn configure(&self, id: u32, config: &str) {
        let node = self.node(id);
        let timings = if self.brisk { "" } else { CALM };
        node.write_config(&[timings, openness(node.ip, config), config].concat());
    }

    /// The same cluster, with this node at another address; the node must not run.
    pub fn with_address(mut self, id: u32, ip: Ipv4Addr) -> Cluster {
        self.nodes[id as usize - 1].move_to(ip);
        self
    }

    pub fn start(&self, id: u32) {
        self.node(id).start();
    }

    pub fn kill9(&self, id: u32) {
        self.node(id).kill9();
    }

    pub fn stop(&self, id: u32) {
        self.node(id).stop();
    }

    pub fn cont(&self, id: u32) {
        self.node(id).cont();
    }

    /// Asks the node to end, waits until it has, and asserts that its exit code is 0.
    pub async fn term(&self, id: u32) {
        self.node(id).signal(Signal::TERM);
        let status = wait_for("the process ends after SIGTERM", async || self.node(id).ended()).await;
        assert_eq!(status.code(), Some(0), "n{id} ended with {status} after SIGTERM");
    }

    /// Empties the data folder, as if a new disk had replaced the old one.
    pub fn wipe(&self, id: u32) {
        assert!(!self.node(id).runs(), "n{id} runs: its disk cannot be replaced");
        for entry in fs::read_dir(&self.node(id).data).expect("a data folder").flatten() {
            let path = entry.path();
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }

    /// The certificates of a cluster with TLS.
    pub fn certs(&self) -> &Certs {
        self.certs.as_ref().expect("a plan with TLS")
    }

    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub fn urls(&self) -> Vec<String> {
        self.ids().map(|id| self.node(id).url()).collect()
    }

    pub fn client(&self) -> &reqwest::Client {
        &self.client
    }

    pub async fn ask(&self, id: u32, call: &Call) -> Result<Answer, Silence> {
        call.send(&self.client, &self.node(id).url()).await
    }

    /// The answer of a node that must give one.
    #[track_caller]
    pub fn answer(&self, id: u32, call: Call) -> impl Future<Output = Answer> {
        let place = std::panic::Location::caller();
        async move {
            match self.ask(id, &call).await {
                Ok(answer) => answer,
                Err(silence) => panic!("{place}: n{id} does not answer ({silence:?}): {call:?}"),
            }
        }
    }

    pub async fn status(&self, id: u32) -> Option<Value> {
        let answer = self.ask(id, &Call::get("/v1/status")).await.ok()?;
        answer.ok().then(|| answer.json())
    }

    /// The value of this member of the node's status, once the node answers.
    pub async fn status_of(&self, id: u32, member: &str) -> Value {
        wait_for("a status", async || Some(self.status(id).await?[member].clone())).await
    }

    /// True if the node says that it leads.
    pub async fn says_it_leads(&self, id: u32) -> bool {
        let answer = self.ask(id, &Call::post("/is_leader")).await;
        answer.is_ok_and(|answer| answer.ok() && answer.json() == json!(true))
    }

    /// The node that says that it leads; waits until one does.
    pub async fn leader(&self) -> u32 {
        self.leader_among(&self.running()).await
    }

    /// Hands leadership to this node unless it leads already. It works only where orders need no token.
    pub async fn hand_to(&self, id: u32) {
        watch_for("leadership is handed over", async || {
            if self.leader().await == id {
                return Ok(());
            }
            let elect = Call::post("/elect").json(&json!({"node_idx": id}));
            Err(format!("n{id}: {:?}", self.ask(id, &elect).await.map(|answer| answer.show())))
        })
        .await;
    }

    pub async fn leader_among(&self, ids: &[u32]) -> u32 {
        wait_for("a leader", async || {
            for id in ids {
                if self.says_it_leads(*id).await {
                    return Some(*id);
                }
            }
            None
        })
        .await
    }

    /// Waits until every running node can serve a linear read.
    pub async fn ready(&self) {
        for id in self.running() {
            self.is_ready(id).await;
        }
    }

    pub async fn is_ready(&self, id: u32) {
        watch_for("a node is ready", async || match self.ask(id, &Call::get("/readyz")).await {
            Ok(answer) if answer.ok() => Ok(()),
            said => Err(format!("n{id}: {:?}", said.map(|answer| answer.show()))),
        })
        .await;
    }

    /// Waits until this node's disk is admitted. It may answer reads, through the leader, before that.
    pub async fn counts(&self, id: u32) {
        wait_for("a node's disk is let in", async || {
            (self.status(id).await?["admitted"] == true).then_some(())
        })
        .await;
    }

    /// Waits until this node knows whether it reaches the other.
    pub async fn sees(&self, id: u32, other: u32, reachable: bool) {
        wait_for("a node sees that another is there, or is not", async || {
            let status = self.status(id).await?;
            let mut members = status["members"].as_array()?.iter();
            members.any(|member| member["id"] == other && member["reachable"] == reachable).then_some(())
        })
        .await;
    }

    /// Waits until all these nodes have applied the same index, and asserts that their states are the same.
    pub async fn equal_states(&self, ids: &[u32]) {
        let states = watch_for("all nodes apply the same index", async || {
            let mut states = BTreeSet::new();
            for id in ids {
                let status = self.status(*id).await.ok_or_else(|| format!("n{id} tells no status"))?;
                states.insert((status["applied_index"].as_u64(), status["digest"].to_string()));
            }
            let indexes: BTreeSet<Option<u64>> = states.iter().map(|(index, _)| *index).collect();
            if indexes.len() == 1 { Ok(states) } else { Err(format!("{states:?}")) }
        })
        .await;
        assert_eq!(states.len(), 1, "states at one index differ: {states:?}");
    }

    pub fn log_lines(&self, id: u32) -> BTreeMap<u64, LogLine> {
        log_lines(&self.node(id).data)
    }

    /// Asserts that every record up to this index that two of these nodes have is the same text in both.
    pub fn equal_logs(&self, ids: &[u32], upto: u64) {
        let mut seen: BTreeMap<u64, (u32, LogLine)> = BTreeMap::new();
        for id in ids {
            for (index, line) in self.log_lines(*id).into_iter().filter(|(index, _)| *index <= upto) {
                let (other, first) = seen.entry(index).or_insert_with(|| (*id, line.clone()));
                assert_eq!(first.text, line.text, "n{other} and n{id} differ at {index}");
            }
        }
        assert!(!seen.is_empty(), "no records on any disk");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- files are kept in {}", self.folder.path().display());
        }
    }
}
