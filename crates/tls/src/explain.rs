//! Explanations of failed handshakes, in words that people can act on.

use std::error::Error as StdError;
use std::io;

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

/// Returns `None` if the failure has nothing to do with TLS.
pub fn explain(error: &(dyn StdError + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<Error>() {
            return Some(said(error));
        }
        // An `io::Error` that wraps another error does not name that error as its source, but the source of that
        // error.
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

fn said(error: &Error) -> String {
    match error {
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "it does not speak TLS: call it by http://".to_string()
        }
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "its certificate is issued by a CA that is not trusted here: give the CA's file (--ca, ELDEST_CA, \
                tls.ca_file)"
                .to_string()
        }
        Error::InvalidCertificate(CertificateError::BadSignature) => {
            "its certificate is not signed by the CA that is trusted here".to_string()
        }
        Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            "its certificate has expired, or this machine's clock is wrong".to_string()
        }
        Error::InvalidCertificate(
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
        ) => "its certificate is not valid yet, or this machine's clock is wrong".to_string(),
        Error::AlertReceived(alert) => refused(*alert),
        other => format!("TLS failed: {other}"),
    }
}

/// The alert of the other side, which says what it refuses.
fn refused(alert: AlertDescription) -> String {
    let why = match alert {
        AlertDescription::CertificateRequired => "it requires a client certificate: give one (--cert, --key)",
        AlertDescription::UnknownCA | AlertDescription::DecryptError => {
            "it does not trust the CA of this certificate"
        }
        AlertDescription::CertificateExpired => "it considers this certificate expired",
        AlertDescription::BadCertificate | AlertDescription::CertificateUnknown => {
            "it refuses this certificate"
        }
        AlertDescription::InternalError => "it accepts no more connections",
        other => return format!("it aborted the handshake: {other:?}"),
    };
    why.to_string()
}
