//! The promise file: the promises that this node must never forget, in a file that always has room for them (P2, P24).
//!
//! The file has two slots, each with the lines of one vote. A vote is written into the first slot, synced, and reported; then,
//! at once, it is written into the second slot. So if a power failure tears a write, the other slot has the last vote that was
//! synced, and if a slot becomes bad later, the other slot has the same vote. The file is doubtful only if it is missing, if no
//! slot checks, or if its promise is below the one that the log proves (P27).

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::StorageError;
use super::files::{Files, Open};
use super::protocol_records::{hex, incarnation};
use super::text::{SealError, lines, seal, unseal};
use crate::protocol::{Term, Vote};
use crate::types::{ClaimId, Epoch, Incarnation, NUMBER_MOST, NodeId, Span};

pub const VOTE_FILE: &str = "vote";

const NAME: &str = "eldest-vote";
const FORMAT: u32 = 1;

/// A second line in each slot. An earlier version ignores it, and leaves it out when it writes.
const DISK: &str = "eldest-disk";
const DISK_FORMAT: u32 = 1;

/// The distance is at least a sector of any disk, so that one torn write cannot harm both slots.
const SLOT_BYTES: usize = 4096;
/// Longer than the two lines of any vote: every field is a number or a flag. Every write has this length, so that nothing of an
/// earlier, longer line remains.
const LINE_BYTES: usize = 512;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    seq: u64,
    epoch: (u64, u32),
    claim: String,
    formed: bool,
    admitted: bool,
    incarnation: String,
}

/// The longest time for which a leader may rely on a lease that this disk granted. After a start, the node waits this long
/// (P11).
#[derive(Debug, Serialize, Deserialize)]
struct Owed {
    /// The same number as in the line before, so that two writes cannot be mixed.
    seq: u64,
    lease_us: u64,
}

/// A vote with the incarnation in which it was given: admission counts for that incarnation only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    pub vote: Vote,
    pub incarnation: Incarnation,
}

#[derive(Debug)]
pub struct VoteFile {
    file: Open,
    incarnation: Incarnation,
    last: Vote,
    seq: u64,
    /// The vote that is not yet in both slots.
    single: Option<Vote>,
}

/// The content of a promise file.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    pub stored: Stored,
    seq: u64,
    /// The slot of this vote.
    slot: usize,
    /// The reason why the other slot does not check, if it does not.
    pub bad_twin: Option<&'static str>,
}

/// The reason why a promise file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    Missing,
    NoGoodSlot(&'static str),
}

impl VoteFile {
    /// Reads the file, without changing it.
    pub fn read(files: &Files, path: &Path) -> Result<Result<Found, Lost>, StorageError> {
        let Some(bytes) = files.read_if_there(path)? else {
            return Ok(Err(Lost::Missing));
        };
        let slot = |at: usize| {
            bytes.get(at * SLOT_BYTES..).map_or(Err(SealError::Bad("cut off")), |bytes| slot(at, bytes))
        };
        let newer = |found| StorageError::NewerFormat { path: path.to_path_buf(), found, known: FORMAT };
        Ok(match (slot(0), slot(1)) {
            // This is an error even if the other slot is readable: the newer vote may have promised more, and this program
            // cannot read it.
            (Err(SealError::Newer(found)), _) | (_, Err(SealError::Newer(found))) => {
                return Err(newer(found));
            }
            (Ok(a), Ok(b)) => Ok(if a.seq >= b.seq { a } else { b }),
            (Ok(good), Err(SealError::Bad(why))) => Ok(Found { bad_twin: Some(why), ..good }),
            (Err(SealError::Bad(why)), Ok(good)) => Ok(Found { bad_twin: Some(why), ..good }),
            (Err(SealError::Bad(why)), Err(SealError::Bad(_))) => Err(Lost::NoGoodSlot(why)),
        })
    }

    /// Creates the file with this vote in both slots, and replaces any other. The file has its full length from here on: a
    /// vote needs no room later (P24).
    pub fn create(files: &Files, dir: &Path, stored: Stored) -> Result<VoteFile, StorageError> {
        let temporary = dir.join("vote.new");
        let file = files.create(&temporary)?;
        file.write_at(&vec![b'\n'; 2 * SLOT_BYTES], 0)?;
        let Stored { vote, incarnation } = stored;
        let mut votes = VoteFile { file, incarnation, last: vote, seq: 1, single: None };
        votes.put(0, &vote)?;
        votes.put(1, &vote)?;
        votes.file.rename(files, &dir.join(VOTE_FILE))?;
        files.sync_dir(dir)?;
        Ok(votes)
    }

