//! `eldest drill`: takes the leader away under load, and reports the cost: how long no write was acknowledged,
//! whether an acknowledged write is lost, and whether two nodes led or two instances held one role at once.
//! `eldest drill restore` leaves the leader alone and restores a backup on a scratch node (`restore`).
//!
//! ```text
//!  gather ─▶ ready? ─▶ writers, holders ─▶ break ─▶ another leads, and takes writes ─▶ mend ─▶ it is back ─▶ look at what was written
//! ```
//!
//! The drill writes only below `drill/`, and removes all of that when it ends. It mends what it broke, after a failure and
//! after a signal too.

mod args;
mod compare;
mod consent;
mod course;
mod order;
mod report;
mod restore;
mod scratch;
mod tally;
mod watch;
mod writers;

use std::sync::{Arc, Mutex, PoisonError};

use super::exit::Failure;
use super::out::note;
use super::signals::Signals;
use super::status::gather;
use crate::client::random_id;
use args::BreakKind;
pub use args::DrillArgs;
use course::Course;
use order::DrillPlace;
use order::Order;
use report::{DrillReport, ReportFile};
use tally::Tally;
use watch::LeaderWatch;
use writers::Holders;
use writers::Writers;

/// The text that asks for a confirmation of a drill that takes the leader away.
const MEANING: &str = "\
A drill takes the leader away from a cluster in use: no client can write for about a second, and every program on
it notices. The drill writes a few hundred small documents a second below drill/ and removes them when it ends.";

/// The text that asks for a confirmation of a restore drill.
const MEANING_OF_RESTORE: &str = "\
This drill writes one document below drill/, copies all data of the cluster to a folder on this machine that only you
can read, restores it there, and removes all of that when it ends. The cluster goes on as before.";

pub async fn run(args: &DrillArgs) -> Result<(), Failure> {
    if !args.kind.has_to_be_mended() && (args.break_by.is_some() || args.mend_by.is_some()) {
        let what = format!("a {} drill runs no commands: do not give --break or --mend", args.kind.name());
        return Err(Failure::Usage { what });
    }
    let meaning = if args.kind == BreakKind::Restore { MEANING_OF_RESTORE } else { MEANING };
    if !args.yes && !consent::can_be_typed(&args.output) {
        return Err(Failure::NotConfirmed { what: meaning });
    }
    let (name, mut subject) = Subject::now(args).await?;
    if !args.yes {
        consent::typed(meaning, &name)?;
        // A person may take minutes, and the cluster may have changed in the meantime.
        let (name_now, subject_now) = Subject::now(args).await?;
        if name_now != name {
            let what = format!("another cluster, {name_now}, answers there now; nothing was done");
            return Err(Failure::NotNow { what });
        }
        subject = subject_now;
    }
    let file = args.report.as_deref().map(ReportFile::create).transpose()?;
    let (json, text, wrong, interrupted) = match subject {
        Subject::Leader(place) => {
            let report = drill(args, &place).await?;
            (report.json(), report.text(), report.wrong().len(), None)
        }
        Subject::Backup => {
            let report = restore::run(args, &args.target.client(&args.target.url)?).await?;
            (report.json(), report.text(), report.wrong.len(), report.interrupted)
        }
    };
    // The report is shown first, so that a full disk does not lose it, and kept even if its reader has gone.
    let shown = args.output.show(&json, |_| text);
    let kept = file.map_or(Ok(()), |file| file.write(&json));
    let told = shown.and(kept);
    if wrong == 0 {
        return told.and(interrupted.map_or(Ok(()), |signal| Err(Failure::BrokenOff { signal })));
    }
    // The exit code says what the drill has found, even if the report is lost.
    if let Err(failure) = told {
        note(&failure.to_string());
    }
    Err(Failure::Unwell { count: wrong })
}

/// The subject of a drill: the leader to take away, or the cluster's backup.
enum Subject {
    Leader(DrillPlace),
    Backup,
}

impl Subject {
    /// The name of the cluster, and the subject. Fails if the cluster is not ready for the drill at this moment.
    async fn now(args: &DrillArgs) -> Result<(String, Subject), Failure> {
        let cluster = gather(&args.target).await?;
        let subject = match args.kind {
            BreakKind::Restore if cluster.view.leader.is_none() => {
                let what = "there is no leader to take a backup of; see `eldest why`".to_string();
                return Err(Failure::NotNow { what });
            }
            BreakKind::Restore => Subject::Backup,
            _ => Subject::Leader(DrillPlace::of(&cluster, &args.target)?),
        };
        Ok((cluster.view.cluster, subject))
    }
}

async fn drill(args: &DrillArgs, place: &DrillPlace) -> Result<DrillReport, Failure> {
    let caller = args.target.caller()?;
    let client = args.target.client(&place.urls)?;
    // From the first write on, a signal has something to undo.
    let mut signals = Signals::with_hangup().map_err(Failure::NoRuntime)?;
    let prefix = format!("drill/{}", &random_id()[..8]);
    let tally = Arc::new(Mutex::new(Tally::new()));
    let watch = LeaderWatch::start(&caller, &place.urls, &place.epoch);
    let writers = Writers::start(&client, (&caller, &place.url), &prefix, args.writers, &tally);
    let holders = Holders::start(&client, &prefix, &tally)?;
    let order = Order { kind: args.kind, target: &args.target, place, within: args.within };
    let mut course = Course::new(args, order, caller, watch, tally.clone());
    let ended = tokio::select! {
        ended = course.run() => ended,
        signal = signals.next() => {
            note("the drill was interrupted; cleaning up (a second signal ends it at once)");
            Err(Failure::BrokenOff { signal })
        }
    };
    tally.lock().unwrap_or_else(PoisonError::into_inner).ends();
    // This runs after every outcome: it mends what is broken, and removes everything that the drill wrote.
    let undone = async {
        course.mend_what_is_broken().await;
        let (kept, left) = writers.end(&client).await;
        holders.end().await;
        if !left.is_empty() {
            note(&format!(
                "{} documents could not be removed: eldest doc list --prefix {prefix}/",
                left.len()
            ));
        }
        kept
    };
    let kept = tokio::select! {
        kept = undone => kept,
        signal = signals.next() => {
            note(&format!("not all was undone: the documents of the drill are below {prefix}/"));
            return Err(Failure::BrokenOff { signal });
        }
    };
    ended?;
    let told = report::told(&args.target, &place.epoch).await;
    let tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(DrillReport::new(args.kind, place, course.into_outcome(), &tally, kept, told))
}
