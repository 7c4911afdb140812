//! Opens a data directory: finds out which node it belongs to, reads it, and judges whether all promises and records that the
//! node once reported as durable are still there.
//!
//! ```text
//!  identity ─► lock ─► identity again ─► snapshots ─► Survey: everything is read and judged, nothing is changed
//!                                                         │
//!     Opened ◄─ Settled ◄─ settle: quarantine ─► identity, vote ─► log ─► bad snapshots ─► `complete`
//! ```
//!
//! After a crash at any step of `settle`, the next start comes to the same judgement, or finds it carried out. To ensure this,
//! the new incarnation of a doubtful disk is durable before the first trace of the loss is removed. `crash_tests/opening.rs`
//! cuts the power at each operation.
//!
//! The outcome is one of four: the disk continues as it was; it continues with a new incarnation and must be let in again
//! (P10); it continues with the incarnation that its own log names, because an operator trusts it (P27); or it is refused with
//! an error.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::counters::Counters;
use super::disk::Idle;
use super::error::StorageError;
use super::files::{Files, Lock};
use super::finding::{Doubt, Finding};
use super::gather::{Gathered, Verdict, gather};
use super::identity::{Identity, draw_incarnation};
use super::lines::Lines;
use super::log::{Log, Resumed};
use super::meta::Boundary;
use super::quarantine::Quarantine;
use super::repair::{LogPlace, save_bad};
use super::segment::{self, LOG_DIR, SEGMENT_BYTES};
use super::snapshot::{Opening, Snapshots};
use super::vote::{Found, Lost, Stored, VOTE_FILE, VoteFile};
use super::writer::Writer;
use crate::protocol::{LEASE_MOST, Mode, Recovered, SnapshotMeta, Term, Vote};
use crate::types::{Boot, ClaimId, Epoch, Incarnation, NodeId, Record, Vector};

type Result<T> = std::result::Result<T, StorageError>;

const LOCK_FILE: &str = "lock";
pub const SNAPSHOTS_DIR: &str = "snapshots";

/// The data directory to open, and the node that it must belong to.
#[derive(Clone, Debug)]
pub struct Options {
    pub files: Files,
    pub dir: PathBuf,
    pub cluster: String,
    pub node: NodeId,
    pub boot: Boot,
    /// In available mode the log has the vector of the histories that it includes.
    pub mode: Mode,
    /// Take over a copied directory, as a new disk.
    pub adopt_copy: bool,
    /// Trust a doubtful disk as if it had forgotten nothing. An operator decides this if no other disk is left that could
    /// admit this one.
    pub trust_disk: bool,
    pub segment_bytes: u64,
}

impl Options {
    pub fn new(dir: &Path, cluster: &str, node: NodeId, boot: Boot) -> Options {
        let (dir, cluster) = (dir.to_path_buf(), cluster.to_string());
        let files = Files::default();
        let (mode, segment_bytes) = (Mode::Safe, SEGMENT_BYTES);
        Options { files, dir, cluster, node, boot, mode, adopt_copy: false, trust_disk: false, segment_bytes }
    }
}

/// A data directory in use by this process.
#[derive(Debug)]
pub struct Opened {
    pub disk: Idle,
    pub recovered: Recovered,
    pub lines: Lines,
    pub snapshots: Arc<Mutex<Snapshots>>,
    pub findings: Vec<Finding>,
}

