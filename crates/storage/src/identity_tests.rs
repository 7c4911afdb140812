//! The owner of a directory, and every way in which the directory can fail to be this node's.

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
    assert_eq!(read(dir.path()).unwrap(), Some(Read { identity, copied: false, has_checksum: true }));
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
    assert_eq!(adopted, Some(Read { identity, copied: true, has_checksum: true }));
}

#[test]
fn a_newer_or_unreadable_one_is_refused() {
    let dir = TempDir::new();
    let path = dir.path().join(IDENTITY_FILE);
    std::fs::write(&path, "{\"format\":3,\"soul\":\"x\"}").unwrap();
    assert!(matches!(read(dir.path()), Err(StorageError::NewerFormat { found: 3, known: 2, .. })));
    for text in ["", "{", "{\"format\":1}", "{\"format\":2}", "null", "\u{0}"] {
        std::fs::write(&path, text).unwrap();
        assert!(matches!(read(dir.path()), Err(StorageError::Unreadable { .. })), "{text}");
    }
}

/// After a flip of any bit, the file names another owner or does not check, and is refused.
#[test]
fn damage_is_noticed_at_every_bit() {
    let dir = TempDir::new();
    let path = dir.path().join(IDENTITY_FILE);
    made(dir.path());
    let good = std::fs::read(&path).unwrap();
    for (at, bit) in (0..good.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut bad = good.clone();
        bad[at] ^= 1 << bit;
        std::fs::write(&path, &bad).unwrap();
        let error = read(dir.path()).expect_err("a damaged identity");
        assert!(matches!(error, StorageError::Unreadable { .. }), "byte {at}, bit {bit}: {error}");
    }
    std::fs::write(&path, &good).unwrap();
    assert!(read(dir.path()).is_ok());
}

/// The identity was written by a program without checksums.
#[test]
fn an_old_identity_opens_and_gets_a_checksum() {
    let dir = TempDir::new();
    let path = dir.path().join(IDENTITY_FILE);
    let identity = made(dir.path());
    let text = |inode: u64| {
        let life = hex(identity.incarnation);
        format!(
            "{{\"format\":1,\"cluster\":\"{CLUSTER}\",\"node\":{},\"incarnation\":\"{life}\",\"inode\":{inode},\
             \"complete\":false}}\n",
            NODE.0
        )
    };
    std::fs::write(&path, text(Files::default().inode(&path).unwrap())).unwrap();
    let found = read(dir.path()).unwrap().expect("an identity");
    assert!(!found.has_checksum && !found.copied && found.identity.incarnation == identity.incarnation);
    drop(crate::testing::reopen(dir.path()));
    let found = read(dir.path()).unwrap().expect("an identity");
    assert!(found.has_checksum && found.identity.incarnation == identity.incarnation);
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

#[test]
fn a_directory_of_somebody_else_is_refused_untouched() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::new();
    let own = dir.path().join("report.txt");
    std::fs::write(&own, "kept").unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let error = crate::open(&crate::Options::new(dir.path(), CLUSTER, NODE, crate::types::Boot(1)));
    assert!(matches!(error, Err(StorageError::Foreign { ref found, .. }) if found == "report.txt"));
    let names: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["report.txt"]);
    assert_eq!(dir.path().metadata().unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn a_new_file_system_is_as_good_as_an_empty_directory() {
    let dir = TempDir::new();
    std::fs::create_dir(dir.path().join("lost+found")).unwrap();
    assert_eq!(read(dir.path()).unwrap(), None);
}
