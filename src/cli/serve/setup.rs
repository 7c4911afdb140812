//! From the settings to what the driver takes.

use std::sync::Arc;

use crate::config::{Config, Host};
use crate::driver::{Member, Setup, Wall};
use crate::wire::{ClusterHead, Secret};

pub fn setup(config: &Config, wall: Arc<Wall>) -> Setup {
    let member = |member: &crate::config::Member| Member {
        id: member.id,
        name: member.name.clone(),
        host: match &member.address.host {
            Host::Ip(ip) => ip.to_string(),
            Host::Name(name) => name.clone(),
        },
        port: member.address.port,
    };
    Setup {
        settings: config.settings(),
        cluster: ClusterHead {
            name: config.cluster_name.clone(),
            mode: config.mode_name().to_string(),
            settings: config.digest(),
        },
        members: config.members.iter().map(member).collect(),
        snapshot_every: config.snapshot_every,
        secret: config.secret.as_ref().map(|secret| Secret::new(secret.expose())),
        wall,
    }
}
