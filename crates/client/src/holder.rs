//! The holder and the state of a role, as a cluster reports them.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

/// The holder of a role.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Leader {
    pub instance_id: String,
    #[serde(default)]
    pub address: Option<String>,
    #[serde(default)]
    pub metadata: Option<Value>,
}

impl Leader {
    /// Returns `None` if the value does not describe a leader.
    pub fn read(value: &Value) -> Option<Leader> {
        if value.is_null() { None } else { serde_json::from_value(value.clone()).ok() }
    }
}

/// Why a role was not granted.
#[derive(Clone, Debug)]
pub struct RoleHeld {
    pub role: String,
    pub leader: Leader,
    pub token: u64,
    pub expires_in: Duration,
    /// The role was free when the call came, and another instance was faster.
    pub conflict: bool,
}

impl RoleHeld {
    /// Reads the members of a refusal. Returns `None` if the role, the leader or the token is missing.
    pub fn read(members: &Map<String, Value>) -> Option<RoleHeld> {
        let number = |name: &str| members.get(name).and_then(Value::as_u64);
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        Some(RoleHeld {
            role: text("role")?.to_string(),
            leader: Leader::read(members.get("leader")?)?,
            token: number("token")?,
            expires_in: Duration::from_millis(number("expires_in_ms").unwrap_or_default()),
            conflict: text("outcome") == Some("conflict"),
        })
    }
}

impl fmt::Display for RoleHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "role {:?} is held by {}", self.role, self.leader.instance_id)
    }
}

/// A role as the cluster sees it. All fields but the name are absent if the role has no holder.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct RoleState {
    pub role: String,
    #[serde(default)]
    pub leader: Option<Leader>,
    #[serde(default)]
    pub token: Option<u64>,
    #[serde(default)]
    pub ttl_ms: Option<u64>,
    #[serde(default)]
    pub acquired_at: Option<Value>,
    /// Known to the leader only: `None` in local reads.
    #[serde(default)]
    pub expires_in_ms: Option<u64>,
    #[serde(default)]
    pub waiting: Option<u64>,
}
