//! Roles and processes: the grants, their tokens, and the result when sides meet.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::rng::Rng;
use super::sides::{Side, meet};
use super::*;
use crate::types::{LeaseName, Text};

pub fn text(name: &str) -> Text {
    Text::from(name)
}

pub fn lease_command(operation: LeaseOperation) -> Command {
    Command::Single(Operation::Lease(operation.into()))
}

pub fn claim(instance: &str, ttl_ms: u64) -> Arc<RoleClaim> {
    RoleClaim {
        instance: text(instance),
        ttl: Span::millis(ttl_ms),
        address: None,
        metadata: None,
        secret: None,
    }
    .into()
}

pub fn acquire(role: &str, instance: &str) -> Command {
    let claim = claim(instance, 30_000);
    lease_command(LeaseOperation::Acquire { role: text(role), claim, elect: false })
}

pub fn elect(role: &str, instance: &str) -> Command {
    let claim = claim(instance, 30_000);
    lease_command(LeaseOperation::Acquire { role: text(role), claim, elect: true })
}

pub fn release(role: &str, instance: &str, token: u64) -> Command {
    let (role, instance) = (text(role), text(instance));
    lease_command(LeaseOperation::Release { role, instance, token, secret: None })
}

pub fn register(id: &str, identifier: &str) -> Command {
    let (identifier, ttl) = (text(identifier), Span::millis(45_000));
    let process =
        NewProcess { identifier, role: None, capabilities: None, metadata: None, ttl, secret: None };
    lease_command(LeaseOperation::Register { id: text(id), process: process.into() })
}

pub fn role(name: &str) -> LeaseName {
    LeaseName::Role(text(name))
}

impl Bench {
    /// The lease events of a command, or the reason why it was rejected.
    pub fn lease(&mut self, command: &Command) -> Result<Vec<LeaseEvent>, Reason> {
        let applied = self.apply(command, None);
        assert_eq!(applied.changes.is_empty(), applied.outcome.is_err());
        applied.outcome.map(|_| applied.events).map_err(|rejection| rejection.reason)
    }

    pub fn token(&self, name: &str) -> u64 {
        self.store.role(name).map_or(0, |role| role.token)
    }
}

fn acquired(name: &str, instance: &str, token: u64) -> LeaseEvent {
    LeaseEvent::RoleAcquired { role: text(name), instance: text(instance), token }
}

fn lost(name: &str, instance: &str, token: u64, why: Ended) -> LeaseEvent {
    LeaseEvent::RoleLost { role: text(name), instance: text(instance), token, why }
}

#[test]
fn a_role_has_one_holder_and_its_token_rises() {
    let mut bench = Bench::new();
    let first = bench.now.wall.0;
    assert_eq!(bench.lease(&acquire("r", "a")), Ok(vec![acquired("r", "a", first)]));
    assert_eq!(bench.lease(&acquire("r", "b")), Err(Reason::RoleHeld { role: text("r") }));
    assert_eq!(bench.lease(&acquire("r", "a")), Err(Reason::Unchanged));
    let not_its = Err(Reason::LeaseLost { role: text("r") });
    assert_eq!(bench.lease(&release("r", "a", first + 1)), not_its);
    assert_eq!(bench.lease(&release("r", "b", first)), not_its);
    let released = lost("r", "a", first, Ended::Released);
    assert_eq!(bench.lease(&release("r", "a", first)), Ok(vec![released]));
    assert_eq!(bench.lease(&release("r", "a", first)), not_its);
    // The clock stands still, and the token increases anyway.
    assert_eq!(bench.lease(&acquire("r", "a")), Ok(vec![acquired("r", "a", first + 1)]));
    let events = vec![lost("r", "a", first + 1, Ended::Replaced), acquired("r", "b", first + 2)];
    assert_eq!(bench.lease(&elect("r", "b")), Ok(events));
    assert_eq!(bench.lease(&elect("r", "b")), Err(Reason::Unchanged));
    bench.pass(Span::millis(7));
    bench.lease(&elect("r", "c")).expect("named");
    assert_eq!(bench.token("r"), bench.now.wall.0);
}

