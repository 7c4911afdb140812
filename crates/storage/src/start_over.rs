//! A node whose state has diverged restarts as a new disk, without any data (P25).
//!
//! The same happens to a disk whose log ended below what it had acknowledged (P27). The promises bind the node and not its
//! state, so they stay: a node that forgot them could approve a second claim of one epoch (P2).

use std::path::PathBuf;

use super::error::StorageError;
use super::identity::{Identity, draw_incarnation};
use super::meta::Boundary;
use super::quarantine::Quarantine;
use super::recover::{Options, SNAPSHOTS_DIR, lock};
use super::repair::LogPlace;
use super::segment::{self, LOG_DIR};
use super::vote::{Stored, VOTE_FILE, VoteFile};
use crate::protocol::Vote;

/// Sets log and snapshots aside, while no process uses the directory. The promises stay. Returns the folder that everything was
/// moved to.
/// `None` means that no node has used the directory.
pub fn start_over(options: &Options, why: &str) -> Result<Option<PathBuf>, StorageError> {
    let (files, dir) = (&options.files, &options.dir);
    let _lock = lock(files, dir)?;
    let Some(read) = Identity::read(files, dir, &options.cluster, options.node, options.adopt_copy)? else {
        return Ok(None);
    };
    let found = VoteFile::read(files, &dir.join(VOTE_FILE))?;
    let promised = found.map_or(Vote::default(), |found| found.stored.vote);
    let mut quarantine = Quarantine::new(files, dir);
    quarantine.note(why);
    // The state is moved away first: if it were still there, it would be admitted again under the new incarnation. A crash
    // after that leaves a log without the state. Such a log is either replayed from its beginning, or has no snapshot that
    // leads to it, which counts as a loss.
    let snapshots = dir.join(SNAPSHOTS_DIR);
    if files.is_dir(&snapshots)? {
        quarantine.take(&snapshots)?;
    }
    // The identity goes before the vote. After a crash between the two, the vote is of another incarnation than the identity,
    // and does not count as admitted (`recover.rs`).
    let incarnation = draw_incarnation(files)?;
    Identity { incarnation, ..read.identity }.write(files, dir)?;
    // This disk belonged to a cluster, so it never founds one (P9). A leader must let it in again (P10).
    let vote = Vote { formed: true, admitted: false, ..promised };
    VoteFile::create(files, dir, Stored { vote, incarnation })?;
    let log = dir.join(LOG_DIR);
    let place = LogPlace { files: files.clone(), dir: log, segment_bytes: options.segment_bytes };
    let segments = segment::list(files, &place.dir)?;
    place.start_after_snapshot(&segments, &Boundary::default(), Some(&mut quarantine))?;
    Ok(quarantine.folder())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Dice, Hand, TempDir, options, reopen, some_records, vote};
    use crate::types::Position;
    use crate::writer::Job;

    #[test]
    fn everything_goes_but_the_promise() {
        let dir = TempDir::new();
        assert_eq!(start_over(&options(dir.path()), "odd").unwrap(), None);
        let mut opened = reopen(dir.path());
        let mut hand = Hand::new(opened.disk);
        let records = some_records(&mut Dice::new(1), Position::ZERO, 3, 20);
        let lines = opened.lines.append(&records);
        hand.queue(Job::Vote(vote(3)));
        hand.queue(Job::Append { records: records.into(), lines });
        hand.run();
        assert!(matches!(start_over(&options(dir.path()), "odd"), Err(StorageError::InUse { .. })));
        drop((hand, opened.snapshots));
        let folder = start_over(&options(dir.path()), "the state is odd").unwrap().unwrap();
        assert_eq!(std::fs::read_to_string(folder.join("why.txt")).unwrap(), "the state is odd\n");
        let again = reopen(dir.path());
        assert_eq!((again.findings, again.recovered.records), (Vec::new(), Vec::new()));
        assert_eq!(again.recovered.vote, Vote { admitted: false, ..vote(3) });
        assert_ne!(again.recovered.incarnation, opened.recovered.incarnation);
    }
}
