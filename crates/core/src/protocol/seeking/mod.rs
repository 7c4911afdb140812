//! A node without a leader asks the others whether they would approve it (the dry run), and decides when its turn to claim has come (P4).

mod claim;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use self::claim::ClaimOutcome;
pub use self::claim::{Claiming, Won};
use crate::protocol::core::Core;
use crate::protocol::durability::After;
use crate::protocol::messages::{Cause, Certificate, Claim, Condition, Event, Objection, Standing};
use crate::protocol::mutant::{self, Mutant};
use crate::types::{Index, NUMBER_MOST, NodeId, Span, Time};

/// The state of a node without a leader: the answers to its questions, and its claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Seeking {
    since: Time,
    /// The leader that was given up.
    suspected: Option<NodeId>,
    /// The number of the last round of questions, and when each recent round was sent.
    ask: u64,
    asked: VecDeque<(u64, Time)>,
    next_ask: Time,
    /// For each node, the round in which it was last asked out of turn.
    asked_again: BTreeMap<NodeId, u64>,
    known: BTreeMap<NodeId, Known>,
    claim: Option<Claiming>,
    /// This node led until a moment ago and only needs a greater counter (P28).
    incumbent: bool,
    as_heir: bool,
    /// This node has handed over. Until this time it leaves the field to its heir (P18).
    quiet_until: Time,
    /// Since this time a majority would approve this node (P4).
    winnable_since: Option<Time>,
    after_start: bool,
    /// The time at which another node first said that this node was removed, and the `as_of` of the last such message (P43).
    removed: Option<(Time, Index)>,
    /// The time at which a member last said that this node, whose disk was never part of the cluster, is not a member (P43).
    never_member: Option<Time>,
    /// Available mode: this node heard a leader whose log lacks some of this node's records (P32).
    stands_apart: bool,
}

/// The last report of another node about itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Known {
    standing: Standing,
    /// The time at which that node last answered a question of this node: only an answer proves that messages pass in both
    /// directions (P4).
    answered: Option<Time>,
    assent: Assent,
}

/// The answer of another node to the question whether it would approve this node as a leader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Assent {
    pub yes: bool,
    /// The other node has this node on hold (P20).
    pub held: bool,
}

