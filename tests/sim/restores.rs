//! Restores by clients and operators: all data is replaced by a document, step by step.

use eldest::protocol::ServiceChange;
use eldest::replica::{Answer, Call, CatchUp, Denied};
use eldest::store::{self, LeaseOperation, Operation, Store, TOKEN_FLOOR_MOST, restore_steps};
use eldest::types::{Entry, Epoch, Format, NodeId, Owner, Payload, Position, Record, Span, Stamp, WallTime};

use crate::calls::Waiting;
use crate::checks::restored::content;
use crate::checks::{Check, ensure};
use crate::commands::{Ask, END_OF_RESTORE, PART_OF_RESTORE};
use crate::membership;
use crate::rng::Rng;
use crate::stage::{MS, run, stage};
use crate::world::{Event, World};

/// An operator that replaces all data now and then, in seeds whose clients do not.
#[derive(Debug)]
pub struct Operator {
    rng: Rng,
    /// Drawn separately, so that the other draws stay what they are.
    floors: Rng,
    restores: u64,
    /// The contents that the data had, or was to have.
    documents: Vec<String>,
}

impl Operator {
    pub fn new(rng: Rng) -> Operator {
        let floors = rng.clone().fork();
        Operator { rng, floors, restores: 0, documents: Vec::new() }
    }
}

/// A document of several parts, so that its restore has steps.
pub fn document(mark: u64, docs: &[String]) -> String {
    let election = format!(
        "{{\"name\":\"e{mark}\",\"choices\":[\"a\",\"b\"],\"votes\":[{{\"voter_name\":\"u{mark}\",\"choice\":\"a\"}}]}}"
    );
    let docs = docs.join(",");
    format!("{{\"users\":[{{\"name\":\"u{mark}\"}}],\"elections\":[{election}],\"docs\":[{docs}]}}")
}

pub fn call(document: &str, number: u64) -> Call {
    let steps = restore_steps(document, number).expect("a document of these clients");
    Call::Restore(steps)
}

/// The number of the restore that a step belongs to.
pub fn number_of(step: &str) -> Option<u64> {
    step.split([':', ',']).nth(1)?.parse().ok()
}

pub fn is_step(record: &Record) -> bool {
    let steps = [PART_OF_RESTORE, END_OF_RESTORE];
    matches!(&record.entry, Entry::Client(payload) if steps.contains(&payload.kind))
}

impl World {
    /// A restore of this document is about to be asked for.
    pub fn restore_is_asked(&mut self, number: u64, document: &str) {
        let store = Store::from_document(document, Position::ZERO, Stamp::default());
        self.checks.restored.asked(number, &store.expect("a document of these clients"));
    }

    /// Whether the node is taking in a document. It takes in one at a time: the next one is refused before it
    /// reaches the replica.
    pub fn takes_in_a_document(&self, node: usize) -> bool {
        let takes = |waiting: &Waiting| match waiting {
            Waiting::Client(call) => matches!(call.ask, Ask::Command(command) if command.is_restore()),
            Waiting::Operator(_) => true,
            _ => false,
        };
        let host = &self.hosts[node];
        host.calls.values().any(takes) || host.inbox.iter().any(|(waiting, _)| takes(waiting))
    }

    pub fn operator_wakes_within(&mut self, us: u64) {
        if let Some(operator) = &mut self.operator {
            let pause = operator.rng.below(us);
            self.after(pause, Event::OperatorRestores);
        }
    }

    /// Restores from a document that is made up, or from an earlier state.
    pub fn operator_restores(&mut self) -> Check {
        let leader = self.hosts.iter().position(|host| host.core().is_some_and(|core| core.is_open()));
        let Some((node, operator)) = leader.zip(self.operator.as_mut()) else { return Ok(()) };
        operator.restores += 1;
        let number = operator.restores;
        let text = match operator.rng.chance(500) {
            false if !operator.documents.is_empty() => operator.rng.pick(&operator.documents).clone(),
            _ => document(number, &[format!("{{\"key\":\"k\",\"value\":{number}}}")]),
        };
        let mut now = String::new();
        self.hosts[node].state.store.to_document(&mut now).expect("writing to a String cannot fail");
        operator.documents.push(now);
        if self.takes_in_a_document(node) {
            return Ok(());
        }
        let floor = self.floor_at(node);
        self.note(|| format!("restore {number} at n{}, floor {floor:?}", node + 1));
        self.restore_is_asked(number, &text);
        self.checks.restored.under(number, floor.unwrap_or_default());
        let steps = restore_steps(&text, number).expect("a document of these clients");
        let is_foreign = number % 3 == 0;
        let steps =
            store::Steps { guard: store::Guard { floor, is_foreign, ..store::Guard::default() }, ..steps };
        self.arrives(node, Waiting::Operator(number), Call::Restore(steps))
    }

