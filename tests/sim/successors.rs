//! I6, P57: a cluster is lost, together with what it granted after its last backup, and another one is made
//! from that backup, under its own clocks. A resource that checks tokens has seen all of them.

use std::collections::BTreeSet;

use eldest::protocol::Mode;
use eldest::replica::{Acquire, Call};
use eldest::store::{Command, Guard, Key, RoleClaim, RowSteps, Steps, Store};
use eldest::types::{FORMAT, Format, NodeId, Span, Time, WallTime};

use serde_json::value::RawValue;

use crate::calls::Waiting;
use crate::checks::{Check, Violation, ensure};
use crate::readers::Readers;
use crate::restores::is_step;
use crate::rng::Rng;
use crate::stage::{MS, leads, run, unstarted};
use crate::world::World;
use crate::{run::states, sides};

const NAME: &str = "I6 tokens rise";
const SECOND_US: u64 = 1_000 * MS;
const SEEDS: u64 = 24;

/// The new cluster's clocks when the backup is taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clocks {
    /// Behind the backup, by a drawn amount.
    Behind,
    /// As those of the lost cluster were.
    Right,
}

/// The remains of the lost cluster.
struct Lost {
    backup: Store,
    /// The time at which the backup was written.
    time: WallTime,
    given: BTreeSet<u64>,
    /// The time that its clocks showed in the end.
    ended: u64,
}

/// All its nodes have wall clocks that are off by this much.
fn cluster(seed: u64, off_us: i64, mode: Mode, format: Format) -> Result<World, Violation> {
    let mut world = match mode {
        Mode::Safe => unstarted(3, seed, |_| {}),
        Mode::Available => sides::unformed(3, seed),
    };
    world.hosts.iter_mut().for_each(|host| host.clock.wall_offset = off_us);
    world.hosts[2].settings.format = format;
    for node in (0..3).rev() {
        world.start(node)?;
    }
    leads_all(&mut world, 1)?;
    Ok(world)
}

/// This node leads all nodes that live.
fn leads_all(world: &mut World, leader: u32) -> Check {
    let follows = |world: &World| {
        let mut cores = world.hosts.iter().filter_map(|host| host.core());
        cores.all(|core| core.leader() == Some(NodeId(leader)))
    };
    let led =
        world.run_until_true(world.now + 16 * SECOND_US, |world| leads(world, leader) && follows(world))?;
    ensure(led, "stage", || format!("n{leader} does not lead all: {}", states(world)))?;
    run(world, 500)
}

/// The role goes to another instance. Returns its token.
fn grant(world: &mut World, leader: u32, who: u64) -> Result<u64, Violation> {
    let instance = format!("i{who}").into();
    let claim =
        RoleClaim { instance, ttl: Span::millis(60_000), address: None, metadata: None, secret: None };
    let acquire = Acquire {
        role: "r".into(),
        claim: claim.into(),
        elect: true,
        priority: 0,
        until: Time(0),
        by: None,
        key: None,
    };
    let node = leader as usize - 1;
    let token =
        |world: &World| world.hosts[node].replica.as_ref().map(|replica| replica.committed().last_token());
    let before = token(world);
    world.calls(node, vec![(Waiting::Nobody, Call::Acquire(acquire.into()))])?;
    let granted = world.run_until_true(world.now + 5 * SECOND_US, |world| token(world) != before)?;
    ensure(granted, "stage", || format!("n{leader} grants nothing: {}", states(world)))?;
    Ok(token(world).unwrap_or_default())
}

fn write(world: &mut World, kind: &str, payload: &str) -> Check {
    let payload = RawValue::from_string(payload.to_string()).expect("JSON");
    let command = Box::new(Command::parse(kind, &payload).expect("a good command"));
    world.calls(0, vec![(Waiting::Nobody, Call::Write { command, key: None })])?;
    run(world, 100)
}

