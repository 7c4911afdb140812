//! A game: leaders follow each other at any time, holders renew or do not, answers and records are lost. Checkers watch what is believed,
//! ended and written. The checkers are checked, too: they catch known bugs that are put into the driver.

mod checker;
mod cluster;
mod holders;
mod renewals;
mod rng;
mod terms;
mod world;

use checker::Violation;
use world::{Kind, Seen, Tally, World};

/// A bug that a driver could have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    None,
    /// A renewal is judged when it arrives, and not again after the round.
    JudgesOnce,
    /// A renewal of an aged lease is answered with the whole ttl.
    PromisesAgedInFull,
    /// A renewal is answered with the whole ttl while an ageing is proposed and undecided.
    ForgetsUndecidedAgeing,
    /// A renewal is answered while the end of its token is under way.
    AnswersEnding,
    /// A renewal is answered without a round.
    NoRound,
}

const GAMES: u64 = 2000;

const EVERYTHING: [Seen; 11] = [
    Seen::Grant,
    Seen::Renewal,
    Seen::Again,
    Seen::Halved,
    Seen::Waited,
    Seen::End,
    Seen::Age,
    Seen::Refresh,
    Seen::Term,
    Seen::Refusal,
    Seen::Survivor,
];

fn play(kind: Kind, seed: u64, bug: Bug) -> Result<Tally, Violation> {
    World::new(kind, seed, bug).play()
}

fn caught(bug: Bug) -> Option<(u64, Violation)> {
    (0..GAMES).find_map(|seed| Some((seed, play(Kind::Wild, seed, bug).err()?)))
}

#[test]
fn nobody_believes_in_what_was_ended_and_what_is_dead_ends() {
    let mut sum = Tally::default();
    for seed in 0..GAMES {
        let tally = play(Kind::Wild, seed, Bug::None)
            .unwrap_or_else(|violation| panic!("seed {seed}: {violation:?}"));
        sum.add(&tally);
    }
    // A game in which nothing happens proves nothing.
    let rarest = EVERYTHING.into_iter().min_by_key(|what| sum.of(*what)).unwrap();
    assert!(sum.of(rarest) > GAMES as usize / 20, "{rarest:?} is too rare: {sum:?}");
}

#[test]
fn a_lease_renewed_every_third_makes_no_records_whoever_leads() {
    let mut sum = Tally::default();
    for seed in 0..GAMES / 10 {
        sum.add(&play(Kind::Calm, seed, Bug::None).unwrap());
    }
    assert!(
        [Seen::End, Seen::Age, Seen::Refresh, Seen::Halved].iter().all(|what| sum.of(*what) == 0),
        "{sum:?}"
    );
    assert!(sum.of(Seen::Renewal) > 1000 && sum.of(Seen::Term) > 100, "{sum:?}");
}

#[test]
fn the_same_seed_is_the_same_game() {
    assert_eq!(play(Kind::Wild, 7, Bug::None), play(Kind::Wild, 7, Bug::None));
    assert_ne!(play(Kind::Wild, 7, Bug::None), play(Kind::Wild, 8, Bug::None));
}

#[test]
fn a_renewal_that_is_judged_once_is_caught() {
    expect_belief(Bug::JudgesOnce);
}

#[test]
fn an_aged_lease_promised_in_full_is_caught() {
    expect_belief(Bug::PromisesAgedInFull);
}

#[test]
fn a_full_promise_before_the_ageing_is_decided_is_caught() {
    expect_belief(Bug::ForgetsUndecidedAgeing);
}

#[test]
fn an_end_under_way_that_does_not_make_renewals_wait_is_caught() {
    expect_belief(Bug::AnswersEnding);
}

#[test]
fn a_renewal_without_a_round_is_caught() {
    expect_belief(Bug::NoRound);
}

fn expect_belief(bug: Bug) {
    let caught = caught(bug);
    assert!(matches!(caught, Some((_, Violation::BelievedBeyondEnd { .. }))), "{bug:?}: {caught:?}");
}
