//! The settings as a file writes them: the keys, their types and their defaults. Nothing is checked here.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::{BackupSettings, HttpLimits};
use crate::protocol::{Limits, Timing};
use crate::types::Span;

pub type RawTable = Map<String, Json>;

/// This type is not `Debug`, because it holds secrets.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raw {
    pub mode: String,
    pub ack: String,
    pub takeover: String,
    pub snapshot_every: u64,
    pub data: String,
    pub listen: String,
    pub cluster_secret_file: String,
    pub cluster_secret: String,
    pub admin_token_file: String,
    pub admin_token: String,
    pub metrics_listen: String,
    pub otlp_url: String,
    pub insecure: bool,
    pub anonymous: String,
    pub allowed_hosts: String,
    pub allowed_origins: String,
    pub tls: RawTls,
    pub backup: RawBackup,
    pub audit: RawAudit,
    pub log: RawLog,
    pub timing: RawTiming,
    pub limits: RawLimits,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawTls {
    pub mode: String,
    pub cert_file: String,
    pub key_file: String,
    pub ca_file: String,
    pub client_ca_file: String,
    pub client_certs: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawBackup {
    pub dir: String,
    pub every_ms: u64,
    pub keep: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawAudit {
    pub file: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawLog {
    pub level: String,
    pub format: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawTiming {
    pub heartbeat_ms: u64,
    pub dead_after_ms: u64,
    pub declare_ms: u64,
    pub stagger_ms: u64,
    pub lease_ms: u64,
    pub drift_percent: u64,
    pub window_ms: u64,
    pub stable_for_ms: u64,
    pub hold_ms: u64,
    pub hold_most_ms: u64,
    pub poll_ms: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawLimits {
    pub batch: u64,
    pub batch_bytes: u64,
    pub inflight: u64,
    pub uncommitted: u64,
    pub uncommitted_bytes: u64,
    pub reads: u64,
    pub keep: u64,
    pub keep_bytes: u64,
    pub ready_lag: u64,
    pub merge_bytes: u64,
    pub conflicts: u64,
    pub conflict_bytes: u64,
    pub state_bytes: u64,
    pub prefix_bytes: String,
    pub connections: u64,
    pub connections_each: u64,
    pub requests: u64,
    pub address_percent: u64,
    pub body_bytes: u64,
    pub bodies_bytes: u64,
    pub bodies_bytes_each: u64,
    pub head_bytes: u64,
    pub header_timeout_ms: u64,
    pub body_timeout_ms: u64,
    pub answer_timeout_ms: u64,
    pub request_timeout_ms: u64,
    pub idle_timeout_ms: u64,
}

/// An empty text means "none". Every key has a default, so that the defaults name every key.
impl Default for Raw {
    fn default() -> Raw {
        Raw {
            mode: "safe".to_string(),
            ack: "majority".to_string(),
            takeover: "never".to_string(),
            snapshot_every: 10,
            data: "data".to_string(),
            listen: String::new(),
            cluster_secret_file: String::new(),
            cluster_secret: String::new(),
            admin_token_file: String::new(),
            admin_token: String::new(),
            metrics_listen: String::new(),
            otlp_url: String::new(),
            insecure: false,
            anonymous: String::new(),
            allowed_hosts: String::new(),
            allowed_origins: String::new(),
            tls: RawTls::default(),
            backup: RawBackup { dir: String::new(), every_ms: 60 * 60 * 1000, keep: 24 },
            audit: RawAudit { file: String::new() },
            log: RawLog { level: "info".to_string(), format: "text".to_string() },
            timing: RawTiming::new(&Timing::lan()),
            limits: RawLimits::new(&Limits::default(), &HttpLimits::default()),
        }
    }
}

impl Raw {
    pub fn table(&self) -> RawTable {
        let json = serde_json::to_value(self).expect("numbers and strings always serialize");
        json.as_object().expect("a struct is a table").clone()
    }
}

impl Default for RawTls {
    fn default() -> RawTls {
        RawTls {
            mode: "off".to_string(),
            cert_file: String::new(),
            key_file: String::new(),
            ca_file: String::new(),
            client_ca_file: String::new(),
            client_certs: "optional".to_string(),
        }
    }
}

impl RawBackup {
    /// Returns `None` if no folder is set.
    pub fn settled(&self) -> Option<BackupSettings> {
        let dir = Some(&self.dir).filter(|dir| !dir.is_empty())?;
        let every = std::time::Duration::from_millis(self.every_ms);
        Some(BackupSettings { dir: dir.into(), every, keep: size(self.keep) })
    }
}

impl RawTiming {
    fn new(timing: &Timing) -> RawTiming {
        let ms = |span: Span| span.0 / 1000;
        RawTiming {
            heartbeat_ms: ms(timing.heartbeat),
            dead_after_ms: ms(timing.dead_after),
            declare_ms: ms(timing.declare),
            stagger_ms: ms(timing.stagger),
            lease_ms: ms(timing.lease),
            drift_percent: timing.drift_percent,
            window_ms: ms(timing.window),
            stable_for_ms: ms(timing.stable_for),
            hold_ms: ms(timing.hold),
            hold_most_ms: ms(timing.hold_most),
            poll_ms: ms(timing.poll),
        }
    }

    /// The conversion saturates if a value is out of range; the violation is reported elsewhere.
    pub fn timing(&self) -> Timing {
        let span = |ms: u64| Span(ms.saturating_mul(1000));
        Timing {
            heartbeat: span(self.heartbeat_ms),
            dead_after: span(self.dead_after_ms),
            declare: span(self.declare_ms),
            stagger: span(self.stagger_ms),
            lease: span(self.lease_ms),
            drift_percent: self.drift_percent,
            window: span(self.window_ms),
            stable_for: span(self.stable_for_ms),
            hold: span(self.hold_ms),
            hold_most: span(self.hold_most_ms),
            poll: span(self.poll_ms),
        }
    }
}

impl RawLimits {
    fn new(limits: &Limits, http: &HttpLimits) -> RawLimits {
        let ms = |duration: std::time::Duration| duration.as_millis() as u64;
        RawLimits {
            batch: limits.batch as u64,
            batch_bytes: limits.batch_bytes as u64,
            inflight: limits.inflight as u64,
            uncommitted: limits.uncommitted,
            uncommitted_bytes: limits.uncommitted_bytes as u64,
            reads: limits.reads as u64,
            keep: limits.keep,
            keep_bytes: limits.keep_bytes as u64,
            ready_lag: limits.ready_lag,
            merge_bytes: limits.merge_bytes,
            conflicts: limits.conflicts as u64,
            conflict_bytes: limits.conflict_bytes as u64,
            state_bytes: limits.state_bytes,
            prefix_bytes: String::new(),
            connections: http.connections as u64,
            connections_each: http.connections_each as u64,
            requests: http.requests as u64,
            address_percent: http.address_percent as u64,
            body_bytes: http.body_bytes as u64,
            bodies_bytes: http.bodies_bytes as u64,
            bodies_bytes_each: http.bodies_bytes_each as u64,
            head_bytes: http.head_bytes as u64,
            header_timeout_ms: ms(http.header_timeout),
            body_timeout_ms: ms(http.body_timeout),
            answer_timeout_ms: ms(http.answer_timeout),
            request_timeout_ms: ms(http.request_timeout),
            idle_timeout_ms: ms(http.idle_timeout),
        }
    }

    pub fn limits(&self) -> Limits {
        Limits {
            batch: size(self.batch),
            batch_bytes: size(self.batch_bytes),
            inflight: size(self.inflight),
            uncommitted: self.uncommitted,
            uncommitted_bytes: size(self.uncommitted_bytes),
            reads: size(self.reads),
            keep: self.keep,
            keep_bytes: size(self.keep_bytes),
            ready_lag: self.ready_lag,
            merge_bytes: self.merge_bytes,
            conflicts: size(self.conflicts),
            conflict_bytes: size(self.conflict_bytes),
            state_bytes: self.state_bytes,
            // The setting is read elsewhere, and its mistakes are reported there.
            area_bytes: Vec::new(),
        }
    }

    pub fn http(&self) -> HttpLimits {
        let duration = std::time::Duration::from_millis;
        HttpLimits {
            connections: size(self.connections),
            connections_each: size(self.connections_each),
            requests: size(self.requests),
            address_percent: size(self.address_percent),
            body_bytes: size(self.body_bytes),
            bodies_bytes: size(self.bodies_bytes),
            bodies_bytes_each: size(self.bodies_bytes_each),
            head_bytes: size(self.head_bytes),
            header_timeout: duration(self.header_timeout_ms),
            body_timeout: duration(self.body_timeout_ms),
            answer_timeout: duration(self.answer_timeout_ms),
            request_timeout: duration(self.request_timeout_ms),
            idle_timeout: duration(self.idle_timeout_ms),
        }
    }
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
