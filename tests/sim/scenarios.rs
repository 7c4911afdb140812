//! The counterexamples as separate timelines. Each sets the stage for one rule, and the checkers watch. With
//! the rule they all pass; with the rule's mutant on, a named checker objects.

use eldest::protocol::{
    Certificate, Claim, Condition, Envelope, Limits, Message, Node, Takeover, Term, Timing,
};
use eldest::replica::In;
use eldest::types::{Boot, ClaimId, ClusterId, Epoch, Format, NodeId, Span};

use crate::checks::{Check, Violation, ensure};
use crate::stage::{MS, core, leads, linearizable, link, read, run, stage, started, write};
use crate::world::{Event, World};

pub type Scenario = fn() -> Check;

/// A firewall cuts n1 off and refuses in its name; n2 leads with n3, and has committed a write.
fn deposed() -> Result<World, Violation> {
    let mut world = stage(3, 7, |_| {})?;
    write(&mut world, 1, 1);
    run(&mut world, 20)?;
    world.reject(0);
    let led = world.run_until_true(world.now + 200 * MS, |world| leads(world, 2))?;
    ensure(led, "stage", || "n2 does not lead".into())?;
    write(&mut world, 2, 2);
    run(&mut world, 10)?;
    Ok(world)
}

/// P13: a deposed leader that does not know it yet is asked for a read.
pub fn deposed_leader_is_read() -> Check {
    let mut world = deposed()?;
    read(&mut world, 1);
    run(&mut world, 50)?;
    linearizable(&mut world)
}

/// C13: a round's answers are under way when a newer leader acknowledges a write.
pub fn read_joins_a_round() -> Check {
    let mut world = stage(3, 8, |_| {})?;
    write(&mut world, 1, 1);
    run(&mut world, 20)?;
    for follower in [2, 3] {
        world.net.slow.insert((NodeId(follower), NodeId(1)), 60 * MS);
    }
    read(&mut world, 1);
    run(&mut world, 2)?;
    world.reject(0);
    run(&mut world, 25)?;
    write(&mut world, 2, 2);
    run(&mut world, 12)?;
    read(&mut world, 1);
    run(&mut world, 60)?;
    linearizable(&mut world)
}

/// C2: n3's disk, which had promised n2's epoch, is replaced, and hears only the deposed n1.
pub fn deposed_meets_wiped() -> Result<World, Violation> {
    let mut world = deposed()?;
    world.crash(2, true);
    world.hosts[2].disk.wipe(0xD15C);
    world.net.heal();
    link(&mut world, 2, 3, false);
    link(&mut world, 2, 1, false);
    world.start(2)?;
    Ok(world)
}

/// P13: the forgetful disk is asked to confirm a read.
pub fn wiped_disk_confirms() -> Check {
    let mut world = deposed_meets_wiped()?;
    run(&mut world, 5)?;
    read(&mut world, 1);
    run(&mut world, 150)?;
    linearizable(&mut world)
}

/// P10: the deposed leader lets the disk in, and it votes; n2 must still be able to keep its write.
pub fn wiped_disk_rejoins_a_deposed_leader() -> Check {
    let mut world = deposed_meets_wiped()?;
    write(&mut world, 1, 3);
    run(&mut world, 5_000)?;
    world.net.heal();
    run(&mut world, 3_000)?;
    linearizable(&mut world)
}

/// P2: a node that has promised n2's epoch hears the deposed n1 again.
pub fn deposed_leader_finds_a_follower() -> Check {
    let mut world = deposed()?;
    world.net.heal();
    link(&mut world, 2, 3, false);
    link(&mut world, 2, 1, false);
    write(&mut world, 1, 3);
    run(&mut world, 1_500)?;
    world.net.heal();
    run(&mut world, 3_000)?;
    linearizable(&mut world)
}

