//! The check of callers' certificates: those of other nodes, and those of clients.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};

use crate::files::provider;

/// Accepts a certificate of the nodes' CA, or of the CA that issues certificates to clients only.
#[derive(Debug)]
pub struct Callers {
    nodes: Arc<dyn ClientCertVerifier>,
    clients: Option<Arc<dyn ClientCertVerifier>>,
    hints: Vec<DistinguishedName>,
    /// Every caller must show a certificate.
    required: bool,
}

impl Callers {
    /// Fails if a CA cannot be used to check certificates.
    pub fn new(
        nodes: Arc<RootCertStore>,
        clients: Option<Arc<RootCertStore>>,
        required: bool,
    ) -> Result<Callers, String> {
        let verifier = |roots: Arc<RootCertStore>| {
            let built = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
            built.map_err(|error| error.to_string())
        };
        let nodes = verifier(nodes)?;
        let clients = clients.map(verifier).transpose()?;
        let of_clients = clients.iter().flat_map(|clients| clients.root_hint_subjects());
        let hints = nodes.root_hint_subjects().iter().chain(of_clients).cloned().collect();
        Ok(Callers { nodes, clients, hints, required })
    }

    /// Whether the nodes' CA issued this chain. A certificate of another CA must not name nodes.
    pub fn may_name_nodes(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> bool {
        let Some((end, between)) = chain.split_first() else {
            return false;
        };
        // Without a CA for clients only, the handshake has checked the chain against the nodes' CA.
        self.clients.is_none() || self.nodes.verify_client_cert(end, between, now).is_ok()
    }
}

impl ClientCertVerifier for Callers {
    fn client_auth_mandatory(&self) -> bool {
        self.required
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        end: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let by_nodes = self.nodes.verify_client_cert(end, between, now);
        match (&by_nodes, &self.clients) {
            (Err(_), Some(clients)) => clients.verify_client_cert(end, between, now),
            _ => by_nodes,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.nodes.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.nodes.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.nodes.supported_verify_schemes()
    }
}
