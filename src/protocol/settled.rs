//! Available mode: forgetting what it takes to tell sides apart, once every disk has had everything (P35).

use super::mutant::{self, Mutant};
use super::node::Node;
use crate::types::{Entry, Index};

/// Records between two of these: what stays to be told apart in a cluster that is whole.
const EVERY: Index = 1024;

impl Node {
    /// Where every node of the topology is known to hold everything up to a record of this epoch, no other history can have
    /// begun below it: the epochs there need no names any more.
    pub(super) fn settle_histories(&mut self) {
        let Some(upto) = self.reached_by_everybody() else {
            return;
        };
        let (Some(leading), Some(vector)) = (self.leading(), self.log.vector()) else {
            return;
        };
        let quiet = !leading.is_meeting() && !self.full;
        let due = vector.len() > 1 || upto >= leading.settled + EVERY;
        if !leading.opened || !quiet || !due || upto < leading.open_index || upto <= leading.settled {
            return;
        }
        let epoch = leading.term.epoch;
        let Some(upto) = self.log.position(upto).filter(|position| position.epoch == epoch) else {
            return;
        };
        if let Some(leading) = self.leading_mut() {
            leading.settled = upto.index;
        }
        if !mutant::is_on(Mutant::NeverSettle) {
            self.append_as_leader(Entry::Settled { upto });
        }
    }
}
