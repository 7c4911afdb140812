//! A renewal goes to the node that seems to lead, through a round, into the leases, and back. A driver does the same.

use super::super::super::RenewalVerdict;
use super::Bug;
use super::cluster::LeaderId;
use super::world::{Event, Seen, World};
use crate::types::{LeaseName, Span, Time};

#[derive(Clone, Debug)]
pub struct Renewal {
    pub name: LeaseName,
    pub token: u64,
    /// The ttl of the grant.
    pub ttl: Span,
    /// The ttl that the holder asks for, if it is less or more than that of the grant.
    pub asked: Option<Span>,
    pub sent: Time,
    /// The leader that it was sent to.
    pub leader: Option<LeaderId>,
    /// The verdict at its arrival.
    pub judged: Option<RenewalVerdict>,
}

impl World {
    pub fn arrive(&mut self, mut renewal: Renewal) {
        let Some(id) = self.alive(&renewal) else { return };
        let judged = self.cluster.leaders[id].leases.renewal(&renewal.name, renewal.token);
        renewal.judged = Some(judged);
        if judged == RenewalVerdict::Lost {
            return;
        }
        let round = self.rng.span(0, 50);
        self.after(round, Event::Confirmed(renewal));
    }

    /// The round started after the arrival, and is answered now. It is never answered if another leader is in charge.
    pub fn confirmed(&mut self, renewal: Renewal) {
        let Some(id) = self.alive(&renewal) else { return };
        if !self.cluster.leaders[id].in_charge && self.bug != Bug::NoRound {
            return;
        }
        let answers = self.rng.span(0, 50);
        self.after(answers, Event::Process(renewal));
    }

    /// The leader carries the renewal out. It may have been replaced since the round.
    pub fn process(&mut self, renewal: Renewal) {
        let Some(id) = self.alive(&renewal) else { return };
        let leader = &mut self.cluster.leaders[id];
        let now = leader.clock(self.now);
        let asked = renewal.asked.unwrap_or(renewal.ttl);
        match leader.leases.renew(now, &renewal.name, renewal.token, renewal.asked) {
            Some(renewed) => {
                if leader.in_charge {
                    self.checker.counted(renewal.token, self.now, renewal.ttl);
                }
                self.tally.see(Seen::Renewal, 1);
                self.tally.see(Seen::Halved, usize::from(renewed.expires_in < asked.min(renewal.ttl)));
                let expires_in =
                    if self.promises_too_much(&renewal) { renewal.ttl } else { renewed.expires_in };
                self.reply(renewal, expires_in);
            }
            None => self.not_renewable(id, renewal),
        }
    }

    fn not_renewable(&mut self, id: LeaderId, renewal: Renewal) {
        let judged = self.cluster.leaders[id].leases.renewal(&renewal.name, renewal.token);
        let once = self.bug == Bug::JudgesOnce && renewal.judged == Some(RenewalVerdict::Renewable);
        let despite = self.bug == Bug::AnswersEnding && judged == RenewalVerdict::Ending;
        if once || despite {
            let expires_in = renewal.ttl;
            self.reply(renewal, expires_in);
        } else if judged == RenewalVerdict::Ending {
            self.tally.see(Seen::Waited, 1);
            self.waiting.push(renewal);
        }
    }

    fn promises_too_much(&self, renewal: &Renewal) -> bool {
        let is_aged = || self.cluster.state.get(&renewal.name).is_some_and(|held| held.aged);
        match self.bug {
            Bug::PromisesAgedInFull => true,
            Bug::ForgetsUndecidedAgeing => !is_aged(),
            _ => false,
        }
    }

    fn reply(&mut self, renewal: Renewal, expires_in: Span) {
        let travel = self.rng.span(0, 40);
        if !self.mishap(6) {
            self.after(travel, Event::Answer { renewal, expires_in });
        }
    }

    /// The leader that the renewal was sent to, unless that leader has resigned.
    fn alive(&self, renewal: &Renewal) -> Option<LeaderId> {
        renewal.leader.filter(|id| !self.cluster.leaders[*id].resigned)
    }
}
