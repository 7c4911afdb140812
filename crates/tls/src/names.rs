//! The name of a node in its certificate: `eldest://CLUSTER/node/ID`, among the alternative names.

use std::fmt;

use rustls::pki_types::CertificateDer;
use rustls::server::ParsedCertificate;

use crate::facts::Facts;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeName {
    pub cluster: String,
    pub id: u32,
}

impl NodeName {
    pub fn parse(uri: &str) -> Option<NodeName> {
        let (cluster, id) = uri.strip_prefix("eldest://")?.split_once("/node/")?;
        let name = NodeName { cluster: cluster.to_string(), id: id.parse().ok()? };
        // Each name has one spelling only.
        (name.to_string() == uri && !cluster.contains('/')).then_some(name)
    }

    /// The names of all nodes that this certificate names.
    pub fn all(certificate: &CertificateDer<'_>) -> Vec<NodeName> {
        // If the library that checks signatures cannot read the certificate, it names no node.
        if ParsedCertificate::try_from(certificate).is_err() {
            return Vec::new();
        }
        let names = Facts::read(certificate).map(|facts| facts.uris).unwrap_or_default();
        names.iter().filter_map(|uri| NodeName::parse(uri)).collect()
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "eldest://{}/node/{}", self.cluster, self.id)
    }
}
