//! One node: its core and its present role. Only this module changes the role, and only here is the role seen together with other state.
//!
//! A rule of a role does not change the role. It returns `Won` or `Exit`, and the node carries that out. Every
//! way out of leading goes through `Leading::leave`, which answers waiting reads and the caller of a hand-over.

mod asking;
mod dispatch;
#[cfg(test)]
mod hostile;
mod merging;
mod obeying;
mod promising;
mod sides;
mod suspecting;
mod view;
mod yielding;

use crate::protocol::core::Core;
use crate::protocol::following::Following;
use crate::protocol::leading::{Exit, Leading};
use crate::protocol::messages::{Cause, Certificate, Claim, Event, Fault, Recovered, Term, Verdict};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::seeking::{Claiming, Seeking, Won};
use crate::protocol::settings::Settings;
use crate::types::{NodeId, Now, RequestId, Time};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "a node has one role at a time")]
enum RoleState {
    Seeking(Seeking),
    Following(Following),
    Leading(Box<Leading>),
}

/// A role's name, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleName {
    Candidate,
    Follower,
    Leader,
    Stopped,
}

/// One node of the cluster, as far as it needs no clock, no disk and no network.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    core: Core,
    role: RoleState,
    pending: Option<PendingClaim>,
    yielded: Option<Yielded>,
}

/// A claim that this node may come to approve: once it suspects its leader too, or once the nodes before
/// the candidate have had their turn (C28). It is forgotten unless the candidate repeats it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PendingClaim {
    from: NodeId,
    claim: Claim,
    at: Time,
}

/// The certificate has left: this node's epoch is over, whether the heir uses the certificate or not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Yielded {
    certificate: Certificate,
    request: Option<RequestId>,
    next_send: Time,
    until: Time,
}

impl Node {
    pub fn new(settings: Settings, recovered: Recovered, now: Now) -> Node {
        let core = Core::new(settings, recovered, now);
        let role = RoleState::Seeking(Seeking::new(now.mono, Cause::Started));
        Node { core, role, pending: None, yielded: None }
    }

    fn leading(&self) -> Option<&Leading> {
        match &self.role {
            RoleState::Leading(leading) => Some(leading),
            _ => None,
        }
    }

    fn leading_mut(&mut self) -> Option<(&mut Leading, &mut Core)> {
        match &mut self.role {
            RoleState::Leading(leading) => Some((leading, &mut self.core)),
            _ => None,
        }
    }

    fn following(&self) -> Option<&Following> {
        match &self.role {
            RoleState::Following(following) => Some(following),
            _ => None,
        }
    }

    fn following_mut(&mut self) -> Option<(&mut Following, &mut Core)> {
        match &mut self.role {
            RoleState::Following(following) => Some((following, &mut self.core)),
            _ => None,
        }
    }

    fn seeking(&self) -> Option<&Seeking> {
        match &self.role {
            RoleState::Seeking(seeking) => Some(seeking),
            _ => None,
        }
    }

    fn seeking_mut(&mut self) -> Option<(&mut Seeking, &mut Core)> {
        match &mut self.role {
            RoleState::Seeking(seeking) => Some((seeking, &mut self.core)),
            _ => None,
        }
    }

    /// The claim of that term, if this node has made it and it still stands.
    fn claiming_mut(&mut self, term: Term) -> Option<(&mut Claiming, &mut Core)> {
        let (seeking, core) = self.seeking_mut()?;
        seeking.claim_mut().filter(|claim| claim.term() == term).map(|claim| (claim, core))
    }
}

// Changes from one role to another.
impl Node {
    /// Becomes the leader of a claimed epoch.
    fn lead(&mut self, won: Won) {
        // The caller of a hand-over that did not happen still waits for its verdict (P15).
        let yielded = self.yielded.take().and_then(|yielded| yielded.request);
        if let Some(request) = yielded.filter(|_| !mutant::is_on(Mutant::YieldedUnanswered)) {
            self.core.verdict(request, Verdict::Unknown);
        }
        self.role = RoleState::Leading(Box::new(Leading::new(&mut self.core, won)));
    }

    fn lead_if_won(&mut self, won: Option<Won>) {
        if let Some(won) = won {
            self.lead(won);
        }
    }

    fn seek(&mut self, cause: Cause) {
        self.role = RoleState::Seeking(Seeking::new(self.core.mono(), cause));
    }

