//! A node gives its leader up (P3), asks around (the dry run), and decides when its turn has come to claim (P4).

use std::collections::BTreeSet;

use super::durability::After;
use super::messages::{Cause, Condition, Envelope, Event, Message, Objection, Output, Standing, Term};
use super::mutant::{self, Mutant};
use super::node::{Node, RoleState};
use super::peers::Life;
use super::roles::{Assent, Following, Known, Seeking};
use crate::types::{Epoch, Index, NodeId, Span, Time};

// When a leader is given up (P3): silence, a dead process, or its own word. Each node decides for
// itself; a claim against a leader that still seems alive makes the node look (C28).
impl Node {
    /// Takes note of who sent a message, and of whether that is still the process we knew.
    pub(in crate::protocol) fn meet(&mut self, envelope: &Envelope) {
        let (now, timing) = (self.now.mono, &self.settings.timing);
        let from = envelope.from;
        let Some(peer) = self.peers.get_mut(from) else {
            return;
        };
        let replaced = peer.incarnation != envelope.incarnation;
        peer.incarnation = envelope.incarnation;
        peer.admitted = envelope.admitted || (peer.admitted && !replaced);
        peer.format = peer.format.max(envelope.format);
        let leads = matches!(&self.role, RoleState::Following(following) if following.leader == from);
        let life = peer.heard(envelope.boot, leads, now, timing);
        if replaced || life != Life::Known {
            self.forget_progress(from, replaced);
            self.note_new_process(replaced);
        }
        if life == Life::New {
            let another_disk = replaced && mutant::is_on(Mutant::GrantsEndWithNewDisk);
            if another_disk || mutant::is_on(Mutant::NewProcessVoidsGrants) {
                self.grants.void(from, envelope.incarnation);
            }
            // A grant stands: the message may be a late one of an older life, and the process that relies on it may live.
            self.suspect_if_leader(from, Cause::NewProcess);
        }
    }

    /// When the leader is given up if nothing is heard of it.
    pub(in crate::protocol) fn following_deadline(&self, following: &Following) -> Time {
        let timing = &self.settings.timing;
        let peer = self.peers.get(following.leader);
        let patience = peer.map_or(timing.dead_after, |peer| peer.patience(self.mono(), timing));
        following.deadline(self.woke_at, patience)
    }

    /// A port that refuses proves that no process listens. It does not prove that the old one has
    /// stopped believing in its lease (a firewall refuses too), so the grant stands (P11).
    pub(in crate::protocol) fn on_peer_refused(&mut self, peer: NodeId) {
        let (now, timing) = (self.now.mono, &self.settings.timing);
        if let Some(known) = self.peers.get_mut(peer) {
            known.refuses(now, timing);
            self.forget_answer(peer);
            self.forget_progress(peer, false);
            self.suspect_if_leader(peer, Cause::Refused);
        }
    }

    pub(in crate::protocol) fn on_resigned(&mut self, from: NodeId, epoch: Epoch) {
        if epoch.leader != from {
            return;
        }
        self.epochs.end(epoch);
        if epoch >= self.promise() {
            self.grants.void(from, self.disk_of(from));
        }
        if epoch == self.promise() {
            self.suspect_if_leader(from, Cause::Resigned);
        }
    }

    fn suspect_if_leader(&mut self, peer: NodeId, cause: Cause) {
        if matches!(&self.role, RoleState::Following(following) if following.leader == peer) {
            self.suspect(cause);
        }
    }

    pub(in crate::protocol) fn suspect(&mut self, cause: Cause) {
        let RoleState::Following(following) = &self.role else {
            return;
        };
        let leader = following.leader;
        let mut seeking = Seeking::new(self.now.mono, cause);
        seeking.suspected = Some(leader);
        seeking.as_heir = following.heir == Some(self.me()) && self.may_claim_as_heir(cause);
        let heir = following.heir;
        self.event(Event::Suspected { leader, cause });
        self.role = RoleState::Seeking(seeking);
        if let Some(heir) = heir.filter(|heir| *heir < self.me() && !self.peers.is_refused(*heir)) {
            self.ask_heir_first(heir);
        }
    }

    /// The heir that the leader named knows that its rank is zero: where the leader's process is surely
    /// gone it claims without a dry run (P4). Not twice in a row, or a firewall that refuses would make
    /// it a nuisance (C26).
    fn may_claim_as_heir(&self, cause: Cause) -> bool {
        let pause = self.settings.timing.election_timeout().times(4);
        let rested = self.claimed_as_heir.is_none_or(|at| self.mono() >= at + pause);
        rested && matches!(cause, Cause::Refused | Cause::NewProcess)
    }

    pub(in crate::protocol) fn probe(&mut self, peer: NodeId) {
        self.out.push(Output::Probe(peer));
    }

    /// Somebody's promise is greater than the epoch we spoke for.
    pub(in crate::protocol) fn on_stale(&mut self, promise: Term) {
        self.epochs.hear_of(promise.epoch);
        self.reclaim_if_outdated(promise);
    }

