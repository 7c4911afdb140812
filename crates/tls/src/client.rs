//! How clients dial.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::ResolvesClientCert;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore};

use crate::files::{Kind, Pem, TlsError, certified};
use crate::provider::provider;

/// What a client trusts, and what it shows. Nothing at all is what plain HTTP needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientFiles {
    /// Those who vouch for the nodes.
    pub ca: Option<PathBuf>,
    /// With its key in a file of its own, or in the same one.
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

/// For plain HTTP alone: a library that can do both wants a configuration.
pub fn trusting_nobody() -> ClientConfig {
    builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth()
}

fn builder() -> rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier> {
    ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("the provider has what the default versions need")
}

fn single(own: CertifiedKey) -> Arc<dyn ResolvesClientCert> {
    Arc::new(SingleCertAndKey::from(own))
}