/// The decision of this node about the claim of another node.
pub enum Consent {
    Yes,
    NotYet(Objection),
    No(Objection),
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
            removed: None,
            never_member: None,
            stands_apart: false,
        }
    }

    /// This node has given up its leader. It claims at once if it is the heir and may do so (P4).
    pub fn instead_of(leader: NodeId, as_heir: bool, now: Time, cause: Cause) -> Seeking {
        Seeking { suspected: Some(leader), as_heir, ..Seeking::new(now, cause) }
    }

    /// This node has handed over.
    pub fn quiet_until(until: Time, now: Time) -> Seeking {
        Seeking { quiet_until: until, ..Seeking::new(now, Cause::HandedOver) }
    }

    pub fn claim(&self) -> Option<&Claiming> {
        self.claim.as_ref()
    }

    pub fn claim_mut(&mut self) -> Option<&mut Claiming> {
        self.claim.as_mut()
    }

    fn answered_lately(&self, core: &Core, node: NodeId) -> Option<&Known> {
        self.answered_by(node, core.mono(), core.fresh())
    }

    fn answered_by(&self, node: NodeId, now: Time, fresh: Span) -> Option<&Known> {
        let known = self.known.get(&node)?;
        let at = known.answered?;
        (at + fresh >= now).then_some(known)
    }

    pub fn hears(&self, now: Time, fresh: Span) -> BTreeSet<NodeId> {
        let known = self.known.keys().copied();
        known.filter(|node| self.answered_by(*node, now, fresh).is_some()).collect()
    }

    /// Notes what that node reports about itself and, if it answers a question, its opinion of this node.
    pub fn note(&mut self, from: NodeId, standing: Standing, answer: Option<(Time, Assent)>) {
        let before = self.known.get(&from);
        let (answered, assent) = match answer {
            Some((at, assent)) => (Some(at), assent),
            None => before.map_or((None, Assent::default()), |known| (known.answered, known.assent)),
        };
        self.known.insert(from, Known { standing, answered, assent });
    }

    /// The port of that peer refused a connection: its earlier reports no longer count.
    pub fn forget(&mut self, peer: NodeId) {
        self.known.remove(&peer);
    }

    /// Forgets every node that is not one of `others`, which are the other nodes now.
    pub fn keep(&mut self, others: &[NodeId]) {
        self.known.retain(|node, _| others.contains(node));
    }

    /// There is a leader, and its log lacks something that this node's log holds: this node forms its own side (P32).
    pub fn stand_apart(&mut self) {
        self.stands_apart = true;
    }

    /// Another node says that this node has been removed. That node may lag behind others that have made this node a member
    /// again: those others have `dead_after` to be heard.
    pub fn on_removal(&mut self, now: Time, as_of: Index) {
        self.removed.get_or_insert((now, as_of)).1 = as_of;
    }

    /// A member says that this node is not a member, which it never was. The node goes on asking: it may be added at any time.
    pub fn on_no_member(&mut self, now: Time) {
        self.never_member = Some(now);
    }

    /// The record by which this node was removed, once the removal is beyond doubt (P43).
    pub fn is_removed(&self, core: &Core) -> Option<Index> {
        let (since, as_of) = self.removed?;
        (core.mono() >= since + core.settings.timing.dead_after).then_some(as_of)
    }

    pub fn settle(&mut self, core: &mut Core) -> Option<Won> {
        self.note_whether_winnable(core);
        let won = self.settle_claim(core);
        if won.is_some() {
            return won;
        }
        if self.may_claim_now(core) {
            let won = self.make_claim(core, None);
            if won.is_some() {
                return won;
            }
        }
        // If the claim has just failed, the next question is sent within the same input.
        self.ask_if_due(core);
        None
    }

    pub fn deadline(&self, core: &Core) -> Time {
        let patience = core.settings.timing.dead_after;
        let ends = self.removed.map_or(Time::NEVER, |(since, _)| since + patience);
        if let Some(claim) = &self.claim {
            return claim.deadline().min(ends);
        }
        let asks = self.next_ask.max(self.quiet_until).min(ends);
        if core.may_lead() && !core.journal.is_full() && self.has_won_dry_run(core) {
            return asks.min(self.turn(core).max(self.quiet_until));
        }
        asks
    }

    /// Checks what must be true after every input (I11).
    pub fn validate(&self, core: &Core) {
        if let Some(claim) = &self.claim {
            claim.validate(core.journal.promise());
        }
    }
}

// The claim.
impl Seeking {
    /// Claims an epoch above every epoch that this node has heard of (P2). The claim may leave before this node's own
    /// promise is stored: a claim asks for promises and makes none.
    pub fn make_claim(&mut self, core: &mut Core, certificate: Option<Certificate>) -> Option<Won> {
        let (expected, promise) = (self.expected_voters(core, certificate.is_some()), core.promise());
        let counter = match mutant::is_on(Mutant::SameEpochTwice) {
            true => promise.counter.max(1) + u64::from(promise.leader != core.me()),
            false => (core.epochs.next_counter() + core.lonely_jump(&expected)).min(NUMBER_MOST),
        };
        let term = core.own_term(counter);
        let condition = self.condition(core);
        // This comes after the counter is drawn, because it marks the disk as one that knows its epochs and draws no far counter
        // again. It comes before the promise, whose write stores the mark (P36).
        core.note_beginning();
        core.raise_promise(term);
        if std::mem::take(&mut self.as_heir) {
            core.claimed_as_heir = Some(core.mono());
        }
        self.claim = Some(Claiming::new(core, term, condition, certificate, expected));
        core.event(Event::Claimed { epoch: term.epoch });
        self.settle_claim(core)
    }

    fn settle_claim(&mut self, core: &mut Core) -> Option<Won> {
        match self.claim.as_mut()?.settle(core) {
            ClaimOutcome::Won(won) => Some(won),
            ClaimOutcome::Pending => None,
            ClaimOutcome::Abandoned => {
                let suspected = self.suspected;
                *self = Seeking { suspected, ..Seeking::new(core.mono(), Cause::NoDecision) };
                None
            }
        }
    }