#[test]
fn what_a_holder_says_of_itself_may_change_and_its_ttl_only_grow() {
    let mut bench = Bench::new();
    bench.lease(&acquire("r", "a")).expect("free");
    let again = |ttl_ms, metadata: &str| {
        let claim = RoleClaim { metadata: Some(text(metadata)), ..RoleClaim::clone(&claim("a", ttl_ms)) };
        lease_command(LeaseOperation::Acquire { role: text("r"), claim: claim.into(), elect: false })
    };
    let token = bench.token("r");
    assert_eq!(bench.lease(&again(5_000, "1")), Ok(Vec::new()), "nobody lost or got anything");
    let held = bench.store.role("r").cloned().expect("held");
    assert_eq!((held.token, held.claim.ttl), (token, Span::millis(30_000)));
    assert_eq!(held.claim.metadata.as_deref(), Some("1"));
    assert_eq!(bench.lease(&again(5_000, "1")), Err(Reason::Unchanged));
    bench.lease(&again(60_000, "1")).expect("longer");
    assert_eq!(bench.store.role("r").map(|held| held.claim.ttl), Some(Span::millis(60_000)));
}

#[test]
fn an_end_is_for_its_token_only() {
    let mut bench = Bench::new();
    bench.lease(&acquire("r", "a")).expect("free");
    bench.lease(&register("p", "cms")).expect("new");
    let (old, process) = (bench.token("r"), bench.store.process("p").map_or(0, |process| process.token));
    bench.lease(&release("r", "a", old)).expect("its own");
    bench.lease(&acquire("r", "b")).expect("free");
    let name = LeaseName::Process(text("p"));
    let leases = vec![(role("r"), old), (name, process), (role("gone"), 1)];
    let events = bench.lease(&lease_command(LeaseOperation::End { leases: leases.clone() })).expect("one");
    assert!(matches!(&events[..], [LeaseEvent::ProcessRemoved { why: Ended::Expired, .. }]), "{events:?}");
    assert!(bench.store.role("r").is_some() && bench.store.process("p").is_none());
    assert_eq!(bench.lease(&lease_command(LeaseOperation::End { leases })), Err(Reason::Unchanged));
}

#[test]
fn a_lease_ages_and_grows_young_again() {
    let mut bench = Bench::new();
    bench.lease(&acquire("r", "a")).expect("free");
    let leases = vec![(role("r"), bench.token("r"))];
    let age = |aged: &HeldLeases, renewed: &HeldLeases| {
        lease_command(LeaseOperation::Age { aged: aged.clone(), renewed: renewed.clone() })
    };
    let none = HeldLeases::new();
    assert_eq!(bench.lease(&age(&none, &leases)), Err(Reason::Unchanged));
    bench.lease(&age(&leases, &none)).expect("young");
    assert!(bench.store.lease(&role("r")).is_some_and(|lease| lease.aged));
    assert_eq!(bench.lease(&age(&leases, &none)), Err(Reason::Unchanged));
    bench.lease(&age(&none, &leases)).expect("aged");
    assert!(bench.store.lease(&role("r")).is_some_and(|lease| !lease.aged));
}

#[test]
fn a_process_keeps_its_place_when_it_comes_again() {
    let mut bench = Bench::new();
    let events = bench.lease(&register("p", "cms")).expect("new");
    assert!(matches!(&events[..], [LeaseEvent::ProcessRegistered { .. }]));
    assert_eq!(bench.lease(&register("p", "cms")), Err(Reason::Unchanged));
    let before = bench.store.process("p").cloned().expect("there");
    bench.lease(&register("p", "other")).expect("another name");
    let now = bench.store.process("p").cloned().expect("there");
    assert_eq!((now.token, now.since), (before.token, before.since));
    assert_eq!(&*now.new.identifier, "other");
    let events = bench.lease(&Command::remove_process(text("p"), None)).expect("there");
    assert!(matches!(&events[..], [LeaseEvent::ProcessRemoved { why: Ended::Removed, .. }]));
    let missing = bench.lease(&Command::remove_process(text("p"), None));
    assert!(matches!(missing, Err(Reason::NotFound { thing: Thing::Process, .. })));
}

