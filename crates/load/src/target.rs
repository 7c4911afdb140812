//! Where the servers are.

use std::net::SocketAddr;

use super::error::BenchError;
use super::node_url::NodeUrl;

/// A node that can be connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub url: String,
    /// The header `Host`.
    pub host: String,
    pub address: SocketAddr,
}

impl Target {
    /// Looks the name up, once for the whole run.
    pub async fn resolve(url: &NodeUrl) -> Result<Target, BenchError> {
        let failed = |source| BenchError::Resolve { url: url.to_string(), source };
        let mut found = tokio::net::lookup_host((url.name.as_str(), url.port)).await.map_err(failed)?;
        let address = found.next().ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))?;
        Ok(Target { url: url.to_string(), host: url.host.clone(), address })
    }

    pub async fn resolve_all(urls: &[NodeUrl]) -> Result<Vec<Target>, BenchError> {
        let mut targets: Vec<Target> = Vec::new();
        for url in urls {
            let target = Target::resolve(url).await?;
            if !targets.contains(&target) {
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
        let targets = Target::resolve_all(&urls).await.unwrap();
        assert_eq!(targets.len(), 2);
        assert_eq!(targets[1].address, "127.0.0.2:1".parse().unwrap());
    }
}
