//! A late message of an earlier life of a node is taken for one of a new process. No promise depends on that.

use eldest::protocol::{Ack, Envelope, Message};
use eldest::replica::In;
use eldest::types::{Boot, Epoch, NodeId};

use crate::checks::Check;
use crate::scenarios::from_n2;
use crate::stage::{MS, run, stage, write};
use crate::world::Event;

/// P15: a late message of an earlier life of n2 arrives, then a firewall refuses in n2's name for a moment.
/// n2 lives on and answers.
pub fn refused_under_another_name() -> Check {
    let mut world = stage(3, 19, |settings| settings.ack = Ack::All)?;
    let late = Envelope { boot: Boot(0x01D), ..from_n2(&world, 1, Message::Resigned { epoch: Epoch::ZERO }) };
    world.feed(0, In::Message(Box::new(late), None))?;
    world.after(MS, Event::Refused { node: 0, peer: NodeId(2), lie: true });
    run(&mut world, 500)?;
    world.net.slow.insert((NodeId(1), NodeId(2)), 150 * MS);
    write(&mut world, 1, 1);
    run(&mut world, 500)
}

/// P11: n2 and n3 hear a late message of an earlier life of n1, which they take for a new process, and n1 is
/// cut off.
pub fn late_word_of_an_older_life() -> Check {
    let mut world = stage(3, 20, |_| {})?;
    world.cut_off(0);
    for node in [1, 2] {
        let (epoch, to) = (Epoch::ZERO, NodeId(node as u32 + 1));
        let boot = Boot(0x01D);
        let late = Envelope { from: NodeId(1), to, boot, ..from_n2(&world, 0, Message::Resigned { epoch }) };
        let incarnation = world.hosts[0].disk.durable.incarnation;
        world.feed(node, In::Message(Box::new(Envelope { incarnation, ..late }), None))?;
    }
    run(&mut world, 2_000)
}
