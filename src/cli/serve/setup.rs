//! From the settings to what the driver takes.

use std::sync::Arc;

use crate::config::{Config, Host};
use crate::driver::{Directory, Member, Setup, Wall};
use crate::protocol::Settings;
use crate::types::ClusterId;
use crate::wire::{ClusterHead, Secret};

/// `new_cluster` names the cluster that this node may found.
pub fn setup(config: &Config, new_cluster: ClusterId, wall: Arc<Wall>) -> Setup {
    let member = |member: &crate::config::Member| Member {
        id: member.id,
        name: member.name.clone(),
        host: match &member.address.host {
            Host::Ip(ip) => ip.to_string(),
            Host::Name(name) => name.clone(),
        },
        port: member.address.port,
        votes: true,
    };
    Setup {
        settings: Settings { new_cluster, ..config.settings() },
        cluster: ClusterHead {
            name: config.cluster_name.clone(),
            mode: config.mode_name().to_string(),
            settings: config.digest(),
            ids: Some(config.ids_digest()),
            at: config.member(config.me).map(|member| member.address.to_string()).unwrap_or_default(),
        },
        directory: Directory::new(config.members.iter().map(member).collect()),
        snapshot_every: config.snapshot_every,
        secret: config.secret.as_ref().map(|secret| Secret::new(secret.expose())),
        wall,
    }
}
