//! The owner of this data directory. The file is written when the directory is created, and when it gets a new incarnation.
//!
//! It decides for which node and incarnation this disk counts, so it is checked before anything else, and the program does not
//! guess. With a wrong one, the disk would count for majorities in place of another disk (P10).

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::StorageError;
use super::files::Files;
use super::private::NAMES;
use super::protocol_records::{hex, incarnation};
use crate::types::{Incarnation, NodeId};

pub const IDENTITY_FILE: &str = "identity";

/// The newest layout of a data directory that this program reads.
const FORMAT: u32 = 2;

/// Before this version the identity had no checksum.
const FORMAT_WITH_CHECKSUM: u32 = 2;

/// The placeholder of the checksum while it is computed.
const UNCOUNTED: &str = "00000000";

/// A new file system has this directory.
const OF_THE_FILE_SYSTEM: &str = "lost+found";

/// A node's files in addition to its identity. A directory that has one of these without an identity has lost something.
const BELONGINGS: [&str; 6] = ["log", "snapshots", "vote", "quarantine", "chronicle", "roles"];

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    format: u32,
    /// The checksum of the whole file, with zeros in the place of the checksum. It is the first text in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
    cluster: String,
    node: u32,
    incarnation: String,
    /// The inode number of this file: a copy has another one.
    /// A copy of the content into the same file is not noticed here (P27).
    inode: u64,
    /// Log and promise file were created. Before that, neither can have been lost: a directory whose creation a crash has cut
    /// short is created again and is not doubtful.
    complete: bool,
}

/// The members that a later format may share with this one. A later format that has a `checksum` must compute it in the same
/// way. Otherwise this program reports its file as damaged instead of newer.
#[derive(Debug, Deserialize)]
struct AnyFormat {
    format: u32,
    checksum: Option<String>,
}

impl AnyFormat {
    /// Whether the file is as it was written, as far as can be determined.
    fn checks(&self, bytes: &[u8]) -> bool {
        let Some(found) = &self.checksum else {
            return self.format < FORMAT_WITH_CHECKSUM || self.format > FORMAT;
        };
        let text =
            String::from_utf8_lossy(bytes).replacen(&format!("\"{found}\""), &format!("\"{UNCOUNTED}\""), 1);
        *found == checksum(&text)
    }
}

fn checksum(text: &str) -> String {
    format!("{:08x}", crc32fast::hash(text.as_bytes()))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub cluster: String,
    pub node: NodeId,
    pub incarnation: Incarnation,
    pub complete: bool,
}

/// An identity, whether the file is at its original place, and whether damage to it would be detected.
#[derive(Debug, PartialEq, Eq)]
pub struct Read {
    pub identity: Identity,
    pub copied: bool,
    pub has_checksum: bool,
}

impl Identity {
    /// The identity of a new disk.
    pub fn draw(files: &Files, cluster: &str, node: NodeId) -> Result<Identity, StorageError> {
        let incarnation = draw_incarnation(files)?;
        Ok(Identity { cluster: cluster.to_string(), node, incarnation, complete: false })
    }

    /// Reads the identity of a directory. Returns `None` if no node has used it.
    pub fn read(
        files: &Files,
        dir: &Path,
        cluster: &str,
        node: NodeId,
        adopt_copy: bool,
    ) -> Result<Option<Read>, StorageError> {
        let path = dir.join(IDENTITY_FILE);
        let Some(bytes) = files.read_if_there(&path)? else {
            return nothing_kept(files, dir).map(|()| None);
        };
        let unreadable = |why: &str| StorageError::Unreadable { path: path.clone(), why: why.to_string() };
        let any: AnyFormat =
            serde_json::from_slice(&bytes).map_err(|error| unreadable(&error.to_string()))?;
        if !any.checks(&bytes) {
            return Err(unreadable("its checksum does not match"));
        }
        if any.format > FORMAT {
            return Err(StorageError::NewerFormat { path, found: any.format, known: FORMAT });
        }
        let text: Text = serde_json::from_slice(&bytes).map_err(|error| unreadable(&error.to_string()))?;
        let incarnation = incarnation(&text.incarnation).filter(|life| *life != Incarnation::default());
        let incarnation = incarnation.ok_or_else(|| unreadable("no incarnation"))?;
        let (expected, found) = (text.inode, files.inode(&path)?);
        // The wrong cluster or node is reported before a copy: for a wrong `--data`, `--adopt-copy` would be the wrong
        // remedy.
        if text.cluster != cluster {
            return Err(StorageError::OtherCluster {
                path,
                found: text.cluster,
                expected: cluster.to_string(),
            });
        }
        if text.node != node.0 {
            return Err(StorageError::OtherNode { path, found: NodeId(text.node), expected: node });
        }
        let copied = expected != found;
        if copied && !adopt_copy {
            return Err(StorageError::Copied { path, found, expected });
        }
        let identity = Identity { cluster: text.cluster, node, incarnation, complete: text.complete };
        Ok(Some(Read { identity, copied, has_checksum: any.checksum.is_some() }))
    }

    /// The new identity is durable when this returns; until then the old one stays.
    pub fn write(&self, files: &Files, dir: &Path) -> Result<(), StorageError> {
        // A rename keeps the inode, so the number of the temporary file is that of the final one.
        let temporary = dir.join("identity.new");
        let mut file = files.create(&temporary)?;
        let text = Text {
            format: FORMAT,
            checksum: Some(UNCOUNTED.to_string()),
            cluster: self.cluster.clone(),
            node: self.node.0,
            incarnation: hex(self.incarnation),
            inode: files.inode(&temporary)?,
            complete: self.complete,
        };
        let mut json = serde_json::to_string(&text).expect("numbers and strings always serialize");
        json.push('\n');
        // The first match is the place of the checksum, even if the cluster's name has such digits: only a number comes before.
        let json = json.replacen(UNCOUNTED, &checksum(&json), 1);
        file.write_at(json.as_bytes(), 0)?;
        file.sync()?;
        file.rename(files, &dir.join(IDENTITY_FILE))?;
        Ok(files.sync_dir(dir)?)
    }
}

/// An incarnation that no disk has had before.
pub fn draw_incarnation(files: &Files) -> Result<Incarnation, StorageError> {
    Ok(Incarnation(files.draw()?))
}

/// Accepts a directory that is new, or in which a node died before it wrote its identity. Such a node may have left its lock
/// and an unfinished identity.
fn nothing_kept(files: &Files, dir: &Path) -> Result<(), StorageError> {
    let names = files.names_if_there(dir)?;
    let names = || names.iter().map(String::as_str);
    let is_hidden = |name: &str| name.starts_with('.');
    if let Some(foreign) =
        names().find(|name| !NAMES.contains(name) && *name != OF_THE_FILE_SYSTEM && !is_hidden(name))
    {
        return Err(StorageError::Foreign { dir: dir.to_path_buf(), found: foreign.to_string() });
    }
    let lost: Vec<&str> = names().filter(|name| BELONGINGS.contains(name)).collect();
    if !lost.is_empty() {
        return Err(StorageError::NoIdentity { dir: dir.to_path_buf(), found: lost.join(", ") });
    }
    Ok(())
}

#[cfg(test)]
#[path = "identity_tests.rs"]
mod tests;
