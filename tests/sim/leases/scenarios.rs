//! C14 as separate timelines. With the rules they all pass; with a rule's mutant on, a named checker objects.

use std::sync::Arc;

use eldest::protocol::{Ack, Message};
use eldest::replica::Call;
use eldest::store::{Command, SecretHash, TokenId};
use eldest::types::{LeaseName, NodeId, Span, Text};

use super::stage::{
    acquire, gets, hand_over, hang_up, register, release, renew, renew_tied, run, slow_answers, stage,
    stage_as, told, untie, wants,
};
use super::{Asked, Event, Told, Wish};
use crate::access;
use crate::calls::Waiting;
use crate::checks::{Check, ensure};
use crate::stage::{MS, leads};
use crate::world::World;

fn is_held(world: &World) -> bool {
    world.witness().store.role("r").is_some()
}

/// The time at which n1 ends the lease, if it is not renewed.
fn ends_at(world: &World, role: &str) -> u64 {
    let host = &world.hosts[0];
    let now = host.clock.now(world.now);
    let times =
        host.replica.as_ref().and_then(|replica| replica.lease_times(now, &[LeaseName::Role(role.into())]));
    let left = times.and_then(|times| times.times[0].left).unwrap_or_default();
    host.clock.truth_at(now.mono + left)
}

/// A firewall cuts n1 off and refuses in its name. The holder goes on asking n1, which does not know yet.
pub fn deposed_leader_is_asked_to_renew() -> Check {
    let mut world = stage(1, 1, 1_000)?;
    gets(&mut world, 0, 1)?;
    world.reject(0);
    let led = world.run_until_true(world.now + 300 * MS, |world| leads(world, 2))?;
    ensure(led, "stage", || "n2 does not lead".into())?;
    for _ in 0..12 {
        renew(&mut world, 0, 1);
        run(&mut world, 80)?;
    }
    run(&mut world, 2_000)?;
    ensure(!is_held(&world), "C14 ends in time", || "nobody renewed it".into())
}

/// A renewal's round is answered while the record that ends the lease is under way.
pub fn renewal_while_the_end_is_under_way() -> Check {
    let mut world = stage(2, 1, 1_000)?;
    gets(&mut world, 0, 1)?;
    run(&mut world, 800)?;
    slow_answers(&mut world, 30);
    let ends = ends_at(&world, "r");
    ensure(ends > world.now + 100 * MS, "stage", || "it ends at once".into())?;
    world.run_until(ends - 6 * MS)?;
    let id = renew(&mut world, 0, 1);
    run(&mut world, 200)?;
    let answer = told(&world, id);
    ensure(answer == Some(Told::Lost), "stage", || format!("told {answer:?}"))?;
    ensure(!is_held(&world), "C14 ends in time", || "it stands".into())
}

/// Leaders change every 20 s, and the holder of a lease of 30 s is dead.
pub fn leaders_change_faster_than_it_ends() -> Check {
    let mut world = stage(3, 1, 30_000)?;
    gets(&mut world, 0, 1)?;
    let granted = world.now;
    for change in 0..6 {
        let next = granted + (change + 1) * 20_000 * MS;
        if world.run_until_true(next, |world| !is_held(world))? {
            // Half its ttl with one leader, half with the next, and the time of the change.
            let lasted = (world.now - granted) / MS;
            return ensure(lasted < 20_000 + 15_000 + 1_500, "C14 ends in time", || format!("{lasted} ms"));
        }
        hand_over(&mut world, if change % 2 == 0 { 2 } else { 1 })?;
    }
    ensure(false, "C14 ends in time", || "six leaders, and it is still held".into())
}

/// An aged lease is renewed, and the leader dies with the record that says so.
pub fn what_made_it_young_is_lost() -> Check {
    let mut world = stage(4, 1, 3_000)?;
    gets(&mut world, 0, 1)?;
    run(&mut world, 1_700)?;
    let aged = world.witness().store.role("r").is_some_and(|role| role.aged);
    ensure(aged, "stage", || "it is not aged".into())?;
    world.net.dropped = Some(|envelope| matches!(envelope.message, Message::Append { .. }));
    renew(&mut world, 0, 1);
    run(&mut world, 20)?;
    world.crash(0, false);
    world.net.dropped = None;
    let led = world.run_until_true(world.now + 300 * MS, |world| leads(world, 2))?;
    ensure(led, "stage", || "n2 does not lead".into())?;
    run(&mut world, 4_000)?;
    ensure(!is_held(&world), "C14 ends in time", || "nobody renewed it since".into())
}

