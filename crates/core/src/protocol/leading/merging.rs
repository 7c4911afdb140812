//! Available mode: a leader meets another one, and their sides become one (P34). `protocol/node/merging.rs` draws the whole sequence.

use super::Leading;
use super::merges::{HandingIn, Meeting, Merges};
use crate::protocol::core::Core;
use crate::protocol::messages::{Event, Impasse, Message, Output};
use crate::protocol::meta::SnapshotMeta;
use crate::protocol::mutant::{self, Mutant};
use crate::types::{Entry, NodeId, Owner, Position, Span, Stamp, Time, Vector, WallTime};

// The meeting: the elder asks, the younger sends its state, and the service is held.
impl Leading {
    /// That node leads too, and `vector` is the vector of its log. The elder of the two leaders merges the other side, one side
    /// at a time.
    pub fn meet_if_elder(&mut self, core: &mut Core, other: NodeId, vector: &Vector) {
        let now = core.mono();
        // If this log includes the other's, there is nothing to merge: those nodes join after the next beat
        // (P32).
        if other < core.me() || core.own_vector().includes(vector) || core.journal.is_full() {
            return;
        }
        if !core.impasses.may_try(other, now) {
            return;
        }
        let until = now + core.merge_hold();
        let may_begin = self.opened && self.handing.is_none();
        match &mut self.merges.meeting {
            // This also applies before the epoch opens: otherwise the meeting would lapse and begin again with its full patience.
            Some(meeting) if meeting.other == other => meeting.until = until,
            None if may_begin => {
                let comes_off_by = now + core.impasses.patience(other, core.merge_patience());
                self.merges.meeting = Some(Meeting { other, next_send: now, until, comes_off_by });
                core.event(Event::Met { other });
            }
            _ => {}
        }
    }

    /// An elder asks for what it lacks. `has` is the vector of its log.
    pub fn on_meet(&mut self, core: &Core, from: NodeId, has: &Vector) {
        if !self.opened || from >= core.me() {
            return;
        }
        // The elder already has everything of this side.
        if core.is_included_in(Some(has)) {
            self.merges.handing_in = None;
            return;
        }
        let now = core.mono();
        let under_way = self.merges.handing_in.as_ref().filter(|handing| handing.to == from);
        let next_send = under_way.map_or(now, |handing| handing.next_send);
        let until = now + core.merge_hold();
        self.merges.handing_in = Some(HandingIn { to: from, base: has.clone(), next_send, until });
    }

    /// Takes the steps of this leader's merges that are due now. The hold comes before the question and the
    /// data, which both wait until it is committed and no write is in flight.
    pub(super) fn settle_merging(&mut self, core: &mut Core) {
        core.impasses.forget_old(core.now.mono);
        match self.merges.are_under_way() {
            _ if !self.opened || core.journal.is_full() => {}
            true => {
                self.drop_lapsed_meetings(core);
                self.hold_for_merge(core);
                self.ask_for_data(core);
                self.submit_state(core);
            }
            false => self.lift_merge_hold(core),
        }
    }

    /// While a merge waits for the disk or for commits it has no deadline: the input that ends the wait makes the merge go on.
    pub(super) fn merging_deadline(&self, core: &Core) -> Time {
        let waits = core.journal.is_full() || !core.is_at_rest();
        self.merges.next_send().filter(|_| !waits).unwrap_or(Time::NEVER)
    }

    fn drop_lapsed_meetings(&mut self, core: &mut Core) {
        let now = core.mono();
        let late = |meeting: &&Meeting| now >= meeting.comes_off_by && now < meeting.until;
        if let Some(other) = self.merges.meeting.as_ref().filter(late).map(|meeting| meeting.other)
            && !mutant::is_on(Mutant::MeetsForEver)
        {
            self.call_off(core, other, Impasse::NothingComes);
        }
        self.merges.meeting.take_if(|meeting| now >= meeting.until);
        self.merges.handing_in.take_if(|handing| now >= handing.until);
    }

    /// The merge with that side has failed: both sides go on apart, and try again later (P48).
    pub fn call_off(&mut self, core: &mut Core, other: NodeId, why: Impasse) {
        let met = self.merges.meeting.take_if(|meeting| meeting.other == other).is_some();
        let handing_in = self.merges.handing_in.take_if(|handing| handing.to == other).is_some();
        if met || handing_in {
            core.impasses.failed(other, why, core.now.mono, core.merge_patience());
            core.event(Event::Impasse { other, why });
        }
    }

