//! Every known bug is put back, and caught: by a named checker, in its own scenario or within a bounded
//! number of seeds.

use eldest::protocol::mutant::{self, Mutant};

use crate::checks::Violation;
use crate::founding;
use crate::guarded::guarded;
use crate::late_words;
use crate::membership;
use crate::run::{Outcome, run};
use crate::scenarios::{self as stage, Scenario};
use crate::soak::FIXED;
use crate::timings;

/// The way in which a mutant is caught.
pub enum Caught {
    /// One of the seeds from 1 up to this number.
    Within(u64),
    In(Scenario),
}

use Caught::{In, Within};

/// Each mutant, with the beginnings of checkers' names: one of these checkers must object.
#[rustfmt::skip]
const MUTANTS: &[(Mutant, Caught, &[&str])] = &[
    (Mutant::AppendKeepsPromise, In(stage::deposed_leader_finds_a_follower), &["I9"]),
    (Mutant::FaltersForgotten, In(crate::falters::a_leader_that_falters), &["P3"]),
    (Mutant::SleepIsSilence, In(crate::falters::a_leader_that_falters), &["P3"]),
    (Mutant::ApproveBeforeStore, In(stage::lowest_leads), &["I9"]),
    (Mutant::AckBeforeSync, In(stage::lowest_leads), &["I9"]),
    (Mutant::BeatsCountUnsynced, Within(200), &["I9", "P5", "I2"]),
    (Mutant::BeatsWaitForRecords, In(crate::falters::disks_that_stall), &["P29"]),
    (Mutant::SameEpochTwice, Within(600), &["I1 "]),
    (Mutant::AcceptBelowPromise, In(stage::deposed_leader_finds_a_follower), &["I2", "no node stops"]),
    (Mutant::AnyIncarnationCounts, In(stage::wiped_disk_rejoins_a_deposed_leader), &["I2"]),
    (Mutant::LetInWithItsVote, In(stage::wiped_disk_rejoins_a_deposed_leader), &["I2"]),
    (Mutant::LetInWithItsVote, In(crate::disks::blank_disk_is_asked), &["no node stops", "I2"]),
    (Mutant::CountsItselfAlways, In(crate::disks::two_disks_of_one_id), &["I2", "I3", "no node"]),
    (Mutant::ReplacedIsLetIn, In(crate::disks::the_disk_before_comes_back), &["P10 a disk"]),
    (Mutant::FormByMajority, Within(400), &["I2", "no node stops"]),
    (Mutant::CutDoubtfulTail, Within(400), &["P27"]),
    (Mutant::ForgottenOverlooked, In(crate::copies::an_old_copy_is_put_back), &["P27"]),
    (Mutant::LeaseFromReceipt, In(stage::late_answers), &["I4"]),
    (Mutant::IgnoreLeaseLeft, In(stage::firewall_refuses), &["I4"]),
    (Mutant::RestartForgetsGrants, In(stage::granter_restarts), &["I4"]),
    (Mutant::GrantsByConfiguration, In(timings::others_are_configured_to_shorter_leases), &["I4"]),
    (Mutant::LeaseByConfiguration, In(timings::timings_change_node_by_node), &["I4"]),
    (Mutant::LeaseFallsAtOnce, In(timings::a_short_lease_follows_a_long_one), &["I4"]),
    (Mutant::LeaseUntold, In(timings::a_disk_of_an_earlier_version), &["I4"]),
    (Mutant::LeaseLeftCutShort, In(timings::others_are_configured_to_shorter_leases), &["I4"]),
    (Mutant::GrantsEndWithNewDisk, In(crate::disks::old_leader_lives_on), &["I4"]),
    (Mutant::ServeAfterHandOver, In(stage::hand_over_with_late_news), &["I4"]),
    (Mutant::OldCertificate, In(stage::old_certificate), &["P18"]),
    (Mutant::RefuseInFlight, Within(200), &["I8"]),
    (Mutant::LeadWithoutPull, Within(200), &["I2"]),
    (Mutant::LeadAfterHalfPull, Within(600), &["I2"]),
    (Mutant::AckLogEnd, In(stage::old_suffix_is_not_acknowledged), &["P5"]),
    (Mutant::NoPrevCheck, Within(50), &["validation"]),
    (Mutant::TruncateAlways, Within(200), &["no node stops", "I2"]),
    (Mutant::CommitUnmatched, Within(200), &["I2"]),
    (Mutant::CommitOldEpoch, In(crate::old_records::old_record_reaches_a_majority), &["I2", "no node stops"]),
    (Mutant::CommitBelowMajority, Within(300), &["I2"]),
    (Mutant::ReadJoinsRound, In(stage::read_joins_a_round), &["I3"]),
    (Mutant::ReadBeforeOpen, Within(1500), &["I3"]),
    (Mutant::ReadUnconfirmed, In(stage::deposed_leader_is_read), &["I3"]),
    (Mutant::AnyoneConfirms, In(stage::wiped_disk_confirms), &["I3"]),
    (Mutant::RefusalUnconfirmed, Within(1500), &["I3"]),
    (Mutant::SplitBatch, Within(400), &["P12"]),
    (Mutant::NoStepDown, In(stage::leader_alone), &["P16", "I10 a tick"]),
    (Mutant::StuckLeaderStays, In(stage::appends_do_not_pass), &["I10"]),
    (Mutant::NoDryRun, In(stage::cut_from_the_leader), &["C26"]),
    (Mutant::ApproveWithoutSuspicion, In(stage::cut_from_the_leader), &["C26", "P58"]),
    (Mutant::NoRankWait, In(stage::lowest_leads), &["P4"]),
    (Mutant::UnreadyFirst, In(stage::unready_elder), &["P21"]),
    (Mutant::IgnoreGreaterPromise, Within(600), &["I5", "I10"]),
    (Mutant::ClusterTimeRestarts, Within(50), &["P17"]),
    (Mutant::WallTimeGoesBack, Within(100), &["P17"]),
    (Mutant::WallTimeLeaps, Within(100), &["P17 wall"]),
    (Mutant::NoHold, In(stage::elder_keeps_dying), &["P20"]),
    (Mutant::HoldForEver, Within(400), &["I10"]),
    (Mutant::NewFormatAtOnce, Within(400), &["no node stops"]),
    (Mutant::AckWhenFull, Within(200), &["P24"]),
    (Mutant::FullWaitsForRoom, In(crate::full::full_follower_promises), &["P24 a promise", "I10"]),
    (Mutant::FullTellsAll, In(crate::full::full_follower_promises), &["I9"]),
    (Mutant::PromiseWaitsForRoom, In(crate::full::full_follower_promises), &["P24 a promise"]),
    (Mutant::LeaderIsNeverOdd, In(stage::odd_leader), &["no node stops"]),
    (Mutant::DroppedDigestAsked, In(stage::odd_under_load_with_long_beats), &["P25 the odd"]),
    (Mutant::DigestsOfAnyVersion, In(stage::digests_of_two_builds), &["P25 only"]),
    (Mutant::OddLeaderGoesOn, In(stage::odd_leader_without_proof), &["P25 the odd"]),
    (Mutant::OddFollowerGoesOn, In(stage::odd_follower_without_proof), &["P25 the odd"]),
    (Mutant::SnapshotGoesBack, In(stage::old_snapshot_again), &["validation", "I7", "I2"]),
    (Mutant::SnapshotBeforePromise, In(crate::full::promises_slowly), &["P10 a disk"]),
    (Mutant::SnapshotBeforeInstalled, In(crate::full::installs_slowly), &["validation", "P29", "P26"]),
    (Mutant::KeysForgotten, Within(200), &["P26"]),
    (Mutant::YieldedUnanswered, In(crate::answers::leads_again_before_its_heir), &["P15 each call"]),
    (Mutant::CommitUntold, In(crate::answers::nothing_follows_a_write), &["P7"]),
    (Mutant::ReplacedIsSilent, In(crate::answers::late_word_of_a_wiped_disk), &["P15 all have it"]),
    (Mutant::NewProcessVoidsGrants, In(late_words::late_word_of_an_older_life), &["I4"]),
    (Mutant::RefusedUntilNamed, In(late_words::refused_under_another_name), &["P15 all have it"]),
    (Mutant::MembersByFile, In(membership::a_smaller_topology_is_rolled_out), &["I2", "I3", "I4"]),
    (Mutant::ChangesOverlap, In(membership::two_changes_at_once), &["I2", "I3", "I4"]),
    (Mutant::ChangeUnderOldLease, In(membership::members_change_under_an_old_lease), &["I4"]),
    (Mutant::ChangeUnderOldLease, In(crate::disks::wiped_granter), &["I4"]),
    (Mutant::VotesUntaught, In(membership::who_is_added_learns_first), &["P43"]),
    (Mutant::FormDeaf, In(founding::a_grown_clusters_founder_is_wiped), &["I1 ", "I2", "I4", "I5", "P9", "P43"]),
    (Mutant::FoundersDeaf, In(founding::a_grown_clusters_founders_are_wiped), &["I1 ", "P9"]),
    (Mutant::FoundWithoutListening, In(founding::a_wiped_founder_asks_a_removed_one), &["I1 ", "P9"]),
    (Mutant::AgreeWithoutListening, In(founding::a_removed_founder_asks_a_wiped_one), &["I1 ", "P9"]),
    (Mutant::FoundsWithOthers, In(founding::one_founder_has_heard_of_it), &["I1 ", "I2", "I4", "I5", "P9"]),
    (Mutant::VotesUnseated, In(membership::who_is_added_holds_its_seat), &["P43"]),
    (Mutant::LearnerLeads, In(membership::who_only_learns_leads_nobody), &["P43"]),
    (Mutant::OutsiderWaits, In(membership::who_is_no_member_says_so), &["P43"]),
    (Mutant::AnyClusterCounts, In(membership::an_old_clusters_disk), &["P44", "I2", "I5"]),
    (Mutant::CauseUntold, In(crate::stories::a_leader_stands_still), &["P58"]),
    (Mutant::HandOverUntold, In(crate::stories::a_leader_hands_over), &["P58"]),
    (Mutant::SleepUntold, In(crate::stories::a_leader_stands_still), &["P58"]),
    (Mutant::ClockUntold, In(crate::stories::a_leader_dies_twice), &["P58"]),
    (Mutant::HoldUntold, In(crate::stories::a_leader_dies_twice), &["P58"]),
    (Mutant::RestoreGoesOn, Within(1_000), &["I5 a restore"]),
    (Mutant::StagedIsLeft, In(crate::restores::service_goes_down_half_way), &["P26 nothing is left"]),
    (Mutant::GiveUpIsRefused, In(crate::restores::service_stays_down), &["P26 nothing is left"]),
    (Mutant::RestoreNeverGivenUp, In(crate::restores::a_restore_takes_too_long), &["P46"]),
    (Mutant::RestoreTurnsTokensBack, In(crate::successors::clocks_are_behind), &["I6 tokens"]),
    (Mutant::RestoreForgetsFloor, In(crate::successors::clocks_are_behind_and_tokens_known), &["I6 a restore"]),
    (Mutant::HistoryGoesOn, In(crate::successors::clocks_are_behind_and_tokens_known), &["P60"]),
    (Mutant::BlankReaderGetsLines, Within(200), &["P47"]),
    (Mutant::RetryIsRefused, Within(200), &["P15 a retry"]),
    (Mutant::RestoreForgetsKeys, Within(600), &["I7 applied once", "I3"]),
    (Mutant::RestoreDropsTokens, Within(400), &["P56"]),
    (Mutant::OldestKeysGo, In(crate::keys::one_client_fills_them), &["P52"]),
    (Mutant::FailedKeysForgotten, Within(200), &["P26 a snapshot"]),
    (Mutant::AckAllByMajority, Within(200), &["P15 all have it"]),
    (Mutant::AckAllBeforeOwnDisk, Within(200), &["P15 all have it"]),
    (Mutant::AckAllWhenDeposed, Within(1_500), &["P15 all have it"]),
    (Mutant::CursorOfAnyHistory, In(crate::successors::readers_cross_over), &["I7 what a reader", "P60"]),
    (Mutant::CursorNotKept, Within(400), &["I7 what a reader"]),
    (Mutant::CursorBehindRecord, Within(400), &["I7 what a reader"]),
    (Mutant::TokenByCounter, In(crate::restores::tokens_after_a_restore), &["I6"]),
];