/// Opens the directory, and creates it if it does not exist. `findings` says what was found and repaired. A doubtful disk is a
/// finding and not an error, because the node comes back by itself (P27).
pub fn open(options: &Options) -> Result<Opened> {
    let (files, dir) = (&options.files, &options.dir);
    let identity = || Identity::read(files, dir, &options.cluster, options.node, options.adopt_copy);
    // A directory of another node is not changed.
    identity()?;
    files.make_dirs(dir)?;
    let lock = lock(files, dir)?;
    // Another process may have written an identity before the lock was taken.
    let identity = identity()?;
    let copied = identity.as_ref().is_some_and(|read| read.copied);
    let identity = match identity {
        // The identity of a copy is written below, with its new incarnation.
        Some(read) if read.has_checksum || read.copied => read.identity,
        Some(read) => {
            // The identity was written before there were checksums: from now on damage is detected.
            read.identity.write(files, dir)?;
            read.identity
        }
        None => {
            let identity = Identity::draw(files, &options.cluster, options.node)?;
            identity.write(files, dir)?;
            identity
        }
    };
    if !identity.complete {
        // The process that created the directory may have died before the directory's name was durable.
        files.sync_dir_of(dir)?;
    }
    let log = dir.join(LOG_DIR);
    let place = LogPlace { files: files.clone(), dir: log, segment_bytes: options.segment_bytes };
    files.make_dirs(&place.dir)?;
    files.sync_dir(dir)?;
    segment::remove_spares(files, &place.dir)?;
    let (snapshots, opening) = Snapshots::open(files, &dir.join(SNAPSHOTS_DIR))?;
    let mut survey = Survey::take(dir, &place, &identity, copied, &opening)?;
    if options.trust_disk {
        survey.trust(options.mode, &identity);
    }
    if let (Mode::Available, Some(log)) = (options.mode, &mut survey.gathered.log) {
        log.tell_histories_apart();
    }
    let mut settled = settle(dir, &place, identity, survey, &opening)?;
    if options.mode == Mode::Available {
        settled.tell_histories_apart();
    }
    let snapshots = if opening.bad.is_empty() {
        snapshots
    } else {
        // The bad snapshots are in quarantine now.
        Snapshots::open(files, &dir.join(SNAPSHOTS_DIR))?.0
    };
    let snapshots = Arc::new(Mutex::new(snapshots));
    let counters = Arc::new(Counters::default());
    let log = Log::resume(settled.log, Arc::clone(&counters))?;
    let writer = Writer::new(log, settled.vote_file, Arc::clone(&snapshots));
    settled.recovered.boot = options.boot;
    let Settled { recovered, lines, findings, .. } = settled;
    Ok(Opened { disk: Idle::new(writer, lock, counters), recovered, lines, snapshots, findings })
}

pub(super) fn lock(files: &Files, dir: &Path) -> Result<Box<dyn Lock>> {
    let lock = files.lock(&dir.join(LOCK_FILE))?;
    lock.ok_or_else(|| StorageError::InUse { path: dir.to_path_buf() })
}

/// All findings, before anything is changed.
struct Survey {
    /// The incarnation that this disk takes up again because an operator trusts it.
    trusted: Option<Incarnation>,
    gathered: Gathered,
    snapshot: Boundary,
    keep: bool,
    promise: std::result::Result<Found, Lost>,
    findings: Vec<Finding>,
}

impl Survey {
    fn take(
        dir: &Path,
        place: &LogPlace,
        identity: &Identity,
        copied: bool,
        opening: &Opening,
    ) -> Result<Survey> {
        let snapshot = opening.newest.clone().unwrap_or_default();
        let gathered = gather(&place.files, &place.dir, &snapshot)?;
        let Verdict { keep, mut findings } = gathered.judge(&snapshot, identity.complete);
        findings.extend(opening.bad.iter().cloned().map(Finding::BadSnapshot));
        findings.extend(copied.then_some(Finding::Doubtful(Doubt::Copied)));
        let promise = VoteFile::read(&place.files, &dir.join(VOTE_FILE))?;
        let mut survey = Survey { trusted: None, gathered, snapshot, keep, promise, findings };
        survey.judge_promise(identity.complete);
        Ok(survey)
    }

