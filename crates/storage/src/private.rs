//! Gives a node's files to its own user alone. This also corrects files that another program created with wider permissions.
//!
//! Files are created with these modes already (`files/real.rs`). This is for directories that were restored, copied, or made
//! by an older program. It must come after `open`, which refuses a directory of another node: such a directory keeps its
//! modes.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use super::files::{DIR_MODE, FILE_MODE};

/// The names of a node's files in a data directory. All other files are left alone. A directory without an identity is
/// refused if it has any name that is missing here (`identity.rs`), so each new kind of file must be added.
pub(super) const NAMES: [&str; 12] = [
    "identity",
    "identity.new",
    "lock",
    "vote",
    "vote.new",
    "log",
    "snapshots",
    "quarantine",
    "chronicle",
    "chronicle.new",
    "roles",
    "roles.new",
];

/// Removes every permission of other users from a data directory and its files. Returns the number of changed files; zero if
/// there is no directory yet.
pub fn close_to_others(dir: &Path) -> io::Result<usize> {
    let mut closed = close(dir)?;
    for name in NAMES {
        closed += close_all(&dir.join(name))?;
    }
    Ok(closed)
}

fn close_all(path: &Path) -> io::Result<usize> {
    let mut closed = close(path)?;
    let is_dir = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    if is_dir {
        for entry in fs::read_dir(path)? {
            closed += close_all(&entry?.path())?;
        }
    }
    Ok(closed)
}

/// Links and their targets are left alone: a change through a link would change a file that is not the node's.
fn close(path: &Path) -> io::Result<usize> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        metadata => metadata?,
    };
    if metadata.is_symlink() || metadata.mode() & 0o077 == 0 {
        return Ok(0);
    }
    let mode = if metadata.is_dir() { DIR_MODE } else { FILE_MODE };
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    Ok(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TempDir, reopen};

    fn open_to_others(path: &Path) -> Vec<String> {
        let mode = fs::symlink_metadata(path).unwrap().mode();
        let mut found = if mode & 0o077 == 0 { Vec::new() } else { vec![path.display().to_string()] };
        if path.is_dir() {
            found
                .extend(fs::read_dir(path).unwrap().flat_map(|entry| open_to_others(&entry.unwrap().path())));
        }
        found
    }

    #[test]
    fn whatever_is_made_is_made_closed() {
        let dir = TempDir::new();
        let data = dir.path().join("data");
        drop(reopen(&data));
        assert_eq!(open_to_others(&data), [""; 0]);
    }

    #[test]
    fn what_stands_open_is_closed_once_and_nothing_else_is_touched() {
        let dir = TempDir::new();
        let data = dir.path().join("data");
        assert_eq!(close_to_others(&data).unwrap(), 0, "there is nothing yet");
        drop(reopen(&data));
        let strangers = data.join("notes.txt");
        fs::write(&strangers, "").unwrap();
        for path in [&data, &data.join("vote"), &data.join("log"), &strangers] {
            fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        }
        assert_eq!(close_to_others(&data).unwrap(), 3);
        assert_eq!(close_to_others(&data).unwrap(), 0);
        assert_eq!(open_to_others(&data), [strangers.display().to_string()]);
    }
}
