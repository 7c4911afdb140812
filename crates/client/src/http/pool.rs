//! The connections under a client, and what its calls go by.

use std::time::Duration;

use crate::clock::Clock;
use crate::http::exchange::root_of;
use crate::http::nodes::Nodes;
use reqwest::redirect;

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

// What a client needs where nodes speak TLS.

/// Files in PEM: who vouches for the nodes, and what to show them, if anything.
#[cfg(feature = "tls")]
pub use eldest_tls::ClientFiles as Tls;

/// This client was built without TLS, and speaks plain HTTP only.
#[cfg(not(feature = "tls"))]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {}

#[cfg(feature = "tls")]
pub fn applied(tls: &Tls, builder: reqwest::ClientBuilder) -> Result<reqwest::ClientBuilder, String> {
    Ok(builder.tls_backend_preconfigured(tls.config().map_err(|error| error.to_string())?))
}

#[cfg(not(feature = "tls"))]
pub fn applied(_tls: &Tls, builder: reqwest::ClientBuilder) -> Result<reqwest::ClientBuilder, String> {
    Ok(builder)
}

/// What a failure means that comes from TLS, for people.
#[cfg(feature = "tls")]
pub use eldest_tls::explain;

#[cfg(not(feature = "tls"))]
pub fn explain(_error: &(dyn std::error::Error + 'static)) -> Option<String> {
    None
}
