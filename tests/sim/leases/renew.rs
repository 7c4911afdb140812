//! Who goes on holding what (`src/driver/leasing/renew.rs`): answered after a round that started after the call arrived.

use eldest::leases::Judged as Standing;
use eldest::protocol::Verdict;
use eldest::store::{Judged, LeaseOperation, Reason};
use eldest::types::{LeaseName, Span};

use super::driver::{Pending, Turn, command};
use super::{Asked, Told, Wish};
use crate::checks::Check;
use crate::world::World;

#[derive(Debug)]
pub struct Renewing {
    pub asked: Asked,
    pub replayed: bool,
}

impl Renewing {
    fn is_registration(&self) -> bool {
        matches!(self.asked.wish, Wish::Register { .. })
    }
}

impl World {
    pub fn take_renewal(&mut self, node: usize, renewing: Renewing) -> Check {
        if !self.is_open(node) {
            return self.deny_leaderless(node, &renewing.asked);
        }
        match renewing.is_registration() {
            true => self.take_registration(node, renewing),
            false => self.confirm_renewal(node, renewing),
        }
    }

    fn take_registration(&mut self, node: usize, mut renewing: Renewing) -> Check {
        let Wish::Register { id, process, call } = renewing.asked.wish.clone() else {
            return Ok(());
        };
        self.look_ahead(node);
        let command = command(LeaseOperation::Register { id, process });
        let now = self.clock_of(node);
        let stamp = self.hosts[node].core.as_ref().and_then(|core| core.stamp(now)).unwrap_or_default();
        match self.newest(node).judge(&command, call, stamp) {
            Judged::Accept => self.propose_lease(node, command.to_payload(call), Pending::Renew(renewing)),
            Judged::Rejected(rejection) if rejection.reason != Reason::Unchanged => {
                self.lease_reply(node, &renewing.asked, Told::Lost).map(|_| ())
            }
            Judged::Rejected(_) => self.confirm_renewal(node, renewing),
            Judged::Replay { .. } => {
                renewing.replayed = true;
                self.confirm_renewal(node, renewing)
            }
            Judged::TooManyKeys => self.lease_reply(node, &renewing.asked, Told::Refused(None)).map(|_| ()),
        }
    }

    /// A renewal of what a record is about to end waits for that record.
    fn confirm_renewal(&mut self, node: usize, renewing: Renewing) -> Check {
        let name = renewing.asked.wish.name();
        let host = &self.hosts[node];
        let lease = host.store.product().lease(&name);
        let standing = lease.map(|lease| host.leasing.leases.renewal(&name, lease.token));
        let in_doubt = standing == Some(Standing::Ending) || renewing.is_registration();
        let at_least = if in_doubt { self.last_index(node) } else { 0 };
        self.confirm(node, Pending::Renew(renewing), at_least)
    }

    pub fn renew_verdict(&mut self, node: usize, renewing: Renewing, verdict: &Verdict) -> Check {
        match verdict {
            Verdict::Written { .. } => self.registered(node, renewing),
            Verdict::Readable { .. } => self.renew(node, renewing),
            _ => self.deny(node, &renewing.asked, verdict),
        }
    }

    fn registered(&mut self, node: usize, renewing: Renewing) -> Check {
        let name = renewing.asked.wish.name();
        let Some(what) = self.hosts[node].store.product().process(name.text()).cloned() else {
            return self.lease_reply(node, &renewing.asked, Told::Lost).map(|_| ());
        };
        let leasing = &mut self.hosts[node].leasing;
        if leasing.leases.renewal(&name, what.token) == Standing::Ending {
            leasing.turns.push_back(Turn::Renew(renewing));
            return Ok(());
        }
        let asked = renewing.asked.wish.ttl().unwrap_or(what.new.ttl);
        let expires_in = self.left(node, &name, what.new.ttl);
        let yours = Told::Yours { token: what.token, expires_in, ttl: asked };
        self.lease_reply(node, &renewing.asked, yours).map(|_| ())
    }

    /// What is left of something that has just been granted for so long.
    pub fn left(&self, node: usize, name: &LeaseName, ttl: Span) -> Span {
        let now = self.clock_of(node).mono;
        self.hosts[node].leasing.leases.left(name, now).unwrap_or_default().min(ttl)
    }

    /// By a state that is confirmed.
    fn renew(&mut self, node: usize, renewing: Renewing) -> Check {
        let name = renewing.asked.wish.name();
        let store = self.hosts[node].store.product();
        let mine = match &renewing.asked.wish {
            Wish::Renew { role, instance, token, .. } => {
                store.role(role).is_some_and(|held| held.claim.instance == *instance && held.token == *token)
            }
            _ => true,
        };
        let Some(lease) = store.lease(&name).filter(|_| mine) else {
            return self.tell_lost(node, renewing);
        };
        match self.hosts[node].leasing.leases.renewal(&name, lease.token) {
            Standing::Renewable => {
                let (now, asked) = (self.clock_of(node).mono, renewing.asked.wish.ttl());
                let leases = &mut self.hosts[node].leasing.leases;
                let renewed = leases.renew(now, &name, lease.token, asked);
                let expires_in = renewed.map(|renewed| renewed.expires_in).unwrap_or_default();
                let ttl = asked.unwrap_or(lease.ttl);
                let yours = Told::Yours { token: lease.token, expires_in, ttl };
                self.lease_reply(node, &renewing.asked, yours).map(|_| ())
            }
            Standing::Ending => {
                self.hosts[node].leasing.turns.push_back(Turn::Renew(renewing));
                Ok(())
            }
            Standing::Lost => self.deny_leaderless(node, &renewing.asked),
        }
    }

    fn tell_lost(&mut self, node: usize, renewing: Renewing) -> Check {
        if renewing.is_registration() && !renewing.replayed {
            self.hosts[node].leasing.turns.push_back(Turn::Renew(renewing));
            return Ok(());
        }
        self.lease_reply(node, &renewing.asked, Told::Lost).map(|_| ())
    }
}
