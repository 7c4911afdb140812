//! The two secrets: the one that nodes prove themselves with, and the admin token that operators prove themselves
//! with.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::files::{self, SECRET_MOST};
use super::layers::Merged;
use super::mistakes::Findings;
use super::secret::{ClusterSecrets, Secret};
use super::wrong::quoted;
use super::{ConfigRemark, WrongAccess, WrongFile};

/// 128 bits, if the secret is random.
const BYTES_LEAST: usize = 16;

/// The keys that set one secret.
struct Kind {
    key: &'static str,
    file_key: &'static str,
}

/// The key of the file with a node's private key for TLS.
pub const KEY_FILE: &str = "tls.key_file";

const CLUSTER: Kind = Kind { key: "cluster_secret", file_key: "cluster_secret_file" };
const ADMIN: Kind = Kind { key: "admin_token", file_key: "admin_token_file" };

/// The admin token. Returns `None` if there is none, and after a mistake.
pub fn admin_token(settings: &Merged, findings: &mut Findings) -> Option<Secret> {
    let (value, file) = (&settings.raw.admin_token, &settings.raw.admin_token_file);
    find(&ADMIN, value, file, check_token, settings, findings)
}

/// The cluster secrets. Returns `None` if there are none, and after a mistake.
pub fn cluster(settings: &Merged, findings: &mut Findings) -> Option<ClusterSecrets> {
    let (value, file) = (&settings.raw.cluster_secret, &settings.raw.cluster_secret_file);
    find(&CLUSTER, value, file, check_secrets, settings, findings)
}

/// The secrets that are in a file of cluster secrets now.
pub fn cluster_secrets(file: &Path) -> Result<ClusterSecrets, WrongAccess> {
    // Remarks on the mode of the file were made at the start.
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

/// Checks whether others may use the file of a secret that was just read. If the file cannot be examined, it has gone
/// since it was read, and that is accepted.
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

/// Checks the file of a node's key when it is read again. Remarks were made at the start.
pub fn check_key_file(file: &Path) -> Result<(), WrongAccess> {
    check_openness(KEY_FILE, file, &mut Findings::default())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Openness {
    Closed,
    Told,
    Refused,
}

/// The rule is that of ssh: a file of this user must be readable by this user only. A file of another user was put
/// there by whatever runs the machine: compose and Kubernetes pass secrets as files of root that every user of the
/// container may read. For the same reason, files of root only give a remark if this user is root.
fn openness(mode: u32, owner: u32, user: u32) -> Openness {
    const ROOT: u32 = 0;
    match mode & 0o077 != 0 && owner == user {
        false => Openness::Closed,
        true if user == ROOT => Openness::Told,
        true => Openness::Refused,
    }
}

/// The token is sent in a header as it is.
fn check_token(text: &str) -> Result<Secret, WrongAccess> {
    let text = text.trim();
    let token = long_enough(text)?;
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(WrongAccess::Unsendable);
    }
    Ok(token)
}

/// One secret on each line. Empty lines are ignored.
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