/// A waiter's caller hangs up between the record that grants the role and its commit: the next waiter soon
/// has the role.
pub fn waiter_is_gone() -> Check {
    let mut world = stage(5, 3, 3_000)?;
    gets(&mut world, 0, 1)?;
    let first = acquire(&mut world, 1, 1, 10_000);
    run(&mut world, 10)?;
    let second = acquire(&mut world, 2, 1, 10_000);
    run(&mut world, 10)?;
    slow_answers(&mut world, 30);
    release(&mut world, 0, 1);
    run(&mut world, 10)?;
    slow_answers(&mut world, 0);
    hang_up(&mut world, first)?;
    run(&mut world, 900)?;
    let answer = told(&world, second);
    let served = matches!(answer, Some(Told::Yours { .. }));
    ensure(served, "C14 nothing for the gone", || format!("the second was told {answer:?}"))
}

/// A waiter's token is revoked while it waits. The release comes right after that in the log, and neither is
/// committed.
pub fn waiter_is_let_in_no_more() -> Check {
    let mut world = stage(16, 3, 3_000)?;
    order(&mut world, access::create(7))?;
    run(&mut world, 50)?;
    gets(&mut world, 0, 1)?;
    let mut wish = world.acquisition(1, "r".into(), Span::millis(10_000), 0, false);
    if let Wish::Acquire { by, .. } = &mut wish {
        *by = Some(TokenId(7));
    }
    let first = world.asks(1, 0, wish, 60_000 * MS);
    run(&mut world, 10)?;
    let second = acquire(&mut world, 2, 1, 10_000);
    run(&mut world, 10)?;
    ensure(told(&world, first).is_none(), "stage", || "its token lets it in".into())?;
    slow_answers(&mut world, 30);
    order(&mut world, Command::revoke_token(TokenId(7)))?;
    release(&mut world, 0, 1);
    run(&mut world, 900)?;
    let answers = (told(&world, first), told(&world, second));
    let right = matches!(answers, (Some(Told::Refused(None)), Some(Told::Yours { .. })));
    ensure(right, "P41 nothing for a token that has ended", || format!("the two were told {answers:?}"))
}

/// A contender asks for the role at the very moment when its holder gives it back: the node judges the two
/// calls together.
pub fn somebody_comes_in_between() -> Check {
    let mut world = stage(17, 3, 3_000)?;
    gets(&mut world, 0, 1)?;
    let first = acquire(&mut world, 1, 1, 10_000);
    run(&mut world, 10)?;
    world.gathers = true;
    let late = acquire(&mut world, 2, 1, 10_000);
    release(&mut world, 0, 1);
    run(&mut world, 200)?;
    let answers = (told(&world, first), told(&world, late));
    let right = matches!(answers, (Some(Told::Yours { .. }), None));
    ensure(right, "P41 nobody passes by", || format!("the first and the late one were told {answers:?}"))
}

fn order(world: &mut World, command: Command) -> Check {
    world.arrives(0, Waiting::Nobody, Call::Write { command: command.into(), key: None })
}

/// The same, and the caller that hung up asks again under the same name before that.
pub fn waiter_asks_again() -> Check {
    let mut world = stage(6, 3, 3_000)?;
    gets(&mut world, 0, 1)?;
    let first = acquire(&mut world, 1, 1, 10_000);
    run(&mut world, 10)?;
    acquire(&mut world, 2, 1, 10_000);
    run(&mut world, 10)?;
    slow_answers(&mut world, 30);
    release(&mut world, 0, 1);
    run(&mut world, 5)?;
    hang_up(&mut world, first)?;
    let again = acquire(&mut world, 1, 1, 0);
    run(&mut world, 900)?;
    // Either the record that ends it was first, and the next waiter has the role, or it was not.
    let answer = told(&world, again);
    let decided = matches!(answer, Some(Told::Yours { .. } | Told::Held));
    ensure(decided && is_held(&world), "C14 nothing for the gone", || format!("it was told {answer:?}"))
}