/// P11: the old leader lives behind a firewall that refuses, with a lease that has not run out.
pub fn firewall_refuses() -> Check {
    let mut world = stage(3, 9, |_| {})?;
    world.reject(0);
    run(&mut world, 2_000)
}

/// P11: the answers to beats come late; a lease counted from them would outlive what was granted.
pub fn late_answers() -> Check {
    let mut world = stage(3, 10, |_| {})?;
    for follower in [2, 3] {
        world.net.slow.insert((NodeId(follower), NodeId(1)), 250 * MS);
    }
    run(&mut world, 700)?;
    world.reject(0);
    run(&mut world, 2_000)
}

/// P11: the only follower that had granted a lease restarts and elects another leader.
pub fn granter_restarts() -> Check {
    let mut world = stage(3, 11, |_| {})?;
    link(&mut world, 1, 3, false);
    run(&mut world, 500)?;
    world.crash(1, false);
    world.reject(0);
    world.start(1)?;
    run(&mut world, 2_000)
}

/// C6: the old leader hears of the new one late.
pub fn hand_over_with_late_news() -> Check {
    let mut world = stage(3, 12, |_| {})?;
    for follower in [2, 3] {
        world.net.slow.insert((NodeId(follower), NodeId(1)), 40 * MS);
    }
    run(&mut world, 300)?;
    world.hand_over(0, Some(NodeId(2)))?;
    run(&mut world, 2_000)?;
    let led = leads(&world, 2);
    ensure(led, "P18 the heir leads", || "n2 does not lead".into())
}

/// A message as n2 could have sent it.
pub fn from_n2(world: &World, to: u32, message: Message) -> Envelope {
    Envelope {
        from: NodeId(2),
        to: NodeId(to),
        boot: core(world, 2).map_or(Boot(1), Node::boot),
        incarnation: world.host(NodeId(2)).disk.durable.incarnation,
        admitted: true,
        cluster: ClusterId::NONE,
        format: Format(1),
        message,
    }
}

/// C10: the deposed n1 has a suffix that no other node has; n2 sends it a record that both have.
pub fn old_suffix_is_not_acknowledged() -> Check {
    let mut world = deposed()?;
    write(&mut world, 1, 3);
    write(&mut world, 1, 4);
    run(&mut world, 20)?;
    let (term, log) = match core(&world, 2) {
        Some(leader) => (leader.vote().promise, leader.log()),
        None => return ensure(false, "stage", || "n2 is down".into()),
    };
    let (prev, records) =
        (log.position(1).unwrap_or_default(), log.above(1, &Limits { batch: 1, ..Limits::default() }));
    let message = Message::Append { term, prev, records, commit: 0 };
    let envelope = from_n2(&world, 1, message);
    world.recorder =
        Some(|envelope| matches!(envelope.message, Message::Appended { matched, .. } if matched > 2));
    world.feed(0, In::Message(Box::new(envelope), None))?;
    run(&mut world, 20)?;
    let told = &world.recorded;
    ensure(told.is_empty(), "P5 only what matches is acknowledged", || told[0].0.to_string())
}

/// C6: a claim with a certificate of an epoch long over arrives at a node that follows a living leader.
pub fn old_certificate() -> Check {
    let mut world = stage(3, 13, |_| {})?;
    let first = core(&world, 1).and_then(Node::leads).unwrap_or_default();
    for heir in [2, 1] {
        let node = world.slot(NodeId(3 - heir));
        world.hand_over(node, Some(NodeId(heir)))?;
        run(&mut world, 1_000)?;
    }
    let promised = core(&world, 3).map(Node::vote);
    let certificate = Certificate { epoch: first, heir: NodeId(2), last: Default::default() };
    let term = Term { epoch: Epoch::new(90, NodeId(2)), claim: ClaimId(77) };
    let message = Message::Claim(Claim {
        term,
        last: Default::default(),
        condition: Condition::Fit,
        certificate: Some(certificate),
        vector: None,
    });
    let envelope = from_n2(&world, 3, message);
    world.feed(2, In::Message(Box::new(envelope), None))?;
    let unmoved = core(&world, 3).map(Node::vote) == promised;
    ensure(unmoved, "P18 an old certificate is void", || "n3 promised again".into())
}