    /// A log never has a record above its node's promise (I11). If this log has one, the promise was forgotten.
    fn judge_promise(&mut self, complete: bool) {
        let proven = self.end().meta.at.epoch;
        match &self.promise {
            // A directory that is still being created has promised nothing.
            Err(lost) if complete => self.findings.push(Finding::Doubtful(Doubt::Promise(lost.clone()))),
            Err(_) => {}
            Ok(found) => {
                self.findings.extend(found.bad_twin.map(Finding::BadPromiseSlot));
                let promise = found.stored.vote.promise.epoch;
                if promise < proven {
                    let stale = Doubt::StalePromise { promise, log: proven };
                    self.findings.push(Finding::Doubtful(stale));
                }
            }
        }
    }

    /// A doubtful disk, or one that still waits to be admitted after an earlier doubt, takes up the incarnation that its own
    /// log names for this node. This does not apply to a copy, because the original may still be in use. It does not apply in
    /// available mode, where every disk votes (P36).
    fn trust(&mut self, mode: Mode, identity: &Identity) {
        let vote = self.vote(identity.incarnation);
        let waits = self.is_doubtful() || (vote.formed && !vote.admitted);
        if !waits || mode == Mode::Available || self.findings.contains(&Finding::Doubtful(Doubt::Copied)) {
            return;
        }
        let seat = self.end().meta.roster.seat(identity.node);
        self.trusted = seat.map(|seat| seat.incarnation);
        self.findings.push(seat.map_or(Finding::NothingToTrust, |_| Finding::Trusted));
    }

    /// The boundary at the end of the log.
    fn end(&self) -> &Boundary {
        let log = self.gathered.log.as_ref().filter(|_| self.keep);
        log.map_or(&self.snapshot, |log| &log.end)
    }

    fn is_doubtful(&self) -> bool {
        self.findings.iter().any(Finding::is_doubt)
    }

    /// The vote in the promise file, or the default if the file is unreadable. Its promise counts for every incarnation,
    /// because it binds the node (P2); its admission counts only for the incarnation that was admitted.
    fn vote(&self, incarnation: Incarnation) -> Vote {
        let Ok(Found { stored, .. }) = &self.promise else {
            return Vote::default();
        };
        // After a crash between a new incarnation and its vote, the vote is still that of the incarnation before.
        let admitted = stored.vote.admitted && stored.incarnation == incarnation;
        Vote { admitted, ..stored.vote }
    }

    /// A copy of a directory that was never part of a cluster is as blank as its original, and may found one (P9). Any other
    /// doubtful disk may have been part of one.
    fn copied_blank(&self) -> bool {
        let copied = |finding: &Finding| *finding == Finding::Doubtful(Doubt::Copied);
        let only = self.findings.iter().filter(|finding| finding.is_doubt()).all(copied);
        let formed = self.promise.as_ref().is_ok_and(|found| found.stored.vote.formed);
        only && !formed && self.end().meta.at.epoch == Epoch::ZERO
    }
}

/// The data directory after the repair: everything on disk is consistent and passes its checks.
struct Settled {
    recovered: Recovered,
    lines: Lines,
    log: Resumed,
    vote_file: VoteFile,
    findings: Vec<Finding>,
}

impl Settled {
    /// A log from safe mode is one history up to its end, even if it is empty (P31). Its files have no vector. Files that are
    /// written from here on have one. Otherwise a later start could take later records for part of the same history.
    fn tell_histories_apart(&mut self) {
        let base = &mut self.recovered.base;
        let mut whole = base.clone();
        whole.vector = Some(base.vector.clone().unwrap_or_else(|| Vector::linear(base.at)));
        base.vector.clone_from(&whole.vector);
        self.recovered.records.iter().for_each(|record| whole.absorb(record));
        self.log.end.meta.vector = whole.vector;
    }
}