/// The same, and the caller that asks again has hung up as well, which the node learns when it answers. A
/// record about another lease is under way, so the end of this one has to wait.
pub fn whoever_asks_again_is_gone() -> Check {
    let mut world = stage(6, 4, 3_000)?;
    wants(&mut world, 3, "s");
    gets(&mut world, 3, 1)?;
    run(&mut world, 300)?;
    gets(&mut world, 0, 1)?;
    let first = acquire(&mut world, 1, 1, 10_000);
    let second = acquire(&mut world, 2, 1, 10_000);
    let ages = ends_at(&world, "s") - 1_500 * MS;
    world.run_until(ages - 25 * MS)?;
    slow_answers(&mut world, 30);
    release(&mut world, 0, 1);
    run(&mut world, 1)?;
    hang_up(&mut world, first)?;
    let again = acquire(&mut world, 1, 1, 0);
    world.lessees_mut().gone.insert(again);
    run(&mut world, 900)?;
    let answer = told(&world, second);
    let served = matches!(answer, Some(Told::Yours { .. }));
    ensure(served, "C14 nothing for the gone", || format!("the second was told {answer:?}"))
}

/// The leader freezes. When it thaws, two roles have come to their end, and so has the wait of a contender
/// for one of them. The leader's work on one role must not make it forget the waiter of the other.
pub fn two_fall_free_at_once() -> Check {
    let mut world = stage(8, 4, 1_000)?;
    wants(&mut world, 1, "s");
    wants(&mut world, 3, "s");
    gets(&mut world, 0, 1)?;
    gets(&mut world, 1, 1)?;
    acquire(&mut world, 2, 1, 800);
    let waits = acquire(&mut world, 3, 1, 10_000);
    run(&mut world, 750)?;
    world.hosts[0].paused_until = world.now + 350 * MS;
    run(&mut world, 1_100)?;
    let answer = told(&world, waits);
    let served = matches!(answer, Some(Told::Yours { .. }));
    ensure(served, "C14 the line moves", || format!("whoever waits was told {answer:?}"))
}

/// A contender reads which instance holds the role and under which token, and gives it back, renews it and
/// asks for it in that name.
pub fn who_reads_a_lease_gives_it_back() -> Check {
    let mut world = stage(15, 2, 5_000)?;
    let mut wish = world.acquisition(0, "r".into(), Span::ZERO, 0, false);
    if let Wish::Acquire { claim, .. } = &mut wish {
        Arc::make_mut(claim).secret = Some(SecretHash::of("nobody knows this"));
    }
    let (own, again) = (world.asks(0, 0, wish.clone(), 60_000 * MS), wish);
    run(&mut world, 200)?;
    let Some(Told::Yours { token, .. }) = told(&world, own) else {
        return ensure(false, "stage", || "the role was free".into());
    };
    let instance = again.instance().clone();
    let anybody_else = |again: &Wish| {
        let mut wish = again.clone();
        if let Wish::Acquire { claim, .. } = &mut wish {
            Arc::make_mut(claim).secret = None;
        }
        wish
    };
    let (role, renewed) = (
        Text::from("r"),
        Wish::Renew { role: "r".into(), instance: instance.clone(), token, ttl: None, tie: None },
    );
    for wish in [Wish::Release { role, instance, token }, renewed, anybody_else(&again)] {
        let what = format!("{wish:?}");
        let asked = world.asks(1, 0, wish, 60_000 * MS);
        run(&mut world, 200)?;
        let answer = told(&world, asked);
        let refused = matches!(answer, Some(Told::Refused(None)));
        ensure(refused, "P53 a secret is shown", || format!("{what} was told {answer:?}"))?;
    }
    ensure(is_held(&world), "P53 a secret is shown", || "it has been given back".into())?;
    let asked = world.asks(0, 0, again, 60_000 * MS);
    run(&mut world, 200)?;
    let answer = told(&world, asked);
    ensure(matches!(answer, Some(Told::Yours { .. })), "P53 its holder goes on", || {
        format!("told {answer:?}")
    })
}

