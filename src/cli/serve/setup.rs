//! Converts the settings to the driver's setup.

use std::sync::Arc;

use eldest_tls::{NodeTls, Rules};

use super::error::ServeError;
use crate::config::{ClusterSecrets, Config, Host};
use crate::driver::{Directory, Member, Setup, Tls, Wall};
use crate::protocol::Settings;
use crate::types::ClusterId;
use crate::wire::{ClusterHead, ProofSecret, Secrets};

/// The random values that a process draws when it starts.
#[derive(Clone, Copy, Debug)]
pub struct Drawn {
    /// The name of the cluster that this node may found.
    pub new_cluster: ClusterId,
    /// The first number of the node's questions and beats.
    pub asks_from: u64,
}

impl Drawn {
    pub fn draw() -> Result<Drawn, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        let asks_from = getrandom::u64()?;
        Ok(Drawn { new_cluster: ClusterId(u128::from_le_bytes(bytes)), asks_from })
    }
}

pub fn setup(config: &Config, drawn: Drawn, wall: Arc<Wall>) -> Result<Setup, ServeError> {
    let member = |member: &crate::config::MemberSettings| Member {
        id: member.id,
        name: member.name.clone(),
        host: match &member.address.host {
            Host::Ip(ip) => ip.to_string(),
            Host::Name(name) => name.clone(),
        },
        port: member.address.port,
        votes: true,
    };
    let Drawn { new_cluster, asks_from } = drawn;
    Ok(Setup {
        settings: Settings { new_cluster, asks_from, ..config.settings() },
        cluster: ClusterHead {
            name: config.cluster_name.clone(),
            mode: config.mode.name().to_string(),
            settings: config.digest(),
            ids: Some(config.ids_digest()),
            at: config.member(config.me).map(|member| member.address.to_string()).unwrap_or_default(),
        },
        directory: Directory::new(config.members.iter().map(member).collect()),
        snapshot_every: config.snapshot_every,
        secret: config
            .secret
            .as_ref()
            .map(secrets)
            .map(|(first, other)| Arc::new(Secrets::new(first, other))),
        tls: tls(config)?,
        notices: Default::default(),
        wall,
    })
}

/// The secrets in the form in which proofs are made.
pub fn secrets(configured: &ClusterSecrets) -> (ProofSecret, Option<ProofSecret>) {
    let ClusterSecrets { first, other } = configured;
    (ProofSecret::new(first.expose()), other.as_ref().map(|other| ProofSecret::new(other.expose())))
}

/// The files were right a moment ago, when the configuration was checked.
fn tls(config: &Config) -> Result<Option<Tls>, ServeError> {
    let Some(tls) = &config.tls else {
        return Ok(None);
    };
    let rules = Rules {
        cluster: config.cluster_name.clone(),
        node: config.me.0,
        client_certs_required: tls.client_certs_required,
    };
    let certificates = NodeTls::load(tls.files.clone(), rules).map_err(ServeError::Certificates)?;
    let certificates = Arc::new(certificates);
    Ok(Some(Tls { certificates, dials: tls.dials, takes_plain: tls.takes_plain }))
}
