//! A node without a leader asks around (the dry run), and decides when to claim (P4).

use std::collections::BTreeSet;

use crate::protocol::log::After;
use crate::protocol::messages::{Condition, Event, Message, Objection, Standing};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::state::{Known, Node, Opinion, Role, Seeking};
use crate::types::{NodeId, Span, Time};

/// So few founders listen first (P9): of a cluster of five two disks may be lost at a time. Three founders would have to be lost
/// out of seven.
const LISTENING_FOUNDERS: usize = 2;

impl Node {
    pub(in crate::protocol) fn settle_seeking(&mut self) {
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
    pub(in crate::protocol) fn ask_heir_first(&mut self, heir: NodeId) {
        let (now, stagger) = (self.mono(), self.settings.timing.stagger);
        let Role::Seeking(seeking) = &mut self.role else {
            return;
        };
        seeking.ask += 1;
        seeking.asked.push_back((seeking.ask, now));
        seeking.next_ask = now + stagger;
        let ask = seeking.ask;
        let willing = self.willing(heir, ask);
        self.send_after(heir, willing, After::default());
    }

    /// The question as it is sent: its number is known to whoever is asked, and to nobody else (P51).
    fn willing(&self, to: NodeId, ask: u64) -> Message {
        Message::Willing { ask: self.settings.numbers_from(to) + ask, standing: self.standing() }
    }

    /// A follower asks its leader, out of turn, under a number that no round of asking has.
    pub(in crate::protocol) fn ask_whether_odd(&mut self, leader: NodeId) {
        self.send(leader, self.willing(leader, 0));
    }

    pub(in crate::protocol) fn has_asked_whether_odd(&self, leader: NodeId, ask: u64) -> bool {
        ask == self.settings.numbers_from(leader)
    }

    /// From where on the leader's beats to that node are numbered.
    pub(in crate::protocol) fn beats_from(&self, to: NodeId) -> u64 {
        if mutant::is_on(Mutant::BeatsAreGuessed) { 0 } else { self.settings.numbers_from(to) }
    }

    /// Whether this node has lately asked that one the question of that number.
    pub(in crate::protocol) fn has_asked(&self, node: NodeId, ask: u64) -> bool {
        let (now, fresh) = (self.mono(), self.fresh());
        let Role::Seeking(seeking) = &self.role else {
            return false;
        };
        let own = ask.checked_sub(self.settings.numbers_from(node));
        own.is_some_and(|own| seeking.asked.iter().any(|(number, at)| *number == own && *at + fresh >= now))
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
        for to in self.others() {
            self.send_after(to, self.willing(to, ask), After::default());
        }
    }

    pub(in crate::protocol) fn standing(&self) -> Standing {
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
            vector: self.vector_to_send(),
        }
    }

    pub(in crate::protocol) fn condition(&self) -> Condition {
        match () {
            () if self.is_blank() && self.forming_without.is_some() => Condition::Ordered,
            () if self.is_blank() => Condition::Blank,
            () if !self.may_vote() => Condition::Recovering,
            () if self.full || self.own_hold.lasts(self.mono()) || self.is_on_hold_for_others() => {
                Condition::Held
            }
            () => Condition::Fit,
        }
    }

    /// A process that has just started does not remember its deaths; the others do (P20).
    fn is_on_hold_for_others(&self) -> bool {
        let (now, fresh) = (self.mono(), self.fresh());
        let Role::Seeking(seeking) = &self.role else {
            return false;
        };
        let mut others = seeking.known.keys();
        others.any(|node| seeking.answered_lately(*node, now, fresh).is_some_and(|known| known.held))
    }

    pub(in crate::protocol) fn on_willing(&mut self, from: NodeId, ask: u64, standing: Standing) {
        self.seen = self.seen.max(standing.seen);
        if self.answers_odd(from, ask) {
            return;
        }
        let one_history = self.is_of_one_history(standing.vector.as_ref());
        let objection = match self.objection_to(from, standing.condition) {
            None => (!one_history).then_some(Objection::OtherHistory),
            objection => objection,
        };
        if let Some(why) = objection {
            self.event(Event::Declined { candidate: from, why });
        }
        let opinion = Message::Opinion {
            ask,
            yes: objection.is_none(),
            held: self.peers.is_on_hold(from, self.mono()),
            standing: self.standing(),
        };
        self.send(from, opinion);
        // A stranger has named its address itself: no number of a question or of a beat goes there (P51).
        let told = self.is_member(from) || mutant::is_on(Mutant::StrangersAreAsked);
        match &mut self.role {
            Role::Seeking(seeking) => {
                let seeking_for = standing.seeking;
                seeking.note(from, standing, None);
                if told {
                    self.ask_again(from, seeking_for);
                }
            }
            Role::Leading(_) if told => self.beat_to(from),
            Role::Leading(_) | Role::Following(_) => {}
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
            let ask = seeking.ask;
            let willing = self.willing(node, ask);
            self.send_after(node, willing, After::default());
        }
    }

