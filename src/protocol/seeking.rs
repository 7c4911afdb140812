//! Leaderless: asking around (the dry run), and deciding when to claim (P4).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::claim::Claiming;
use super::io::{Cause, Seq};
use super::message::{Condition, Message, Standing};
use super::mutant::{self, Mutant};
use super::node::{Node, Role};
use super::quorum::majority;
use crate::types::{NodeId, Span, Time};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Seeking {
    pub since: Time,
    /// The leader that was given up.
    pub suspected: Option<NodeId>,
    /// The number of the last asking, and when each recent one was sent.
    ask: u64,
    asked: VecDeque<(u64, Time)>,
    next_ask: Time,
    /// In which round each was last asked out of turn.
    asked_again: BTreeMap<NodeId, u64>,
    pub known: BTreeMap<NodeId, Known>,
    pub claim: Option<Claiming>,
    /// It led until a moment ago and only needs a greater counter (P28).
    pub incumbent: bool,
    pub as_heir: bool,
    /// It has handed over and leaves the field to its heir until then (P18).
    pub quiet_until: Time,
    /// Since when a majority would have this node (P4).
    winnable_since: Option<Time>,
    pub after_start: bool,
    /// Available mode: a leader was heard whose log lacks some of this one (P32).
    pub stands_apart: bool,
}

/// What a node has lately said of itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Known {
    pub standing: Standing,
    /// When it last answered a question of ours: only that proves both directions (P4).
    pub answered: Option<Time>,
    pub yes: bool,
    /// It passes over this node for a while (P20).
    pub held: bool,
}

/// What a node thinks of this one as a leader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Opinion {
    pub yes: bool,
    pub held: bool,
}

impl Seeking {
    pub fn new(now: Time, cause: Cause) -> Seeking {
        Seeking {
            since: now,
            suspected: None,
            ask: 0,
            asked: VecDeque::new(),
            next_ask: now,
            asked_again: BTreeMap::new(),
            known: BTreeMap::new(),
            claim: None,
            incumbent: cause == Cause::GreaterEpoch,
            as_heir: false,
            quiet_until: Time::default(),
            winnable_since: None,
            after_start: cause == Cause::Started,
            stands_apart: false,
        }
    }

    pub fn answered_lately(&self, node: NodeId, now: Time, fresh: Span) -> Option<&Known> {
        let known = self.known.get(&node)?;
        let at = known.answered?;
        (at + fresh >= now).then_some(known)
    }

    pub fn hears(&self, now: Time, fresh: Span) -> BTreeSet<NodeId> {
        let known = self.known.keys().copied();
        known.filter(|node| self.answered_lately(*node, now, fresh).is_some()).collect()
    }
}

impl Node {
    pub(super) fn settle_seeking(&mut self) {
        self.note_whether_winnable();
        self.settle_claim();
        if self.may_claim_now() {
            self.claim(None);
        }
        self.ask_if_due();
    }

    /// The turns of the candidates are counted from when the dry run was won: before that nobody could
    /// have claimed.
    fn note_whether_winnable(&mut self) {
        let now = self.mono();
        let won = match &self.role {
            Role::Seeking(seeking) => self.dry_run_won(seeking),
            _ => false,
        };
        if let Role::Seeking(seeking) = &mut self.role {
            seeking.winnable_since = won.then(|| seeking.winnable_since.unwrap_or(now));
        }
    }

    /// The heir is told at once that its leader has been given up; the others are asked only if it does not
    /// come forward within one stagger. So a failover costs messages by the number of nodes, not by
    /// its square.
    pub(super) fn ask_heir_first(&mut self, heir: NodeId) {
        let (now, stagger) = (self.mono(), self.settings.timing.stagger);
        let Role::Seeking(seeking) = &mut self.role else {
            return;
        };
        seeking.ask += 1;
        seeking.asked.push_back((seeking.ask, now));
        seeking.next_ask = now + stagger;
        let (ask, standing) = (seeking.ask, self.standing());
        self.send_after(heir, Message::Willing { ask, standing }, Seq::default());
    }

