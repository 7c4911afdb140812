//! Where the two secrets are found: what proves a node to its peers, and what proves an operator.

use std::path::Path;

use super::files::{self, SECRET_MOST};
use super::layers::Merged;
use super::mistakes::Findings;
use super::secret::Secret;
use super::wrong::quoted;
use super::{WrongAccess, WrongFile};

/// 128 bits, if drawn at random.
const BYTES_LEAST: usize = 16;

/// The keys that give one secret, and what is special about it.
pub struct Kind {
    pub key: &'static str,
    pub file_key: &'static str,
    /// Sent as it is in a header.
    is_sent: bool,
}

pub const CLUSTER: Kind = Kind { key: "cluster_secret", file_key: "cluster_secret_file", is_sent: false };
pub const ADMIN: Kind = Kind { key: "admin_token", file_key: "admin_token_file", is_sent: true };

/// None if there is none, or after a mistake.
pub fn find(
    kind: &Kind,
    value: &str,
    file: &str,
    settings: &Merged,
    findings: &mut Findings,
) -> Option<Secret> {
    if !value.is_empty() && !file.is_empty() {
        let wrong = WrongAccess::BothGiven { other: kind.file_key };
        findings.spoil(settings.place(kind.key), wrong);
        return None;
    }
    let (key, text) = match (value, file) {
        ("", "") => return None,
        ("", file) => (kind.file_key, read(file)),
        (value, _) => (kind.key, Ok(value.to_string())),
    };
    match text.and_then(|text| check(kind, text.trim())) {
        Ok(secret) => Some(secret),
        Err(wrong) => {
            findings.spoil(settings.place(key), wrong);
            None
        }
    }
}

fn read(file: &str) -> Result<String, WrongAccess> {
    let named = |why: WrongFile| WrongAccess::SecretFile { file: quoted(file), why };
    files::read(Path::new(file), SECRET_MOST).map_err(named)
}

fn check(kind: &Kind, text: &str) -> Result<Secret, WrongAccess> {
    if text.len() < BYTES_LEAST {
        return Err(WrongAccess::Short { bytes: text.len(), least: BYTES_LEAST });
    }
    if kind.is_sent && !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(WrongAccess::Unsendable);
    }
    Ok(Secret::new(text))
}
