//! Where the two secrets are found: what proves a node to its peers, and what proves an operator.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::files::{self, SECRET_MOST};
use super::layers::Merged;
use super::mistakes::Findings;
use super::secret::{ClusterSecrets, Secret};
use super::wrong::quoted;
use super::{ConfigRemark, WrongAccess, WrongFile};

/// 128 bits, if drawn at random.
const BYTES_LEAST: usize = 16;

/// The keys that give one secret.
struct Kind {
    key: &'static str,
    file_key: &'static str,
}

/// What proves a node where it speaks TLS.
pub const KEY_FILE: &str = "tls.key_file";

const CLUSTER: Kind = Kind { key: "cluster_secret", file_key: "cluster_secret_file" };
const ADMIN: Kind = Kind { key: "admin_token", file_key: "admin_token_file" };

/// None if there is none, or after a mistake.
pub fn admin_token(settings: &Merged, findings: &mut Findings) -> Option<Secret> {
    let (value, file) = (&settings.raw.admin_token, &settings.raw.admin_token_file);
    find(&ADMIN, value, file, check_token, settings, findings)
}

/// The same of what proves nodes.
pub fn cluster(settings: &Merged, findings: &mut Findings) -> Option<ClusterSecrets> {
    let (value, file) = (&settings.raw.cluster_secret, &settings.raw.cluster_secret_file);
    find(&CLUSTER, value, file, check_secrets, settings, findings)
}

/// What a file of cluster secrets says now.
pub fn cluster_secrets(file: &Path) -> Result<ClusterSecrets, WrongAccess> {
    // What is to be told of its mode was told at the start.
    check_secrets(&read(&CLUSTER, &file.to_string_lossy(), &mut Findings::default())?)
}

fn find<T>(
    kind: &Kind,
    value: &str,
    file: &str,
    check: impl Fn(&str) -> Result<T, WrongAccess>,
    settings: &Merged,
    findings: &mut Findings,
) -> Option<T> {
    if !value.is_empty() && !file.is_empty() {
        let wrong = WrongAccess::BothGiven { other: kind.file_key };
        findings.spoil(settings.place(kind.key), wrong);
        return None;
    }
    let (key, text) = match (value, file) {
        ("", "") => return None,
        ("", file) => (kind.file_key, read(kind, file, findings)),
        (value, _) => (kind.key, Ok(value.to_string())),
    };
    match text.and_then(|text| check(&text)) {
        Ok(secret) => Some(secret),
        Err(wrong) => {
            findings.spoil(settings.place(key), wrong);
            None
        }
    }
}

fn read(kind: &Kind, file: &str, findings: &mut Findings) -> Result<String, WrongAccess> {
    let named = |why: WrongFile| WrongAccess::SecretFile { file: quoted(file), why };
    let text = files::read(Path::new(file), SECRET_MOST).map_err(named)?;
    check_openness(kind.file_key, Path::new(file), findings)?;
    Ok(text)
}

/// Whether others may use the file of a secret that has just been read. One that cannot be looked at has gone since: what it said is
/// known.
pub fn check_openness(key: &'static str, file: &Path, findings: &mut Findings) -> Result<(), WrongAccess> {
    let Ok(look) = std::fs::metadata(file) else {
        return Ok(());
    };
    let (file, mode) = (quoted(&file.to_string_lossy()), look.mode() & 0o7777);
    match openness(mode, look.uid(), rustix::process::geteuid().as_raw()) {
        Openness::Refused => return Err(WrongAccess::OpenSecret { file, mode }),
        Openness::Told => findings.remark(ConfigRemark::OpenSecret { key, file, mode }),
        Openness::Closed => {}
    }
    Ok(())
}

/// The same of the file of a node's key, when it is read again. What is only told was told at the start.
pub fn check_key_file(file: &Path) -> Result<(), WrongAccess> {
    check_openness(KEY_FILE, file, &mut Findings::default())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Openness {
    Closed,
    Told,
    Refused,
}

/// As ssh does: what is this user's own must be for this user only. A file of somebody else's was laid there by whoever runs the
/// machine: compose and Kubernetes hand secrets in as files of root's that everybody in the container may read. So root, too, is
/// only told.
fn openness(mode: u32, owner: u32, user: u32) -> Openness {
    const ROOT: u32 = 0;
    match mode & 0o077 != 0 && owner == user {
        false => Openness::Closed,
        true if user == ROOT => Openness::Told,
        true => Openness::Refused,
    }
}

/// Sent as it is in a header.
fn check_token(text: &str) -> Result<Secret, WrongAccess> {
    let text = text.trim();
    let token = long_enough(text)?;
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(WrongAccess::Unsendable);
    }
    Ok(token)
}

/// One a line; empty lines are none.
fn check_secrets(text: &str) -> Result<ClusterSecrets, WrongAccess> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match lines.as_slice() {
        [] => Err(WrongAccess::Short { bytes: 0, least: BYTES_LEAST }),
        [first] => Ok(ClusterSecrets { first: long_enough(first)?, other: None }),
        [first, other] => Ok(ClusterSecrets { first: long_enough(first)?, other: Some(long_enough(other)?) }),
        more => Err(WrongAccess::TooManySecrets { lines: more.len() }),
    }
}

fn long_enough(text: &str) -> Result<Secret, WrongAccess> {
    if text.len() < BYTES_LEAST {
        return Err(WrongAccess::Short { bytes: text.len(), least: BYTES_LEAST });
    }
    Ok(Secret::new(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_of_ones_own_is_for_oneself() {
        let (user, other, root) = (1000, 1001, 0);
        for mode in [0o600, 0o400, 0o700] {
            assert_eq!(openness(mode, user, user), Openness::Closed);
        }
        for mode in [0o644, 0o640, 0o604, 0o606, 0o660] {
            assert_eq!(openness(mode, user, user), Openness::Refused);
            assert_eq!(openness(mode, root, root), Openness::Told);
            assert_eq!(openness(mode, root, user), Openness::Closed, "as compose and Kubernetes hand it in");
            assert_eq!(openness(mode, other, user), Openness::Closed);
        }
    }
}