/// P16: a leader that hears no other node.
pub fn leader_alone() -> Check {
    let mut world = stage(3, 15, |_| {})?;
    world.cut_off(0);
    run(&mut world, 1_300)?;
    let stopped = core(&world, 1).is_some_and(|node| node.leads().is_none());
    ensure(stopped, "P16 a leader without a majority stops", || "n1 still leads".into())
}

/// C29: beats pass, appends do not.
pub fn appends_do_not_pass() -> Check {
    let mut world = stage(3, 16, |_| {})?;
    world.net.dropped =
        Some(|envelope| envelope.from == NodeId(1) && matches!(envelope.message, Message::Append { .. }));
    write(&mut world, 1, 1);
    let bound = world.hosts[0].settings.timing.election_timeout().times(4).0;
    let led = world.run_until_true(world.now + bound, |world| leads(world, 2) || leads(world, 3))?;
    ensure(led, "I10 writes resume", || "n1 leads on and commits nothing".into())
}

/// P4: all nodes suspect at nearly the same time, or start at the same time; the lowest index that is ready
/// must lead.
pub fn lowest_leads() -> Check {
    for seed in 0..40 {
        let mut world = stage(5, 100 + seed, |_| {})?;
        world.crash(0, true);
        let opened = |world: &World| (2..=5).any(|id| leads(world, id));
        world.run_until_true(world.now + 5_000 * MS, opened)?;
        ensure(leads(&world, 2), "P4 the lowest ready index leads", || format!("not in run {seed}"))?;

        let mut world = started(5, 200 + seed, |_| {})?;
        let opened = |world: &World| (1..=5).any(|id| leads(world, id));
        world.run_until_true(5_000 * MS, opened)?;
        ensure(leads(&world, 1), "P4 the lowest ready index leads", || format!("not at start {seed}"))?;
    }
    Ok(())
}

/// C27: the elder is far behind; one that is ready goes first.
pub fn unready_elder() -> Check {
    let mut world = stage(3, 17, |settings| settings.limits.ready_lag = 10)?;
    world.crash(0, true);
    world.run_until_true(world.now + 5_000 * MS, |world| leads(world, 2))?;
    for value in 0..60 {
        write(&mut world, 2, value + 10);
        run(&mut world, 5)?;
    }
    link(&mut world, 1, 2, false);
    link(&mut world, 1, 3, false);
    world.start(0)?;
    run(&mut world, 300)?;
    // n1 and n3 have heard of each other when n2 dies.
    link(&mut world, 1, 3, true);
    run(&mut world, 100)?;
    world.crash(1, true);
    let opened = |world: &World| leads(world, 1) || leads(world, 3);
    world.run_until_true(world.now + 5_000 * MS, opened)?;
    ensure(leads(&world, 3), "P21 the ready go first", || "n1 leads from far behind".into())
}

/// C26: a node that is cut off from the leader but hears another follower unseats no leader.
pub fn cut_from_the_leader() -> Check {
    let mut world = stage(3, 18, |_| {})?;
    let before = world.checks.epochs.count();
    link(&mut world, 1, 3, false);
    run(&mut world, 10_000)?;
    world.net.heal();
    run(&mut world, 3_000)?;
    let after = world.checks.epochs.count();
    ensure(after == before, "C26 nobody is unseated", || format!("{} new leaders", after - before))
}