/// Under `ack = all` a follower that lags keeps acknowledgements waiting. Meanwhile the record that ends a
/// lease is committed and trimmed from the log: other leases must end all the same.
pub fn an_end_is_trimmed_before_all_have_it() -> Check {
    let mut world = stage_as(10, 1, 1_000, |settings| {
        settings.ack = Ack::All;
        settings.limits.keep = 0;
    })?;
    gets(&mut world, 0, 1)?;
    run(&mut world, 700)?;
    for (from, to) in [(1, 3), (3, 1)] {
        world.net.slow.insert((NodeId(from), NodeId(to)), 300 * MS);
    }
    run(&mut world, 400)?;
    for number in 0..15 {
        register(&mut world, format!("p{number}"), 1_000);
    }
    run(&mut world, 1_500)?;
    world.net.slow.clear();
    run(&mut world, 3_000)?;
    let left = world.witness().store.leases().count();
    ensure(left == 0, "C14 ends in time", || format!("{left} leases are left"))
}

/// A holder's process dies, and the node that served its connection reports that to another node. The waiter
/// has the role long before the ttl is over, and a repeated report does nothing to the new holder.
pub fn a_tied_holder_dies() -> Check {
    let mut world = stage(11, 2, 30_000)?;
    gets(&mut world, 0, 1)?;
    renew_tied(&mut world, 0, 3, 1);
    let waits = acquire(&mut world, 1, 1, 20_000);
    run(&mut world, 100)?;
    world.contender_dies(0);
    untie(&mut world, 0, 3, 1)?;
    run(&mut world, 100)?;
    let answer = told(&world, waits);
    let served = matches!(answer, Some(Told::Yours { .. }));
    ensure(served, "P45 ends with its tie", || format!("whoever waits was told {answer:?}"))?;
    untie(&mut world, 1, 3, 1)?;
    run(&mut world, 100)?;
    ensure(is_held(&world), "P45 ends with its tie", || "of another grant".into())
}

/// A holder goes on under another number, and the leader that knows of it is gone. A late renewal names the
/// first number to the next leader, and the connection of that number has closed.
pub fn an_older_tie_is_named_to_the_next_leader() -> Check {
    let mut world = stage(12, 1, 3_000)?;
    gets(&mut world, 0, 1)?;
    renew_tied(&mut world, 0, 1, 1);
    run(&mut world, 100)?;
    renew_tied(&mut world, 0, 1, 2);
    run(&mut world, 100)?;
    hand_over(&mut world, 2)?;
    names_late(&mut world, 1)?;
    run(&mut world, 20)?;
    untie(&mut world, 0, 2, 1)?;
    run(&mut world, 200)?;
    ensure(is_held(&world), "C14 never early", || "its holder believes".into())?;
    run(&mut world, 6_000)?;
    ensure(!is_held(&world), "C14 ends in time", || "nobody renewed it since".into())
}

/// A renewal that names the first connection, and was sent long ago, arrives at this node.
fn names_late(world: &mut World, node: usize) -> Check {
    let role = world.witness().store.role("r").cloned();
    let (token, instance) = role.map(|role| (role.token, role.claim.instance.clone())).unwrap_or_default();
    let wish = Wish::Renew { role: "r".into(), instance, token, ttl: None, tie: Some(1) };
    let asked = Asked { id: 1_000, who: 0, sent: world.now - 300 * MS, wish, secret: None, via: None };
    world.lease_event(Event::Call { node, asked })
}

/// A holder goes on without its connection, and a late renewal names it again.
pub fn it_is_named_again_too_late() -> Check {
    let mut world = stage(14, 1, 3_000)?;
    gets(&mut world, 0, 1)?;
    renew_tied(&mut world, 0, 1, 1);
    run(&mut world, 100)?;
    renew(&mut world, 0, 1);
    run(&mut world, 100)?;
    names_late(&mut world, 0)?;
    run(&mut world, 20)?;
    untie(&mut world, 0, 2, 1)?;
    run(&mut world, 500)?;
    ensure(is_held(&world), "C14 never early", || "its holder believes".into())
}

