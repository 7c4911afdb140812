//! `eldest drill`: takes the leader away under load, and reports the cost: how long no write was acknowledged,
//! whether an acknowledged write is lost, and whether two instances ever held one role.
//!
//! ```text
//!  gather ─▶ ready? ─▶ writers, holders ─▶ break ─▶ another leads, and takes writes ─▶ mend ─▶ it is back ─▶ look at what was written
//! ```
//!
//! The drill writes only below `drill/`, and removes all of that when it ends. It mends what it broke, whatever ends
//! it.

mod args;
mod course;
mod order;
mod report;
mod tally;
mod watch;
mod writers;

use std::sync::{Arc, Mutex, PoisonError};

use super::client::Target;
use super::exit::Failure;
use super::out::note;
use super::signals::Signals;
use super::status::gather;
use crate::client::{Client, random_id};
use args::BreakKind;
pub use args::DrillArgs;
use course::Course;
use order::DrillPlace;
use order::Order;
use report::DrillReport;
use tally::Tally;
use watch::LeaderWatch;
use writers::Holders;
use writers::Writers;

/// The text that is shown if the command was not confirmed.
const MEANING: &str = "\
A drill takes the leader away from a cluster in use: no client can write for about a second, and every program on
it notices. The drill writes a few hundred small documents a second below drill/ and removes them when it ends.";

pub async fn run(args: &DrillArgs) -> Result<(), Failure> {
    if !args.yes {
        return Err(Failure::NotConfirmed { what: MEANING });
    }
    if args.kind == BreakKind::Handover && (args.break_by.is_some() || args.mend_by.is_some()) {
        let what =
            "a handover is requested from the leader itself: do not give --break or --mend".to_string();
        return Err(Failure::Usage { what });
    }
    let cluster = gather(&args.target).await?;
    let place = DrillPlace::of(&cluster, &args.target)?;
    let report = drill(args, &place).await?;
    args.output.show(&report.json(), |_| report.text())?;
    match report.wrong().len() {
        0 => Ok(()),
        count => Err(Failure::Unwell { count }),
    }
}

async fn drill(args: &DrillArgs, place: &DrillPlace) -> Result<DrillReport, Failure> {
    let caller = args.target.caller()?;
    let client = client(&args.target, place)?;
    let prefix = format!("drill/{}", &random_id()[..8]);
    let tally = Arc::new(Mutex::new(Tally::new()));
    let watch = LeaderWatch::start(&caller, &place.urls, &place.epoch);
    let writers = Writers::start(&client, (&caller, &place.url), &prefix, args.writers, &tally);
    let holders = Holders::start(&client, &prefix, &tally)?;
    let order = Order { kind: args.kind, target: &args.target, place, within: args.within };
    let mut course = Course::new(args, order, caller, watch, tally.clone());
    let mut signals = Signals::with_hangup().map_err(Failure::NoRuntime)?;
    let ended = tokio::select! {
        ended = course.run() => ended,
        signal = signals.next() => {
            note("the drill was interrupted; cleaning up");
            Err(Failure::BrokenOff { signal })
        }
    };
    tally.lock().unwrap_or_else(PoisonError::into_inner).ends();
    // This runs after every outcome: it mends what is broken, and removes everything that the drill wrote.
    let undone = async {
        course.mend_what_is_broken().await;
        let kept = writers.end(&client).await;
        holders.end().await;
        kept
    };
    let kept = tokio::select! {
        kept = undone => kept,
        signal = signals.next() => return Err(Failure::BrokenOff { signal }),
    };
    ended?;
    let told = report::told(&args.target, &place.epoch).await;
    let tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(DrillReport::new(args.kind, place, course.into_outcome(), &tally, kept, told))
}

/// A client that retries, as a program's client does.
fn client(target: &Target, place: &DrillPlace) -> Result<Client, Failure> {
    let builder = Client::builder(place.urls.clone()).tls(target.tls.files());
    let builder =
        target.token.credential()?.into_iter().fold(builder, |builder, (token, _)| builder.token(token));
    builder.build().map_err(|error| Failure::Usage { what: error.to_string() })
}