/// P20: the elder dies every three seconds for a minute and a half, and would take over each time.
pub fn elder_keeps_dying() -> Check {
    let mut world = stage(3, 19, |settings| {
        settings.takeover = Takeover::WhenStable;
        settings.timing.stable_for = Span::millis(500);
        settings.timing.hold = Span::millis(2_000);
        settings.timing.hold_most = Span::millis(60_000);
    })?;
    let before = world.checks.epochs.count();
    for _ in 0..30 {
        run(&mut world, 2_500)?;
        world.crash(0, false);
        run(&mut world, 500)?;
        world.start(0)?;
    }
    // Holds of 2, 4, 8, 16, 32 and 60 s leave room for six returns; each is two changes.
    let changes = world.checks.epochs.count() - before;
    ensure(changes <= 14, "P20 changes are bounded", || format!("{changes} new leaders"))
}

/// C33: the leader's own state has diverged.
pub fn odd_leader() -> Check {
    let mut world = stage(3, 20, |_| {})?;
    for value in 0..35 {
        write(&mut world, 1, value + 1);
        run(&mut world, 5)?;
        if value == 12 {
            world.hosts[0].flip_a_bit();
        }
    }
    run(&mut world, 4_000)?;
    ensure(world.odd == [NodeId(1)], "P25 the odd one goes", || format!("sent away: {:?}", world.odd))
}

/// P25: writes go on without a pause, several hundred in each beat, and a follower's state diverges.
pub fn odd_under_load() -> Check {
    odd_under_load_with(Timing::lan(), 6_000, MS / 4)
}

/// The same with long beats: in each of them more boundaries pass than a node remembers digests.
pub fn odd_under_load_with_long_beats() -> Check {
    odd_under_load_with(Timing { heartbeat: Span::millis(5_000), ..Timing::seed() }, 45_000, MS / 4)
}

fn odd_under_load_with(timing: Timing, writes: u64, every_us: u64) -> Check {
    let mut world = stage(3, 24, |settings| settings.timing = timing.clone())?;
    for value in 0..writes {
        write(&mut world, 1, value + 1);
        world.run_until(world.now + every_us)?;
        if value == 1_000 {
            world.hosts[2].flip_a_bit();
        }
    }
    ensure(world.odd == [NodeId(3)], "P25 the odd one goes", || format!("sent away: {:?}", world.odd))
}

/// P25: the leader, or a follower, is of another build, which computes digests in another way. Its state
/// equals that of the others, and it stays; a node whose state really differs is found all the same.
pub fn digests_of_two_builds() -> Check {
    [0, 4].into_iter().try_for_each(digests_of_two_builds_with)
}

fn digests_of_two_builds_with(otherwise: usize) -> Check {
    const ODD: usize = 3;
    let mut world = stage(5, 23, |settings| {
        settings.digests += u32::from(settings.me.0 as usize == otherwise + 1);
        // A node that comes back is sent records: a snapshot from this node would not equal what the others
        // have.
        settings.limits.keep = 1_000;
    })?;
    // This is how another computation of an equal state looks.
    world.hosts[otherwise].flip_a_bit();
    for value in 0..70 {
        write(&mut world, 1, value + 1);
        run(&mut world, 5)?;
        if value == 35 {
            ensure(world.odd.is_empty(), SOUND_STAYS, || format!("sent away: {:?}", world.odd))?;
            world.hosts[ODD].flip_a_bit();
        }
    }
    run(&mut world, 4_000)?;
    let odd = world.hosts[ODD].id;
    ensure(world.odd == [odd], SOUND_STAYS, || format!("sent away: {:?}, not {odd}", world.odd))
}

const SOUND_STAYS: &str = "P25 only the odd one goes";

/// Peers do not prove who they are: a leader's own count is not the word of another node, and the leader
/// serves nothing more (P51).
pub fn odd_leader_without_proof() -> Check {
    odd_without_proof(NodeId(1))
}

/// A follower asks its leader, and believes the answer to its own question.
pub fn odd_follower_without_proof() -> Check {
    odd_without_proof(NodeId(3))
}

