//! The actions that contenders take by themselves: they ask, renew in time or late, release, freeze and die.

use eldest::store::RoleClaim;
use eldest::types::{KeyedCall, Span, Text};

use super::contenders::Wants;
use super::{Asked, Event, Told, Wish};
use crate::checks::Check;
use crate::world::{Event as Happens, World};

/// The next action of a contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Renew,
    /// Asks for less, or changes what it says of itself.
    Change,
    Release,
    Freeze,
    Die,
}

const ACTS: [(Act, u64); 5] =
    [(Act::Renew, 84), (Act::Change, 6), (Act::Release, 4), (Act::Freeze, 3), (Act::Die, 3)];

impl World {
    /// It thinks before its next action.
    pub fn rests(&mut self, who: usize, told: Told, pause: Option<(u64, u64)>) {
        let holds = self.contender(who).token.is_some();
        let ttl = self.contender(who).ttl.0;
        let lessees = self.lessees_mut();
        if lessees.all[who].idle {
            return;
        }
        let late = !lessees.steady && lessees.rng.chance(80);
        let (low, high) = match (told, pause) {
            (_, Some(pause)) => pause,
            (Told::Yours { .. }, _) if holds && late => (ttl / 2, ttl * 3 / 2),
            (Told::Yours { .. }, _) if holds => (ttl / 4, ttl / 3),
            (Told::Unknown | Told::Refused(_), _) => (1_000, 60_000),
            _ => (20_000, 400_000),
        };
        let pause = lessees.rng.range(low, high);
        self.wakes_after(who, pause);
    }

    pub fn wakes_after(&mut self, who: usize, pause: u64) {
        let contender = self.contender(who);
        contender.turn += 1;
        let turn = contender.turn;
        self.after(pause, Happens::Lease(Event::Wakes { who, turn }));
    }

    pub fn contender_acts(&mut self, who: usize) -> Check {
        if self.lessees_mut().stopped || self.contender(who).open.is_some() {
            return Ok(());
        }
        if self.contender(who).dead {
            match self.comes_back_as_before() {
                true => self.contender(who).begin_again(),
                false => self.contender(who).start_as_another(who),
            }
        }
        let steady = self.lessees_mut().steady;
        let in_doubt = self.contender(who).tying.in_doubt;
        if !steady && !in_doubt && self.steals(who) {
            return Ok(());
        }
        let act = match self.contender(who).token {
            None => return self.wants(who),
            Some(_) if steady || in_doubt => Act::Renew,
            Some(_) => self.lessees_mut().rng.weighted(&ACTS),
        };
        self.note(|| format!("contender {who}: {act:?}"));
        match act {
            Act::Renew => self.renews(who, false),
            Act::Change => self.renews(who, true),
            Act::Release => self.releases(who),
            Act::Freeze => {
                let until = self.now + self.lessees_mut().rng.skewed(50_000, 5_000_000);
                self.contender(who).frozen_until = until;
                self.wakes_after(who, 1);
            }
            Act::Die => self.contender_dies(who),
        }
        Ok(())
    }

    pub fn contender_dies(&mut self, who: usize) {
        let contender = self.contender(who);
        contender.forget();
        contender.dead = true;
        contender.open = None;
        for id in std::mem::take(&mut contender.calls) {
            self.lessees_mut().hung_up.insert(id);
            let delay = self.net.delay(&mut self.rng);
            self.after(delay, Happens::Lease(Event::Gone { id }));
        }
        self.lets_go(who);
        self.checks.believers.forget(who);
        let back = self.lessees_mut().rng.skewed(10_000, 6_000_000);
        self.wakes_after(who, back);
    }

    /// Asks for the role or process that it does not have.
    fn wants(&mut self, who: usize) -> Check {
        let lessees = self.lessees_mut();
        // Now and then an operator names it, no matter who has the role.
        let named = lessees.rng.chance(15);
        let wait = match lessees.rng.below(10) {
            0..6 => Span::ZERO,
            _ if named => Span::ZERO,
            _ => Span::millis(lessees.rng.range(200, 4_000)),
        };
        let priority = lessees.rng.below(3) as i64;
        let (keyed, key) = (lessees.rng.chance(500), u128::from(lessees.rng.next()));
        let contender = &mut lessees.all[who];
        // An idempotency key takes room for ten minutes.
        if keyed && lessees.writers.as_ref().is_none_or(|writers| writers.most.is_none()) {
            contender.key.get_or_insert(key);
        }
        let wish = match contender.wants.clone() {
            Wants::Role(role) => self.acquisition(who, role, wait, priority, named),
            Wants::Process(_) => self.registration(who),
        };
        // Some hang up while they wait.
        let stays = wait == Span::ZERO || self.lessees_mut().rng.chance(700);
        let patience = match stays {
            true => wait.0 + self.patience(),
            false => self.lessees_mut().rng.range(100_000, wait.0),
        };
        let node = self.contender(who).target;
        self.asks(who, node, wish, patience);
        Ok(())
    }