    pub(in crate::protocol) fn note_over(&mut self, epoch: Epoch) {
        self.epochs.end(epoch);
        self.broadcast(&Message::Resigned { epoch }, self.journal.disk().vote());
    }
}

/// So few founders listen first (P9): of a cluster of five two disks may be lost at a time. Three founders would have to be lost
/// out of seven.
const LISTENING_FOUNDERS: usize = 2;

// A node without a leader asks around (the dry run), and decides when to claim (P4).
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
            RoleState::Seeking(seeking) => self.dry_run_won(seeking),
            _ => false,
        };
        if let RoleState::Seeking(seeking) = &mut self.role {
            seeking.winnable_since = won.then(|| seeking.winnable_since.unwrap_or(now));
        }
    }

    /// The heir is told at once that its leader has been given up; the others are asked only if it does not
    /// come forward within one stagger. So a failover costs messages by the number of nodes, not by
    /// its square.
    fn ask_heir_first(&mut self, heir: NodeId) {
        let (now, stagger) = (self.mono(), self.settings.timing.stagger);
        let RoleState::Seeking(seeking) = &mut self.role else {
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
        let RoleState::Seeking(seeking) = &self.role else {
            return false;
        };
        let own = ask.checked_sub(self.settings.numbers_from(node));
        own.is_some_and(|own| seeking.asked.iter().any(|(number, at)| *number == own && *at + fresh >= now))
    }

    fn ask_if_due(&mut self) {
        let (now, fresh, declare) = (self.mono(), self.fresh(), self.settings.timing.declare);
        let RoleState::Seeking(seeking) = &mut self.role else {
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
            RoleState::Seeking(seeking) => (seeking.hears(now, fresh), now.since(seeking.since)),
            _ => (BTreeSet::new(), Span::ZERO),
        };
        Standing {
            promise: self.promise(),
            seen: self.epochs.newest(),
            last: self.last(),
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
            () if self.journal.is_full()
                || self.own_hold.lasts(self.mono())
                || self.is_on_hold_for_others() =>
            {
                Condition::Held
            }
            () => Condition::Fit,
        }
    }

    /// A process that has just started does not remember its deaths; the others do (P20).
    fn is_on_hold_for_others(&self) -> bool {
        let (now, fresh) = (self.mono(), self.fresh());
        let RoleState::Seeking(seeking) = &self.role else {
            return false;
        };
        let mut others = seeking.known.keys();
        others.any(|node| seeking.answered_lately(*node, now, fresh).is_some_and(|known| known.held))
    }

    pub(in crate::protocol) fn on_willing(&mut self, from: NodeId, ask: u64, standing: Standing) {
        self.epochs.hear_of(standing.seen);
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
            RoleState::Seeking(seeking) => {
                let seeking_for = standing.seeking;
                seeking.note(from, standing, None);
                if told {
                    self.ask_again(from, seeking_for);
                }
            }
            RoleState::Leading(_) if told => self.beat_to(from),
            RoleState::Leading(_) | RoleState::Following(_) => {}
        }
    }

    /// It said no and now seeks, or it has only now come up: what does it say? Waiting for the next round
    /// of asking would hand this node's turn to the next in rank. Once per round, or two that keep
    /// saying no would never stop.
    fn ask_again(&mut self, node: NodeId, seeking_for: Span) {
        let (now, fresh, useful) = (self.mono(), self.fresh(), self.may_vote());
        let (declare, patience) = (self.settings.timing.declare, self.settings.timing.stagger.0 / 4);
        let RoleState::Seeking(seeking) = &mut self.role else {
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
        opinion: Assent,
        standing: Standing,
    ) {
        self.epochs.hear_of(standing.seen);
        let (now, answered) = (self.mono(), self.has_asked(from, ask));
        let RoleState::Seeking(seeking) = &mut self.role else {
            return;
        };
        seeking.note(from, standing, answered.then_some((now, opinion)));
    }

    /// Its port refused: what it said before does not count any more.
    fn forget_answer(&mut self, peer: NodeId) {
        if let RoleState::Seeking(seeking) = &mut self.role {
            seeking.known.remove(&peer);
        }
    }

    fn may_claim_now(&self) -> bool {
        let RoleState::Seeking(seeking) = &self.role else {
            return false;
        };
        let now = self.mono();
        if seeking.claim.is_some() || !self.may_lead() || self.journal.is_full() || now < seeking.quiet_until
        {
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
        if self.may_lead() && !self.journal.is_full() && self.dry_run_won(seeking) {
            deadline = deadline.min(self.turn(seeking).max(seeking.quiet_until));
        }
        deadline.min(self.pending_deadline(seeking))
    }
}

/// Ready nodes first, each group by index. The unready and the held come last but are not shut out.
type Turn = (bool, NodeId);

// The rank of a candidate is how many others come before it (P4, P21).
impl Node {
    /// How many nodes come before `candidate`, as far as this one knows.
    pub(in crate::protocol) fn rank_of(
        &self,
        candidate: NodeId,
        seeking: &Seeking,
        condition: Condition,
    ) -> u64 {
        let newest = self.newest_index(seeking);
        let turn = self.turn_of(candidate, condition, self.last_of(candidate, seeking), newest);
        let before = self.voters().filter(|node| {
            *node != candidate
                && self.may_come_first(*node, seeking)
                && self.known_turn(*node, seeking, newest) < turn
        });
        before.count() as u64
    }

    fn known_turn(&self, node: NodeId, seeking: &Seeking, newest: Index) -> Turn {
        let condition = match seeking.known.get(&node) {
            _ if node == self.me() => self.condition(),
            Some(known) => known.standing.condition,
            None => Condition::Fit,
        };
        self.turn_of(node, condition, self.last_of(node, seeking), newest)
    }

    fn turn_of(&self, node: NodeId, condition: Condition, last: Option<Index>, newest: Index) -> Turn {
        let lag = newest.saturating_sub(last.unwrap_or(newest));
        let unready = lag > self.settings.limits.ready_lag && !mutant::is_on(Mutant::UnreadyFirst);
        let held = condition == Condition::Held || self.peers.is_on_hold(node, self.mono());
        (unready || held, node)
    }

    fn last_of(&self, node: NodeId, seeking: &Seeking) -> Option<Index> {
        match node == self.me() {
            true => Some(self.last().index),
            false => seeking.known.get(&node).map(|known| known.standing.last.index),
        }
    }

    fn newest_index(&self, seeking: &Seeking) -> Index {
        let known = seeking.known.values().map(|known| known.standing.last.index);
        known.max().unwrap_or(0).max(self.last().index)
    }

    /// Whether that node may still claim before others do: it lives as far as we know, may vote, and
    /// is not known to sit on the wrong side of a cut.
    fn may_come_first(&self, node: NodeId, seeking: &Seeking) -> bool {
        if node == self.me() {
            return self.may_lead() && !self.journal.is_full();
        }
        if self.peers.is_refused(node) {
            return false;
        }
        let (now, fresh) = (self.mono(), self.fresh());
        match seeking.answered_lately(node, now, fresh) {
            Some(known) => self.may_win(&known.standing),
            // Not heard yet: given the benefit of the doubt for as long as an answer may take.
            None => seeking.suspected != Some(node) && now < seeking.since + fresh,
        }
    }

    fn may_win(&self, standing: &Standing) -> bool {
        if self.settings.is_available() {
            return self.is_of_one_history(standing.vector.as_ref());
        }
        let settled = standing.seeking > self.fresh();
        // It has just answered this node: so it hears this one at least.
        let others = standing.hears.iter().filter(|node| **node != self.me()).count();
        let alone = others + 2 < self.quorum();
        standing.condition != Condition::Recovering && !(settled && alone)
    }
}

/// Without these no election can be won.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits {
    /// The cluster has never been formed, and takes every node for that (P9).
    pub to_form: bool,
    /// Of them nothing is heard.
    pub silent: Vec<NodeId>,
    /// They are heard, and what they answer comes too late to count (P4).
    pub late: Vec<NodeId>,
    /// Their disks may have forgotten something, this node's perhaps, and without them no majority is left that could let them
    /// in again (P10, P27).
    pub doubted: Vec<NodeId>,
}

