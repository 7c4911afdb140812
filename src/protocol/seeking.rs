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
    pub known: BTreeMap<NodeId, Known>,
    pub claim: Option<Claiming>,
    /// It led until a moment ago and only needs a greater counter (P28).
    pub incumbent: bool,
    pub as_heir: bool,
    /// It has handed over and leaves the field to its heir until then (P18).
    pub quiet_until: Time,
}

/// What a node has lately said of itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Known {
    pub standing: Standing,
    /// When it last answered a question of ours: only that proves both directions (P4).
    pub answered: Option<Time>,
    pub yes: bool,
}

impl Seeking {
    pub fn new(now: Time, cause: Cause) -> Seeking {
        Seeking {
            since: now,
            suspected: None,
            ask: 0,
            asked: VecDeque::new(),
            next_ask: now,
            known: BTreeMap::new(),
            claim: None,
            incumbent: cause == Cause::GreaterEpoch,
            as_heir: false,
            quiet_until: Time::default(),
        }
    }

    pub fn answered_lately(&self, node: NodeId, now: Time, fresh: Span) -> Option<&Known> {
        let known = self.known.get(&node)?;
        let at = known.answered?;
        (at + fresh >= now).then_some(known)
    }

    fn hears(&self, now: Time, fresh: Span) -> BTreeSet<NodeId> {
        let known = self.known.keys().copied();
        known
            .filter(|node| self.answered_lately(*node, now, fresh).is_some())
            .collect()
    }
}

impl Node {
    pub(super) fn settle_seeking(&mut self) {
        self.ask_if_due();
        self.settle_claim();
        if self.may_claim_now() {
            self.claim(None);
        }
    }

    fn ask_if_due(&mut self) {
        let (now, fresh, declare) = (self.mono(), self.fresh(), self.settings.timing.declare);
        let Role::Seeking(seeking) = &mut self.role else {
            return;
        };
        if now < seeking.next_ask || now < seeking.quiet_until {
            return;
        }
        seeking.next_ask = now + declare;
        seeking.ask += 1;
        seeking.asked.push_back((seeking.ask, now));
        while seeking
            .asked
            .front()
            .is_some_and(|(_, at)| *at + fresh < now)
        {
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
        }
    }

    pub(super) fn condition(&self) -> Condition {
        match () {
            () if self.is_blank() => Condition::Blank,
            () if !self.may_vote() => Condition::Recovering,
            () if self.full || self.own_hold.holds(self.mono()) => Condition::Held,
            () => Condition::Fit,
        }
    }

    pub(super) fn on_willing(&mut self, from: NodeId, ask: u64, standing: Standing) {
        self.seen = self.seen.max(standing.seen);
        let yes = self.would_approve(from);
        let mine = self.standing();
        self.send(
            from,
            Message::Opinion {
                ask,
                yes,
                standing: mine,
            },
        );
        match &mut self.role {
            Role::Seeking(seeking) => seeking.note(from, standing, None),
            Role::Leading(_) => self.beat_to(from),
            Role::Following(_) => {}
        }
    }

    pub(super) fn on_opinion(&mut self, from: NodeId, ask: u64, yes: bool, standing: Standing) {
        self.seen = self.seen.max(standing.seen);
        let (now, fresh) = (self.mono(), self.fresh());
        let Role::Seeking(seeking) = &mut self.role else {
            return;
        };
        let in_time = |(number, at): &(u64, Time)| *number == ask && *at + fresh >= now;
        let answered = seeking.asked.iter().any(in_time);
        seeking.note(from, standing, answered.then_some((now, yes)));
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
        let (now, fresh) = (self.mono(), self.fresh());
        let blank = self.is_blank();
        let yes = self.settings.others().filter(|node| {
            seeking
                .answered_lately(*node, now, fresh)
                .is_some_and(|known| {
                    known.yes && (!blank || known.standing.condition == Condition::Blank)
                })
        });
        if blank {
            self.founders_agree(&yes.collect())
        } else {
            yes.count() + 1 >= self.settings.quorum()
        }
    }

    /// Whether these nodes and this one may form the cluster (P9).
    pub(super) fn founders_agree(&self, yes: &BTreeSet<NodeId>) -> bool {
        if mutant::is_on(Mutant::FormByMajority) {
            return yes.len() + 1 >= self.settings.quorum();
        }
        let excused = self.forming_without.clone().unwrap_or_default();
        self.settings
            .others()
            .all(|node| yes.contains(&node) || excused.contains(&node))
            && yes.len() + 1 >= majority(self.settings.members.len())
    }

    /// When this candidate's turn comes: each rank waits one stagger longer (P4).
    fn turn(&self, seeking: &Seeking) -> Time {
        if seeking.incumbent || mutant::is_on(Mutant::NoRankWait) {
            return seeking.since;
        }
        let rank = self.rank_of(self.me(), seeking, self.condition());
        seeking.since + self.settings.timing.stagger.times(rank)
    }

    pub(super) fn seeking_deadline(&self, seeking: &Seeking) -> Time {
        let mut deadline = seeking.next_ask.max(seeking.quiet_until);
        if let Some(claim) = &seeking.claim {
            return deadline.min(claim.deadline());
        }
        if self.may_vote() && !self.full && self.dry_run_won(seeking) {
            deadline = deadline.min(self.turn(seeking).max(seeking.quiet_until));
        }
        deadline.min(self.pending_deadline(seeking))
    }
}

impl Seeking {
    fn note(&mut self, from: NodeId, standing: Standing, answer: Option<(Time, bool)>) {
        let before = self.known.get(&from);
        let (answered, yes) = match answer {
            Some((at, yes)) => (Some(at), yes),
            None => before.map_or((None, false), |known| (known.answered, known.yes)),
        };
        self.known.insert(
            from,
            Known {
                standing,
                answered,
                yes,
            },
        );
    }
}
