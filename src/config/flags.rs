//! The command line's layer: the few settings that differ from node to node or from start to start.
//!
//! There is no flag for a secret itself: everybody on the machine sees the arguments of a process.

use serde::Serialize;

use super::place::{ChosenNode, Source};

/// What the command line said. Absent is "no word on it", so that lower layers decide.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Flags {
    /// Which node of the topology this one is; overrules the topology's own `node`. No setting: no file has it.
    #[serde(skip)]
    pub node: Option<u64>,
    pub data: Option<String>,
    pub listen: Option<String>,
    pub insecure: Option<bool>,
    pub anonymous: Option<String>,
    pub cluster_secret_file: Option<String>,
    pub admin_token_file: Option<String>,
    pub log: LogFlags,
}

/// `--log-level` and `--log-format`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LogFlags {
    pub level: Option<String>,
    pub format: Option<String>,
}

impl Flags {
    pub(super) fn chosen_node(&self) -> Option<ChosenNode> {
        self.node.map(|id| ChosenNode { id, source: Source::Flags })
    }
}