    fn may_claim_now(&self, core: &Core) -> bool {
        let now = core.mono();
        if self.claim.is_some() || !core.may_lead() || core.journal.is_full() || now < self.quiet_until {
            return false;
        }
        if self.as_heir && !core.is_blank() {
            return true;
        }
        (self.has_won_dry_run(core) || mutant::is_on(Mutant::NoDryRun)) && now >= self.turn(core)
    }
}

// The dry run asks the others what they would answer to a claim.
impl Seeking {
    /// The turns of the candidates are counted from the moment at which the dry run was won: before that moment no node could
    /// have claimed.
    fn note_whether_winnable(&mut self, core: &Core) {
        let won = self.has_won_dry_run(core);
        self.winnable_since = won.then(|| self.winnable_since.unwrap_or(core.mono()));
    }

    /// A majority, this node included, has answered lately that it would approve this node (P4). A cluster that was
    /// never formed needs every node that the operator has not excused (P9).
    fn has_won_dry_run(&self, core: &Core) -> bool {
        if core.settings.is_available() {
            return self.has_gathered(core);
        }
        let yes = core.other_voters().filter(|node| {
            let known = self.answered_lately(core, *node);
            known.is_some_and(|known| known.assent.yes && is_of_use(core, *node, known))
        });
        match core.is_blank() {
            true => core.founders_agree(&yes.collect()),
            false => yes.count() + core.own_vote_count() >= core.quorum(),
        }
    }

    /// The heir learns at once that its leader has been given up. The others are asked only if the heir does not
    /// claim within one stagger. So the number of messages of a failover grows with the number of nodes, not with
    /// its square.
    pub fn ask_heir_first(&mut self, core: &mut Core, heir: NodeId) {
        let now = core.mono();
        self.ask += 1;
        self.asked.push_back((self.ask, now));
        self.next_ask = now + core.settings.timing.stagger;
        self.send_ask(core, heir);
    }

    fn ask_if_due(&mut self, core: &mut Core) {
        let (now, fresh) = (core.mono(), core.fresh());
        if now < self.next_ask || now < self.quiet_until || self.claim.is_some() {
            return;
        }
        self.next_ask = now + core.settings.timing.declare;
        self.ask += 1;
        self.asked.push_back((self.ask, now));
        while self.asked.front().is_some_and(|(_, at)| *at + fresh < now) {
            self.asked.pop_front();
        }
        for to in core.others() {
            self.send_ask(core, to);
        }
    }

    /// A question binds this node to nothing, so it waits for no write.
    fn send_ask(&self, core: &mut Core, to: NodeId) {
        let willing = core.question(to, self.ask, self.standing(core));
        core.send_after(to, willing, After::default());
    }

    /// Whether this node has lately asked that node the question with this number.
    pub fn has_asked(&self, core: &Core, node: NodeId, ask: u64) -> bool {
        let (now, fresh) = (core.mono(), core.fresh());
        let own = ask.checked_sub(core.settings.numbers_from(node));
        own.is_some_and(|own| self.asked.iter().any(|(number, at)| *number == own && *at + fresh >= now))
    }

    /// Asks again a node that said no and now seeks a leader itself, or a node that has only now come up. If this node waited for
    /// the next round of questions, its turn would pass to the next node in rank. A node is asked again only once per round:
    /// otherwise two nodes that keep saying no would never stop asking.
    pub fn repeat_question(&mut self, core: &mut Core, node: NodeId, seeking_for: Span) {
        let now = core.mono();
        let (declare, patience) = (core.settings.timing.declare, core.settings.timing.stagger.0 / 4);
        let known = self.answered_lately(core, node);
        let (unknown, content) = (known.is_none(), known.is_some_and(|known| known.assent.yes));
        if self.claim.is_some() || now < self.quiet_until || !core.may_vote() || content {
            return;
        }
        let unanswered_until = self.asked.back().map_or(now, |(_, at)| *at + Span(patience));
        if unknown && now < unanswered_until {
            // The answer to a question just asked may still arrive. If that node has only just begun to seek, the next round
            // starts early.
            if seeking_for < declare {
                self.next_ask = self.next_ask.min(unanswered_until);
            }
            return;
        }
        if self.asked_again.insert(node, self.ask) != Some(self.ask) {
            self.send_ask(core, node);
        }
    }

