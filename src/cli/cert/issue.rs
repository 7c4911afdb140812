//! The contents of certificates, and the authority that signs them.

use std::time::{SystemTime, UNIX_EPOCH};

use eldest_tls::{Facts, NodeName};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::show::date;
use crate::cli::exit::Failure;
use crate::config::{Host, MemberSettings};

/// A CA outlives the certificates that it issues: replacing it requires work on every node.
const CA_DAYS: u32 = 3650;

/// Clocks differ: a new certificate is also valid on a machine whose clock is a day behind.
const BACKDATED_DAYS: i64 = 1;

/// A certificate and its key, in PEM.
pub struct Issued {
    pub certificate: String,
    pub key: String,
}

pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Authority {
    pub fn new(cluster: &str) -> Result<Authority, Failure> {
        let mut params = authority_params(&format!("Eldest CA of {cluster}"));
        last(&mut params, CA_DAYS);
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.pem();
        Ok(Authority { issuer: Issuer::new(params, key), certificate })
    }

    /// Reads a CA that `eldest cert init` made. Of another CA only the common name would be copied, and its
    /// certificates would not be accepted.
    pub fn read(certificate: &str, key: &str) -> Result<Authority, Failure> {
        let strange = || Failure::Certificate {
            why:
                "ca.crt and ca.key were not created by `eldest cert init`: issue certificates with that CA's \
                own tools"
                    .to_string(),
        };
        let der = CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(|_| strange())?;
        let facts = Facts::read(&der).ok_or_else(strange)?;
        if !facts.subject.starts_with("Eldest CA of ") || facts.subject != facts.issuer {
            return Err(strange());
        }
        let key = KeyPair::from_pem(key).map_err(|_| strange())?;
        let params = authority_params(&facts.subject);
        Ok(Authority { issuer: Issuer::new(params, key), certificate: certificate.to_string() })
    }

    pub fn files(&self) -> Issued {
        Issued { certificate: self.certificate.clone(), key: self.issuer.key().serialize_pem() }
    }

    /// Issues a certificate for the node's address in the topology, for the machine's own loopback addresses, and for
    /// the additional names.
    pub fn node(
        &self,
        cluster: &str,
        member: &MemberSettings,
        more: &[String],
        days: u32,
    ) -> Result<Issued, Failure> {
        let host = match &member.address.host {
            Host::Ip(ip) => ip.to_string(),
            Host::Name(name) => name.clone(),
        };
        let mut names = vec![host];
        for name in more.iter().map(String::as_str).chain(["localhost", "127.0.0.1", "::1"]) {
            if names.iter().all(|known| known != name) {
                names.push(name.to_string());
            }
        }
        let mut params = CertificateParams::new(names)?;
        let name = NodeName { cluster: cluster.to_string(), id: member.id.0 }.to_string();
        params.subject_alt_names.push(SanType::URI(name.as_str().try_into()?));
        params.distinguished_name = called(&format!("node {} of {cluster}", member.id.0));
        // A node accepts connections, and opens them.
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params, days)
    }

    pub fn client(&self, name: &str, days: u32) -> Result<Issued, Failure> {
        let mut params = CertificateParams::default();
        params.distinguished_name = called(name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params, days)
    }

    fn sign(&self, mut params: CertificateParams, days: u32) -> Result<Issued, Failure> {
        last(&mut params, days);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Issued { certificate, key: key.serialize_pem() })
    }
}

fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = called(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn called(name: &str) -> DistinguishedName {
    let mut called = DistinguishedName::new();
    called.push(DnType::CommonName, name);
    called
}

/// Sets the validity: from a day ago on, in whole days.
fn last(params: &mut CertificateParams, days: u32) {
    let today = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / (24 * 60 * 60);
    let today = i64::try_from(today).unwrap_or_default();
    let day = |days: i64| {
        let (year, month, day) = date(days);
        rcgen::date_time_ymd(i32::try_from(year).unwrap_or(9999), month, day)
    };
    params.not_before = day(today - BACKDATED_DAYS);
    params.not_after = day(today + i64::from(days));
}
