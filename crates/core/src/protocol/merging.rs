//! Available mode: two leaders meet, and their sides become one with nothing lost (P34, I12), as the seed has it: the service stops, the
//! elder stays, the younger hands in its data, the elder merges it and overrides everybody.
//!
//! ```text
//!   n1, the elder                                n2, the younger
//!     holds its service  ── meet, has V1 ──►  holds its service, commits what it has
//!                        ◄── merge: all of V2 that V1 lacks ──
//!     claims a new epoch, merges at a new position, above both
//!     ── beat, has V1 ∪ V2 ──►  to everybody: whoever is included joins
//!     ── override: what you lack ──►                  stops leading, is brought up to the merge
//!     lifts the hold when all have it
//! ```
//!
//! Every step derives from vectors. Whoever dies, whatever is lost, late or repeated: two leaders that hear each other
//! meet again, and what one of them has already taken in is not handed in again.

use super::messages::{Cause, Envelope, Event, Impasse, Input, Message, Output, Taking, Term, Write};
use super::meta::SnapshotMeta;
use super::mutant::{self, Mutant};
use super::node::{Leader, Node};
use super::progress::Progress;
use super::roles::{HandingIn, Meeting};
use crate::types::{Entry, Epoch, NodeId, Now, Owner, Position, Span, Stamp, Time, Vector, WallTime};

impl Node {
    /// How long the service may stay down for a coordinator that has died.
    fn merge_hold(&self) -> Span {
        self.settings.timing.window.times(2)
    }

    /// That node leads too, and has this much. The elder of the two takes it in; one at a time.
    pub(in crate::protocol) fn meet_if_elder(&mut self, other: NodeId, vector: &Vector) {
        let (now, patience) = (self.mono(), self.merge_hold());
        if other < self.me() || self.own_vector().includes(vector) || self.journal.is_full() {
            return;
        }
        if !self.impasses.may_try(other, now) {
            return;
        }
        let comes_off_by = now + self.impasses.patience(other, self.first_patience());
        let Some(leading) = self.leading_mut() else { return };
        let may_begin = leading.opened && leading.handing.is_none();
        match &mut leading.merges.meeting {
            // Before its epoch opens, too: a meeting that lapsed then would begin again, with all of its patience.
            Some(meeting) if meeting.other == other => meeting.until = now + patience,
            None if may_begin => {
                leading.merges.meeting =
                    Some(Meeting { other, next_send: now, until: now + patience, comes_off_by });
                self.event(Event::Met { other });
            }
            _ => {}
        }
    }

    pub(in crate::protocol) fn on_meet(&mut self, from: NodeId, term: Term, vector: &Vector) {
        if term.epoch.leader != from || !self.impasses.may_try(from, self.mono()) {
            return;
        }
        self.say_side(from);
        let (now, patience, me) = (self.mono(), self.merge_hold(), self.me());
        let nothing_new = self.is_included_in(Some(vector));
        let Some(leading) = self.leading_mut().filter(|leading| leading.opened && from < me) else {
            return;
        };
        if nothing_new {
            leading.merges.handing_in = None;
            return;
        }
        let under_way = leading.merges.handing_in.as_ref().filter(|handing| handing.to == from);
        let next_send = under_way.map_or(now, |handing| handing.next_send);
        leading.merges.handing_in =
            Some(HandingIn { to: from, base: vector.clone(), next_send, until: now + patience });
    }

    /// What the meetings of this leader are due to do now.
    pub(in crate::protocol) fn settle_merging(&mut self) {
        let now = self.mono();
        self.impasses.forget_old(now);
        let Some(leading) = self.leading().filter(|leading| leading.opened) else {
            return;
        };
        match leading.is_meeting() {
            _ if self.journal.is_full() => {}
            true => {
                self.drop_lapsed_meetings();
                self.hold_for_merge();
                self.ask_for_data();
                self.hand_in();
            }
            false => self.lift_merge_hold(),
        }
    }

