//! A node's certificates: those of its files, or the earlier ones while the files are wrong.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use crate::callers::Callers;
use crate::facts::Facts;
use crate::facts::NodeName;
use crate::files::provider;
use crate::files::{Kind, Pem, TlsError, certified};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
    /// The CAs that issue nodes' certificates.
    pub ca: PathBuf,
    /// Further CAs, which issue clients' certificates.
    pub client_ca: Option<PathBuf>,
}

/// The settings that do not change while the node runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    pub cluster: String,
    pub node: u32,
    /// Whether clients, too, must show a certificate.
    pub client_certs_required: bool,
}

/// The identity of a caller, by its certificate. A caller without a certificate has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The node of this cluster that the certificate names.
    pub node: Option<u32>,
}

/// The certificates and configurations for new connections.
#[derive(Debug)]
pub struct NodeTls {
    files: NodeFiles,
    rules: Rules,
    current: RwLock<Arc<Material>>,
}

#[derive(Debug)]
struct Material {
    /// The files as they were read.
    pems: Vec<Pem>,
    own: Arc<CertifiedKey>,
    facts: Facts,
    servers: Arc<WebPkiServerVerifier>,
    callers: Arc<Callers>,
    server: Arc<ServerConfig>,
}

impl NodeTls {
    /// Reads the files. Fails with all errors that the files have.
    pub fn load(files: NodeFiles, rules: Rules) -> Result<NodeTls, Vec<TlsError>> {
        let material = Material::new(read(&files)?, &rules)?;
        Ok(NodeTls { files, rules, current: RwLock::new(Arc::new(material)) })
    }

    /// Reads the files again, and returns whether they have changed. After an error the earlier certificates stay in
    /// use.
    pub fn reload(&self) -> Result<bool, Vec<TlsError>> {
        let pems = read(&self.files)?;
        if pems == self.current().pems {
            return Ok(false);
        }
        let material = Material::new(pems, &self.rules)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(material);
        Ok(true)
    }

    pub fn key_file(&self) -> &Path {
        &self.files.key
    }

    /// The configuration for connections from callers.
    pub fn server(&self) -> Arc<ServerConfig> {
        self.current().server.clone()
    }

    /// The identity of a caller. The chain has passed the handshake.
    pub fn caller(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> Caller {
        let names = chain.first().map(NodeName::all).unwrap_or_default();
        let ours = |name: &&NodeName| name.cluster == self.rules.cluster;
        let node = names.iter().find(ours).map(|name| name.id);
        Caller { node: node.filter(|_| self.current().callers.may_name_nodes(chain, now)) }
    }

    /// The contents of this node's own certificate.
    pub fn facts(&self) -> Facts {
        self.current().facts.clone()
    }

    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    pub(crate) fn servers(&self) -> Arc<dyn ServerCertVerifier> {
        self.current().servers.clone()
    }

    pub(crate) fn own(&self) -> Arc<CertifiedKey> {
        self.current().own.clone()
    }

    fn current(&self) -> Arc<Material> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Reads the files, in the order of the fields.
fn read(files: &NodeFiles) -> Result<Vec<Pem>, Vec<TlsError>> {
    let named = [(Kind::Certificate, &files.cert), (Kind::Key, &files.key), (Kind::Ca, &files.ca)];
    let client_ca = files.client_ca.iter().map(|path| (Kind::ClientCa, path));
    all(named.into_iter().chain(client_ca).map(|(kind, path)| Pem::read(kind, path)))
}

/// Returns all successes, or all failures.
fn all<T>(results: impl Iterator<Item = Result<T, TlsError>>) -> Result<Vec<T>, Vec<TlsError>> {
    let (mut right, mut wrong) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(one) => right.push(one),
            Err(error) => wrong.push(error),
        }
    }
    if wrong.is_empty() { Ok(right) } else { Err(wrong) }
}

impl Material {
    fn new(pems: Vec<Pem>, rules: &Rules) -> Result<Material, Vec<TlsError>> {
        let [certificate, key, ca, client_ca @ ..] = pems.as_slice() else {
            unreachable!("three files are always read");
        };
        let own = certified(certificate, key).and_then(|own| named(own, certificate, rules));
        let roots = ca.roots();
        let client_roots = client_ca.first().map(Pem::roots).transpose();
        let (own, facts) = match (own, &roots, &client_roots) {
            (Ok(own), Ok(_), Ok(_)) => own,
            (own, roots, client_roots) => {
                let wrong = [own.err(), roots.as_ref().err().cloned(), client_roots.as_ref().err().cloned()];
                return Err(wrong.into_iter().flatten().collect());
            }
        };
        let (roots, client_roots) = (roots.map_err(|e| vec![e])?, client_roots.map_err(|e| vec![e])?);
        let servers = WebPkiServerVerifier::builder_with_provider(roots.clone(), provider()).build();
        let servers = servers.map_err(|error| vec![ca.wrong(format!("cannot be used: {error}"))])?;
        let callers = Callers::new(roots, client_roots, rules.client_certs_required);
        let callers = Arc::new(callers.map_err(|error| vec![ca.wrong(format!("cannot be used: {error}"))])?);
        let own = Arc::new(own);
        let server = Arc::new(answering(own.clone(), callers.clone()));
        Ok(Material { own, facts, servers, callers, server, pems })
    }
}

/// Checks that the certificate names this node. All other nodes would refuse one that does not, so the error is
/// reported here.
fn named(own: CertifiedKey, file: &Pem, rules: &Rules) -> Result<(CertifiedKey, Facts), TlsError> {
    let end = own.cert.first().ok_or_else(|| file.wrong("contains no certificate"))?;
    let facts = Facts::read(end).ok_or_else(|| file.wrong("contains an invalid certificate"))?;
    let name = NodeName { cluster: rules.cluster.clone(), id: rules.node };
    if NodeName::all(end).contains(&name) {
        return Ok((own, facts));
    }
    let names = facts.names();
    let names = if names.is_empty() { "nothing".to_string() } else { names.join(", ") };
    Err(file.wrong(format!(
        "contains a certificate for {names}, which is not this node's: its alternative names must include \
            {name} (`eldest cert node` issues one)"
    )))
}

/// Sessions are not resumed: each new connection is checked against the certificates of its time.
fn answering(own: Arc<CertifiedKey>, callers: Arc<Callers>) -> ServerConfig {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default TLS versions")
        .with_client_cert_verifier(callers)
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(own)));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config
}
