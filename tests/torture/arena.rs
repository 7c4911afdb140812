//! A cluster of real processes, each with a network, a disk and clocks of its own that can be made to fail.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::harness::{Call, Cluster, Folder, Network, Plan, SmallDisk};
use crate::machine::{self, Machine};

/// Room for what a node lays out when it starts, and for some snapshots and segments besides.
const MEBIBYTES: u64 = 192;

/// Beyond loopback a node wants a secret, and orders want a token.
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

/// Its processes end before their disks and networks go: fields are dropped in this order, after a panic too.
#[derive(Debug)]
pub struct Arena {
    pub cluster: Cluster,
    pub mode: Mode,
    pub network: Network,
    disks: Vec<SmallDisk>,
    machines: Vec<Machine>,
    _folder: Folder,
}

impl Arena {
    /// Formed and led when it returns.
    pub async fn new(nodes: u32, mode: Mode) -> Arena {
        let folder = Folder::new();
        let network = Network::new(nodes).expect("the long random test needs network namespaces");
        let library = machine::compile(folder.path());
        let (mut disks, mut machines, mut launchers) = (Vec::new(), Vec::new(), Vec::new());
        let mut plan = Plan::at(network.addresses()).brisk().config(&base(mode, DEAD_AFTER_MS));
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
        let cluster = plan.launchers(launchers).start().await;
        cluster.leader().await;
        Arena { cluster, mode, network, disks, machines, _folder: folder }
    }

    pub fn nodes(&self) -> u32 {
        self.machines.len() as u32
    }

    pub fn disk(&self, id: u32) -> &SmallDisk {
        &self.disks[id as usize - 1]
    }

    pub fn machine(&self, id: u32) -> &Machine {
        &self.machines[id as usize - 1]
    }

    /// What this node runs with from its next start on.
    pub fn configure(&self, id: u32, dead_after_ms: u32, more: &str) {
        self.cluster.configure(id, &format!("{}{more}", base(self.mode, dead_after_ms)));
    }
}

/// A call that only an operator may make.
pub fn order(path: &str) -> Call {
    Call::post(path).header("authorization", BEARER)
}

/// A busy machine keeps a leader for as long; a cut is noticed soon all the same.
pub const DEAD_AFTER_MS: u32 = 1_000;

fn base(mode: Mode, dead_after_ms: u32) -> String {
    format!("mode = \"{mode}\"\n{BASE}timing.dead_after_ms = {dead_after_ms}\n")
}

/// Where the disk of a node is mounted.
fn place(id: u32) -> std::path::PathBuf {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("torture-{}-{number}-n{id}", std::process::id());
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}