    fn drop_lapsed_meetings(&mut self) {
        let now = self.mono();
        let late = |meeting: &&Meeting| now >= meeting.comes_off_by && now < meeting.until;
        let late = self.leading().and_then(|leading| leading.merges.meeting.as_ref()).filter(late);
        if let Some(other) = late.map(|meeting| meeting.other)
            && !mutant::is_on(Mutant::MeetsForEver)
        {
            self.call_off(other, Impasse::NothingComes);
        }
        if let Some(leading) = self.leading_mut() {
            leading.merges.meeting.take_if(|meeting| now >= meeting.until);
            leading.merges.handing_in.take_if(|handing| now >= handing.until);
        }
    }

    /// What a merge may take the first time, holding the service: a gigabyte has arrived by then where links are as they should be.
    fn first_patience(&self) -> Span {
        self.settings.timing.window.times(30)
    }

    /// Nothing comes of the merge with that side: both go on for themselves, and try again later (P48).
    pub(in crate::protocol) fn call_off(&mut self, other: NodeId, why: Impasse) {
        let (now, first) = (self.mono(), self.first_patience());
        let Some(leading) = self.leading_mut() else { return };
        let met = leading.merges.meeting.take_if(|meeting| meeting.other == other).is_some();
        let handing_in = leading.merges.handing_in.take_if(|handing| handing.to == other).is_some();
        if met || handing_in {
            self.impasses.failed(other, why, now, first);
            self.event(Event::Impasse { other, why });
        }
    }

    /// Merges that do not come off, and why, as far as this node knows.
    pub fn impasses(&self) -> impl Iterator<Item = (NodeId, &Impasse)> {
        self.impasses.iter()
    }

    /// What this node would do with the state that such a message brings, if it came now.
    pub fn would_take(&self, now: Now, envelope: &Envelope) -> Option<Taking> {
        let outputs = self.clone().handle(now, Input::Message(envelope.clone()));
        outputs.into_iter().find_map(|output| match output {
            Output::Merge { own, theirs, meta } => Some(Taking::Merge { own, theirs, meta }),
            Output::Override(meta) => Some(Taking::Override(meta)),
            _ => None,
        })
    }

    /// Nothing is acknowledged that the other side would not learn of. The hold is renewed while the meeting goes on.
    fn hold_for_merge(&mut self) {
        let ttl = self.merge_hold();
        if self.as_leader().is_some_and(Leader::needs_merge_hold) {
            let reason = "two sides of the cluster are being merged".into();
            self.append_as_leader(Entry::ServiceDown { owner: Owner::Merge, ttl, reason });
        }
    }

    /// Whether the service is held and everything before that is committed: nothing is on its way any more.
    pub fn is_at_rest(&self) -> bool {
        let held = self.log().holds_of_service().held_by(Owner::Merge);
        self.journal.commit() == self.last().index && held
    }

    fn ask_for_data(&mut self) {
        let (now, declare, at_rest) = (self.mono(), self.settings.timing.declare, self.is_at_rest());
        let meeting =
            self.leading_mut().and_then(|leading| leading.merges.meeting.as_mut()).filter(|_| at_rest);
        let asked = meeting.and_then(|meeting| meeting.asks_now(now, declare).then_some(meeting.other));
        if let Some(other) = asked {
            let (term, vector) = (self.journal.promise(), self.own_vector());
            self.send(other, Message::Meet { term, vector });
        }
    }

    fn hand_in(&mut self) {
        let (now, pause, at_rest) = (self.mono(), self.fresh(), self.is_at_rest());
        let handing =
            self.leading_mut().and_then(|leading| leading.merges.handing_in.as_mut()).filter(|_| at_rest);
        if let Some((to, base)) = handing.and_then(|handing| handing.sends_now(now, pause)) {
            let after = self.journal.disk().vote_and_log();
            self.out.push(Output::SendMerge { to, base, after });
        }
    }