// Why nobody leads: whom a node waits for that looks for a leader, for people to see.
impl Node {
    /// None where a leader is known, an election is under way, or no majority is needed.
    pub fn waits_for(&self, now: Time) -> Option<Waits> {
        let RoleState::Seeking(seeking) = &self.role else {
            return None;
        };
        let doubted = self.doubted_majority(now);
        if self.settings.is_available() || (self.reaches_enough(now) && doubted.is_empty()) {
            return None;
        }
        let (fresh, patience) = (self.fresh(), self.settings.timing.dead_after);
        let excused = self.forming_without.clone().unwrap_or_default();
        let needed = self.other_voters().filter(|node| !excused.contains(node));
        let missing = needed.filter(|node| seeking.answered_lately(*node, now, fresh).is_none());
        let heard = |node: &NodeId| self.last_heard(*node).is_some_and(|at| at + patience >= now);
        let (late, silent) = missing.partition(heard);
        Some(Waits { to_form: self.is_blank(), silent, late, doubted })
    }

    /// The voters that wait to be let in, where all others together are no majority. Empty where they are one.
    fn doubted_majority(&self, now: Time) -> Vec<NodeId> {
        let RoleState::Seeking(seeking) = &self.role else {
            return Vec::new();
        };
        let fresh = self.fresh();
        let waits = |node: &NodeId| match *node == self.me() {
            true => !self.may_vote(),
            false => seeking
                .answered_lately(*node, now, fresh)
                .is_some_and(|known| known.standing.condition == Condition::Recovering),
        };
        let doubted: Vec<NodeId> = self.voters().filter(waits).collect();
        let rest = self.voters().count() - doubted.len();
        if rest < self.quorum() { doubted } else { Vec::new() }
    }

    fn reaches_enough(&self, now: Time) -> bool {
        let RoleState::Seeking(seeking) = &self.role else {
            return true;
        };
        if self.is_blank() {
            return self.founders_agree(&seeking.hears(now, self.fresh()));
        }
        self.reaches_majority(now)
    }
}