    pub fn standing(&self, core: &Core) -> Standing {
        let (now, fresh) = (core.mono(), core.fresh());
        core.standing(self.hears(now, fresh), now.since(self.since), self.condition(core))
    }

    /// A process that has just started does not remember its deaths; the other nodes do (P20).
    pub fn condition(&self, core: &Core) -> Condition {
        let mut others = self.known.keys();
        let held =
            others.any(|node| self.answered_lately(core, *node).is_some_and(|known| known.assent.held));
        core.condition(held)
    }
}

/// Whether that node's promise would count. If this node is blank, the promise of a blank node counts, because both would be
/// founders. Otherwise the promise of a disk that the log knows counts (P9, P10).
fn is_of_use(core: &Core, node: NodeId, known: &Known) -> bool {
    if core.is_blank() {
        return known.standing.condition.is_blank();
    }
    let peer = core.peers.get(node);
    peer.is_some_and(|peer| core.vote_counts(node, peer.incarnation))
}

// The answer of this node to another candidate.
impl Seeking {
    /// The objection of this node to that candidate, if it has one. The candidate's turn is not considered here (P58).
    pub fn objection_to(&self, core: &Core, candidate: NodeId, condition: Condition) -> Option<Objection> {
        match self.claim {
            Some(_) => {
                let gives_way = self.gives_way_to(core, candidate, condition);
                (!gives_way).then_some(Objection::ClaimsItself)
            }
            None => (core.mono() < self.quiet_until).then_some(Objection::Quiet),
        }
    }

    pub fn consent(&self, core: &Core, from: NodeId, claim: &Claim) -> Consent {
        let now = core.mono();
        if self.claim.is_some() && !self.gives_way_to(core, from, claim.condition) {
            return Consent::No(Objection::ClaimsItself);
        }
        let rank = self.rank_of(core, from, claim.condition);
        let turn = self.since + core.settings.timing.stagger.times(rank);
        match () {
            () if now < turn && !mutant::is_on(Mutant::NoRankWait) => {
                Consent::NotYet(Objection::NotItsTurn { before: rank })
            }
            () if core.founds_too_early(claim.condition) => Consent::NotYet(Objection::MayNotFound),
            () if now < self.quiet_until => Consent::NotYet(Objection::Quiet),
            () => Consent::Yes,
        }
    }

    /// The time at which the turn of that claim comes.
    pub fn turn_of_claim(&self, core: &Core, from: NodeId, claim: &Claim) -> Time {
        let rank = self.rank_of(core, from, claim.condition);
        let turn = self.since + core.settings.timing.stagger.times(rank);
        turn.max(self.quiet_until)
    }

    /// Whether this node, itself a candidate, lets the other candidate go first.
    fn gives_way_to(&self, core: &Core, candidate: NodeId, condition: Condition) -> bool {
        let (theirs, own) = (core.ranks_last(candidate, condition), self.condition(core) == Condition::Held);
        (theirs, candidate) < (own, core.me())
    }
}

/// Nodes that are ready come first, each group in the order of ids. Nodes that are on hold or not ready come last, but are not
/// shut out.
type Turn = (bool, NodeId);

// The rank of a candidate is how many others come before it (P4, P21).
impl Seeking {
    /// The time at which the turn of this candidate comes: each rank waits one stagger longer (P4). In a blank cluster no client
    /// waits for a leader yet, and processes that are started together come up some time apart. There each rank waits long enough
    /// for the elder before it to ask once more (P9).
    fn turn(&self, core: &Core) -> Time {
        if self.incumbent || mutant::is_on(Mutant::NoRankWait) {
            return self.since;
        }
        let rank = self.rank_of(core, core.me(), self.condition(core));
        let from = self.winnable_since.unwrap_or(self.since);
        let timing = &core.settings.timing;
        let head_start = if core.is_blank() { timing.declare.times(4) } else { timing.stagger };
        from + head_start.times(rank)
    }