type Run = fn(u64, bool) -> Outcome;

fn objection(caught: &Caught, run: Run, named: impl Fn(&Violation) -> bool) -> Option<String> {
    match caught {
        Within(seeds) => (1..=*seeds).find_map(|seed| {
            let violation = run(seed, false).err().map(|(violation, _)| violation);
            violation.filter(&named).map(|violation| format!("seed {seed}: {}", violation.checker))
        }),
        In(scenario) => {
            let violation = guarded(scenario).err().filter(&named);
            violation.map(|violation| format!("its scenario: {}", violation.checker))
        }
    }
}

#[test]
fn every_mutant_is_caught() {
    each_is_caught(MUTANTS, run, FIXED);
}

/// The fixed seeds of the gate must include each seed by which a mutant is caught, so that none that matters
/// is left to chance.
pub fn each_is_caught(mutants: &[(Mutant, Caught, &[&str])], run: Run, fixed: u64) {
    for (bug, caught, _) in mutants {
        assert!(
            !matches!(caught, Within(seeds) if *seeds > fixed),
            "{bug:?} is caught beyond the fixed seeds"
        );
    }
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        let mut missed = Vec::new();
        while let Some((bug, caught, checkers)) =
            mutants.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
        {
            mutant::set(Some(*bug));
            let named = |v: &Violation| checkers.iter().any(|name| v.checker.starts_with(name));
            match objection(caught, run, named) {
                Some(by) => println!("{bug:?} is caught by {by}"),
                None => missed.push(*bug),
            }
            mutant::set(None);
        }
        missed
    };
    let missed: Vec<Mutant> = std::thread::scope(|scope| {
        let workers = [scope.spawn(work), scope.spawn(work)];
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker")).collect()
    });
    assert!(missed.is_empty(), "no checker objects to {missed:?}");
}
