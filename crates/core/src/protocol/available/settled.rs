//! Available mode: a cluster forgets its tombstones and rivals once every disk has had everything (P35).

use crate::protocol::mutant::{self, Mutant};
use crate::protocol::state::{Leader, Node};
use crate::types::{Entry, Index, Position};

/// Records between two of these: what stays to be told apart in a cluster that is whole.
const EVERY: Index = 1024;

impl Node {
    /// Where every node of the topology is known to hold everything up to a record of this epoch, no other history can have
    /// begun below it: the epochs there need no names any more.
    pub(in crate::protocol) fn settle_histories(&mut self) {
        let Some(upto) = self.as_open_leader().and_then(Leader::to_be_settled) else {
            return;
        };
        if let Some(leading) = self.leading_mut() {
            leading.settled = upto.index;
        }
        if !mutant::is_on(Mutant::NeverSettle) {
            self.append_as_leader(Entry::Settled { upto });
            let by = self.log.last();
            if let Some(leading) = self.leading_mut().filter(|_| !mutant::is_on(Mutant::MergeOverSettled)) {
                leading.merges.since = by;
            }
        }
    }
}

impl Node {
    /// Another process speaks for a follower, with a disk that may have forgotten something: nothing is settled before all have
    /// followed anew.
    pub(in crate::protocol) fn note_new_process(&mut self, replaced: bool) {
        let now = self.mono();
        let counts = replaced || !mutant::is_on(Mutant::SettleOverCopies);
        if let Some(leading) = self.leading_mut().filter(|_| counts) {
            leading.new_process_at = now;
        }
    }
}

impl Leader<'_> {
    fn to_be_settled(self) -> Option<Position> {
        let (node, leading) = (self.node, self.leading);
        let upto = self.reached_by_everybody()?;
        let quiet = !leading.is_meeting() && !node.full;
        let due = node.log.vector()?.len() > 1 || upto >= leading.settled + EVERY;
        if !quiet || !due || upto < leading.open_index || upto <= leading.settled {
            return None;
        }
        node.log.position(upto).filter(|position| position.epoch == leading.term.epoch)
    }
}