/// Another process asks for the role under the name of the earlier one, and renews without a connection. Then
/// a renewal of the earlier process arrives, and a report that its connection has closed.
pub fn a_successor_relies_on_no_connection() -> Check {
    let mut world = stage(13, 1, 3_000)?;
    gets(&mut world, 0, 1)?;
    acquire(&mut world, 0, 1, 0);
    run(&mut world, 1_400)?;
    renew(&mut world, 0, 1);
    run(&mut world, 50)?;
    names_late(&mut world, 0)?;
    run(&mut world, 20)?;
    untie(&mut world, 0, 2, 1)?;
    run(&mut world, 2_000)?;
    ensure(is_held(&world), "C14 never early", || "its holder believes".into())?;
    run(&mut world, 4_000)?;
    ensure(!is_held(&world), "C14 ends in time", || "nobody renewed it since".into())
}

/// A leader is cut off while an end is under way, and leads again later.
pub fn leads_again() -> Check {
    let mut world = stage(7, 1, 1_000)?;
    gets(&mut world, 0, 1)?;
    run(&mut world, 900)?;
    world.reject(0);
    let led = world.run_until_true(world.now + 300 * MS, |world| leads(world, 2))?;
    ensure(led, "stage", || "n2 does not lead".into())?;
    for _ in 0..6 {
        renew(&mut world, 0, 2);
        run(&mut world, 300)?;
    }
    world.net.heal();
    renew(&mut world, 0, 2);
    run(&mut world, 500)?;
    hand_over(&mut world, 1)?;
    run(&mut world, 4_000)?;
    ensure(!is_held(&world), "C14 ends in time", || "nobody renewed it since".into())
}

/// The answer to a renewal waits for its holder, which is frozen.
pub fn holder_is_frozen() -> Check {
    frozen_holder(false)
}

/// The same holder, with a bug.
pub fn holder_counts_from_the_answer() -> Check {
    frozen_holder(true)
}

fn frozen_holder(counts_from_answers: bool) -> Check {
    let mut world = stage(9, 1, 1_000)?;
    world.lessees_mut().count_from_answers = counts_from_answers;
    gets(&mut world, 0, 1)?;
    renew(&mut world, 0, 1);
    world.contender(0).frozen_until = world.now + 900 * MS;
    run(&mut world, 2_500)?;
    ensure(!is_held(&world), "C14 ends in time", || "nobody renewed it since".into())
}

#[test]
fn all_pass() {
    let all: [(&str, crate::scenarios::Scenario); 18] = [
        ("who_reads_a_lease_gives_it_back", who_reads_a_lease_gives_it_back),
        ("it_is_named_again_too_late", it_is_named_again_too_late),
        ("a_successor_relies_on_no_connection", a_successor_relies_on_no_connection),
        ("a_tied_holder_dies", a_tied_holder_dies),
        ("an_older_tie_is_named_to_the_next_leader", an_older_tie_is_named_to_the_next_leader),
        ("holder_is_frozen", holder_is_frozen),
        ("two_fall_free_at_once", two_fall_free_at_once),
        ("an_end_is_trimmed_before_all_have_it", an_end_is_trimmed_before_all_have_it),
        ("deposed_leader_is_asked_to_renew", deposed_leader_is_asked_to_renew),
        ("renewal_while_the_end_is_under_way", renewal_while_the_end_is_under_way),
        ("leaders_change_faster_than_it_ends", leaders_change_faster_than_it_ends),
        ("what_made_it_young_is_lost", what_made_it_young_is_lost),
        ("waiter_is_gone", waiter_is_gone),
        ("waiter_is_let_in_no_more", waiter_is_let_in_no_more),
        ("somebody_comes_in_between", somebody_comes_in_between),
        ("waiter_asks_again", waiter_asks_again),
        ("whoever_asks_again_is_gone", whoever_asks_again_is_gone),
        ("leads_again", leads_again),
    ];
    for (name, scenario) in all {
        if let Err(violation) = crate::guarded::guarded(scenario) {
            panic!("{name}: {}: {}", violation.checker, violation.what);
        }
    }
}
