//! From the settings to what the driver takes.

use crate::config::{Config, Host};
use crate::driver::{Member, Setup};
use crate::wire::{ClusterHead, Secret};

pub fn setup(config: &Config) -> Setup {
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
            mode: config.mode.as_str().to_string(),
            settings: config.digest(),
        },
        members: config.members.iter().map(member).collect(),
        snapshot_every: config.snapshot_every,
        secret: config.secret.as_ref().map(|secret| Secret::new(secret.expose())),
    }
}
