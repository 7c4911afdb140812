//! Changes of the members while the cluster lives (P43), and disks of other clusters that come along (P44):
//! as timelines by hand, and in a part of the seeds.

use eldest::protocol::{Fault, MemberChange, Node, Settings, majority};
use eldest::replica::Call;
use eldest::types::{Entry, Member, NodeId, Record};

use crate::checks::{Check, Checks, ensure};
use crate::disk::Disk;
use crate::host::{Clock, Host};
use crate::plan::{self, members};
use crate::rng::Rng;
use crate::stage::{MS, core, leads, linearizable, link, read, run, stage, write};
use crate::world::World;

/// The settings of a node that did not found the cluster: its own file names the founders and itself.
pub fn spare(settings: &Settings, id: u32) -> Settings {
    let founders = settings.members.iter().cloned();
    let members = founders.chain([Member::founder(NodeId(id))]).collect();
    Settings { me: NodeId(id), members, ..settings.clone() }
}

/// One or two such nodes, in a seed.
pub fn spares(rng: &mut Rng, common: &Settings) -> Vec<Host> {
    let count = common.members.len() as u32;
    let spares = count + 1..=count + rng.range(1, 2) as u32;
    spares.map(|id| plan::host(rng, spare(common, id))).collect()
}

/// The number of disks that may forget at a time: a minority of the voters, and while members change, a
/// minority of those that the next change may leave.
pub fn may_be_lost(world: &World, changes: bool) -> usize {
    if !changes {
        let members = world.hosts[0].settings.members.len();
        return members - majority(members);
    }
    let fewest = world.hosts.iter().filter_map(Host::core).map(|core| {
        let members = core.log().roster().members();
        members.map_or(0, |members| members.iter().filter(|member| member.votes).count())
    });
    let left = fewest.min().unwrap_or(0).saturating_sub(1);
    left.saturating_sub(majority(left))
}

/// The leader of the newest epoch, if one leads.
pub fn leader(world: &World) -> Option<(usize, &Node)> {
    let open = world.hosts.iter().enumerate().filter_map(|(node, host)| Some((node, host.core()?)));
    open.filter(|(_, core)| core.is_open()).max_by_key(|(_, core)| core.vote().promise.epoch)
}

pub fn belongs(world: &World, node: usize) -> bool {
    leader(world).is_none_or(|(_, core)| core.is_member(world.hosts[node].id))
}

pub fn add(id: u32) -> MemberChange {
    MemberChange::Add {
        id: NodeId(id),
        name: format!("n{id}").into(),
        address: format!("host{id}:9000").into(),
    }
}

/// An operator makes one change or another, at any node.
pub fn change(world: &mut World, rng: &mut Rng, node: usize) -> Check {
    let Some((_, core)) = leader(world) else {
        return Ok(());
    };
    let belong: Vec<NodeId> = core.members().iter().map(|member| member.id).collect();
    let strangers: Vec<NodeId> =
        world.hosts.iter().map(|host| host.id).filter(|id| !belong.contains(id)).collect();
    let change = match rng.below(10) {
        0..5 if !strangers.is_empty() => add(rng.pick(&strangers).0),
        0..8 => MemberChange::Remove(*rng.pick(&belong)),
        _ => {
            let address = format!("elsewhere{}:9000", rng.below(100)).into();
            MemberChange::Move { id: *rng.pick(&belong), address }
        }
    };
    world.note(|| format!("--- {change:?}"));
    world.order(node, Call::ChangeMembers(change))
}

/// A node ends because it was removed: that must have been committed.
pub fn was_removed(world: &World, id: NodeId, fault: &Fault) -> bool {
    let without = |record: &Record| match &record.entry {
        Entry::Members { members } => members.iter().all(|member| member.id != id),
        // A node whose addition was never committed has never belonged to the cluster.
        Entry::Lead { founding: Some(founding) } => !founding.founders.contains_key(&id),
        _ => false,
    };
    matches!(fault, Fault::Removed { .. }) && world.checks.survival.any(without)
}

/// Three nodes, and a fourth one that does not belong to them yet.
fn three_and_one(seed: u64) -> Result<World, crate::checks::Violation> {
    let mut world = stage(3, seed, |_| {})?;
    let clock = Clock { offset: 7_000_000, rate_ppm: 0, wall_offset: 0 };
    let settings = world.hosts[0].settings.clone();
    let mut rng = Rng::new(seed);
    world.hosts.push(Host::new(spare(&settings, 4), Disk::new(rng.next()), clock));
    world.start(3)?;
    Ok(world)
}

