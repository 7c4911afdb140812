//! The TLS settings of clients.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::ResolvesClientCert;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore};

use crate::files::provider;
use crate::files::{Kind, Pem, TlsError, certified};

/// The certificates that a client trusts, and the one that it shows. Plain HTTP needs none of these files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientFiles {
    /// The CAs that issue the nodes' certificates.
    pub ca: Option<PathBuf>,
    /// The client's certificate. Its key is in `key`, or in the same file.
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

impl ClientFiles {
    pub fn config(&self) -> Result<ClientConfig, TlsError> {
        let roots = match &self.ca {
            Some(path) => Pem::read(Kind::Ca, path)?.roots()?,
            None => Arc::new(RootCertStore::empty()),
        };
        let shown = self.shown()?;
        let config = builder().with_root_certificates(roots);
        Ok(match shown {
            Some(own) => config.with_client_cert_resolver(single(own)),
            None => config.with_no_client_auth(),
        })
    }

    fn shown(&self) -> Result<Option<CertifiedKey>, TlsError> {
        let Some(path) = self.cert.as_ref().or(self.key.as_ref()) else {
            return Ok(None);
        };
        let certificate = Pem::read(Kind::Certificate, self.cert.as_ref().unwrap_or(path))?;
        let key = Pem::read(Kind::Key, self.key.as_ref().unwrap_or(path))?;
        certified(&certificate, &key).map(Some)
    }
}

/// A configuration for plain HTTP only, which trusts no certificate: a library that supports both needs a
/// configuration.
pub fn trusting_no_certificate() -> ClientConfig {
    builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth()
}

fn builder() -> rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier> {
    ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default TLS versions")
}

fn single(own: CertifiedKey) -> Arc<dyn ResolvesClientCert> {
    Arc::new(SingleCertAndKey::from(own))
}