fn describe(role: Option<&str>, metadata: &str, ttl_ms: u64) -> Arc<NewProcess> {
    let (capabilities, metadata) = (Some(text(r#"["gpu"]"#)), Some(text(metadata)));
    let (identifier, ttl) = (text("cms"), Span::millis(ttl_ms));
    NewProcess { identifier, role: role.map(text), capabilities, metadata, ttl, secret: None }.into()
}

#[test]
fn a_process_that_says_something_else_of_itself_is_news() {
    let mut bench = Bench::new();
    let mut register = |process: Arc<NewProcess>| {
        bench.lease(&lease_command(LeaseOperation::Register { id: text("p"), process }))
    };
    register(describe(Some("master"), "1", 45_000)).expect("new");
    // No part of the description has changed that other clients would look up.
    assert_eq!(register(describe(Some("master"), "1", 60_000)), Ok(Vec::new()));
    let told = |events: Result<Vec<LeaseEvent>, Reason>| match &events.expect("changed")[..] {
        [event @ LeaseEvent::ProcessChanged { .. }] => event.members(),
        events => panic!("{events:?}"),
    };
    assert_eq!(
        told(register(describe(Some("slave"), "1", 60_000))),
        r#","process":"p","identifier":"cms","role":"slave","previous_role":"master","capabilities":["gpu"],"metadata":1"#
    );
    assert_eq!(
        told(register(describe(None, r#"{"n":2}"#, 60_000))),
        r#","process":"p","identifier":"cms","previous_role":"slave","capabilities":["gpu"],"metadata":{"n":2}"#
    );
    let (identifier, ttl) = (text("other"), Span::millis(60_000));
    let bare = NewProcess { identifier, role: None, capabilities: None, metadata: None, ttl, secret: None };
    assert_eq!(told(register(bare.into())), r#","process":"p","identifier":"other""#);
}

/// Processes and leases stay through a restore, whatever happens to the data.
#[test]
fn a_restore_takes_nothing_from_those_who_hold() {
    let mut bench = Bench::new();
    bench.lease(&acquire("r", "a")).expect("free");
    bench.ok("PutDoc", r#"{"key":"k","value":1}"#);
    let (token, last) = (bench.token("r"), bench.store.last_token());
    for step in restore_steps("{}", 1).expect("a document").steps {
        bench.apply_entry(Entry::Client(step));
    }
    assert!(bench.store.doc("k").is_none());
    assert_eq!((bench.token("r"), bench.store.last_token()), (token, last));
    assert_eq!(load::reloaded(&bench.store), bench.store);
}

impl Side {
    pub fn lease(&mut self, command: &Command) -> Vec<LeaseEvent> {
        self.apply(Entry::Client(command.to_payload(None))).0.events
    }

    fn holder(&self, name: &str) -> Option<String> {
        self.store.role(name).map(|role| role.claim.instance.to_string())
    }
}

#[test]
fn the_elder_sides_holder_stays() {
    let mut sides = Side::group(&[1, 2], |side| {
        side.lease(&acquire("before", "x"));
        side.lease(&acquire("expired", "x"));
    });
    sides[0].lease(&acquire("both", "a"));
    sides[1].lease(&acquire("both", "b"));
    sides[1].lease(&acquire("younger", "b"));
    // On the younger side the holder cannot be reached, so another instance takes its place.
    sides[1].lease(&elect("before", "y"));
    let token = sides[1].store.role("expired").map_or(0, |role| role.token);
    sides[1].lease(&lease_command(LeaseOperation::End { leases: vec![(role("expired"), token)] }));
    let (before, own) = (sides[1].store.clone(), sides[0].store.role("both").map_or(0, |role| role.token));
    assert_eq!(meet(&mut sides, 0, 1), 0, "leases are in no journal");
    for side in &sides {
        side.check();
        let holders = ["both", "younger", "before", "expired"].map(|name| side.holder(name));
        assert_eq!(holders, [Some("a".into()), Some("b".into()), Some("x".into()), Some("x".into())]);
    }
    let changed: Vec<Key> = sides[1].store.entries().map(|(key, _)| key).collect();
    let events = sides[1].store.lease_events_since(&before, &changed);
    assert!(events.contains(&acquired("both", "a", own)), "{events:?}");
    let ended = |event: &LeaseEvent| matches!(event, LeaseEvent::RoleLost { why: Ended::Merged, .. });
    assert_eq!(events.iter().filter(|event| ended(event)).count(), 2, "both and before: {events:?}");
}

/// A role that one side released, unknown to the other side, stays released.
#[test]
fn a_release_survives_the_heal() {
    let sides = Side::group(&[1, 2], |side| drop(side.lease(&acquire("r", "x"))));
    let token = sides[1].store.role("r").map_or(0, |role| role.token);
    let mut elder = sides.clone();
    elder[0].lease(&release("r", "x", token));
    meet(&mut elder, 0, 1);
    assert_eq!((elder[0].holder("r"), elder[1].holder("r")), (None, None));
}

/// The decision of a merge about a lease keeps no rival. The lease is rewritten instead: otherwise a state that knows which
/// value is older would not receive the decision.
#[test]
fn what_a_meeting_decided_about_a_lease_is_told_to_all() {
    let mut sides = Side::group(&[1, 2, 3], |_| ());
    // n1 grants the role. n3 learns of the grant and ends it. n2 has seen neither, and grants the role itself.
    sides[0].lease(&acquire("r", "a"));
    let token = sides[0].store.role("r").map_or(0, |role| role.token);
    let leader = sides[0].clone();
    sides[2].follow(&leader);
    sides[2].lease(&release("r", "a", token));
    sides[1].lease(&acquire("r", "b"));
    // n1 keeps its grant. n2 learns that n1's grant had ended. Then n1 and n2 meet.
    let second = sides[1].clone();
    sides[0].merge(&second);
    let third = sides[2].clone();
    sides[1].merge(&third);
    meet(&mut sides, 0, 1);
    assert_eq!(sides[0].holder("r"), sides[1].holder("r"));
    assert_eq!(sides[0].store.digest(), sides[1].store.digest());
}

/// A process from before the split registers with different descriptions on the two sides.
#[test]
fn a_process_that_a_meeting_changed_is_news() {
    let as_role = |role| {
        lease_command(LeaseOperation::Register { id: text("p"), process: describe(Some(role), "1", 45_000) })
    };
    let mut sides = Side::group(&[1, 2], |side| drop(side.lease(&as_role("slave"))));
    sides[0].lease(&as_role("master"));
    let before = sides[1].store.clone();
    meet(&mut sides, 0, 1);
    let key = [Key::Process(text("p"))];
    let events = sides[1].store.lease_events_since(&before, &key);
    assert!(matches!(&events[..], [LeaseEvent::ProcessChanged { .. }]), "{events:?}");
    assert_eq!(sides[1].store.lease_events_since(&sides[0].store, &key), []);
}

/// Splits and merges at random: nodes agree to the bit, and no token is granted twice.
#[test]
fn leases_come_through_any_meetings() {
    for seed in 0..150 {
        let mut rng = Rng::new(seed);
        let mut sides = Side::group(&[1, 2, 3], |_| ());
        let mut given: BTreeMap<u64, (Text, Text)> = BTreeMap::new();
        for _ in 0..60 {
            let (one, other) = (rng.below(3), rng.below(3));
            if rng.one_in(6) && one != other {
                meet(&mut sides, one, other);
                sides[one].check();
                sides[other].check();
                continue;
            }
            sides[one].now.wall.0 += 1 + rng.below(3_000) as u64;
            let command = any_lease(&mut rng, &sides[one].store);
            for event in sides[one].lease(&command) {
                let LeaseEvent::RoleAcquired { role, instance, token } = event else { continue };
                let twice = given.insert(token, (role, instance));
                assert_eq!(twice, None, "seed {seed}: token {token} is given twice");
            }
        }
        for (one, other) in [(1, 2), (0, 1), (0, 2), (0, 1)] {
            meet(&mut sides, one, other);
        }
        let digests: Vec<u64> = sides.iter().map(|side| side.store.digest()).collect();
        assert!(digests[0] == digests[1], "seed {seed}");
        sides.iter().for_each(Side::check);
    }
}

/// A document that ends with a lease, by its ttl, by both, or not at all.
fn any_doc(rng: &mut Rng, store: &Store) -> Command {
    let (key, value) = (rng.pick(&["k", "l", "a/m", "a/n"]), rng.below(3));
    let held: Vec<(LeaseName, u64)> = store
        .leases()
        .filter(|(name, _)| !matches!(name, LeaseName::Doc(_)))
        .map(|(name, lease)| (name, lease.token))
        .collect();
    let with = match held.get(rng.below(held.len() + 1)) {
        Some((name, token)) => format!(r#","with":"{}","token":{token}"#, lease_path(name)),
        None => String::new(),
    };
    let ttl = rng.pick(&["", r#","ttl_ms":5000"#]);
    match rng.one_in(5) && store.doc(key).is_some() {
        true => command("DeleteDoc", &format!(r#"{{"key":"{key}"}}"#)),
        false => command("PutDoc", &format!(r#"{{"key":"{key}","value":{value}{ttl}{with}}}"#)),
    }
}

fn any_lease(rng: &mut Rng, store: &Store) -> Command {
    let (name, instance) = (rng.pick(&["r", "s", "t"]), rng.pick(&["a", "b", "c"]));
    let leases: HeldLeases = store.leases().map(|(name, lease)| (name, lease.token)).collect();
    match rng.below(12) {
        8.. => any_doc(rng, store),
        0..3 => acquire(name, instance),
        3 => elect(name, instance),
        4 => release(name, instance, store.role(name).map_or(1, |role| role.token)),
        5 => register(instance, name),
        6 => lease_command(LeaseOperation::End { leases: leases.into_iter().take(rng.below(3)).collect() }),
        _ => lease_command(match rng.one_in(2) {
            true => LeaseOperation::Age { aged: leases, renewed: HeldLeases::new() },
            false => LeaseOperation::Age { aged: HeldLeases::new(), renewed: leases },
        }),
    }
}
