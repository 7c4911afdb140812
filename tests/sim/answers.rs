//! Timelines of answers that a leader owes: which nodes must have the record that an answer stands for (P15),
//! and which of them hear of its commit (P7).

use eldest::protocol::{Ack, Message};
use eldest::types::{Index, NodeId, Span};

use crate::checks::{Check, ensure};
use crate::stage::{MS, core, leads, linearizable, run, stage, write};
use crate::world::World;

/// The heir never hears of the hand-over, another node leads meanwhile and dies, and the node that handed
/// over leads again. The caller that asked for the hand-over learns that its outcome is unknown.
pub fn leads_again_before_its_heir() -> Check {
    let mut world = stage(3, 30, |settings| settings.timing.window = Span::millis(4_000))?;
    world.net.dropped = Some(|envelope| matches!(envelope.message, Message::HandOver(_)));
    world.hand_over(0, Some(NodeId(3)))?;
    let led = world.run_until_true(world.now + 2_000 * MS, |world| leads(world, 2))?;
    ensure(led, "stage", || "n2 does not lead".into())?;
    run(&mut world, 50)?;
    world.crash(1, false);
    let led = world.run_until_true(world.now + 1_500 * MS, |world| leads(world, 1))?;
    ensure(led, "stage", || "n1 does not lead again".into())?;
    run(&mut world, 5_000)?;
    let owed = &world.hosts[0].calls;
    ensure(owed.is_empty(), "P15 each call is answered once", || format!("n1 owes {owed:?}"))
}

/// Under `ack = all` a follower's disk is replaced and let in. Then a message of the earlier disk arrives,
/// from an epoch that is over, and with it a write. The write must wait for the new disk.
pub fn late_word_of_a_wiped_disk() -> Check {
    let mut world = stage(3, 31, |settings| settings.ack = Ack::All)?;
    let answers = |envelope: &eldest::protocol::Envelope| {
        envelope.from == NodeId(3) && matches!(envelope.message, Message::HeartbeatReply { .. })
    };
    world.recorder = Some(answers);
    run(&mut world, 300)?;
    world.recorder = None;
    let late = world.recorded.pop();
    for heir in [2, 1] {
        world.hand_over(usize::from(heir == 1), Some(NodeId(heir)))?;
        run(&mut world, 1_000)?;
    }
    ensure(leads(&world, 1), "stage", || "n1 does not lead again".into())?;
    world.crash(2, true);
    world.hosts[2].disk.wipe(0xD15C);
    world.start(2)?;
    let admitted = |world: &crate::world::World| core(world, 3).is_some_and(|core| core.is_admitted());
    let came = world.run_until_true(world.now + 8_000 * MS, admitted)?;
    ensure(came, "stage", || "n3 is not let in".into())?;
    // Halfway between two beats.
    run(&mut world, 550)?;
    // The new disk answers only after the write is on the two other nodes.
    world.net.slow.insert((NodeId(1), NodeId(3)), 100 * MS);
    let Some((envelope, state)) = late else {
        return ensure(false, "stage", || "n3 has answered nothing".into());
    };
    world.deliver(envelope, state)?;
    write(&mut world, 1, 1);
    run(&mut world, 3_000)?;
    linearizable(&mut world)
}

/// Beats are far apart, one write comes between two of them, and no write follows it. The followers still
/// hear of the commit.
pub fn nothing_follows_a_write() -> Check {
    let mut world = stage(3, 34, |settings| {
        settings.timing.heartbeat = Span::millis(480);
        settings.timing.lease = Span::millis(600);
    })?;
    let commits = |world: &World| -> Vec<Index> {
        world.hosts.iter().filter_map(|host| Some(host.core()?.commit_index())).collect()
    };
    let before = commits(&world);
    write(&mut world, 1, 1);
    // This is shorter than the time to the next beat: one was sent when n1's epoch opened, 500 ms ago.
    run(&mut world, 300)?;
    let after = commits(&world);
    let told = before.iter().zip(&after).all(|(before, after)| after > before);
    ensure(told, "P7 followers hear of a commit", || {
        format!("{before:?}, and 300 ms after a write {after:?}")
    })
}
