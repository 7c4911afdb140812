//! A leader hands over as planned (P18), or to a returning elder that takes over (P19). The leader knows best which nodes could lead after
//! it (P4).
//!
//! ```text
//!   asked by an operator, disk full, or a stable elder ──► an heir is chosen; writes are refused
//!   the heir has everything, all committed and answered ─► Exit::HandsOver: the node stops leading, then sends
//!                                                          the certificate (P18, C6)
//!   a window has passed before that ─────────────────────► the epoch goes on
//! ```

use super::{Exit, HandingOver, Leading};
use crate::protocol::core::Core;
use crate::protocol::messages::{Certificate, HandOverReason, Refusal, Verdict};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::settings::Takeover;
use crate::protocol::succession::{Contender, Fitness};
use crate::types::{NodeId, RequestId, Time};

impl Leading {
    pub fn on_hand_over(
        &mut self,
        core: &mut Core,
        request: RequestId,
        to: Option<NodeId>,
        reason: HandOverReason,
    ) {
        if !self.opened {
            return core.refuse(request, Refusal::NotLeader { leader: None });
        }
        if self.handing.is_some() {
            return core.refuse(request, Refusal::HandingOver);
        }
        if to == Some(core.me()) {
            return core.verdict(request, Verdict::Done);
        }
        let able = |heir: NodeId| self.can_inherit(core, heir).then_some(heir);
        match to.map_or_else(|| self.best_heir(core), able) {
            Some(heir) => self.start_hand_over(core, heir, Some(request), reason),
            None => core.refuse(request, Refusal::NotAnHeir),
        }
    }

    fn start_hand_over(
        &mut self,
        core: &Core,
        heir: NodeId,
        request: Option<RequestId>,
        reason: HandOverReason,
    ) {
        let until = core.mono() + core.settings.timing.window;
        self.handing = Some(HandingOver { heir, request, reason, until });
    }

    /// Starts the takeover by a returning elder that has been up for a while, has caught up and is not on hold (P19).
    pub(super) fn consider_takeover(&mut self, core: &Core) {
        let never = core.settings.takeover == Takeover::Never;
        if never || !self.opened || self.handing.is_some() {
            return;
        }
        if let Some(heir) = self.returning_elder(core) {
            self.start_hand_over(core, heir, None, HandOverReason::Elder);
        }
    }

    /// A leader without room on its disk cannot serve writes: it looks for an heir at each beat (P24).
    pub(super) fn leave_if_full(&mut self, core: &Core) {
        if !self.opened || self.handing.is_some() || !core.journal.is_full() {
            return;
        }
        if let Some(heir) = self.best_heir(core) {
            self.start_hand_over(core, heir, None, HandOverReason::DiskFull);
        }
    }

    pub(super) fn settle_hand_over(&mut self, core: &mut Core) -> Option<Exit> {
        let HandingOver { heir, request, reason, until } = self.handing.clone()?;
        let last = core.last();
        let has_all = self.matched_by(heir) == Some(last.index) && core.journal.commit() == last.index;
        // Under `ack = all` the writes so far are answered first: after the hand-over no node can answer them.
        let answered = self.acknowledged(core) == last.index || mutant::is_on(Mutant::AckAllWhenDeposed);
        if has_all && answered {
            self.handing = None;
            let certificate = Certificate { epoch: self.term.epoch, heir, last };
            return Some(Exit::HandsOver { certificate, request, reason });
        }
        if core.mono() >= until {
            // The certificate has not left yet, so this epoch may go on.
            self.handing = None;
            if let Some(request) = request {
                core.refuse(request, Refusal::NotAnHeir);
            }
        }
        None
    }
}

// The nodes that could lead next.
impl Leading {
    /// Whether that node could lead now: its disk counts, it answers, and it is nearly caught up.
    fn can_inherit(&self, core: &Core, heir: NodeId) -> bool {
        let lag = core.settings.limits.ready_lag;
        self.progress.get(&heir).is_some_and(|progress| {
            let answers = progress.answered_at + core.fresh() >= core.mono();
            let near = progress.matched + lag >= core.last().index;
            // The heir has taken a record of this epoch, so it has promised this epoch. It honours a
            // certificate only then.
            answers && near && !progress.full && progress.matched >= self.open_index
        }) && self.peer_counts(core, heir)
            && !core.peers.is_refused(heir)
    }

    /// The next leader: the lowest id among the nodes that could lead; nodes on hold come last (P4, P20).
    pub fn best_heir(&self, core: &Core) -> Option<NodeId> {
        let heirs = core.other_voters().filter(|heir| self.can_inherit(core, *heir));
        heirs.min_by_key(|heir| (core.peers.is_on_hold(*heir, core.mono()), *heir))
    }

    fn returning_elder(&self, core: &Core) -> Option<NodeId> {
        self.best_heir(core).filter(|heir| *heir < core.me() && self.is_stable(core, *heir))
    }

    fn is_stable(&self, core: &Core, heir: NodeId) -> bool {
        let (now, stable_for) = (core.mono(), core.settings.timing.stable_for);
        core.peers.get(heir).is_some_and(|peer| {
            let steady = peer.up_since.max(self.since) + stable_for <= now;
            steady && !peer.hold.lasts(now)
        })
    }

    /// All nodes, as the leader sees them, each with its fitness to lead (P58).
    pub fn contenders(&self, core: &Core, now: Time) -> Vec<Contender> {
        let others = core.others().map(|node| match core.is_voter(node) {
            true => Contender { node, fitness: self.fitness_of(core, node, now) },
            false => Contender { node, fitness: Fitness::NoVote },
        });
        let own = if core.journal.is_full() { Fitness::Full } else { Fitness::Ready };
        std::iter::once(Contender { node: core.me(), fitness: own }).chain(others).collect()
    }

    fn fitness_of(&self, core: &Core, node: NodeId, now: Time) -> Fitness {
        let Some(progress) = self.progress.get(&node) else {
            return Fitness::Silent;
        };
        let lag = core.last().index.saturating_sub(progress.matched);
        match () {
            () if core.peers.is_refused(node) => Fitness::Silent,
            () if progress.answered_at + core.fresh() < now => Fitness::Silent,
            () if !self.peer_counts(core, node) => Fitness::NoVote,
            () if progress.full => Fitness::Full,
            () if lag > core.settings.limits.ready_lag => Fitness::Behind { lag },
            () if core.peers.is_on_hold(node, now) => Fitness::Held,
            () => Fitness::Ready,
        }
    }
}