    /// During the hold no write is acknowledged that the other side would not learn of. The hold is renewed while the meeting goes on.
    fn hold_for_merge(&mut self, core: &mut Core) {
        let ttl = core.merge_hold();
        let until = core.log().holds_of_service().until(Owner::Merge).unwrap_or_default();
        // Half of the time is left for the renewal to be committed.
        let lapses_soon = until < self.clock.now(core.mono()) + Span(ttl.0 / 2);
        if self.merges.are_under_way() && lapses_soon {
            let reason = "two sides of the cluster are being merged".into();
            self.append(core, Entry::ServiceDown { owner: Owner::Merge, ttl, reason });
        }
    }

    fn ask_for_data(&mut self, core: &mut Core) {
        let now = core.mono();
        let meeting = self.merges.meeting.as_mut().filter(|meeting| now >= meeting.next_send);
        if let Some(meeting) = meeting.filter(|_| core.is_at_rest()) {
            meeting.next_send = now + core.settings.timing.declare;
            let vector = core.own_vector();
            core.send(meeting.other, Message::Meet { term: self.term, vector });
        }
    }

    fn submit_state(&mut self, core: &mut Core) {
        let now = core.mono();
        let handing = self.merges.handing_in.as_mut().filter(|handing| now >= handing.next_send);
        if let Some(handing) = handing.filter(|_| core.is_at_rest()) {
            handing.next_send = now + core.fresh();
            let after = core.journal.disk().vote_and_log();
            core.out.push(Output::SendMerge { to: handing.to, base: handing.base.clone(), after });
        }
    }
}

// The merge, and its effects.
impl Leading {
    /// Whether to merge the state that this node was sent. The state must have been made for no more than this log includes, it
    /// must bring something new, and no write may be in flight here. This node must have asked for it since it last followed or
    /// merged, and since it last settled anything: older data may be from a disk that is lost, and that the others have settled
    /// without (P34).
    pub fn takes_in(&self, core: &Core, from: NodeId, base: &Vector, theirs: &Vector) -> bool {
        let own = core.own_vector();
        let leads = self.opened && self.handing.is_none();
        let is_recent = base.covers(self.merges.since) || mutant::is_on(Mutant::MergeOfAnyEpoch);
        let fits = own.includes(base) && is_recent && !own.includes(theirs);
        leads && fits && from > core.me() && !core.journal.is_full() && core.is_at_rest()
    }

    /// The meta of the merged state: it stands at `at`, and the service is held.
    pub fn merged_meta(&self, core: &Core, at: Position, theirs: &SnapshotMeta) -> SnapshotMeta {
        let mut meta = core.log().meta_at(core.last().index);
        let stamp = self.clock.stamp(core.now);
        let mut vector = core.own_vector();
        if let Some(theirs) = &theirs.vector {
            vector.join(theirs);
        }
        vector.note(at);
        meta.at = at;
        // Time goes back on neither side, and no wall time beyond `MOST` is believed (P17).
        meta.stamp = Stamp {
            wall: stamp.wall.max(theirs.stamp.wall.min(WallTime::MOST)),
            cluster: stamp.cluster.max(theirs.stamp.cluster),
        };
        meta.holds.hold(Owner::Merge, meta.stamp.cluster + core.merge_hold());
        meta.format = meta.format.max(theirs.format);
        meta.vector = Some(vector);
        meta
    }

    /// This node leads with a state that it has merged: no other node has that state.
    pub fn begin_with_merged(&mut self, core: &Core) {
        self.merges.merged = true;
        self.find_out_where_all_stand(core);
    }

    pub fn merges(&self) -> &Merges {
        &self.merges
    }

    /// This node leads in a greater epoch, and goes on with the merges of the epoch before.
    pub fn go_on_with(&mut self, merges: Merges) {
        self.merges = merges;
    }

    /// Lifts the hold of the merge once every node that is heard has the merged state. For a node that cannot take the state in
    /// time, the leader waits only as long as the hold lasts. A leader that has merged nothing waits for no node: the hold was
    /// made by an earlier leader, and would last its full time again with each new leader, since cluster time stands still
    /// between them (P17).
    fn lift_merge_hold(&mut self, core: &mut Core) {
        let held = core.log().holds_of_service().held_by(Owner::Merge);
        let waits = self.merges.merged || mutant::is_on(Mutant::MergeHoldInherited);
        if held && (!waits || self.is_merged_everywhere(core)) {
            self.append(core, Entry::ServiceUp { owner: Owner::Merge });
        }
    }

    /// Whether every node that is heard has the merged state.
    fn is_merged_everywhere(&self, core: &Core) -> bool {
        let (now, fresh) = (core.mono(), core.fresh());
        self.progress.iter().all(|(node, progress)| {
            let heard = core.last_heard(*node).is_some_and(|at| at + fresh >= now);
            !heard || core.peers.is_refused(*node) || progress.matched >= self.open_index
        })
    }
}