    /// The number of nodes that come before `candidate`, as far as this node knows.
    fn rank_of(&self, core: &Core, candidate: NodeId, condition: Condition) -> u64 {
        let newest = self.newest_index(core);
        let turn = turn_of(core, candidate, condition, self.last_of(core, candidate), newest);
        let before = core.voters().filter(|node| {
            *node != candidate
                && self.may_claim_earlier(core, *node)
                && self.known_turn(core, *node, newest) < turn
        });
        before.count() as u64
    }

    fn known_turn(&self, core: &Core, node: NodeId, newest: Index) -> Turn {
        let condition = match self.known.get(&node) {
            _ if node == core.me() => self.condition(core),
            Some(known) => known.standing.condition,
            None => Condition::Fit,
        };
        turn_of(core, node, condition, self.last_of(core, node), newest)
    }

    fn last_of(&self, core: &Core, node: NodeId) -> Option<Index> {
        match node == core.me() {
            true => Some(core.last().index),
            false => self.known.get(&node).map(|known| known.standing.last.index),
        }
    }

    fn newest_index(&self, core: &Core) -> Index {
        let known = self.known.values().map(|known| known.standing.last.index);
        known.max().unwrap_or(0).max(core.last().index)
    }

    /// Whether that node may still claim before others do: as far as this node knows, it lives, may vote, and hears enough voters
    /// to win.
    fn may_claim_earlier(&self, core: &Core, node: NodeId) -> bool {
        if node == core.me() {
            return core.may_lead() && !core.journal.is_full();
        }
        if core.peers.is_refused(node) {
            return false;
        }
        match self.answered_lately(core, node) {
            Some(known) => may_win(core, &known.standing),
            // This node has not been heard yet: it gets the benefit of the doubt for as long as an answer may take.
            None => self.suspected != Some(node) && core.mono() < self.since + core.fresh(),
        }
    }
}

fn turn_of(core: &Core, node: NodeId, condition: Condition, last: Option<Index>, newest: Index) -> Turn {
    let lag = newest.saturating_sub(last.unwrap_or(newest));
    let unready = lag > core.settings.limits.ready_lag && !mutant::is_on(Mutant::UnreadyFirst);
    (unready || core.ranks_last(node, condition), node)
}

fn may_win(core: &Core, standing: &Standing) -> bool {
    if core.settings.is_available() {
        return core.is_of_one_history(standing.vector.as_ref());
    }
    let settled = standing.seeking > core.fresh();
    // That node has just answered this node, so it hears at least this node.
    let others = standing.hears.iter().filter(|node| **node != core.me()).count();
    let alone = others + 2 < core.quorum();
    standing.condition != Condition::Recovering && !(settled && alone)
}

// Available mode: electing without a majority (P31). Among the nodes that hear each other, the live one with the lowest id leads.
// Safety does not depend on which nodes were asked: if a node is missed here, a merge later joins what it has written.
impl Seeking {
    /// The dry run among the nodes that can be reached: every node has answered yes, or is known not to come along.
    fn has_gathered(&self, core: &Core) -> bool {
        if core.is_blank() && self.knows_a_formed_cluster(core) {
            // A blank node begins nothing new here: it waits until the existing history takes it in.
            return false;
        }
        let waited = core.mono() >= self.since + core.settings.timing.window;
        self.stands_apart || waited || core.others().all(|node| self.is_accounted_for(core, node))
    }

    fn knows_a_formed_cluster(&self, core: &Core) -> bool {
        let mut known = core.others().filter_map(|node| self.answered_lately(core, node));
        known.any(|known| !known.standing.condition.is_blank())
    }

    fn is_accounted_for(&self, core: &Core, node: NodeId) -> bool {
        match self.answered_lately(core, node) {
            Some(known) => {
                would_follow(core, known) || !core.is_of_one_history(known.standing.vector.as_ref())
            }
            None => self.is_absent(core, node),
        }
    }

    /// After a start, or in a cluster that was never formed, other nodes get more time to come up.
    fn is_absent(&self, core: &Core, node: NodeId) -> bool {
        let patience = match core.is_blank() || self.after_start {
            true => core.settings.timing.window,
            false => core.fresh(),
        };
        let known_dead = !core.is_blank() && (core.peers.is_refused(node) || self.suspected == Some(node));
        known_dead || core.mono() >= self.since + patience
    }