    fn ask_if_due(&mut self) {
        let (now, fresh, declare) = (self.mono(), self.fresh(), self.settings.timing.declare);
        let Role::Seeking(seeking) = &mut self.role else {
            return;
        };
        if now < seeking.next_ask || now < seeking.quiet_until || seeking.claim.is_some() {
            return;
        }
        seeking.next_ask = now + declare;
        seeking.ask += 1;
        seeking.asked.push_back((seeking.ask, now));
        while seeking.asked.front().is_some_and(|(_, at)| *at + fresh < now) {
            seeking.asked.pop_front();
        }
        let ask = seeking.ask;
        let standing = self.standing();
        self.broadcast(&Message::Willing { ask, standing }, Seq::default());
    }

    pub(super) fn standing(&self) -> Standing {
        let (now, fresh) = (self.mono(), self.fresh());
        let (hears, seeking) = match &self.role {
            Role::Seeking(seeking) => (seeking.hears(now, fresh), now.since(seeking.since)),
            _ => (BTreeSet::new(), Span::ZERO),
        };
        Standing {
            promise: self.promise(),
            seen: self.seen,
            last: self.log.last(),
            hears,
            seeking,
            condition: self.condition(),
            vector: self.told_vector(),
        }
    }

    pub(super) fn condition(&self) -> Condition {
        match () {
            () if self.is_blank() => Condition::Blank,
            () if !self.may_vote() => Condition::Recovering,
            () if self.full || self.own_hold.holds(self.mono()) || self.is_held_by_others() => {
                Condition::Held
            }
            () => Condition::Fit,
        }
    }

    /// A process that has just started does not remember its deaths; the others do (P20).
    fn is_held_by_others(&self) -> bool {
        let (now, fresh) = (self.mono(), self.fresh());
        let Role::Seeking(seeking) = &self.role else {
            return false;
        };
        let mut others = seeking.known.keys();
        others.any(|node| seeking.answered_lately(*node, now, fresh).is_some_and(|known| known.held))
    }

    pub(super) fn on_willing(&mut self, from: NodeId, ask: u64, standing: Standing) {
        self.seen = self.seen.max(standing.seen);
        let opinion = Message::Opinion {
            ask,
            yes: self.would_approve(from, standing.condition)
                && self.is_of_one_history(standing.vector.as_ref()),
            held: self.peers.is_held(from, self.mono()),
            standing: self.standing(),
        };
        self.send(from, opinion);
        match &mut self.role {
            Role::Seeking(seeking) => {
                let seeking_for = standing.seeking;
                seeking.note(from, standing, None);
                self.ask_again(from, seeking_for);
            }
            Role::Leading(_) => self.beat_to(from),
            Role::Following(_) => {}
        }
    }

    /// It said no and now seeks, or it has only now come up: what does it say? Waiting for the next round
    /// of asking would hand this node's turn to the next in rank. Once per round, or two that keep
    /// saying no would never stop.
    fn ask_again(&mut self, node: NodeId, seeking_for: Span) {
        let (now, fresh, useful) = (self.mono(), self.fresh(), self.may_vote());
        let (declare, patience) = (self.settings.timing.declare, self.settings.timing.stagger.0 / 4);
        let Role::Seeking(seeking) = &mut self.role else {
            return;
        };
        let known = seeking.answered_lately(node, now, fresh);
        let content = known.is_some_and(|known| known.yes);
        if seeking.claim.is_some() || now < seeking.quiet_until || !useful || content {
            return;
        }
        let unanswered_until = seeking.asked.back().map_or(now, |(_, at)| *at + Span(patience));
        if known.is_none() && now < unanswered_until {
            // The answer to a question just asked may be on its way; if not, the next round is early.
            if seeking_for < declare {
                seeking.next_ask = seeking.next_ask.min(unanswered_until);
            }
            return;
        }
        if seeking.asked_again.insert(node, seeking.ask) != Some(seeking.ask) {
            let (ask, standing) = (seeking.ask, self.standing());
            self.send_after(node, Message::Willing { ask, standing }, Seq::default());
        }
    }

    pub(super) fn on_opinion(&mut self, from: NodeId, ask: u64, opinion: Opinion, standing: Standing) {
        self.seen = self.seen.max(standing.seen);
        let (now, fresh) = (self.mono(), self.fresh());
        let Role::Seeking(seeking) = &mut self.role else {
            return;
        };
        let in_time = |(number, at): &(u64, Time)| *number == ask && *at + fresh >= now;
        let answered = seeking.asked.iter().any(in_time);
        seeking.note(from, standing, answered.then_some((now, opinion)));
    }

