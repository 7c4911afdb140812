//! Two machines under one id: an operator starts another one with a blank disk, and the first one lives on.
//! Each of the other nodes reaches one of the two at a time, as an address leads to one machine.

use std::collections::BTreeMap;

use eldest::protocol::Ack;
use eldest::types::NodeId;

use crate::checks::Violation;
use crate::disk::Disk;
use crate::host::{Clock, Host};
use crate::rng::Rng;
use crate::world::World;

/// Processes of a double are counted from here on, so that readers and checkers can tell them from those of
/// the first machine.
const LIVES: u64 = 1 << 40;

#[derive(Debug, Default)]
pub struct Doubles {
    /// The machine that a node reaches under an id, if it is not the first one.
    reaches: BTreeMap<(NodeId, NodeId), usize>,
    /// Both machines are heard, no matter which of them is reached.
    pub both_speak: bool,
    /// Some seeds start doubles, and draw from this.
    pub rng: Option<Rng>,
}

const DRAWN: u64 = 0xD0B1E;

impl World {
    /// The machine that a node reaches under this id.
    pub fn reached_from(&self, from: NodeId, id: NodeId) -> usize {
        self.doubles.reaches.get(&(from, id)).copied().unwrap_or_else(|| self.slot(id))
    }

    pub fn machine(&self, node: usize, id: NodeId) -> usize {
        self.reached_from(self.hosts[node].id, id)
    }

    /// The receiver is connected to the other machine of this sender's id.
    pub fn is_unheard(&self, sender: usize, to: NodeId) -> bool {
        let id = self.hosts[sender].id;
        self.reached_from(to, id) != sender && !self.doubles.both_speak
    }

    /// From now on this node reaches that machine under its id.
    pub fn redirect(&mut self, from: NodeId, machine: usize) {
        let id = self.hosts[machine].id;
        if from != id {
            self.doubles.reaches.insert((from, id), machine);
        }
    }

    /// Another machine starts under the id of this one, with a blank disk. No node reaches it yet.
    pub fn start_double(&mut self, node: usize, seed: u64) -> Result<usize, Violation> {
        let first = &self.hosts[node];
        let Clock { offset, rate_ppm, wall_offset } = first.clock;
        let clock = Clock { offset: offset + 77_000_000, rate_ppm: -rate_ppm, wall_offset };
        let disk = Disk::of(seed, first.disk.durable.snapshot.state.blank());
        let (sync_us, settings) = (first.sync_us, first.settings.clone());
        let double = Host { sync_us, life: LIVES, ..Host::new(settings, disk, clock) };
        let id = double.id;
        for peer in self.others(id) {
            self.redirect(peer, node);
        }
        self.note(|| format!("--- another {id} starts"));
        self.hosts.push(double);
        let double = self.hosts.len() - 1;
        self.start(double)?;
        Ok(double)
    }

    /// The newest machine under this id: the one that is to have its seat.
    pub fn newest_machine(&self, id: NodeId) -> &Host {
        let newest = self.hosts.iter().rfind(|host| host.id == id);
        newest.expect("a node of the topology")
    }

    pub fn has_double(&self, id: NodeId) -> bool {
        self.hosts.iter().filter(|host| host.id == id).count() > 1
    }

    /// The operator retires the replaced machine for good.
    pub fn retire_doubles(&mut self) {
        for double in 0..self.hosts.len() {
            let first = self.slot(self.hosts[double].id);
            if first >= double {
                continue;
            }
            self.crash(first, true);
            self.hosts[first].powered = false;
            self.hosts[first].retired = true;
        }
        self.doubles.reaches.clear();
    }

    /// In some seeds a double is started at some time.
    pub fn draw_doubles(&mut self, seed: u64) {
        let mut rng = Rng::new(seed ^ DRAWN);
        if rng.chance(150) && self.hosts[0].settings.ack == Ack::Majority {
            self.doubles.rng = Some(rng);
        }
    }

    /// The node under whose id a second machine is to be started now.
    pub fn wants_double(&mut self) -> Option<usize> {
        let members = self.hosts[0].settings.members.len();
        let alone = self.hosts.len() == members;
        let rng = self.doubles.rng.as_mut().filter(|_| alone)?;
        rng.chance(300).then(|| rng.below(members as u64) as usize)
    }

    /// Some of the other nodes switch from one machine to the other.
    pub fn redirect_peers(&mut self) {
        let double = self.hosts[0].settings.members.len();
        let Some(mut rng) = self.doubles.rng.take() else {
            return;
        };
        if double < self.hosts.len() {
            self.redirect_some(&mut rng, double);
        }
        self.doubles.rng = Some(rng);
    }

    fn redirect_some(&mut self, rng: &mut Rng, double: usize) {
        let id = self.hosts[double].id;
        let first = self.slot(id);
        self.doubles.both_speak = rng.chance(200);
        for peer in self.others(id) {
            if rng.chance(400) {
                let machine = if rng.chance(500) { first } else { double };
                let which = if machine == first { "first" } else { "other" };
                self.note(|| format!("--- {peer} reaches the {which} {id}"));
                self.redirect(peer, machine);
            }
        }
    }
}