    /// Now and then an operator gives a token floor: a number ahead of the clock or behind it, by up to a
    /// second.
    fn floor_at(&mut self, node: usize) -> Option<u64> {
        let host = &self.hosts[node];
        let last = host.state.store.last_token().max(host.clock.now(self.now).wall.0);
        let rng = &mut self.operator.as_mut()?.floors;
        let floor = rng.chance(300).then(|| (last + rng.below(2_000 * MS)).saturating_sub(1_000 * MS));
        floor.map(|floor| floor.clamp(1, TOKEN_FLOOR_MOST))
    }

    pub fn operator_answered(&mut self, number: u64, answer: &Result<Answer, Denied>) -> Check {
        self.note(|| format!("restore {number}: {:?}", answer.as_ref().map(|_| ())));
        match answer {
            Ok(Answer::Written(written)) => self.checks.restored.acknowledged(number, written.position.index),
            Ok(_) | Err(Denied::Unknown) => Ok(()),
            Err(_) => self.checks.restored.refused(number),
        }
    }

    /// Leases are counted from the start again: each may take its ttl once more.
    pub fn witness_restore(&mut self) {
        self.checks.late.leader_changed();
        self.checks.returned.restored(self.now);
    }

    /// A reader that has nothing, and asks from the beginning, gets all that there is (P47).
    pub fn blank_readers_get_all(&mut self) -> Check {
        const NAME: &str = "P47 a blank reader gets everything";
        for host in &self.hosts {
            let Some(replica) = host.replica.as_ref().filter(|replica| replica.core().is_open()) else {
                continue;
            };
            let Ok(CatchUp { whole, records }) = replica.catch_up(0) else { continue };
            let mergeable = replica.core().settings().is_available();
            let nothing = if mergeable { Store::mergeable() } else { Store::default() };
            let mut store = whole.map_or(nothing, |whole| whole.store);
            for record in &records {
                let follows = record.index() == store.applied().index + 1;
                ensure(follows, NAME, || format!("{} gives {record} after {}", host.id, store.applied()))?;
                store.apply(record).expect("a record that this replica has applied");
            }
            let (given, all) = (content(&store), content(replica.committed()));
            ensure(given == all, NAME, || format!("{} gives {given:?} and has {all:?}", host.id))?;
        }
        Ok(())
    }

    /// Once all calls are answered, no restore is half-way.
    pub fn no_restore_is_left(&mut self) -> Check {
        let is_left = |world: &World, node: &usize| {
            let host = &world.hosts[*node];
            !host.retired && host.state.store.is_restoring() && membership::belongs(world, *node)
        };
        let left = |world: &World| (0..world.hosts.len()).find(|node| is_left(world, node));
        let until = self.now + self.hosts[0].settings.timing.election_timeout().0;
        self.run_until_true(until, |world| left(world).is_none())?;
        let left = left(self).map(|node| self.hosts[node].id);
        ensure(left.is_none(), "P26 nothing is left half-way", || {
            format!("{left:?} has parts of a document, and takes no snapshot")
        })
    }
}

/// The next step is refused, and so is the record that gives up the restore.
pub fn service_goes_down_half_way() -> Check {
    let mut world = stage(3, 1, |_| {})?;
    let text = document(1, &[]);
    world.restore_is_asked(1, &text);
    let down = ServiceChange::Down { owner: Owner::Operator, ttl: Span::millis(300), reason: "".into() };
    let restore = (Waiting::Operator(1), call(&text, 1));
    world.calls(0, vec![restore, (Waiting::Nobody, Call::Service(down))])?;
    run(&mut world, 100)?;
    let began = world.hosts[0].core().is_some_and(|core| core.log().records().any(is_step));
    ensure(began, "stage", || "the service came too early".into())?;
    run(&mut world, 1_000)?;
    world.no_restore_is_left()
}

/// The service goes down half-way and stays down: what is staged is removed all the same.
pub fn service_stays_down() -> Check {
    let mut world = stage(3, 1, |_| {})?;
    let text = document(1, &[]);
    world.restore_is_asked(1, &text);
    let down = ServiceChange::Down { owner: Owner::Operator, ttl: Span::millis(60_000), reason: "".into() };
    let restore = (Waiting::Operator(1), call(&text, 1));
    world.calls(0, vec![restore, (Waiting::Nobody, Call::Service(down))])?;
    run(&mut world, 100)?;
    let began = world.hosts[0].core().is_some_and(|core| core.log().records().any(is_step));
    ensure(began, "stage", || "the service came too early".into())?;
    world.no_restore_is_left()?;
    let down = world.hosts[0].core().is_some_and(|core| core.service_is_down());
    ensure(down, "stage", || "the service is up".into())
}

