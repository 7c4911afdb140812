//! The known bugs of available mode are put back, and caught.

use eldest::protocol::mutant::Mutant;

use super::beginnings;
use super::impasses;
use super::preparing;
use super::run::run;
use super::scenarios as stage;
use super::soak::FIXED;
use crate::mutants::Caught::{self, In, Within};
use crate::mutants::each_is_caught;

/// Each mutant, with the beginnings of checkers' names: one of these checkers must object.
#[rustfmt::skip]
const MUTANTS: &[(Mutant, Caught, &[&str])] = &[
    (Mutant::JoinUncovered, Within(100), &["C18"]),
    (Mutant::OverrideUncovered, In(stage::override_of_another_history), &["C18", "no node stops"]),
    (Mutant::MergeIndexLow, In(stage::one_against_two), &["C18", "I5", "P34"]),
    (Mutant::MergeOfAnyEpoch, In(stage::a_merge_outlives_its_disk), &["C21 a state"]),
    (Mutant::MergeOverSettled, In(stage::a_merge_outlives_its_disk_within_an_epoch), &["C21 a state"]),
    (Mutant::MergesEndWithEpochs, In(stage::a_merge_outlives_an_epoch), &["P34 merges go on"]),
    (Mutant::SettleWithoutAll, Within(100), &["P31"]),
    (Mutant::SettleOverReplaced, In(stage::a_replaced_disk_hides_nothing), &["C21"]),
    (Mutant::SettleOverCopies, In(stage::an_old_copy_hides_nothing), &["C21"]),
    (Mutant::NeverSettle, In(stage::one_against_two), &["P35"]),
    (Mutant::AdmittedKnowsItsEpochs, In(beginnings::let_in_again), &["I1 "]),
    (Mutant::LonelyCounterPlain, In(beginnings::lone_beginner), &["I1 ", "I5", "I7"]),
    (Mutant::NextMayBeOwn, In(beginnings::begins_below_its_former_life), &["I1 "]),
    (Mutant::AckAlone, In(stage::acknowledged_is_on_every_disk), &["P37"]),
    (Mutant::SlowIsOutOfStep, In(stage::a_slow_disk_is_waited_for), &["P37"]),
    (Mutant::LogRulesSides, In(beginnings::formed_in_safe_mode), &["I12", "P34", "P43"]),
    (Mutant::MeetsForEver, In(impasses::nothing_comes), &["P48"]),
    (Mutant::CalledOffUntold, In(impasses::too_large), &["P48"]),
    (Mutant::JournalUnbounded, In(impasses::journal_is_full), &["P48"]),
    (Mutant::StalePreparation, In(preparing::the_state_changes_meanwhile), &["C21"]),
    (Mutant::OverrideFromTheStart, In(preparing::more_is_written_meanwhile), &["P33"]),
    (Mutant::MergeHoldInherited, In(preparing::leaders_change_meanwhile), &["P34"]),
    (Mutant::RevokedReturns, Within(400), &["C21"]),
    (Mutant::CutInAvailable, Within(100), &["C18", "no node stops"]),
    (Mutant::CursorOfAnyEpoch, Within(800), &["I7 what a reader"]),
    (Mutant::MergeToldAtOnce, In(stage::a_merge_is_lost_with_its_epoch), &["I7 what a reader"]),
    (Mutant::PartHasNoId, Within(800), &["I7 what a reader"]),
];

#[test]
fn every_mutant_of_available_mode_is_caught() {
    each_is_caught(MUTANTS, run, FIXED);
}
