//! The addresses of the servers.

use std::net::SocketAddr;
use std::sync::Arc;

use eldest_tls::rustls::ClientConfig;
use eldest_tls::rustls::pki_types::ServerName;

use super::args::Common;
use super::error::BenchError;
use super::node_url::NodeUrl;

/// A node that can be connected to.
#[derive(Clone, Debug)]
pub struct Target {
    pub url: String,
    /// The header `Host`.
    pub host: String,
    pub address: SocketAddr,
    /// `None` means plain HTTP.
    pub secured: Option<Secured>,
}

/// The settings for a node that uses TLS.
#[derive(Clone, Debug)]
pub struct Secured {
    pub config: Arc<ClientConfig>,
    pub name: ServerName<'static>,
}

impl Target {
    /// Resolves the name, once for the whole run.
    pub async fn resolve(url: &NodeUrl, tls: &Arc<ClientConfig>) -> Result<Target, BenchError> {
        let failed = |source| BenchError::Resolve { url: url.to_string(), source };
        let mut found = tokio::net::lookup_host((url.name.as_str(), url.port)).await.map_err(failed)?;
        let address = found.next().ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))?;
        let name = ServerName::try_from(url.name.clone())
            .map_err(|_| failed(std::io::ErrorKind::InvalidInput.into()))?;
        let secured = url.tls.then(|| Secured { config: tls.clone(), name });
        Ok(Target { url: url.to_string(), host: url.host.clone(), address, secured })
    }

    pub async fn resolve_all(common: &Common) -> Result<Vec<Target>, BenchError> {
        let tls = Arc::new(common.tls.files().config().map_err(BenchError::Certificates)?);
        let mut targets: Vec<Target> = Vec::new();
        for url in &common.urls {
            let target = Target::resolve(url, &tls).await?;
            if targets.iter().all(|known| known.url != target.url) {
                targets.push(target);
            }
        }
        Ok(targets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_target_is_kept_once() {
        let urls = ["http://127.0.0.1:1", "http://127.0.0.2:1", "http://127.0.0.1:1/"];
        let urls: Vec<NodeUrl> = urls.iter().map(|url| url.parse().unwrap()).collect();
        let common = Common { urls, headers: Vec::new(), json: false, tls: Default::default() };
        let targets = Target::resolve_all(&common).await.unwrap();
        assert_eq!(targets.len(), 2);
        assert_eq!(targets[1].address, "127.0.0.2:1".parse().unwrap());
    }
}