fn lose(rng: &mut Rng, mode: Mode) -> Result<Lost, Violation> {
    let mut world = cluster(rng.next(), 0, mode, FORMAT)?;
    let mut given = BTreeSet::new();
    for who in 0..rng.below(3) {
        given.insert(grant(&mut world, 1, who)?);
    }
    // These entries make the restore visible.
    write(&mut world, "CreateUser", r#"{"name":"ann"}"#)?;
    write(&mut world, "PutDoc", r#"{"key":"k","value":[1,1,1]}"#)?;
    let (backup, host) = (world.hosts[0].state.store.clone(), &world.hosts[0]);
    let wall = host.clock.now(world.now).wall.0;
    let time = WallTime(wall - wall % SECOND_US);
    for who in 10..11 + rng.below(4) {
        run(&mut world, rng.below(3_000))?;
        given.insert(grant(&mut world, 1, who)?);
    }
    Ok(Lost { backup, time, given, ended: world.now })
}

/// The steps that a node makes of the backup's rows.
fn steps(lost: &Lost, floor: Option<u64>, is_foreign: bool) -> Steps {
    let mut rows = RowSteps::new(1, u64::MAX);
    for (key, value) in lost.backup.backup_rows() {
        rows.add(key.table(), &key.name(), &value).expect("a row of a backup");
    }
    let guard = Guard { time: lost.time, floor, is_foreign, only_if_empty: true, ..Guard::default() };
    rows.finish(guard).expect("a backup of this cluster")
}

/// True if the restore is in place, false if it surely is not.
fn restore(world: &mut World, lost: &Lost, floor: Option<u64>, is_foreign: bool) -> Result<bool, Violation> {
    let mut text = String::new();
    lost.backup.to_document(&mut text).expect("writing to a String cannot fail");
    world.restore_is_asked(1, &text);
    // In available mode no checker looks at steps.
    let waiting = match world.hosts[0].settings.is_available() {
        true => Waiting::Nobody,
        false => Waiting::Operator(1),
    };
    world.calls(0, vec![(waiting, Call::Restore(steps(lost, floor, is_foreign)))])?;
    run(world, 2_000)?;
    world.no_restore_is_left()?;
    let core = world.hosts[0].core();
    let began = core.is_some_and(|core| core.log().records().any(is_step));
    let there = world.hosts[0].state.store.user("ann").is_some();
    ensure(began == there, "P46 refused before its first step", || states(world))?;
    Ok(there)
}

/// No granted token equals one that was given before, or is less than one, no matter which node grants it.
fn grants(world: &mut World, lost: &Lost, mode: Mode) -> Check {
    let greatest = lost.given.last().copied().unwrap_or_default();
    let mut given = lost.given.clone();
    let mut granted = |world: &mut World, leader: u32, who: u64| {
        let token = grant(world, leader, who)?;
        ensure(token > greatest && given.insert(token), NAME, || {
            format!("{token} is granted after {greatest}")
        })
    };
    granted(world, 1, 20)?;
    granted(world, 1, 21)?;
    match mode {
        Mode::Safe => {
            world.crash(0, true);
            leads_all(world, 2)?;
            granted(world, 2, 22)
        }
        // Both sides have had the restore.
        Mode::Available => {
            sides::split(world, &[&[1], &[2, 3]]);
            sides::led(world, &[(1, &[]), (2, &[3])])?;
            for who in 22..25 {
                granted(world, 1, who)?;
                granted(world, 2, who)?;
            }
            Ok(())
        }
    }
}

/// With `knows`, an operator knows of the grants and says so; otherwise no operator does.
fn succession(seed: u64, mode: Mode, clocks: Clocks, knows: bool) -> Check {
    let mut rng = Rng::new(seed);
    let lost = lose(&mut rng, mode)?;
    let off_us = match clocks {
        // Both worlds begin at the same hour.
        Clocks::Behind => -(rng.below(3_600 * SECOND_US) as i64),
        Clocks::Right => (lost.ended + rng.below(SECOND_US)) as i64,
    };
    let mut world = cluster(rng.next(), off_us, mode, FORMAT)?;
    // The backup is later than the new cluster's clock shows by now.
    if clocks == Clocks::Behind && world.hosts[0].clock.now(world.now).wall >= lost.time {
        return Ok(());
    }
    let greatest = lost.given.last().copied().unwrap_or_default();
    let floor = knows.then(|| greatest + rng.below(3) * rng.below(100 * SECOND_US));
    let there = restore(&mut world, &lost, floor, true)?;
    if !there {
        return ensure(clocks == Clocks::Behind && !knows, "P57 what is known is taken in", || {
            format!("{clocks:?}, a floor of {floor:?}")
        });
    }
    names_nothing(&world, mode)?;
    grants(&mut world, &lost, mode)
}

/// P60: the lost cluster named revisions by plain numbers; no node here does.
fn names_nothing(world: &World, mode: Mode) -> Check {
    let revs = world.hosts.iter().filter_map(|host| host.state.store.rev_of(&Key::Doc("k".into())));
    let plain: Vec<_> = revs.filter(|rev| rev.parse::<u64>().is_ok()).collect();
    ensure(plain.is_empty() || mode == Mode::Available, "P60 revisions of another history", || {
        format!("{plain:?}")
    })
}

/// P60: readers of the lost cluster's feed go on at the new one, where records have come to the places that
/// they name.
pub fn readers_cross_over() -> Check {
    const READERS: usize = 3;
    let mut world = cluster(1, 0, Mode::Safe, FORMAT)?;
    write(&mut world, "CreateUser", r#"{"name":"ann"}"#)?;
    let (backup, host) = (world.hosts[0].state.store.clone(), &world.hosts[0]);
    let time = host.clock.now(world.now).wall;
    world.readers = Some(Readers::new(READERS, Rng::new(1)));
    (0..READERS).try_for_each(|reader| world.reader_wakes(reader))?;
    let documents = |world: &mut World, count: u64| {
        (0..count)
            .try_for_each(|n| write(world, "PutDoc", &format!(r#"{{"key":"k{n}","value":[1,1,{count}]}}"#)))
    };
    documents(&mut world, 40)?;
    let readers = world.readers.take().map(|mut readers| {
        readers.are_cut_off();
        readers
    });
    let lost = Lost { backup, time, given: BTreeSet::new(), ended: world.now };
    let mut world = cluster(2, lost.ended as i64, Mode::Safe, FORMAT)?;
    // Nodes keep their events once any reader may read.
    world.readers = Some(Readers::new(0, Rng::new(2)));
    let there = restore(&mut world, &lost, None, true)?;
    ensure(there, "stage", || "the backup is refused".into())?;
    documents(&mut world, 50)?;
    let before = readers.as_ref().map_or(0, |readers| readers.started_over);
    world.readers = readers;
    world.readers_agree()?;
    let started_over = world.readers.as_ref().map_or(0, |readers| readers.started_over);
    ensure(started_over == before + READERS, "P60 places of another history", || {
        format!("{} of {READERS} readers start over", started_over - before)
    })
}

fn each_seed(scenario: impl Fn(u64) -> Check) -> Check {
    (1..=SEEDS).try_for_each(scenario)
}

/// The grants after the backup are unknown.
pub fn clocks_are_behind() -> Check {
    each_seed(|seed| succession(seed, Mode::Safe, Clocks::Behind, false))
}

/// An operator says which token was the greatest.
pub fn clocks_are_behind_and_tokens_known() -> Check {
    each_seed(|seed| succession(seed, Mode::Safe, Clocks::Behind, true))
}

/// A node has not shown that it reads an end that raises tokens (P23). Where the clock makes sure of the
/// same, the plain end is written; elsewhere nothing is.
fn an_older_node(knows: bool) -> Check {
    let mut rng = Rng::new(7);
    let lost = lose(&mut rng, Mode::Safe)?;
    let off_us = if knows { 0 } else { lost.ended as i64 };
    let mut world = cluster(1, off_us, Mode::Safe, Format(3))?;
    let floor = knows.then(|| lost.given.last().copied().unwrap_or_default());
    let there = restore(&mut world, &lost, floor, false)?;
    ensure(there != knows, "P23 what an older node reads", || states(&world))?;
    if there { grants(&mut world, &lost, Mode::Safe) } else { Ok(()) }
}

#[test]
fn no_token_of_a_lost_cluster_is_given_again() {
    assert_eq!(crate::guarded::guarded(clocks_are_behind), Ok(()));
    assert_eq!(crate::guarded::guarded(clocks_are_behind_and_tokens_known), Ok(()));
    for mode in [Mode::Safe, Mode::Available] {
        for (clocks, knows) in
            [(Clocks::Behind, false), (Clocks::Behind, true), (Clocks::Right, false), (Clocks::Right, true)]
        {
            for seed in 100..104 {
                let found = succession(seed, mode, clocks, knows);
                assert_eq!(found, Ok(()), "seed {seed}, {mode:?}, {clocks:?}, knows {knows}");
            }
        }
    }
}

#[test]
fn readers_of_a_lost_cluster_read_its_successor() {
    assert_eq!(crate::guarded::guarded(readers_cross_over), Ok(()));
}

#[test]
fn an_older_node_reads_every_record_of_a_restore() {
    assert_eq!(an_older_node(false), Ok(()));
    assert_eq!(an_older_node(true), Ok(()));
}
