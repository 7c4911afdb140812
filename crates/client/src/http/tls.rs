//! What a client needs where nodes speak TLS.

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
