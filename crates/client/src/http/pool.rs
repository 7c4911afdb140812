//! The connections under a client, and what its calls go by.

use std::time::Duration;

use reqwest::redirect;

use super::exchange::root_of;
use super::nodes::Nodes;
use super::tls::{Tls, applied};
use crate::clock::Clock;

/// Shorter than a node keeps an idle connection, so that no call races with its end.
const POOL_IDLE: Duration = Duration::from_secs(2);

/// All that the attempts of a call share.
#[derive(Debug)]
pub struct Http {
    pub client: reqwest::Client,
    pub nodes: Nodes,
    pub clock: Clock,
    pub credential: Option<String>,
    /// What this client shows for what it holds.
    pub secret: String,
    pub deadline: Duration,
    pub attempt: Duration,
}

/// A pool of connections to nodes, or why there is none.
pub fn connections(connect_max: Duration, tls: &Tls) -> Result<reqwest::Client, String> {
    let builder = reqwest::Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .referer(false)
        .connect_timeout(connect_max)
        .pool_idle_timeout(POOL_IDLE);
    applied(tls, builder)?.build().map_err(|error| root_of(&error))
}