/// Disks are slow, and the document has many parts: after ten minutes the caller learns that nothing is
/// replaced, and nothing is.
pub fn a_restore_takes_too_long() -> Check {
    const PARTS: usize = 900;
    let mut world = stage(3, 1, |_| {})?;
    for node in [1, 2] {
        (world.hosts[node].sync_us, world.hosts[node].steady) = (800 * MS, true);
    }
    let step = |kind: u16, text: String| Payload { kind, format: Format(1), call: None, text: text.into() };
    let part = |number: usize| {
        let data = format!("{{\"docs\":[{{\"key\":\"k{number}\",\"value\":1}}]}}");
        step(PART_OF_RESTORE, format!("{{\"restore\":1,\"part\":{number},\"data\":{data}}}"))
    };
    let end = step(END_OF_RESTORE, format!("{{\"restore\":1,\"parts\":{PARTS}}}"));
    let steps: Vec<Payload> = (0..PARTS).map(part).chain([end]).collect();
    world.calls(0, vec![(Waiting::Operator(1), Call::Restore(steps.into()))])?;
    run(&mut world, 9 * 60 * 1_000)?;
    let owed = |world: &World| !world.hosts[0].calls.is_empty();
    ensure(owed(&world), "stage", || "it ends too early".into())?;
    run(&mut world, 2 * 60 * 1_000)?;
    ensure(!owed(&world), "P46 an attempt has an end", || "nobody gives it up".into())?;
    world.no_restore_is_left()
}

/// P57: the backup has given tokens that this cluster's clock has not reached.
pub fn a_backup_is_ahead() -> Check {
    let mut world = stage(3, 1, |_| {})?;
    let text = document(1, &[]);
    world.restore_is_asked(1, &text);
    let token = WallTime::MOST.0 - 1;
    let steps = restore_steps(&text, 1).expect("a document of these clients");
    let steps = store::Steps { guard: store::Guard { token, ..store::Guard::default() }, ..steps };
    world.calls(0, vec![(Waiting::Operator(1), Call::Restore(steps))])?;
    run(&mut world, 1_000)?;
    let began = world.hosts[0].core().is_some_and(|core| core.log().records().any(is_step));
    ensure(!began, "I6 tokens rise", || format!("what gave the token {token} is restored behind it"))
}

/// C15: a cluster is made again from a backup that is older than the last grants. The resource that checks
/// tokens has seen the later ones.
pub fn tokens_after_a_restore() -> Check {
    let mut lost = Store::default();
    for second in 1..20 {
        grant(&mut lost, second);
    }
    let mut restored = Store::default();
    grant(&mut restored, 25);
    let (before, after) = (lost.last_token(), restored.last_token());
    ensure(after > before, "I6 tokens rise", || format!("{after} is granted after {before}"))
}

/// The role goes to another instance, at this second by the wall clock.
fn grant(store: &mut Store, second: u64) {
    let (instance, ttl) = (format!("i{second}").into(), Span::millis(1_000));
    let claim = store::RoleClaim { instance, ttl, address: None, metadata: None, secret: None };
    let operation = LeaseOperation::Acquire { role: "r".into(), claim: claim.into(), elect: true };
    let command = store::Command::Single(Operation::Lease(operation.into()));
    let position = Position::new(Epoch::new(1, NodeId(1)), store.applied().index + 1);
    let stamp = Stamp { wall: WallTime(1_700_000_000_000_000 + second), cluster: Span(second) };
    let record = Record { position, stamp, entry: Entry::Client(command.to_payload(None)) };
    let applied = store.apply(&record).expect("a record of this scenario");
    assert!(applied.outcome.is_ok(), "nothing speaks against it");
}

#[test]
fn a_hold_of_the_service_breaks_a_restore_off() {
    assert_eq!(crate::guarded::guarded(service_goes_down_half_way), Ok(()));
    assert_eq!(crate::guarded::guarded(service_stays_down), Ok(()));
}

#[test]
fn a_backup_that_is_ahead_is_refused() {
    assert_eq!(crate::guarded::guarded(a_backup_is_ahead), Ok(()));
}

#[test]
fn a_restore_has_an_end() {
    assert_eq!(crate::guarded::guarded(a_restore_takes_too_long), Ok(()));
}
