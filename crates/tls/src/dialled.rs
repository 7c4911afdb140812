//! The connections that a node opens to other nodes: the certificate that it shows, and the certificates that it
//! accepts. Both are looked up in the node's present certificates, so that a client that was built once uses renewed
//! certificates.

use std::sync::Arc;

use rustls::client::ResolvesClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

use crate::facts::NodeName;
use crate::files::provider;
use crate::node::NodeTls;

impl NodeTls {
    /// The configuration for connections to this node, or to any node of the cluster.
    pub fn dialling(self: &Arc<NodeTls>, node: Option<u32>) -> ClientConfig {
        ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("the provider supports the default TLS versions")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Dialled { tls: self.clone(), node }))
            .with_client_cert_resolver(Arc::new(Shown(self.clone())))
    }
}

/// Accepts a node's certificate for the address that was dialled: that of the given node, or that of any node of the
/// cluster.
#[derive(Debug)]
struct Dialled {
    tls: Arc<NodeTls>,
    node: Option<u32>,
}

impl ServerCertVerifier for Dialled {
    fn verify_server_cert(
        &self,
        end: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.tls.servers().verify_server_cert(end, between, name, ocsp, now)?;
        let names = NodeName::all(end);
        let cluster = &self.tls.rules().cluster;
        let right =
            |name: &NodeName| name.cluster == *cluster && self.node.is_none_or(|node| node == name.id);
        if names.iter().any(right) {
            return Ok(verified);
        }
        let wanted = match self.node {
            Some(node) => format!("node {node}"),
            None => "a node".to_string(),
        };
        let found: Vec<String> = names.iter().map(NodeName::to_string).collect();
        let found = if found.is_empty() { "no node".to_string() } else { found.join(" and ") };
        Err(Error::General(format!(
            "its certificate names {found} instead of {wanted} of the cluster {cluster}"
        )))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.tls.servers().verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.tls.servers().verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.tls.servers().supported_verify_schemes()
    }
}

/// The certificate that a node shows to the nodes that it connects to.
#[derive(Debug)]
struct Shown(Arc<NodeTls>);

impl ResolvesClientCert for Shown {
    fn resolve(&self, _hints: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let own = self.0.own();
        own.key.choose_scheme(schemes).is_some().then_some(own)
    }

    fn has_certs(&self) -> bool {
        true
    }
}
