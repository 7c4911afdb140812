//! A leader notices a disk that ends below what it has acknowledged: an older copy of it was put back (P27).

use crate::protocol::messages::Event;
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::state::{Leading, Node};
use crate::types::{Incarnation, Index, NodeId};

impl Node {
    /// Safe mode: that disk has said that it holds everything up to there, durably. What is no answer to a beat anybody may have sent, unless
    /// peers prove who they are: no node ends because of that (P51).
    pub(in crate::protocol) fn note_kept(&mut self, from: NodeId, matched: Index, answers: bool) {
        let believed = (answers || self.settings.peers_prove) && !self.settings.is_available();
        let last = self.log.last().index;
        let Some(leading) = self.leading_mut().filter(|_| believed) else {
            return;
        };
        let round = leading.round;
        if let Some(progress) = leading.progress.get_mut(&from) {
            progress.keeps(matched.min(last), round);
        }
    }

    /// Its log ends there, by its answer to that round. Says whether it is listened to.
    pub(in crate::protocol) fn remembers(&mut self, from: NodeId, round: u64, end: Index) -> bool {
        let disk = self.disk_of(from);
        let overlooked = self.settings.is_available() || mutant::is_on(Mutant::ForgottenOverlooked);
        let Some(leading) = self.leading_mut().filter(|_| !overlooked) else {
            return true;
        };
        let kept = leading.progress.get(&from).map_or(0, |progress| progress.kept_before(round));
        if end < kept && leading.forgetful.insert(disk) {
            self.event(Event::Forgot { node: from, kept, end });
        }
        let forgot = self.has_forgotten(from);
        if forgot {
            self.tell_odd(from, None);
        }
        !forgot
    }

    /// Whether this leader has found that the disk which speaks in that node's name has forgotten what it acknowledged.
    pub(in crate::protocol) fn has_forgotten(&self, node: NodeId) -> bool {
        self.leading().is_some_and(|leading| leading.has_forgotten(self.disk_of(node)))
    }
}

impl Leading {
    fn has_forgotten(&self, disk: Incarnation) -> bool {
        self.forgetful.contains(&disk)
    }
}
