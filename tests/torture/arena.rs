//! A cluster of real processes. The network, the disk and the clocks of each can be made to fail.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::harness::{Call, Cluster, Folder, Network, Plan, SmallDisk, watch_for};
use crate::late::Late;
use crate::machine::{self, Machine};

/// Room for the files that a node creates at its start, and for some snapshots and segments.
const MEBIBYTES: u64 = 192;

/// Beyond loopback a node requires a secret, and orders require a token.
const BASE: &str = "cluster_secret = \"the secret of the long random test\"
admin_token = \"admin-token-of-the-long-random-test\"
";
const BEARER: &str = "Bearer admin-token-of-the-long-random-test";

static NEXT: AtomicU32 = AtomicU32::new(0);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Safe,
    Available,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Safe => "safe",
            Mode::Available => "available",
        })
    }
}

/// Its processes end before their disks and networks go: fields are dropped in this
/// order, even after a panic.
#[derive(Debug)]
pub struct Arena {
    pub cluster: Cluster,
    pub mode: Mode,
    pub network: Network,
    late: Vec<Late>,
    disks: Vec<SmallDisk>,
    machines: Vec<Machine>,
    _folder: Folder,
}

impl Arena {
    /// The cluster is formed and led when this returns.
    pub async fn new(nodes: u32, mode: Mode, timings: &Timings) -> Arena {
        let folder = Folder::new();
        let network = Network::new(nodes).expect("the long random test needs network namespaces");
        let library = machine::compile(folder.path());
        let (mut disks, mut machines, mut launchers) = (Vec::new(), Vec::new(), Vec::new());
        let mut plan = Plan::at(network.addresses()).brisk().config(&base(mode, timings));
        for (id, inside) in (1..=nodes).zip(network.launchers()) {
            let own = folder.path().join(format!("m{id}"));
            let disk =
                SmallDisk::mount(&place(id), MEBIBYTES).expect("the long random test needs small disks");
            let data = disk.path().join("data");
            let machine = Machine::new(&own, data.clone());
            launchers.push([inside, machine.launcher(&library)].concat());
            plan = plan.data(id, data);
            disks.push(disk);
            machines.push(machine);
        }
        let late = (1..=nodes).map(|id| Late::in_namespace(&network.name(id), u64::from(id))).collect();
        let cluster = plan.launchers(launchers).start().await;
        cluster.leader().await;
        Arena { cluster, mode, network, late, disks, machines, _folder: folder }
    }

    pub fn nodes(&self) -> u32 {
        self.machines.len() as u32
    }

    pub fn disk(&self, id: u32) -> &SmallDisk {
        &self.disks[id as usize - 1]
    }

    pub fn late(&self, id: u32) -> &Late {
        &self.late[id as usize - 1]
    }

    pub fn machine(&self, id: u32) -> &Machine {
        &self.machines[id as usize - 1]
    }

    /// Waits until all nodes have the same state; in available mode, also until all sides have merged. No
    /// client writes meanwhile.
    pub async fn settles(&self) {
        let ids: Vec<u32> = self.cluster.ids().collect();
        if self.mode == Mode::Safe {
            return self.cluster.equal_states(&ids).await;
        }
        watch_for("all sides are one", async || {
            let mut states = BTreeSet::new();
            for id in &ids {
                let status = self.cluster.status(*id).await.unwrap_or_default();
                let (leader, index) = (status["leader"]["id"].as_u64(), status["applied_index"].as_u64());
                states.insert((leader, index, status["digest"].to_string()));
            }
            match states.first() {
                Some((Some(_), ..)) if states.len() == 1 => Ok(()),
                _ => Err(format!("{states:?}")),
            }
        })
        .await;
    }

    /// Ends every node, and keeps the contents of their disks and the ends of their logs.
    pub fn keep(&self) {
        let kept =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("torture-{}-kept", std::process::id()));
        std::fs::create_dir_all(&kept).expect("a folder for what is kept");
        for id in self.cluster.ids() {
            self.cluster.kill9(id);
            let node = self.cluster.node(id);
            println!("--- n{id}, the end of its log:\n{}", node.log_tail());
            let to = kept.join(format!("n{id}"));
            std::fs::create_dir_all(&to).expect("a folder for what is kept");
            for from in [node.data.as_path(), self.machine(id).image(), &node.stderr_path()] {
                let words = ["cp", "-a", &from.to_string_lossy(), &to.to_string_lossy()];
                crate::harness::system(&words, "what the nodes held is copied by `cp`");
            }
        }
        println!("--- disks and logs are kept in {}", kept.display());
    }

    /// The configuration of this node from its next start on.
    pub fn configure(&self, id: u32, timings: &Timings, more: &str) {
        self.cluster.configure(id, &format!("{}{more}", base(self.mode, timings)));
    }
}

/// A call that only an operator may make.
pub fn order(path: &str) -> Call {
    Call::post(path).header("authorization", BEARER)
}

#[derive(Debug)]
pub struct Timings {
    pub dead_after_ms: u32,
    pub lease_ms: u32,
}

/// A busy machine keeps a leader for this long, but a cut is still noticed soon. With the longest lease that
/// is allowed, only the protocol's promises keep two leaders apart; with a short one, reads are often
/// confirmed by a majority.
pub const TIMINGS: [Timings; 2] =
    [Timings { dead_after_ms: 1_000, lease_ms: 1_000 }, Timings { dead_after_ms: 1_500, lease_ms: 200 }];

fn base(mode: Mode, timings: &Timings) -> String {
    let Timings { dead_after_ms, lease_ms } = timings;
    let timings = format!("timing.dead_after_ms = {dead_after_ms}\ntiming.lease_ms = {lease_ms}\n");
    format!("mode = \"{mode}\"\n{BASE}{timings}")
}

/// The folder at which the disk of a node is mounted.
fn place(id: u32) -> std::path::PathBuf {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("torture-{}-{number}-n{id}", std::process::id());
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}
