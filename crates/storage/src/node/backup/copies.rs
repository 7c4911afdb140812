//! A node's own copies in a folder: `eldest-CLUSTER-INDEX-TIME.backup`. The newest are kept, and other files are never
//! touched.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read};
use std::path::{Path, PathBuf};

use super::draft::{DRAFT, Draft};
use super::form::{BackupHead, Home, write};
use crate::store::Store;
use crate::types::WallTime;

const BEGINS: &str = "eldest-";
const ENDS: &str = ".backup";

/// A real first line is much shorter. Other files in the folder may have no line end at all.
const HEAD_BYTES_MOST: u64 = 64 << 10;

#[derive(Debug)]
pub struct Copies {
    folder: PathBuf,
    keep: usize,
}

/// One of this node's copies.
#[derive(Debug)]
struct Own {
    path: PathBuf,
    head: BackupHead,
}

impl Copies {
    pub fn new(folder: PathBuf, keep: usize) -> Copies {
        Copies { folder, keep }
    }

    /// Writes a copy of the state unless one exists, and removes copies beyond the number to keep. Returns the bytes written,
    /// or `None` if the state has not changed.
    pub fn add(&self, home: &Home, store: &Store, now: WallTime) -> io::Result<Option<u64>> {
        let head = BackupHead::new(home, store, now);
        let own = self.own(home)?;
        // Each write makes a state that differs from every state before, so an equal digest means that nothing was written.
        if own.iter().any(|own| own.head.digest == head.digest) {
            self.thin(&own, self.keep)?;
            return Ok(None);
        }
        // The copies are thinned only after the new one is durable, so a full disk costs no old copy.
        let path = self.folder.join(name(&head));
        let draft = Draft::begin(&path)?;
        let mut out = BufWriter::with_capacity(256 << 10, draft);
        write(&head, store, &mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.keep()?;
        // The new copy stays, even if the clock showed a later time for the others.
        let others: Vec<Own> = self.own(home)?.into_iter().filter(|own| own.path != path).collect();
        self.thin(&others, self.keep.saturating_sub(1))?;
        Ok(Some(fs::metadata(&path)?.len()))
    }

    /// Removes the oldest copies.
    fn thin(&self, own: &[Own], keep: usize) -> io::Result<()> {
        let beyond = own.len().saturating_sub(keep);
        own.iter().take(beyond).try_for_each(|own| fs::remove_file(&own.path))
    }

    /// This node's copies, oldest first. A copy must have a matching name and a matching first line. Unfinished copies of a
    /// process that has died are removed.
    fn own(&self, home: &Home) -> io::Result<Vec<Own>> {
        let begins = begins(&home.cluster);
        let mut own = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if is_left_over(name, &begins) {
                // Another node that shares the folder may be writing this file.
                let of_this = head_of(&path).is_some_and(|head| head.is_of(home) && head.node == home.node);
                if of_this {
                    fs::remove_file(&path)?;
                }
            } else if name.starts_with(&begins)
                && name.ends_with(ENDS)
                && let Some(head) = head_of(&path).filter(|head| head.is_of(home) && head.node == home.node)
            {
                own.push(Own { path, head });
            }
        }
        own.sort_by(|one, other| (&one.head.time, one.head.index).cmp(&(&other.head.time, other.head.index)));
        Ok(own)
    }
}

fn is_left_over(name: &str, begins: &str) -> bool {
    name.strip_prefix('.').is_some_and(|name| name.starts_with(begins)) && name.ends_with(DRAFT)
}

/// `eldest-CLUSTER-`
fn begins(cluster: &str) -> String {
    format!("{BEGINS}{cluster}-")
}

fn name(head: &BackupHead) -> String {
    let time: String = head.time.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("{}{:020}-{time}{ENDS}", begins(&head.cluster), head.index)
}

fn head_of(path: &Path) -> Option<BackupHead> {
    let file = fs::symlink_metadata(path).ok()?.is_file().then(|| File::open(path).ok())??;
    let mut line = String::new();
    BufReader::new(file.take(HEAD_BYTES_MOST)).read_line(&mut line).ok()?;
    BackupHead::read(line.strip_suffix('\n')?)
}
