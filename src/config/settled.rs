//! The settings after all checks, as the rest of the program uses them.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use eldest_tls::NodeFiles;

use super::{Address, ClusterSecrets, Secret};
use crate::protocol::{Ack, Limits, Mode, Settings, Takeover, Timing};
use crate::store::{Grant, Grants};
use crate::types::{self, NodeId};

#[derive(Clone, Debug)]
pub struct Config {
    pub cluster_name: String,
    /// This node.
    pub me: NodeId,
    /// The whole topology, this node included, in ascending order of ids.
    pub members: Vec<MemberSettings>,
    pub mode: Mode,
    pub ack: Ack,
    pub takeover: Takeover,
    pub timing: Timing,
    pub limits: Limits,
    pub http: HttpLimits,
    /// The number of writes between two snapshots.
    pub snapshot_every: u64,
    pub data: PathBuf,
    /// The address to listen on. The addresses at which others call the nodes are in `members`.
    pub listen: Address,
    /// The address that serves `/metrics` and nothing else.
    pub metrics_listen: Option<Address>,
    /// The URL of a collector of traces, without a path.
    pub otlp_url: Option<String>,
    pub secret: Option<ClusterSecrets>,
    /// The file that the secret was read from, if it was a file.
    pub secret_file: Option<PathBuf>,
    pub tls: Option<TlsSettings>,
    /// The backups of the state that this node keeps.
    pub backup: Option<BackupSettings>,
    pub admin_token: Option<Secret>,
    /// Without a secret, every caller is accepted as a peer.
    pub insecure: bool,
    /// The rights of a call without a credential.
    pub anonymous: Anonymous,
    /// The log of administrative orders and refused credentials: a file, or "stderr".
    pub audit: Option<PathBuf>,
    /// Further host names by which browsers may call this node, beside those of the topology. In lower case.
    pub allowed_hosts: Vec<String>,
    /// The origins of pages that may use this node. In lower case.
    pub allowed_origins: Vec<String>,
    pub log: Log,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberSettings {
    pub id: NodeId,
    pub name: String,
    pub address: Address,
}

/// The bounds of the HTTP server. The purpose of each is in `config/default.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    pub connections: usize,
    /// The bound for one address. Zero means half of all.
    pub connections_each: usize,
    pub requests: usize,
    pub address_percent: usize,
    pub body_bytes: usize,
    pub bodies_bytes: usize,
    /// The bound for one address. Zero means half of all.
    pub bodies_bytes_each: usize,
    pub head_bytes: usize,
    pub header_timeout: Duration,
    pub body_timeout: Duration,
    pub answer_timeout: Duration,
    pub request_timeout: Duration,
    pub idle_timeout: Duration,
}

/// The rights of a call without a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anonymous {
    pub grants: Grants,
    /// The rights are the default: no setting decided them.
    pub is_default: bool,
}

/// The TLS settings of a node that uses TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSettings {
    pub files: NodeFiles,
    /// Whether the node uses TLS to call other nodes.
    pub dials: bool,
    /// Whether the node accepts callers without TLS.
    pub takes_plain: bool,
    pub client_certs_required: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupSettings {
    pub dir: PathBuf,
    pub every: Duration,
    pub keep: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    pub level: LogLevel,
    pub format: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

impl Config {
    pub fn settings(&self) -> Settings {
        let founder = |member: &MemberSettings| types::Member {
            name: member.name.as_str().into(),
            address: member.address.to_string().into(),
            ..types::Member::founder(member.id)
        };
        Settings {
            members: self.members.iter().map(founder).collect(),
            mode: self.mode,
            timing: self.timing.clone(),
            limits: self.limits.clone(),
            takeover: self.takeover,
            ack: self.ack,
            // A node that takes no call without TLS knows each caller by its certificate.
            peers_prove: self.secret.is_some() || self.tls.as_ref().is_some_and(|tls| !tls.takes_plain),
            ..Settings::lan(self.me, Vec::new())
        }
    }

    pub fn member(&self, id: NodeId) -> Option<&MemberSettings> {
        self.members.iter().find(|member| member.id == id)
    }

    /// A digest of the ids in the topology file. Peers compare it until a log says which nodes belong to the cluster.
    /// It does not cover names and addresses, so that a dead node may get another address one restart at a time.
    pub fn ids_digest(&self) -> u64 {
        let ids: Vec<String> = self.members.iter().map(|member| member.id.0.to_string()).collect();
        fnv1a(ids.join(" ").as_bytes())
    }

    /// A digest of what all nodes of a cluster must agree on, which peers compare: the mode and the timings.
    ///
    /// It is FNV-1a with 64 bits over a text with one line for each value, and is the same on every machine and in
    /// every version that knows the same timings.
    pub fn digest(&self) -> u64 {
        fnv1a(self.agreed().as_bytes())
    }

    fn agreed(&self) -> String {
        let mut text = format!("eldest 1\nmode {}\n", self.mode.name());
        let polls = self.mode == Mode::Available;
        // No node polls in safe mode, so versions that do not know the word yet have the same digest.
        for (name, number) in self.timing.named().into_iter().filter(|(name, _)| polls || *name != "poll") {
            // Writing into a string never fails.
            let _ = writeln!(text, "{name} {number}");
        }
        text
    }
}

impl Anonymous {
    pub const NOTHING: &str = "none";

    /// The rights as text for people.
    pub fn said(&self) -> String {
        let grants: Vec<String> = self.grants.iter().map(Grant::to_string).collect();
        if grants.is_empty() { Anonymous::NOTHING.to_string() } else { grants.join("; ") }
    }
}

impl MemberSettings {
    pub fn url(&self) -> String {
        self.address.url()
    }
}

impl LogLevel {
    pub fn as_str(self) -> &'static str {
        match self {
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
            LogLevel::Trace => "trace",
        }
    }
}

impl Default for HttpLimits {
    fn default() -> HttpLimits {
        HttpLimits {
            connections: 16_384,
            connections_each: 0,
            requests: 16_384,
            address_percent: 75,
            // Four of the largest documents in one batch, with their frames.
            body_bytes: (4 << 20) + (64 << 10),
            bodies_bytes: 256 << 20,
            bodies_bytes_each: 0,
            head_bytes: 16 << 10,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            answer_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
        }
    }
}

fn fnv1a(bytes: &[u8]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vectors that the authors of the function publish.
    #[test]
    fn fnv() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