    /// The younger's data has come. It fits if it was made for what is here, and nothing is on its way here. It must have been asked for since
    /// this node last followed or merged, and since anything was settled: the disk that an older one comes from may be lost, and counts as known (P34).
    pub(in crate::protocol) fn on_merge(
        &mut self,
        from: NodeId,
        epoch: Epoch,
        base: &Vector,
        meta: &SnapshotMeta,
    ) {
        self.epochs.hear_of(epoch.max(meta.at.epoch));
        let (Some(leading), Some(own), Some(theirs)) = (self.leading(), self.log().vector(), &meta.vector)
        else {
            return;
        };
        let leads = leading.opened && leading.handing.is_none();
        let is_recent = base.covers(leading.merges.since) || mutant::is_on(Mutant::MergeOfAnyEpoch);
        let fits = own.includes(base) && is_recent && !own.includes(theirs);
        if leads && fits && from > self.me() && !self.journal.is_full() && self.is_at_rest() {
            let (own, theirs) = (own.clone(), theirs.clone());
            self.merge_sides(from, own, theirs, meta);
        }
    }

    /// A new epoch begins with the merged state, at a position above everything that either side has.
    fn merge_sides(&mut self, with: NodeId, own: Vector, theirs: Vector, their_meta: &SnapshotMeta) {
        self.epochs.hear_of(theirs.newest());
        if !self.epochs.has_more() {
            return;
        }
        let term = self.own_term(self.epochs.next_counter());
        let index = match mutant::is_on(Mutant::MergeIndexLow) {
            true => self.last().index + 1,
            false => own.highest().max(theirs.highest()) + 1,
        };
        let meta = self.merged_meta(Position::new(term.epoch, index), &own, &theirs, their_meta);
        self.leave_leading(Cause::Merged);
        self.raise_promise(term);
        self.out.push(Output::Merge { own, theirs, meta: meta.clone() });
        self.go_on_from(meta, Write::Rebase);
        self.event(Event::Merged { with, index });
        self.impasses.over(with);
        let now = self.mono();
        self.lead(term, None, now);
        self.find_out_where_all_stand();
    }

    /// Nobody has the merged state: each says with its next answer what it includes.
    fn find_out_where_all_stand(&mut self) {
        let (now, next) = (self.mono(), self.last().index + 1);
        if let Some(leading) = self.leading_mut() {
            leading.merges.merged = true;
            let progress = leading.progress.values_mut();
            progress.for_each(|progress| *progress = Progress::unknown(next, now));
        }
    }

    fn merged_meta(
        &self,
        at: Position,
        own: &Vector,
        theirs: &Vector,
        their_meta: &SnapshotMeta,
    ) -> SnapshotMeta {
        let mut meta = self.log().meta_at(self.last().index);
        let stamp = self.leading().map_or(meta.stamp, |leading| leading.clock.stamp(self.now));
        let mut vector = own.clone();
        vector.join(theirs);
        vector.note(at);
        meta.at = at;
        meta.stamp = Stamp {
            wall: stamp.wall.max(their_meta.stamp.wall.min(WallTime::MOST)),
            cluster: stamp.cluster.max(their_meta.stamp.cluster),
        };
        meta.holds.hold(Owner::Merge, meta.stamp.cluster + self.merge_hold());
        meta.format = meta.format.max(their_meta.format);
        meta.vector = Some(vector);
        meta
    }

    /// What a side has beyond this log (P33). It is taken if it includes everything that is here, and was made for no more than
    /// what is here: a late one is neither.
    pub(in crate::protocol) fn on_override(
        &mut self,
        from: NodeId,
        term: Term,
        base: &Vector,
        meta: SnapshotMeta,
    ) {
        if meta.at.epoch > term.epoch {
            return;
        }
        let blindly = mutant::is_on(Mutant::OverrideUncovered);
        if !(blindly || self.accept_leader(from, term, meta.vector.as_ref())) || self.journal.is_full() {
            return;
        }
        let (index, own) = (meta.index(), self.own_vector());
        if self.log().holds(meta.at) {
            self.commit_to(index);
        } else {
            let fits = own.includes(base) && self.is_included_in(meta.vector.as_ref());
            if !(fits || blindly) || index <= self.last().index {
                return;
            }
            // All of it is included in what comes.
            self.commit_to(self.last().index);
            self.out.push(Output::Override(meta.clone()));
            self.go_on_from(meta, Write::Rebase);
            self.note_formed();
            self.event(Event::Overridden { index });
            self.impasses.all_over();
            self.decide_waiting(index);
        }
        self.note_brought_up_to(from, term.epoch, index);
    }