    /// Available mode: the nodes whose answer a claim waits for, for two beats at most.
    fn expected_voters(&self, core: &Core, by_certificate: bool) -> BTreeSet<NodeId> {
        let others = core.others().filter(|node| !core.peers.is_refused(*node));
        let comes = |node: &NodeId| match self.answered_lately(core, *node) {
            Some(known) => would_follow(core, known),
            // An heir claims without a dry run: every node that may be alive is expected to answer.
            None => (self.as_heir || by_certificate) && self.suspected != Some(*node),
        };
        others.filter(comes).collect()
    }
}

fn would_follow(core: &Core, known: &Known) -> bool {
    known.assent.yes && core.is_of_one_history(known.standing.vector.as_ref())
}

/// The nodes without which no election can be won.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// A cluster runs, its members answer, and this node is not one of them. Then no other field says anything.
    pub no_member: bool,
    /// The cluster has never been formed, and needs every node to form (P9).
    pub to_form: bool,
    /// These nodes are silent.
    pub silent: Vec<NodeId>,
    /// Messages of these nodes arrive, but no answer in time to count (P4).
    pub late: Vec<NodeId>,
    /// The disks of these nodes may have forgotten something; this node may be one of them. Without these nodes no majority is left that
    /// could let them in again (P10, P27).
    pub doubted: Vec<NodeId>,
}

// The reason why there is no leader: operators can see which nodes a leaderless node waits for.
impl Seeking {
    /// Returns `None` if an election is under way, or if no majority is needed.
    pub fn waits_for(&self, core: &Core, now: Time) -> Option<Waits> {
        let doubted = self.doubted_majority(core, now);
        if core.settings.is_available() || (self.reaches_enough(core, now) && doubted.is_empty()) {
            return None;
        }
        let (fresh, patience) = (core.fresh(), core.settings.timing.dead_after);
        let turned_away = self.never_member.is_some_and(|at| at + patience >= now);
        // A member that lags may not know that this node has been added; another member then gives its opinion. A node that is no member
        // either gives its opinion, too.
        let answers = |node: &NodeId| self.answered_by(*node, now, fresh);
        let a_member_answers =
            self.known.keys().filter_map(answers).any(|known| !known.standing.condition.is_blank());
        if turned_away && !a_member_answers {
            return Some(Waits { no_member: true, ..Waits::default() });
        }
        let excused = core.forming_without.clone().unwrap_or_default();
        let needed = core.other_voters().filter(|node| !excused.contains(node));
        let missing = needed.filter(|node| self.answered_by(*node, now, fresh).is_none());
        let heard = |node: &NodeId| {
            !core.peers.is_refused(*node) && core.last_heard(*node).is_some_and(|at| at + patience >= now)
        };
        let (late, silent) = missing.partition(heard);
        Some(Waits { no_member: false, to_form: core.is_blank(), silent, late, doubted })
    }

    /// The voters that wait to be let in, if all other voters together are no majority. Empty if the others are a majority.
    fn doubted_majority(&self, core: &Core, now: Time) -> Vec<NodeId> {
        let waits = |node: &NodeId| match *node == core.me() {
            true => !core.may_vote(),
            false => self
                .answered_by(*node, now, core.fresh())
                .is_some_and(|known| known.standing.condition == Condition::Recovering),
        };
        let doubted: Vec<NodeId> = core.voters().filter(waits).collect();
        let rest = core.voters().count() - doubted.len();
        if rest < core.quorum() { doubted } else { Vec::new() }
    }

    fn reaches_enough(&self, core: &Core, now: Time) -> bool {
        match core.is_blank() {
            true => core.founders_agree(&self.hears(now, core.fresh())),
            false => self.reaches_majority(core, now),
        }
    }

    /// Whether a majority, this node included, has answered lately.
    pub fn reaches_majority(&self, core: &Core, now: Time) -> bool {
        let heard = self.hears(now, core.fresh()).into_iter().filter(|node| core.is_voter(*node)).count();
        heard + core.own_vote_count() >= core.quorum()
    }
}