/// The node votes, and that is committed, so the next change may come.
pub fn votes(world: &World, id: u32) -> bool {
    leader(world).is_some_and(|(_, core)| {
        core.is_voter(NodeId(id)) && core.log().roster().members_since() <= core.commit_index()
    })
}

pub fn comes(world: &mut World, ms: u64, what: &str, is_so: impl Fn(&World) -> bool) -> Check {
    let came = world.run_until_true(world.now + ms * MS, is_so)?;
    ensure(came, "P43 a change comes to its end", || format!("{what}: {}", crate::run::states(world)))
}

/// P43: a node joins, learns and votes; another one is removed, and stops.
pub fn one_comes_and_one_goes() -> Check {
    let mut world = three_and_one(31)?;
    (1..=30).try_for_each(|value| {
        write(&mut world, 1, value);
        run(&mut world, 5)
    })?;
    world.order(0, Call::ChangeMembers(add(4)))?;
    comes(&mut world, 2_000, "n4 votes", |world| votes(world, 4))?;
    world.order(0, Call::ChangeMembers(MemberChange::Remove(NodeId(3))))?;
    comes(&mut world, 4_000, "n3 stops", |world| core(world, 3).is_none())?;
    // Without n1, the two of the three are n2 and n4: the node that joined counts.
    world.crash(0, true);
    comes(&mut world, 4_000, "n2 leads with n4", |world| leads(world, 2))?;
    write(&mut world, 2, 77);
    run(&mut world, 100)?;
    linearizable(&mut world)
}

/// P43: of five nodes n1 and n2 come back with a topology file that names three. They must not decide
/// anything by themselves.
pub fn a_smaller_topology_is_rolled_out() -> Check {
    let mut world = stage(5, 32, |_| {})?;
    write(&mut world, 1, 1);
    run(&mut world, 50)?;
    for node in [0, 1] {
        world.crash(node, false);
        world.hosts[node].settings.members = members(3).into_iter().map(Member::founder).collect();
    }
    for (a, b) in [(1, 3), (1, 4), (1, 5), (2, 3), (2, 4), (2, 5)] {
        link(&mut world, a, b, false);
    }
    world.start(0)?;
    world.start(1)?;
    run(&mut world, 6_000)?;
    for (node, value) in [(1, 2), (2, 3), (3, 4)] {
        write(&mut world, node, value);
    }
    run(&mut world, 500)?;
    (1..=5).for_each(|node| read(&mut world, node));
    run(&mut world, 500)?;
    linearizable(&mut world)
}

/// P43: two changes, the second before the first is committed. n4 and n5 join, and n1 and n2 do not hear of
/// it from each other.
pub fn two_changes_at_once() -> Check {
    let mut world = three_and_one(33)?;
    let clock = Clock { offset: 8_000_000, rate_ppm: 0, wall_offset: 0 };
    let settings = world.hosts[0].settings.clone();
    let mut rng = Rng::new(33);
    world.hosts.push(Host::new(spare(&settings, 5), Disk::new(rng.next()), clock));
    world.start(4)?;
    for id in [4, 5] {
        world.order(0, Call::ChangeMembers(add(id)))?;
        comes(&mut world, 2_000, "it votes", |world| votes(world, id))?;
    }
    // No other node hears n1 any more; it is ordered to remove one after the other until it is a majority by
    // itself.
    for other in [2, 3, 4, 5] {
        link(&mut world, 1, other, false);
    }
    for id in [5, 4, 3, 2] {
        world.order(0, Call::ChangeMembers(MemberChange::Remove(NodeId(id))))?;
        run(&mut world, 2)?;
    }
    write(&mut world, 1, 5);
    run(&mut world, 3_000)?;
    write(&mut world, 2, 6);
    run(&mut world, 300)?;
    (1..=5).for_each(|node| read(&mut world, node));
    run(&mut world, 300)?;
    linearizable(&mut world)
}