fn odd_without_proof(odd: NodeId) -> Check {
    let mut world = stage(3, 22, |settings| {
        settings.peers_prove = false;
        settings.asks_from = 1_000_000 * u64::from(settings.me.0);
    })?;
    let host = odd.0 as usize - 1;
    for value in 0..35 {
        write(&mut world, 1, value + 1);
        run(&mut world, 5)?;
        if value == 12 {
            world.hosts[host].flip_a_bit();
        }
    }
    run(&mut world, 4_000)?;
    ensure(world.odd == [odd], "P25 the odd one goes", || format!("sent away: {:?}", world.odd))
}

/// P26: a snapshot arrives a second time, when the follower is far beyond it.
pub fn old_snapshot_again() -> Check {
    let mut world = stage(3, 21, |_| {})?;
    world.crash(2, true);
    for value in 0..60 {
        write(&mut world, 1, value + 1);
        run(&mut world, 5)?;
    }
    world.recorder = Some(|envelope| matches!(envelope.message, Message::Snapshot { .. }));
    world.start(2)?;
    run(&mut world, 500)?;
    for value in 60..100 {
        write(&mut world, 1, value + 1);
        run(&mut world, 5)?;
    }
    let snapshots = std::mem::take(&mut world.recorded);
    ensure(!snapshots.is_empty(), "stage", || "no snapshot was sent".into())?;
    for (envelope, state) in snapshots {
        world.after(0, Event::Deliver { envelope, state });
    }
    run(&mut world, 500)?;
    linearizable(&mut world)
}

/// Every scenario, by name.
pub const ALL: &[(&str, Scenario)] = &[
    ("deposed_leader_is_read", deposed_leader_is_read),
    ("read_joins_a_round", read_joins_a_round),
    ("wiped_disk_confirms", wiped_disk_confirms),
    ("wiped_disk_rejoins_a_deposed_leader", wiped_disk_rejoins_a_deposed_leader),
    ("deposed_leader_finds_a_follower", deposed_leader_finds_a_follower),
    ("firewall_refuses", firewall_refuses),
    ("late_answers", late_answers),
    ("granter_restarts", granter_restarts),
    ("hand_over_with_late_news", hand_over_with_late_news),
    ("old_certificate", old_certificate),
    ("old_record_reaches_a_majority", crate::old_records::old_record_reaches_a_majority),
    ("leader_alone", leader_alone),
    ("appends_do_not_pass", appends_do_not_pass),
    ("lowest_leads", lowest_leads),
    ("unready_elder", unready_elder),
    ("cut_from_the_leader", cut_from_the_leader),
    ("elder_keeps_dying", elder_keeps_dying),
    ("odd_leader", odd_leader),
    ("odd_under_load", odd_under_load),
    ("odd_under_load_with_long_beats", odd_under_load_with_long_beats),
    ("digests_of_two_builds", digests_of_two_builds),
    ("odd_leader_without_proof", odd_leader_without_proof),
    ("odd_follower_without_proof", odd_follower_without_proof),
    ("old_snapshot_again", old_snapshot_again),
    ("late_word_of_an_older_life", crate::late_words::late_word_of_an_older_life),
    ("refused_under_another_name", crate::late_words::refused_under_another_name),
    ("an_old_copy_is_put_back", crate::copies::an_old_copy_is_put_back),
    ("old_suffix_is_not_acknowledged", old_suffix_is_not_acknowledged),
    ("tokens_after_a_restore", crate::restores::tokens_after_a_restore),
    ("leads_again_before_its_heir", crate::answers::leads_again_before_its_heir),
    ("late_word_of_a_wiped_disk", crate::answers::late_word_of_a_wiped_disk),
    ("nothing_follows_a_write", crate::answers::nothing_follows_a_write),
];

#[test]
fn every_scenario_holds() {
    for (name, scenario) in ALL {
        if let Err(violation) = scenario() {
            panic!("{name}: {} — {}", violation.checker, violation.what);
        }
    }
}
