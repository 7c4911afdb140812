//! The known bugs of leases are put back, and caught.

use eldest::protocol::mutant::Mutant;

use super::run::run;
use super::scenarios;
use super::soak::FIXED;
use crate::guarded::guarded;
use crate::mutants::Caught::{self, In, Within};
use crate::mutants::each_is_caught;

/// Each mutant, with the beginnings of checkers' names: one of these checkers must object.
#[rustfmt::skip]
const MUTANTS: &[(Mutant, Caught, &[&str])] = &[
    (Mutant::RenewUnconfirmed, In(scenarios::deposed_leader_is_asked_to_renew), &["C14 never early", "I13"]),
    (Mutant::RenewWhileEnding, In(scenarios::renewal_while_the_end_is_under_way), &["C14 never early", "I13"]),
    (Mutant::PromiseTakenBack, Within(300), &["C14 never early", "I13"]),
    (Mutant::LeaseNeverAges, In(scenarios::leaders_change_faster_than_it_ends), &["C14 ends in time"]),
    (Mutant::AgedPromisedInFull, In(scenarios::what_made_it_young_is_lost), &["C14 never early", "I13"]),
    (Mutant::LeasesCarriedOver, In(scenarios::leads_again), &["C14 never early", "I13"]),
    (Mutant::TrimmedIsUnknown, In(scenarios::an_end_is_trimmed_before_all_have_it), &["C14 ends in time"]),
    (Mutant::GiveUpWhatWasTold, Within(300), &["C14 never early", "I13"]),
    (Mutant::UntieAnyNumber, Within(100), &["C14 never early", "I13"]),
    (Mutant::TieTakenBack, Within(300), &["C14 never early", "I13"]),
    (Mutant::TieNamedAgain, In(scenarios::it_is_named_again_too_late), &["C14 never early", "I13"]),
    (Mutant::PlainRenewalStaysTied, Within(100), &["C14 never early", "I13"]),
    (Mutant::UntieAtOnce, In(scenarios::an_older_tie_is_named_to_the_next_leader), &["C14 never early", "I13"]),
    (Mutant::AcquireStaysTied, Within(300), &["C14 never early", "I13"]),
    (Mutant::SuccessorIsUntied, In(scenarios::a_successor_relies_on_no_connection), &["C14 never early", "I13"]),
    (Mutant::AnySecret, In(scenarios::who_reads_a_lease_gives_it_back), &["P53", "C14", "I13"]),
    (Mutant::BoundDocOutlivesLease, Within(100), &["P54 a bound"]),
    (Mutant::FormerHolderWrites, Within(100), &["P59 a write"]),
    (Mutant::LooseDocsStay, Within(300), &["P54 a bound", "I5 a restore"]),
    (Mutant::DocTtlForgotten, Within(100), &["C14 ends in time"]),
    (Mutant::StateGrowsOn, Within(100), &["P55 the state"]),
    (Mutant::FullStateTakesNothing, Within(100), &["P55 what makes"]),
    (Mutant::UnheardPromiseStands, In(scenarios::whoever_asks_again_is_gone), &["C14 nothing for the gone"]),
    (Mutant::GrantToTheRevoked, In(scenarios::waiter_is_let_in_no_more), &["P41 nothing for a token"]),
    (Mutant::LatecomersPass, In(scenarios::somebody_comes_in_between), &["P41 nobody passes"]),
    (Mutant::GrantToTheGone, In(scenarios::waiter_is_gone), &["C14 nothing for the gone"]),
];

#[test]
fn every_mutant_of_leases_is_caught() {
    each_is_caught(MUTANTS, run, FIXED);
}

/// A bug of a holder is noticed, too: this one counts from the time at which it hears the answer.
#[test]
fn a_holder_that_counts_from_the_answer_is_noticed() {
    let violation = guarded(scenarios::holder_counts_from_the_answer).expect_err("a checker objects");
    assert!(violation.checker.starts_with("C14 never early") || violation.checker.starts_with("I13"));
}
