//! Whose directory it is, and every way in which it is not.

use super::*;
use crate::testing::{CLUSTER, NODE, TempDir};

fn made(dir: &Path) -> Identity {
    let identity = Identity { complete: true, ..Identity::draw(&Files::default(), CLUSTER, NODE).unwrap() };
    identity.write(&Files::default(), dir).unwrap();
    identity
}

fn read(dir: &Path) -> Result<Option<Read>, StorageError> {
    Identity::read(&Files::default(), dir, CLUSTER, NODE, false)
}

#[test]
fn an_identity_survives_its_file() {
    let dir = TempDir::new();
    assert_eq!(read(dir.path()).unwrap(), None);
    let identity = made(dir.path());
    assert_ne!(identity.incarnation, Incarnation::default());
    assert_eq!(read(dir.path()).unwrap(), Some(Read { identity, copied: false }));
}

#[test]
fn another_directory_is_refused() {
    let dir = TempDir::new();
    made(dir.path());
    let other = Identity::read(&Files::default(), dir.path(), "prod", NODE, false).unwrap_err();
    assert!(
        matches!(&other, StorageError::OtherCluster { found, expected, .. } if found == CLUSTER && expected == "prod")
    );
    assert!(other.to_string().contains("\"test\"") && other.to_string().contains("\"prod\""), "{other}");
    let other = Identity::read(&Files::default(), dir.path(), CLUSTER, NodeId(2), false).unwrap_err();
    assert!(matches!(other, StorageError::OtherNode { found: NODE, expected: NodeId(2), .. }));
}

#[test]
fn a_copy_is_noticed() {
    let (dir, copy) = (TempDir::new(), TempDir::new());
    let identity = made(dir.path());
    std::fs::copy(dir.path().join(IDENTITY_FILE), copy.path().join(IDENTITY_FILE)).unwrap();
    let error = read(copy.path()).unwrap_err();
    assert!(matches!(error, StorageError::Copied { .. }) && error.to_string().contains("--adopt-copy"));
    let adopted = Identity::read(&Files::default(), copy.path(), CLUSTER, NODE, true).unwrap();
    assert_eq!(adopted, Some(Read { identity, copied: true }));
}

#[test]
fn a_newer_or_unreadable_one_is_refused() {
    let dir = TempDir::new();
    let path = dir.path().join(IDENTITY_FILE);
    std::fs::write(&path, "{\"format\":2,\"soul\":\"x\"}").unwrap();
    assert!(matches!(read(dir.path()), Err(StorageError::NewerFormat { found: 2, known: 1, .. })));
    for text in ["", "{", "{\"format\":1}", "null", "\u{0}"] {
        std::fs::write(&path, text).unwrap();
        assert!(matches!(read(dir.path()), Err(StorageError::Unreadable { .. })), "{text}");
    }
}

#[test]
fn belongings_without_an_identity_are_refused() {
    for name in BELONGINGS {
        let dir = TempDir::new();
        std::fs::create_dir(dir.path().join(name)).unwrap();
        let error = read(dir.path()).unwrap_err();
        assert!(matches!(&error, StorageError::NoIdentity { found, .. } if found == name), "{error}");
    }
}
