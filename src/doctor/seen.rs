//! The answers of a cluster, as they were collected.

use serde::{Deserialize, Serialize};

/// The part of `GET /v1/diagnostics` that is judged.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Sample {
    pub version: String,
    pub settings: String,
    pub clock: ClockRead,
    pub timing: Timing,
    pub disk: Disk,
    pub files: Files,
    #[serde(default)]
    pub certificate: Option<SeenCertificate>,
    #[serde(default)]
    pub backup: Option<SeenBackup>,
    pub conflicts: u64,
    pub remarks: Vec<SeenRemark>,
    pub status: SeenStatus,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct ClockRead {
    pub mono_us: u64,
    pub wall_us: u64,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct Timing {
    pub heartbeat_ms: u64,
    pub dead_after_ms: u64,
    pub drift_percent: u64,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Disk {
    pub full: bool,
    pub waits_ms: u64,
    pub slowest_sync_ms: u64,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct Files {
    pub open: Option<u64>,
    pub most: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct SeenBackup {
    pub every_ms: u64,
    pub last_success_ago_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct SeenCertificate {
    /// Negative after the end.
    pub ends_in_s: i64,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct SeenRemark {
    pub about: String,
    pub text: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct SeenStatus {
    pub cluster_id: Option<String>,
    pub mode: String,
    pub node: SeenNames,
    pub role: String,
    /// The node that leads, as this node knows.
    #[serde(default)]
    pub leader: Option<SeenNames>,
    pub epoch: String,
    pub commit_index: u64,
    pub applied_index: u64,
    pub admitted: bool,
    pub replaced: bool,
    pub service_down: bool,
    pub members: Vec<SeenMember>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct SeenNames {
    pub id: u32,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct SeenMember {
    pub id: u32,
    pub name: String,
    pub url: String,
    pub reachable: bool,
    pub votes: bool,
    #[serde(default)]
    pub trouble: Option<String>,
    #[serde(default)]
    pub last_heard_ms: Option<u64>,
    #[serde(default)]
    pub silent: bool,
}

/// One answer, with the times of the request and the answer by the asker's clock.
#[derive(Clone, Debug, Default)]
pub struct NodeLook {
    pub said: Sample,
    pub sent_us: u64,
    pub heard_us: u64,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeenSilence {
    NotReached {
        why: String,
    },
    /// The node accepted the connection.
    NoAnswer {
        why: String,
    },
    Refused {
        code: String,
        why: String,
    },
    /// The node is older than the asker.
    Older,
    /// Another member has the same address, so this one was not asked.
    SameAddress,
    Strange {
        why: String,
    },
}

/// A member, with its two answers.
#[derive(Clone, Debug)]
pub struct Node {
    pub id: u32,
    pub name: String,
    pub url: String,
    pub votes: bool,
    pub looks: Result<[NodeLook; 2], SeenSilence>,
}

impl Node {
    /// The node's last answer.
    pub fn now(&self) -> Option<&Sample> {
        self.looks.as_ref().ok().map(|[_, second]| &second.said)
    }

    /// Whether the node runs: one that refuses to answer this caller still votes.
    pub fn is_up(&self) -> bool {
        matches!(&self.looks, Ok(_) | Err(SeenSilence::Refused { .. } | SeenSilence::Older))
    }

    pub fn before(&self) -> Option<&Sample> {
        self.looks.as_ref().ok().map(|[first, _]| &first.said)
    }
}

/// A token that expires. Present only if the caller may list tokens.
#[derive(Clone, Debug)]
pub struct SeenEnding {
    pub id: String,
    pub name: String,
    pub made_us: u64,
    pub ends_us: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The node that has asked. None if the asker is a program on another machine.
    pub asker: Option<u32>,
    pub nodes: Vec<Node>,
    pub tokens: Vec<SeenEnding>,
}

impl Seen {
    /// The nodes that answered, each with its last answer.
    pub fn answered(&self) -> impl Iterator<Item = (&Node, &Sample)> {
        self.nodes.iter().filter_map(|node| Some((node, node.now()?)))
    }

    pub fn name_of(&self, id: u32) -> String {
        let node = self.nodes.iter().find(|node| node.id == id);
        node.map_or_else(|| format!("node {id}"), |node| node.name.clone())
    }

    /// The name of the asker.
    pub fn here(&self) -> String {
        self.asker.map_or_else(|| "this machine".to_string(), |id| self.name_of(id))
    }

    pub fn leaders(&self) -> Vec<&Node> {
        self.answered().filter(|(_, said)| said.status.role == "leader").map(|(node, _)| node).collect()
    }

    /// In available mode, each side of a partition may have a leader.
    pub fn is_available(&self) -> bool {
        self.answered().next().is_some_and(|(_, said)| said.status.mode == "available")
    }
}