/// P43: n1 relies on n2 and n3 alone, and is cut off with a lease that has not run out. n2 leads, and removes
/// n3 and n1. Neither of the two nodes that are left with n2 has ever granted n1 anything.
pub fn members_change_under_an_old_lease() -> Check {
    let long = |settings: &mut Settings| settings.timing.lease = settings.timing.dead_after;
    let mut world = stage(5, 34, long)?;
    for other in [4, 5] {
        link(&mut world, 1, other, false);
    }
    run(&mut world, 1_500)?;
    world.reject(0);
    comes(&mut world, 500, "n2 leads", |world| leads(world, 2))?;
    // All have answered a beat.
    run(&mut world, 120)?;
    for id in [3, 1] {
        world.order(1, Call::ChangeMembers(MemberChange::Remove(NodeId(id))))?;
        let gone = |world: &World| leader(world).is_some_and(|(_, core)| !core.is_member(NodeId(id)));
        // With the rule the change is not taken as long as n1 may be relied on.
        let _ = world.run_until_true(world.now + 20 * MS, gone)?;
        run(&mut world, 4)?;
    }
    // n2, which knows what it has granted, is asked too late.
    world.hand_over(1, Some(NodeId(4)))?;
    let _ = world.run_until_true(world.now + 20 * MS, |world| !leads(world, 2))?;
    world.net.slow.insert((NodeId(4), NodeId(2)), 3_000 * MS);
    run(&mut world, 3_000)
}

/// P43: a node that is added votes only once it has learnt: otherwise an empty disk and the slowest one are a
/// majority.
pub fn who_is_added_learns_first() -> Check {
    let mut world = three_and_one(35)?;
    link(&mut world, 4, 1, false);
    link(&mut world, 4, 2, false);
    link(&mut world, 4, 3, false);
    world.order(0, Call::ChangeMembers(add(4)))?;
    run(&mut world, 300)?;
    // n3 dies: of four voters three are left, or of three voters two.
    world.crash(2, true);
    world.crash(1, true);
    world.start(1)?;
    write(&mut world, 1, 1);
    let written = |world: &World| !world.clients.writes.is_empty();
    comes(&mut world, 3_000, "a write", written)
}

/// P43: n4's disk takes seconds. In a young log n4 is near the end although its disk holds nothing; it gets
/// its vote only once its disk holds the record that gave it the seat.
pub fn who_is_added_holds_its_seat() -> Check {
    let mut world = three_and_one(37)?;
    world.hosts[3].sync_us = 5_000 * MS;
    world.order(0, Call::ChangeMembers(add(4)))?;
    run(&mut world, 500)?;
    world.crash(2, true);
    for value in 0..24 {
        let before = world.clients.writes.len();
        write(&mut world, 1, value);
        comes(&mut world, 500, "a write", |world| world.clients.writes.len() > before)?;
        run(&mut world, 500)?;
    }
    Ok(())
}

/// P43: n1, which was cut off, is removed and added again, and answers one beat. n2 dies. The two voters that
/// are left do not reach each other, and both reach n1, whose log says that it votes until it has pulled.
pub fn who_only_learns_leads_nobody() -> Check {
    let mut world = stage(4, 38, |settings| settings.limits.keep = 1_000)?;
    for other in [2, 3, 4] {
        link(&mut world, 1, other, false);
    }
    comes(&mut world, 5_000, "n2 leads", |world| leads(world, 2))?;
    run(&mut world, 1_000)?;
    world.order(1, Call::ChangeMembers(MemberChange::Remove(NodeId(1))))?;
    run(&mut world, 200)?;
    world.order(1, Call::ChangeMembers(add(1)))?;
    run(&mut world, 200)?;
    for other in [2, 3, 4] {
        link(&mut world, 1, other, true);
    }
    let follows = |world: &World| core(world, 1).is_some_and(|core| core.leader() == Some(NodeId(2)));
    comes(&mut world, 500, "n1 hears n2", follows)?;
    world.net.cut(NodeId(2), NodeId(1));
    let let_in =
        |world: &World| core(world, 2).is_some_and(|core| core.log().roster().seat(NodeId(1)).is_some());
    comes(&mut world, 500, "n1 is let in", let_in)?;
    run(&mut world, 8)?;
    world.cut_off(1);
    link(&mut world, 3, 4, false);
    let learner_leads =
        |world: &World| leader(world).is_some_and(|(node, core)| !core.is_voter(world.hosts[node].id));
    let led = world.run_until_true(world.now + 4_000 * MS, learner_leads)?;
    ensure(!led, "P43 who only learns leads nobody", || crate::run::states(&world))?;
    world.net.heal();
    comes(&mut world, 4_000, "n1 votes", |world| votes(world, 1))
}