    /// Its port refused: what it said before does not count any more.
    pub(super) fn forget_answer(&mut self, peer: NodeId) {
        if let Role::Seeking(seeking) = &mut self.role {
            seeking.known.remove(&peer);
        }
    }

    fn may_claim_now(&self) -> bool {
        let Role::Seeking(seeking) = &self.role else {
            return false;
        };
        let now = self.mono();
        if seeking.claim.is_some() || !self.may_vote() || self.full || now < seeking.quiet_until {
            return false;
        }
        if seeking.as_heir && !self.is_blank() {
            return true;
        }
        (self.dry_run_won(seeking) || mutant::is_on(Mutant::NoDryRun)) && now >= self.turn(seeking)
    }

    /// A majority, this node included, answered lately that it would approve (P4). A cluster that was
    /// never formed needs every node that the operator has not excused (P9).
    fn dry_run_won(&self, seeking: &Seeking) -> bool {
        if self.settings.is_available() {
            return self.gathering_is_complete(seeking);
        }
        let (now, fresh) = (self.mono(), self.fresh());
        let blank = self.is_blank();
        let yes = self.settings.others().filter(|node| {
            let known = seeking.answered_lately(*node, now, fresh);
            known.is_some_and(|known| known.yes && self.is_of_use(*node, known))
        });
        if blank { self.founders_agree(&yes.collect()) } else { yes.count() + 1 >= self.settings.quorum() }
    }

    /// Whether that node's promise would count: a founder's among founders, else that of a disk which
    /// the log knows (P9, P10).
    fn is_of_use(&self, node: NodeId, known: &Known) -> bool {
        if self.is_blank() {
            return known.standing.condition == Condition::Blank;
        }
        let incarnation = self.peers.get(node).map(|peer| peer.incarnation);
        incarnation.is_some_and(|incarnation| self.log.roster().knows(node, incarnation))
            || mutant::is_on(Mutant::AnyIncarnationCounts)
    }

    /// Whether these nodes and this one may form the cluster (P9).
    pub(super) fn founders_agree(&self, yes: &BTreeSet<NodeId>) -> bool {
        if mutant::is_on(Mutant::FormByMajority) {
            return yes.len() + 1 >= self.settings.quorum();
        }
        let excused = self.forming_without.clone().unwrap_or_default();
        self.settings.others().all(|node| yes.contains(&node) || excused.contains(&node))
            && yes.len() + 1 >= majority(self.settings.members.len())
    }

    /// When this candidate's turn comes: each rank waits one stagger longer (P4). Where nothing has ever been served nobody
    /// waits for a leader, and processes that start together start some time apart: each rank waits long enough for its
    /// elder to ask once more (P9).
    fn turn(&self, seeking: &Seeking) -> Time {
        if seeking.incumbent || mutant::is_on(Mutant::NoRankWait) {
            return seeking.since;
        }
        let rank = self.rank_of(self.me(), seeking, self.condition());
        let from = seeking.winnable_since.unwrap_or(seeking.since);
        let timing = &self.settings.timing;
        let head_start = if self.is_blank() { timing.declare.times(4) } else { timing.stagger };
        from + head_start.times(rank)
    }

    pub(super) fn seeking_deadline(&self, seeking: &Seeking) -> Time {
        let mut deadline = seeking.next_ask.max(seeking.quiet_until);
        if let Some(claim) = &seeking.claim {
            return claim.deadline().min(self.pending_deadline(seeking));
        }
        if self.may_vote() && !self.full && self.dry_run_won(seeking) {
            deadline = deadline.min(self.turn(seeking).max(seeking.quiet_until));
        }
        deadline.min(self.pending_deadline(seeking))
    }
}

impl Seeking {
    fn note(&mut self, from: NodeId, standing: Standing, answer: Option<(Time, Opinion)>) {
        let before = self.known.get(&from);
        let (answered, Opinion { yes, held }) = match answer {
            Some((at, opinion)) => (Some(at), opinion),
            None => before.map_or((None, Opinion::default()), |known| {
                let Known { yes, held, .. } = *known;
                (known.answered, Opinion { yes, held })
            }),
        };
        let known = Known { standing, answered, yes, held };
        self.known.insert(from, known);
    }
}
