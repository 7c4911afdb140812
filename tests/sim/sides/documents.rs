//! Documents that are taken in while sides meet (P46).

use eldest::protocol::ServiceChange;
use eldest::replica::Call;
use eldest::store::merge_steps;
use eldest::types::{Owner, Span};

use super::scenarios::split_in_two;
use super::stage::{get, has, heal, led, run, set, split, stage};
use crate::calls::Waiting;
use crate::checks::{Check, ensure};
use crate::restores;

/// The younger side has staged a part of a document when the service goes down and the sides meet. The staged
/// part is removed, and keeps no side from merging.
pub fn a_document_is_staged() -> Check {
    let mut world = stage(3, 1)?;
    split(&mut world, &[&[1], &[2, 3]]);
    led(&mut world, &[(1, &[]), (2, &[3])])?;
    set(&mut world, 1, "own1", "1")?;
    set(&mut world, 2, "own2", "2")?;
    let text = restores::document(1, &[]);
    world.restore_is_asked(1, &text);
    let down = ServiceChange::Down { owner: Owner::Operator, ttl: Span::millis(3_000), reason: "".into() };
    let calls = [restores::call(&text, 1), Call::Service(down)];
    world.calls(1, calls.map(|call| (Waiting::Nobody, call)).into())?;
    run(&mut world, 100)?;
    let began = world.hosts[1].core().is_some_and(|core| core.log().records().any(restores::is_step));
    ensure(began, "stage", || "the service came too early".into())?;
    heal(&mut world)?;
    world.no_restore_is_left()?;
    has(&world, "own1", Some("1"))?;
    has(&world, "own2", Some("2"))
}

/// An operator merges a document in on either side while the sides meet: all of it is there in the end, or
/// nothing.
pub fn documents_are_merged_in() -> Check {
    let document = |mark: &str| {
        let docs = ["a", "b"].map(|key| format!("{{\"key\":\"{mark}/{key}\",\"value\":1}}"));
        format!("{{\"users\":[{{\"name\":\"{mark}\"}}],\"docs\":[{}]}}", docs.join(","))
    };
    for pause in (0..2_000).step_by(125) {
        let mut world = split_in_two(17)?;
        world.net.heal();
        run(&mut world, pause)?;
        for (node, number) in [(0, 1), (1, 2)] {
            let steps = merge_steps(&document(&format!("m{number}")), number).expect("a good document");
            world.calls(node, vec![(Waiting::Nobody, Call::Restore(steps))])?;
        }
        heal(&mut world)?;
        world.no_restore_is_left()?;
        for mark in ["m1", "m2"] {
            let found = ["a", "b"].map(|key| get(&world, 1, &format!("{mark}/{key}")).is_some());
            let user = world.side(0).store.user(mark).is_some();
            ensure(found == [user, user], "P46 a document is whole", || {
                format!("{mark}: {found:?}, {user}")
            })?;
        }
        let owed = world.hosts.iter().find(|host| !host.calls.is_empty()).map(|host| host.id);
        ensure(owed.is_none(), "P46 an attempt has an end", || format!("{owed:?} owes an answer"))?;
    }
    Ok(())
}

#[test]
fn sides_that_take_documents_in_become_one() {
    for scenario in [a_document_is_staged, documents_are_merged_in] {
        assert_eq!(crate::guarded::guarded(scenario), Ok(()));
    }
}
