//! PEM files, with their bounds, and the errors that they can have.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

/// The bound of a file. A bundle of all public CAs has a fifth of this.
const FILE_BYTES_MOST: u64 = 1 << 20;

/// The purpose of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Certificate,
    Key,
    Ca,
    ClientCa,
}

/// An error in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError {
    pub kind: Kind,
    pub path: PathBuf,
    /// Reads as the end of a sentence that begins with "the file …".
    pub why: String,
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the file {} {}", self.path.display(), self.why)
    }
}

impl std::error::Error for TlsError {}

/// A file as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pem {
    kind: Kind,
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Pem {
    pub fn read(kind: Kind, path: &Path) -> Result<Pem, TlsError> {
        let mut pem = Pem { kind, path: path.to_path_buf(), bytes: Vec::new() };
        let read =
            File::open(path).and_then(|file| file.take(FILE_BYTES_MOST + 1).read_to_end(&mut pem.bytes));
        match read {
            Err(error) => Err(pem.wrong(format!("cannot be read: {error}"))),
            Ok(bytes) if bytes as u64 > FILE_BYTES_MOST => {
                Err(pem.wrong(format!("is longer than {FILE_BYTES_MOST} bytes: use another file")))
            }
            Ok(_) => Ok(pem),
        }
    }

    pub fn wrong(&self, why: impl Into<String>) -> TlsError {
        TlsError { kind: self.kind, path: self.path.clone(), why: why.into() }
    }

    /// The certificates in the file's order: at least one.
    pub fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.bytes).collect();
        match read {
            Ok(found) if !found.is_empty() => Ok(found),
            Ok(_) => Err(self.wrong("contains no certificate: it needs -----BEGIN CERTIFICATE-----")),
            Err(error) => Err(self.wrong(format!("cannot be parsed: {error}"))),
        }
    }

    pub fn key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        // The reader's error is dropped, because its text could quote the secret key.
        PrivateKeyDer::from_pem_slice(&self.bytes)
            .map_err(|_| self.wrong("contains no private key: it needs -----BEGIN PRIVATE KEY-----"))
    }

    /// The CAs in the file, which issue other certificates.
    pub fn roots(&self) -> Result<Arc<RootCertStore>, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in self.certificates()? {
            roots
                .add(certificate)
                .map_err(|error| self.wrong(format!("contains an invalid CA certificate: {error}")))?;
        }
        Ok(Arc::new(roots))
    }
}

/// The only provider of cryptography.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A certificate with its key and the certificates that lead from it to its CA.
pub fn certified(certificate: &Pem, key: &Pem) -> Result<CertifiedKey, TlsError> {
    let (chain, private) = (certificate.certificates()?, key.key()?);
    let signer = provider()
        .key_provider
        .load_private_key(private)
        .map_err(|error| key.wrong(format!("contains an unusable key: {error}")))?;
    let certified = CertifiedKey::new(chain, signer);
    match certified.keys_match() {
        Ok(()) => Ok(certified),
        Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => Ok(certified),
        Err(_) => {
            let certificate = certificate.path.display();
            Err(key.wrong(format!("contains a key that does not match the certificate in {certificate}")))
        }
    }
}

/// The certificates of a file, to show them.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    Pem::read(Kind::Certificate, path)?.certificates()
}