/// P43: n4 and n5 run before they are added, and hear each other. n4 says that it is no member, and neither that it waits for founders
/// nor that others are slow.
pub fn who_is_no_member_says_so() -> Check {
    let mut world = stage(3, 39, |_| {})?;
    let (settings, mut rng) = (world.hosts[0].settings.clone(), Rng::new(39));
    let new_members = members(5).into_iter().map(Member::founder).collect::<Vec<_>>();
    for id in [4, 5] {
        let clock = Clock { offset: u64::from(id) * 1_000_000, rate_ppm: 0, wall_offset: 0 };
        let settings = Settings { me: NodeId(id), members: new_members.clone().into(), ..settings.clone() };
        world.hosts.push(Host::new(settings, Disk::new(rng.next()), clock));
        world.start(id as usize - 1)?;
    }
    let waits = |world: &World| {
        let now = world.hosts[3].clock.now(world.now).mono;
        core(world, 4).and_then(|core| core.waits_for(now))
    };
    let says_so = |world: &World| waits(world).is_some_and(|waits| waits.no_member);
    let what = "n4 says that it is no member";
    comes(&mut world, 2_000, what, says_so)?;
    for _ in 0..100 {
        run(&mut world, 20)?;
        ensure(says_so(&world), "P43 who is no member says so", || format!("{:?}", waits(&world)))?;
    }
    // When no member answers, it cannot know that the cluster still runs.
    for other in [1, 2, 3, 5] {
        link(&mut world, 4, other, false);
    }
    comes(&mut world, 2_000, "n4 waits for the others", |world| {
        waits(world).is_some_and(|waits| !waits.no_member && waits.silent.len() == 4)
    })?;
    world.net.heal();
    comes(&mut world, 2_000, what, says_so)?;
    world.order(0, Call::ChangeMembers(add(4)))?;
    comes(&mut world, 2_000, "n4 votes", |world| votes(world, 4) && waits(world).is_none())
}

/// P44: n1 and n2 lose their disks, and an operator forms a new cluster of them. Then n3 comes with the old
/// cluster's disk.
pub fn an_old_clusters_disk() -> Check {
    let mut world = stage(3, 36, |_| {})?;
    for value in 1..=30 {
        write(&mut world, 1, value);
        run(&mut world, 5)?;
    }
    world.crash(2, true);
    let before = world.host(NodeId(3)).disk.durable.last();
    for node in [0, 1] {
        world.crash(node, true);
        world.hosts[node].disk.wipe(0xF00 + node as u64);
    }
    // All acknowledged writes are lost with a majority of the disks, so only the new cluster is judged.
    world.checks = Checks::default();
    for node in [0, 1] {
        world.start(node)?;
        world.order(node, Call::Form { without: [NodeId(3)].into() })?;
    }
    comes(&mut world, 3_000, "the new cluster", |world| leads(world, 1))?;
    world.start(2)?;
    run(&mut world, 3_000)?;
    let (admitted, last) =
        core(&world, 3).map_or((false, 0), |core| (core.leader().is_some(), core.last().index));
    ensure(!admitted && last == before, "P44 another cluster's disk stays out", || crate::run::states(&world))
}

pub const ALL: &[(&str, crate::scenarios::Scenario)] = &[
    ("one_comes_and_one_goes", one_comes_and_one_goes),
    ("a_smaller_topology_is_rolled_out", a_smaller_topology_is_rolled_out),
    ("two_changes_at_once", two_changes_at_once),
    ("members_change_under_an_old_lease", members_change_under_an_old_lease),
    ("who_is_added_learns_first", who_is_added_learns_first),
    ("who_is_added_holds_its_seat", who_is_added_holds_its_seat),
    ("who_only_learns_leads_nobody", who_only_learns_leads_nobody),
    ("who_is_no_member_says_so", who_is_no_member_says_so),
    ("an_old_clusters_disk", an_old_clusters_disk),
];

#[test]
fn every_scenario_holds() {
    crate::guarded::each_holds(ALL);
}