    /// Gives up the leader (P3).
    fn suspect(&mut self, cause: Cause) {
        let Some(following) = self.following() else {
            return;
        };
        let (leader, heir) = (following.leader(), following.heir());
        let (silent, patience) = following.silence(&self.core);
        let (me, now) = (self.core.me(), self.core.mono());
        let as_heir = heir == Some(me) && self.may_claim_as_heir(cause);
        if !mutant::is_on(Mutant::CauseUntold) {
            self.core.event(Event::Suspected { leader, cause, silent, patience });
        }
        let mut seeking = Seeking::instead_of(leader, as_heir, now, cause);
        if let Some(heir) = heir.filter(|heir| *heir < me && !self.core.peers.is_refused(*heir)) {
            seeking.ask_heir_first(&mut self.core, heir);
        }
        self.role = RoleState::Seeking(seeking);
    }

    /// The heir that the leader named knows that its rank is zero: when the leader's process is surely
    /// gone, the heir claims without a dry run (P4). It does not do so twice in a row: otherwise, behind a firewall that refuses
    /// connections, it would disturb the cluster again and again (C26).
    fn may_claim_as_heir(&self, cause: Cause) -> bool {
        let pause = self.core.settings.timing.election_timeout().times(4);
        let rested = self.core.claimed_as_heir.is_none_or(|at| self.core.mono() >= at + pause);
        rested && matches!(cause, Cause::Refused | Cause::NewProcess)
    }

    fn leave_leading(&mut self, cause: Cause) {
        if let Some((leading, core)) = self.leading_mut() {
            leading.leave(core, cause);
        }
    }

    /// Carries out the exit of a leader that leads no longer.
    fn exit(&mut self, exit: Option<Exit>) {
        match exit {
            None => {}
            Some(Exit::StepsDown(cause)) => self.step_down(cause),
            Some(Exit::HandsOver { certificate, request, reason }) => {
                if !mutant::is_on(Mutant::HandOverUntold) {
                    self.core.event(Event::HandsOver { heir: certificate.heir, reason });
                }
                self.yield_to(certificate, request);
            }
            Some(Exit::IsOdd) => {
                // Waiting reads are refused, and the resignation is sent, before the node stops.
                self.step_down(Cause::Odd);
                match mutant::is_on(Mutant::OddLeaderGoesOn) {
                    true => self.core.stop_if_proven(Fault::Odd),
                    false => self.core.stop(Fault::Odd),
                }
            }
        }
    }

    /// Stops leading for good in this epoch, and tells all nodes so (P16).
    fn step_down(&mut self, cause: Cause) {
        let Some(epoch) = self.leads() else {
            return;
        };
        if cause == Cause::Stuck {
            self.core.fail();
        }
        self.leave_leading(cause);
        // The others hear that this leader is gone, and need not wait for `dead_after` of silence (P16).
        self.core.note_over(epoch);
        self.seek(cause);
    }

    /// Ends this epoch: the lease goes first, then the certificate (P18, C6).
    fn yield_to(&mut self, certificate: Certificate, request: Option<RequestId>) {
        let now = self.core.mono();
        let until = now + self.core.settings.timing.window;
        self.yielded = Some(Yielded { certificate, request, next_send: now, until });
        if mutant::is_on(Mutant::ServeAfterHandOver) {
            return;
        }
        self.leave_leading(Cause::HandedOver);
        self.core.epochs.end(certificate.epoch);
        self.role = RoleState::Seeking(Seeking::quiet_until(until, now));
    }

    /// A follower has promised a greater epoch: this epoch will never reach it again. The leader asks the others
    /// whether they still follow, and claims a greater epoch (P28, C26).
    fn reclaim_if_outdated(&mut self, promise: Term) {
        if !self.leading().is_some_and(|leading| leading.is_outdated_by(promise)) {
            return;
        }
        if self.core.settings.is_available() {
            return self.go_on_in_a_greater_epoch();
        }
        if !mutant::is_on(Mutant::IgnoreGreaterPromise) {
            self.leave_leading(Cause::GreaterEpoch);
            self.seek(Cause::GreaterEpoch);
        }
    }

    /// In available mode no majority is needed, so no node is asked: the followers of this leader follow it into the greater epoch (P32).
    fn go_on_in_a_greater_epoch(&mut self) {
        if self.core.journal.is_full() || !self.core.epochs.has_more() {
            return;
        }
        let Some(leading) = self.leading() else {
            return;
        };
        let (approved, merges) = (leading.joined(), leading.merges().clone());
        let term = self.core.own_term(self.core.epochs.next_counter());
        self.leave_leading(Cause::GreaterEpoch);
        self.core.raise_promise(term);
        self.lead(Won { term, founders: None, leases_until: self.core.mono(), approved });
        if let Some((leading, _)) = self.leading_mut()
            && !mutant::is_on(Mutant::MergesEndWithEpochs)
        {
            leading.go_on_with(merges);
        }
    }
}
