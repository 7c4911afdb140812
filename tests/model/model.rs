//! The state space as the checker sees it, and the properties of each of its states.

use eldest::protocol::Node;
use eldest::protocol::mutant::{self, Mutant};
use eldest::types::Epoch;
use stateright::{Model, Property};

use crate::cases::Case;
use crate::cluster::{Action, Cluster};
use crate::history::Breach;

/// A case, with one known bug put back or without.
#[derive(Clone, Debug)]
pub struct Cases {
    pub case: Case,
    pub mutant: Option<Mutant>,
}

impl Model for Cases {
    type State = Cluster;
    type Action = Action;

    fn init_states(&self) -> Vec<Cluster> {
        mutant::set(None);
        vec![self.case.start()]
    }

    fn actions(&self, state: &Cluster, actions: &mut Vec<Action>) {
        state.actions(actions);
    }

    /// The switch belongs to one thread, and so the checker's threads each set their own.
    fn next_state(&self, state: &Cluster, action: Action) -> Option<Cluster> {
        mutant::set(self.mutant);
        let next = state.after(&action, self.case.sync, self.case.lost);
        mutant::set(None);
        next
    }

    fn properties(&self) -> Vec<Property<Cases>> {
        let mut properties = vec![
            Property::always("a leader has what is committed (I2)", |_, s: &Cluster| {
                s.leaders_are_complete()
            }),
            Property::always("one position, one history (P5)", |_, s: &Cluster| s.logs_match()),
            Property::sometimes("a leader opens", |_, s: &Cluster| s.opened() >= 1),
            Property::sometimes("a second epoch opens", |_, s: &Cluster| s.opened() >= 2),
            Property::sometimes("a write commits", |_, s: &Cluster| s.history.writes() >= 1),
        ];
        properties.extend(breaches());
        properties
    }
}

/// The breaches that the spectator watches for in each action.
fn breaches() -> [Property<Cases>; 8] {
    use Breach::*;
    type S = Cluster;
    [
        Property::always("one leader an epoch (I1)", |_, s: &S| !s.has(TwoLeaders)),
        Property::always("acknowledged is committed (I2)", |_, s: &S| !s.has(AcknowledgedNotCommitted)),
        Property::always("committed is the same everywhere (I5)", |_, s: &S| !s.has(CommittedDiffer)),
        Property::always("a promise on disk never goes down (P2)", |_, s: &S| !s.has(PromiseLowered)),
        Property::always("what is said is durable (I9)", |_, s: &S| !s.has(SentBeforeDurable)),
        Property::always("a refused write never happens (P15)", |_, s: &S| !s.has(RefusedCommitted)),
        Property::always("nobody finds a contradiction (I11)", |_, s: &S| {
            !s.has(Stopped) && !s.has(Assertion)
        }),
        Property::always("the case stays within its means", |_, s: &S| !s.has(Unexpected)),
    ]
}

impl Cluster {
    fn has(&self, breach: Breach) -> bool {
        self.breach == Some(breach)
    }

    fn opened(&self) -> usize {
        self.history.opened.len()
    }

    /// Every leader, with an open epoch or not, has every record that was committed in an epoch below its
    /// own: stricter than I2, because P6 makes it pull first.
    fn leaders_are_complete(&self) -> bool {
        let nodes = self.hosts.iter().map(|host| host.core());
        let mut leaders = nodes.filter_map(|node| Some((node, node.leads()?)));
        leaders.all(|(node, epoch)| self.holds_committed_below(node, epoch))
    }

    fn holds_committed_below(&self, node: &Node, epoch: Epoch) -> bool {
        let committed = self.history.committed.iter().zip(&self.history.decided);
        let mut below = committed.filter(|(_, decided)| **decided < epoch);
        below.all(|(record, _)| node.log().get(record.index()) == Some(record))
    }

    /// Below the greatest position that two logs share, both are the same.
    fn logs_match(&self) -> bool {
        let [one, two, three] = [0, 1, 2].map(|node| self.hosts[node].core());
        [(one, two), (two, three), (one, three)].into_iter().all(|(a, b)| logs_match(a, b))
    }
}

fn logs_match(a: &Node, b: &Node) -> bool {
    let mut last = a.last().index.min(b.last().index);
    while last > 0 && a.log().position(last) != b.log().position(last) {
        last -= 1;
    }
    (1..=last).all(|index| a.log().get(index) == b.log().get(index))
}