    pub fn acquisition(&mut self, who: usize, role: Text, wait: Span, priority: i64, elect: bool) -> Wish {
        let contender = self.contender(who);
        let call = contender.key.map(|key| KeyedCall { key, body: 1, who: 0 });
        let (instance, ttl) = (contender.instance.clone(), contender.ttl);
        let claim = RoleClaim { instance, ttl, address: None, metadata: None, secret: None };
        Wish::Acquire { role, claim: claim.into(), wait, priority, elect, by: None, call }
    }

    fn registration(&mut self, who: usize) -> Wish {
        let contender = self.contender(who);
        let call = contender.key.map(|key| KeyedCall { key, body: 1, who: 0 });
        let Wants::Process(process) = contender.wants.clone() else {
            unreachable!("only processes register")
        };
        Wish::Register { id: contender.instance.clone(), process: process.into(), call }
    }

    fn renews(&mut self, who: usize, changes: bool) {
        let (half, metadata) = (self.lessees_mut().rng.chance(500), self.lessees_mut().rng.below(3));
        let (tie, opens) = self.names_tie(who);
        let contender = self.contender(who);
        let (token, instance, ttl) =
            (contender.token.unwrap_or_default(), contender.instance.clone(), contender.ttl);
        let less = Some(Span(ttl.0 / 2).max(Span::millis(1_000)));
        let wish = match contender.wants.clone() {
            Wants::Role(role) if changes && !half => {
                let metadata = Some(metadata.to_string().into());
                let claim = RoleClaim { instance, ttl, address: None, metadata, secret: None };
                let (wait, by, call) = (Span::ZERO, None, None);
                Wish::Acquire { role, claim: claim.into(), wait, priority: 0, elect: false, by, call }
            }
            Wants::Role(role) => Wish::Renew { role, instance, token, ttl: less.filter(|_| changes), tie },
            Wants::Process(process) if changes => {
                let process =
                    eldest::store::NewProcess { metadata: Some(metadata.to_string().into()), ..process };
                Wish::Register { id: instance, process: process.into(), call: None }
            }
            Wants::Process(_) => Wish::Heartbeat { id: instance },
        };
        let (node, patience) = (self.contender(who).target, self.patience());
        let id = self.asks(who, node, wish.clone(), patience);
        if opens {
            self.opens_line(id, who, node, &wish);
        }
    }

    /// The connection breaks where it hurts most: between the record that grants a role to the waiter and its
    /// commit. The caller asks again at once.
    pub fn connection_may_break(&mut self, asked: &Asked) {
        let lessees = self.lessees_mut();
        let contender = &mut lessees.all[asked.who];
        if contender.idle || contender.open != Some(asked.id) || !lessees.rng.chance(60) {
            return;
        }
        contender.open = None;
        lessees.hung_up.insert(asked.id);
        let delay = self.net.delay(&mut self.rng);
        self.after(delay, Happens::Lease(Event::Gone { id: asked.id }));
        self.wakes_after(asked.who, delay);
    }

    /// It stops believing at this moment. Whether or not the release arrives, it comes back under another
    /// name, because a release that is still under way must not end the next grant.
    fn releases(&mut self, who: usize) {
        let contender = self.contender(who);
        let (token, instance) = (contender.token.unwrap_or_default(), contender.instance.clone());
        let wish = match contender.wants.clone() {
            Wants::Role(role) => Wish::Release { role, instance, token },
            Wants::Process(_) => Wish::Remove { id: instance },
        };
        contender.start_as_another(who);
        self.lets_go(who);
        self.checks.believers.forget(who);
        let (node, patience) = (self.contender(who).target, self.patience());
        self.asks(who, node, wish, patience);
    }

    fn patience(&mut self) -> u64 {
        self.lessees_mut().rng.range(150_000, 900_000)
    }
}