    /// Continues with a file that was read. Its vote is in both slots, and durable, when this returns. The process before may
    /// have died before its sync, and the vote may have been read from the system's cache: the sync of the other slot covers
    /// this one as well.
    pub fn resume(files: &Files, dir: &Path, found: &Found) -> Result<VoteFile, StorageError> {
        let file = files.existing(&dir.join(VOTE_FILE))?;
        let Stored { vote, incarnation } = found.stored;
        let votes = VoteFile { file, incarnation, last: vote, seq: found.seq, single: None };
        votes.put(1 - found.slot, &vote)?;
        Ok(votes)
    }

    /// The vote that was written last.
    pub fn last(&self) -> Vote {
        self.last
    }

    /// The vote is durable when this returns.
    pub fn write(&mut self, vote: &Vote) -> Result<(), StorageError> {
        // The first slot is overwritten next, so the vote in it must be in the second slot by now. Otherwise a torn write
        // would bring back the vote before it, and a promise would be forgotten (P2).
        self.finish()?;
        self.seq += 1;
        self.put(0, vote)?;
        self.last = *vote;
        self.single = Some(*vote);
        Ok(())
    }

    /// Writes the last vote into the other slot, too, unless it is there already.
    pub fn finish(&mut self) -> Result<(), StorageError> {
        match self.single.take() {
            Some(vote) => self.put(1, &vote),
            None => Ok(()),
        }
    }

    fn put(&self, slot: usize, vote: &Vote) -> Result<(), StorageError> {
        let Term { epoch, claim } = vote.promise;
        let text = Text {
            seq: self.seq,
            epoch: (epoch.counter, epoch.leader.0),
            claim: format!("{:x}", claim.0),
            formed: vote.formed,
            admitted: vote.admitted,
            incarnation: hex(self.incarnation),
        };
        // Both lines have the same `seq`. If a torn write mixes two votes, either a checksum fails or the two numbers differ,
        // and the slot is bad as a whole.
        let json = serde_json::to_string(&text).expect("numbers and strings always serialize");
        let owed = Owed { seq: self.seq, lease_us: vote.lease.0 };
        let owed = serde_json::to_string(&owed).expect("numbers always serialize");
        let mut lines = (seal(NAME, FORMAT, &json) + &seal(DISK, DISK_FORMAT, &owed)).into_bytes();
        assert!(lines.len() <= LINE_BYTES, "a vote has a bounded length");
        lines.resize(LINE_BYTES, b'\n');
        self.file.write_at(&lines, (slot * SLOT_BYTES) as u64)?;
        Ok(self.file.sync()?)
    }
}

fn slot(slot: usize, bytes: &[u8]) -> Result<Found, SealError> {
    let bytes = &bytes[..bytes.len().min(LINE_BYTES)];
    let mut lines = lines(bytes);
    let line = lines.next().ok_or(SealError::Bad("empty"))?;
    let text: Text = serde_json::from_str(unseal(NAME, FORMAT, line.text)?).map_err(|_| BAD_TEXT)?;
    let incarnation = incarnation(&text.incarnation).ok_or(BAD_TEXT)?;
    let claim = ClaimId(u64::from_str_radix(&text.claim, 16).map_err(|_| BAD_TEXT)?);
    // The node continues counting from this number, so one beyond the bound is refused although the line checks (P50).
    if text.epoch.0 > NUMBER_MOST {
        return Err(BAD_TEXT);
    }
    let promise = Term { epoch: Epoch::new(text.epoch.0, NodeId(text.epoch.1)), claim };
    // Without a second line the file says nothing of leases. The core then waits for the configured lease at least (P11).
    let lease = lines.next().map_or(Ok(Span::ZERO), |line| owed(line.text, text.seq))?;
    let vote = Vote { promise, formed: text.formed, admitted: text.admitted, lease };
    Ok(Found { stored: Stored { vote, incarnation }, seq: text.seq, slot, bad_twin: None })
}

fn owed(line: &[u8], with: u64) -> Result<Span, SealError> {
    let json = unseal(DISK, DISK_FORMAT, line)?;
    let Owed { seq, lease_us } = serde_json::from_str(json).map_err(|_| BAD_TEXT)?;
    if seq == with && lease_us <= NUMBER_MOST { Ok(Span(lease_us)) } else { Err(BAD_TEXT) }
}

const BAD_TEXT: SealError = SealError::Bad("not a vote");

#[cfg(test)]
#[path = "vote_tests.rs"]
mod tests;
