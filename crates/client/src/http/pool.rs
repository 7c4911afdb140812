//! The connections of a client, and the settings of its calls.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::redirect;

use crate::clock::Clock;
use crate::http::exchange::root_of;
use crate::http::nodes::Nodes;

/// Shorter than a node keeps an idle connection, so that no call is sent just when the node closes its connection.
const POOL_IDLE: Duration = Duration::from_secs(2);

/// The state and settings that all attempts of a call share.
#[derive(Debug)]
pub struct Http {
    pub client: reqwest::Client,
    pub nodes: Nodes,
    pub clock: Clock,
    pub credential: Option<String>,
    /// The secret that this client shows for what it holds.
    pub secret: String,
    pub deadline: Duration,
    pub attempt: Duration,
}

/// The header that names the cluster that a call is for.
const IF_CLUSTER: &str = "if-cluster";

/// A pool of connections to nodes. If a cluster is named, each call names it. Fails if the HTTP client cannot be set up.
pub fn connections(
    connect_max: Duration,
    tls: &Tls,
    cluster_id: Option<&str>,
) -> Result<reqwest::Client, String> {
    let mut headers = HeaderMap::new();
    if let Some(id) = cluster_id {
        headers.insert(IF_CLUSTER, HeaderValue::try_from(id).map_err(|error| error.to_string())?);
    }
    let builder = reqwest::Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .referer(false)
        .default_headers(headers)
        .connect_timeout(connect_max)
        .pool_idle_timeout(POOL_IDLE);
    applied(tls, builder)?.build().map_err(|error| root_of(&error))
}

// The TLS settings of a client.

/// PEM files: the certificates to trust, and optionally the client's own certificate.
#[cfg(feature = "tls")]
pub use eldest_tls::ClientFiles as Tls;

/// This client was built without TLS, and speaks plain HTTP only.
#[cfg(not(feature = "tls"))]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {}

/// Sets up TLS with these files. Fails if a file cannot be used.
#[cfg(feature = "tls")]
pub fn applied(tls: &Tls, builder: reqwest::ClientBuilder) -> Result<reqwest::ClientBuilder, String> {
    Ok(builder.tls_backend_preconfigured(tls.config().map_err(|error| error.to_string())?))
}

/// Changes nothing: this client was built without TLS.
#[cfg(not(feature = "tls"))]
pub fn applied(_tls: &Tls, builder: reqwest::ClientBuilder) -> Result<reqwest::ClientBuilder, String> {
    Ok(builder)
}

/// An explanation for people of an error that comes from TLS.
#[cfg(feature = "tls")]
pub use eldest_tls::explain;

/// Returns `None`: this client was built without TLS.
#[cfg(not(feature = "tls"))]
pub fn explain(_error: &(dyn std::error::Error + 'static)) -> Option<String> {
    None
}
