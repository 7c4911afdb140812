//! What a node knows of leadership: who leads, who would be next, why nobody does, and what has happened.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::chronicle::Entry;

/// As nodes tell it each other, too: whoever reads it leaves out what it does not know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Explained {
    pub node: u32,
    pub leader: Option<u32>,
    pub epoch: String,
    /// Whom this node would take for the next one: the leader's word.
    pub heir: Option<u32>,
    /// Why nobody leads, and what to do.
    pub advice: Option<String>,
    /// How many votes an election needs. One where no majority is needed.
    pub needed: usize,
    /// Whom it reaches.
    pub reaches: Vec<u32>,
    /// Of the leader alone: how fit each node is to be the next one.
    pub contenders: Vec<ContenderShown>,
    /// Of the leader alone: what happens when it dies, and then the next one.
    pub succession: Vec<HeirShown>,
    #[serde(with = "shared")]
    pub entries: Arc<Vec<Entry>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContenderShown {
    pub node: u32,
    pub fitness: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeirShown {
    /// In the order in which they die.
    pub dead: Vec<u32>,
    pub next: Option<u32>,
    pub votes: usize,
}

mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::chronicle::Entry;

    pub fn serialize<S: Serializer>(entries: &Arc<Vec<Entry>>, serializer: S) -> Result<S::Ok, S::Error> {
        entries.as_slice().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<Vec<Entry>>, D::Error> {
        Vec::deserialize(deserializer).map(Arc::new)
    }
}
