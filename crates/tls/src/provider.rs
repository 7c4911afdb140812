//! The only provider of cryptography.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