    /// Lifts the hold of the merge once all that are heard have what was merged. A node that cannot take it in time is not waited
    /// for longer than the hold lasts. A leader that has merged nothing waits for nobody: the hold is one of a leader before it,
    /// and would last anew with each, since cluster time stands still between them (P17).
    fn lift_merge_hold(&mut self) {
        let held = self.log().holds_of_service().held_by(Owner::Merge);
        let done = |leader: Leader| !leader.waits_for_merge() || leader.is_merged_everywhere();
        if held && self.as_leader().is_some_and(done) {
            self.append_as_leader(Entry::ServiceUp { owner: Owner::Merge });
        }
    }
}

impl Leader<'_> {
    fn needs_merge_hold(self) -> bool {
        let now = self.leading.clock.now(self.node.mono());
        let until = self.node.log().holds_of_service().until(Owner::Merge).unwrap_or_default();
        let lapses_soon = until < now + Span(self.node.merge_hold().0 / 2);
        self.leading.is_meeting() && lapses_soon
    }

    /// When something is next to be said to the other side. While the disk is what a merge waits for, it is not a matter of
    /// time: the disk's answer goes on with it.
    pub(in crate::protocol) fn merging_deadline(self) -> Time {
        if self.node.journal.is_full() || !self.node.is_at_rest() {
            return Time::NEVER;
        }
        let handing_in = self.leading.merges.handing_in.as_ref().map(|handing| handing.next_send);
        let meeting = self.leading.merges.meeting.as_ref().map(|meeting| meeting.next_send);
        handing_in.into_iter().chain(meeting).min().unwrap_or(Time::NEVER)
    }

    fn waits_for_merge(self) -> bool {
        self.leading.merges.merged || mutant::is_on(Mutant::MergeHoldInherited)
    }

    /// Everybody who is heard has what was merged.
    fn is_merged_everywhere(self) -> bool {
        let (now, fresh) = (self.node.mono(), self.node.fresh());
        self.leading.progress.iter().all(|(node, progress)| {
            let heard = self.node.last_heard(*node).is_some_and(|at| at + fresh >= now);
            !heard || self.node.peers.is_refused(*node) || progress.matched >= self.leading.open_index
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Envelope;
    use crate::protocol::{Input, Recovered, Settings, Vote};
    use crate::types::{Boot, ClaimId, ClusterId, Format, Incarnation, Now};

    /// Whatever a peer sends: in safe mode there is one history (C25).
    #[test]
    fn safe_mode_takes_nothing_from_sides() {
        let (peer, me) = (NodeId(1), NodeId(2));
        let recovered = Recovered {
            boot: Boot(1),
            incarnation: Incarnation(1),
            vote: Vote::default(),
            base: SnapshotMeta::default(),
            records: Vec::new(),
        };
        let mut node = Node::new(Settings::lan(me, vec![peer, me, NodeId(3)]), recovered, Now::default());
        let term = Term { epoch: Epoch::new(9, peer), claim: ClaimId(5) };
        let meta = SnapshotMeta { at: Position::new(term.epoch, 7), ..SnapshotMeta::default() };
        let vector = Vector::default();
        let messages = [
            Message::Poll { term, vector: vector.clone() },
            Message::Meet { term, vector: vector.clone() },
            Message::Merge { epoch: term.epoch, base: vector.clone(), meta: meta.clone() },
            Message::Override { term, base: vector, meta },
        ];
        let before = node.vote();
        node.handle(Now::default(), Input::Tick);
        for message in messages {
            let (boot, incarnation, format) = (Boot(2), Incarnation(2), Format(1));
            let cluster = ClusterId::NONE;
            let envelope =
                Envelope { from: peer, to: me, boot, incarnation, admitted: true, cluster, format, message };
            assert_eq!(node.handle(Now::default(), Input::Message(envelope)), []);
        }
        assert_eq!((node.vote(), node.last()), (before, Position::ZERO));
    }
}