/// Acts on the findings. A loss is recorded durably before its traces are removed.
fn settle(
    dir: &Path,
    place: &LogPlace,
    identity: Identity,
    survey: Survey,
    opening: &Opening,
) -> Result<Settled> {
    let doubtful = survey.is_doubtful();
    let mut quarantine = Quarantine::new(&place.files, dir);
    survey.findings.iter().for_each(|finding| quarantine.note(&finding.to_string()));
    if doubtful {
        save_bad(&place.dir, &survey.gathered, &mut quarantine)?;
        if matches!(survey.promise, Err(Lost::NoGoodSlot(_))) {
            quarantine.copy(&dir.join(VOTE_FILE))?;
        }
    }
    // If there was a loss, the new incarnation is durable when this returns, so the traces of the loss may go.
    let (incarnation, vote, vote_file) = settle_vote(&place.files, dir, identity.clone(), &survey)?;
    let kept = doubtful.then_some(&mut quarantine);
    let found = &survey.gathered.segments;
    let log = match &survey.gathered.log {
        Some(log) if survey.keep => place.keep(&survey.gathered, log, kept)?,
        _ => place.start_after_snapshot(found, &survey.snapshot, kept)?,
    };
    // The bad snapshots go last: if the log reaches back to the newest good snapshot, it has been kept by now, and replaces
    // them.
    for flaw in &opening.bad {
        quarantine.take(&flaw.path)?;
    }
    // From now on the log and the promise file exist, and it is a loss if one is missing. Before this write, a missing one is
    // not a loss.
    if !identity.complete {
        Identity { incarnation, complete: true, ..identity }.write(&place.files, dir)?;
    }
    let mut findings = survey.findings;
    findings.extend(quarantine.folder().map(Finding::Quarantined));
    let (base, records, lines) = match survey.gathered.log.filter(|_| survey.keep) {
        Some(mut log) => {
            log.shorten(&survey.snapshot);
            (log.base.meta, log.records, log.lines)
        }
        None => empty(survey.snapshot),
    };
    let recovered = Recovered { boot: Boot::default(), incarnation, vote, base, records };
    Ok(Settled { recovered, lines, log, vote_file, findings })
}

fn empty(snapshot: Boundary) -> (SnapshotMeta, Vec<Record>, Lines) {
    let lines = Lines::new(&snapshot);
    (snapshot.meta, Vec::new(), lines)
}

/// A doubtful disk becomes a new disk that keeps its data (P10). The identity is written before the vote: if a crash left a
/// good promise file next to the old incarnation, the next start would see no doubt, and the other nodes would count a disk
/// that has lost its promise.
fn settle_vote(
    files: &Files,
    dir: &Path,
    identity: Identity,
    survey: &Survey,
) -> Result<(Incarnation, Vote, VoteFile)> {
    let vote = survey.vote(identity.incarnation);
    if !survey.is_doubtful() && survey.trusted.is_none() {
        let file = match &survey.promise {
            Ok(found) if found.stored.incarnation == identity.incarnation => {
                VoteFile::resume(files, dir, found)?
            }
            _ => VoteFile::create(files, dir, Stored { vote, incarnation: identity.incarnation })?,
        };
        return Ok((identity.incarnation, vote, file));
    }
    let incarnation = match survey.trusted {
        Some(incarnation) => incarnation,
        None => draw_incarnation(files)?,
    };
    Identity { incarnation, ..identity }.write(files, dir)?;
    // A node that takes itself for blank could found a second cluster (P9).
    let formed = vote.formed || !survey.copied_blank();
    // The log gives a lower bound for the promise.
    let proven = Term { epoch: survey.end().meta.at.epoch, claim: ClaimId::default() };
    let promise = if vote.promise.epoch < proven.epoch { proven } else { vote.promise };
    // A trusted disk whose promise file is lost must wait for the longest possible lease.
    let unknown = survey.trusted.is_some() && survey.promise.is_err();
    let lease = if unknown { LEASE_MOST } else { vote.lease };
    let vote = Vote { promise, formed, admitted: survey.trusted.is_some(), lease };
    let file = VoteFile::create(files, dir, Stored { vote, incarnation })?;
    Ok((incarnation, vote, file))
}

#[cfg(test)]
#[path = "recover_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "trust_tests.rs"]
mod trust_tests;
