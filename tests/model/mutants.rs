//! Known bugs are put back, each in a case that shows it: the exploration must find a path to it. A model
//! that finds none of them would prove nothing when it finds nothing else.

use eldest::protocol::mutant::Mutant;

use crate::cases::{ABSENT_ELDER, Case, DEPOSED, RESTARTED, RIVALS, TWO_SUFFIXES};
use crate::explore;
use crate::model::Cases;

/// The property is the one that the omitted rule protects, or the first that breaks on the way there.
fn is_caught(mutant: Mutant, case: Case, broken: &str) {
    let model = Cases { case, mutant: Some(mutant) };
    let (failed, _) = explore(&model);
    let names: Vec<&str> = failed.iter().map(|(name, _)| *name).collect();
    let caught = names.iter().any(|name| name.contains(broken));
    assert!(caught, "{mutant:?} in {}: only {names:?}", case.name);
}

#[test]
fn early_answers_are_caught() {
    is_caught(Mutant::ApproveBeforeStore, RIVALS, "(I9)");
    is_caught(Mutant::AckBeforeSync, ABSENT_ELDER, "(I9)");
    is_caught(Mutant::AppendKeepsPromise, RIVALS, "(I9)");
}

#[test]
fn forgotten_promises_are_caught() {
    is_caught(Mutant::SameEpochTwice, RESTARTED, "(P2)");
    is_caught(Mutant::AcceptBelowPromise, DEPOSED, "(I2)");
}

#[test]
fn leading_without_the_newest_log_is_caught() {
    is_caught(Mutant::LeadWithoutPull, ABSENT_ELDER, "(I2)");
    is_caught(Mutant::LeadAfterHalfPull, ABSENT_ELDER, "(I2)");
}

#[test]
fn committing_too_early_is_caught() {
    is_caught(Mutant::CommitBelowMajority, DEPOSED, "(I2)");
    is_caught(Mutant::CommitOldEpoch, TWO_SUFFIXES, "(I2)");
}

#[test]
fn careless_logs_are_caught() {
    is_caught(Mutant::NoPrevCheck, TWO_SUFFIXES, "(P5)");
    is_caught(Mutant::TruncateAlways, DEPOSED, "(I2)");
}

#[test]
fn a_false_refusal_is_caught() {
    is_caught(Mutant::RefuseInFlight, DEPOSED, "(P15)");
}