    pub(in crate::protocol) fn on_opinion(
        &mut self,
        from: NodeId,
        ask: u64,
        opinion: Opinion,
        standing: Standing,
    ) {
        self.seen = self.seen.max(standing.seen);
        let (now, answered) = (self.mono(), self.has_asked(from, ask));
        let Role::Seeking(seeking) = &mut self.role else {
            return;
        };
        seeking.note(from, standing, answered.then_some((now, opinion)));
    }

    /// Its port refused: what it said before does not count any more.
    pub(in crate::protocol) fn forget_answer(&mut self, peer: NodeId) {
        if let Role::Seeking(seeking) = &mut self.role {
            seeking.known.remove(&peer);
        }
    }

    fn may_claim_now(&self) -> bool {
        let Role::Seeking(seeking) = &self.role else {
            return false;
        };
        let now = self.mono();
        if seeking.claim.is_some() || !self.may_lead() || self.full || now < seeking.quiet_until {
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
        let yes = self.other_voters().filter(|node| {
            let known = seeking.answered_lately(*node, now, fresh);
            known.is_some_and(|known| known.yes && self.is_of_use(*node, known))
        });
        if blank {
            self.founders_agree(&yes.collect())
        } else {
            yes.count() + self.own_vote() >= self.quorum()
        }
    }

    /// Whether that node's promise would count: a founder's among founders, else that of a disk which
    /// the log knows (P9, P10).
    fn is_of_use(&self, node: NodeId, known: &Known) -> bool {
        if self.is_blank() {
            return known.standing.condition.is_blank();
        }
        let peer = self.peers.get(node);
        peer.is_some_and(|peer| self.vote_counts(node, peer.incarnation))
    }

    /// Whether these nodes and this one may form the cluster (P9).
    pub(in crate::protocol) fn founders_agree(&self, yes: &BTreeSet<NodeId>) -> bool {
        if mutant::is_on(Mutant::FormByMajority) {
            return yes.len() + 1 >= self.quorum();
        }
        // Whoever has added this node since need not stand in its topology file.
        let by_order = self.forming_without.is_some() || mutant::is_on(Mutant::FormDeaf);
        let listens = self.listens_for_a_cluster() && !mutant::is_on(Mutant::FoundWithoutListening);
        if !by_order && (self.hears_cluster || listens) {
            return false;
        }
        let excused = self.forming_without.clone().unwrap_or_default();
        self.others().all(|node| yes.contains(&node) || excused.contains(&node))
            && yes.len() + 1 >= self.quorum()
    }

    /// Whether this node, if it is blank, lets others found a cluster with it: what it has heard they may not have. An operator's order
    /// is above that (P9).
    pub(in crate::protocol) fn may_found(&self, condition: Condition) -> bool {
        let unasked = self.settings.is_available() || mutant::is_on(Mutant::FoundsWithOthers);
        let by_order = condition == Condition::Ordered || self.forming_without.is_some();
        !condition.is_blank() || (self.is_blank() && (by_order || unasked || !self.hears_cluster))
    }

    /// Whether a cluster that these founders have formed before, and that has grown since, may yet be about to speak (P9).
    pub(in crate::protocol) fn listens_for_a_cluster(&self) -> bool {
        let listening = if mutant::is_on(Mutant::FoundersDeaf) { 1 } else { LISTENING_FOUNDERS };
        self.is_blank() && self.members().len() <= listening && self.mono() < self.listens_until
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

    pub(in crate::protocol) fn seeking_deadline(&self, seeking: &Seeking) -> Time {
        let patience = self.settings.timing.dead_after;
        let ends = seeking.removed.map_or(Time::NEVER, |(since, _)| since + patience);
        let mut deadline = seeking.next_ask.max(seeking.quiet_until).min(ends);
        if let Some(claim) = &seeking.claim {
            return claim.deadline().min(self.pending_deadline(seeking)).min(ends);
        }
        if self.may_lead() && !self.full && self.dry_run_won(seeking) {
            deadline = deadline.min(self.turn(seeking).max(seeking.quiet_until));
        }
        deadline.min(self.pending_deadline(seeking))
    }
}
