//! Holders of roles in available mode (P42): each side counts for itself. Holders ask any node, wait, renew,
//! release and die; nodes hear them no matter which links are cut.

use eldest::replica::{self, Acquire, Answer, Denied, Renewal};
use eldest::store::{Applied, Command, LeaseEvent, LeaseOperation, Operation, RoleClaim, Tenure};
use eldest::types::{Epoch, Position, Span, Text};

use super::clients::Event as Side;
use crate::calls::Waiting;
use crate::checks::{Check, ensure};
use crate::leases::certain;
use crate::rng::Rng;
use crate::world::{Event as Happens, World};

const HOLDERS: usize = 6;
const ROLES: u64 = 2;
const TTL: Span = Span::millis(1_000);
/// A holder that gets no answer for this long asks another node.
const PATIENCE: u64 = 300_000;

#[derive(Debug)]
pub enum Event {
    Wakes { who: usize, turn: u64 },
    Call { node: usize, asked: Asked },
    Answer { asked: Asked, told: Told },
}

/// One attempt, by the turn of the holder that asked: answers to earlier attempts mean nothing any more.
#[derive(Clone, Debug)]
pub struct Asked {
    who: usize,
    turn: u64,
    sent: u64,
    /// A call that waited: its answer does not make the holder believe.
    waits: bool,
    wish: Wish,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Acquire,
    Renew { token: u64 },
    Release { token: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Granted by the leader of a side, in this epoch.
    Yours {
        token: u64,
        promise: Span,
        side: Epoch,
    },
    Lost,
    Nothing,
}

#[derive(Debug)]
struct Holder {
    role: Text,
    instance: Text,
    lives: u64,
    turn: u64,
    target: usize,
    token: Option<u64>,
}

#[derive(Debug)]
pub struct Holders {
    all: Vec<Holder>,
    rng: Rng,
    pub beliefs: usize,
}

impl Holders {
    pub fn new(mut rng: Rng) -> Holders {
        let holder = |who: usize| Holder {
            role: format!("r{}", rng.below(ROLES)).into(),
            instance: format!("i{who}").into(),
            lives: 1,
            turn: 0,
            target: 0,
            token: None,
        };
        let all = (0..HOLDERS).map(holder).collect();
        Holders { all, rng, beliefs: 0 }
    }
}

impl World {
    pub fn draw_holders(&mut self, rng: Rng) {
        self.holders = Some(Holders::new(rng));
        (0..HOLDERS).for_each(|who| self.holder_wakes_after(who, 400_000));
    }

    fn holders(&mut self) -> &mut Holders {
        self.holders.as_mut().expect("holders")
    }

    pub fn role_event(&mut self, event: Event) -> Check {
        match event {
            Event::Wakes { who, turn } if self.holders().all[who].turn == turn => self.holder_wakes(who),
            Event::Answer { asked, told } if self.holders().all[asked.who].turn == asked.turn => {
                return self.holder_hears(&asked, told);
            }
            Event::Call { node, asked } if self.hosts[node].is_up() => return self.role_call(node, asked),
            _ => {}
        }
        Ok(())
    }

    fn holder_wakes_after(&mut self, who: usize, pause: u64) {
        let holder = &mut self.holders().all[who];
        holder.turn += 1;
        let turn = holder.turn;
        self.after(pause, Happens::Side(Side::Role(Event::Wakes { who, turn })));
    }

    fn holder_wakes(&mut self, who: usize) {
        if self.sides.stopped {
            return;
        }
        let nodes = self.hosts.len() as u64;
        let Holders { all, rng, .. } = self.holders();
        let (draw, elsewhere) = (rng.below(100), rng.below(nodes) as usize);
        let holder = &mut all[who];
        let wish = match holder.token {
            None => {
                holder.target = elsewhere;
                Wish::Acquire
            }
            Some(_) if draw < 4 => return self.holder_begins_anew(who, 1_500_000),
            Some(token) if draw < 12 => Wish::Release { token },
            Some(token) => {
                holder.target = if draw < 25 { elsewhere } else { holder.target };
                Wish::Renew { token }
            }
        };
        let waits = wish == Wish::Acquire && draw < 40;
        let (turn, node, sent) = (holder.turn + 1, holder.target, self.now);
        self.holder_wakes_after(who, PATIENCE + if waits { TTL.0 } else { 0 });
        let delay = self.net.delay(&mut self.rng);
        let asked = Asked { who, turn, sent, waits, wish };
        self.after(delay, Happens::Side(Side::Role(Event::Call { node, asked })));
        if let Wish::Release { .. } = wish {
            self.holder_begins_anew(who, 100_000);
        }
    }

    /// The holder stops believing, and comes back under another name.
    fn holder_begins_anew(&mut self, who: usize, within: u64) {
        let Holders { all, rng, .. } = self.holders();
        let (holder, pause) = (&mut all[who], rng.below(within));
        holder.lives += 1;
        holder.instance = format!("i{who}.{}", holder.lives).into();
        holder.token = None;
        self.checks.tokens.forget(who);
        self.holder_wakes_after(who, pause);
    }

    fn role_call(&mut self, node: usize, asked: Asked) -> Check {
        let now = self.hosts[node].clock.now(self.now).mono;
        let holder = &self.holders().all[asked.who];
        let (role, instance) = (holder.role.clone(), holder.instance.clone());
        let call = match asked.wish {
            Wish::Acquire => {
                let claim =
                    RoleClaim { instance, ttl: TTL, address: None, metadata: None, secret: None }.into();
                let until = now + if asked.waits { TTL } else { Span::ZERO };
                let acquire = Acquire { role, claim, elect: false, priority: 0, until, by: None, key: None };
                replica::Call::Acquire(acquire.into())
            }
            Wish::Renew { token } => {
                let tenure = Tenure { instance, token, ttl: None, tie: None, secret: None };
                replica::Call::Renew(Renewal::Role { role, tenure })
            }
            Wish::Release { token } => {
                // The role was asked for under the name that the holder had before.
                let instance = self.checks.tokens.instance(token).unwrap_or(instance);
                let operation = LeaseOperation::Release { role, instance, token, secret: None };
                let command = Box::new(Command::Single(Operation::Lease(operation.into())));
                replica::Call::Write { command, key: None }
            }
        };
        self.arrives(node, Waiting::Holder(asked), call)
    }

    pub fn holder_answered(&mut self, node: usize, asked: Asked, answer: &Result<Answer, Denied>) {
        let side = self.hosts[node].core().and_then(|core| core.leads());
        let told = match (answer, side) {
            (Ok(Answer::Role(granted)), Some(side)) => {
                let promise = granted.expires_in.min(granted.what.claim.ttl);
                Told::Yours { token: granted.what.token, promise, side }
            }
            (Err(Denied::LeaseLost(_)), _) => Told::Lost,
            _ => Told::Nothing,
        };
        self.note(|| format!("n{} tells holder {}: {told:?} after {:?}", node + 1, asked.who, asked.wish));
        let delay = self.net.delay(&mut self.rng);
        self.after(delay, Happens::Side(Side::Role(Event::Answer { asked, told })));
    }

    fn holder_hears(&mut self, asked: &Asked, told: Told) -> Check {
        let (now, who) = (self.now, asked.who);
        let pause = match told {
            Told::Yours { token, promise, side } => {
                let until = asked.sent + certain(promise).0;
                let holder = &mut self.holders().all[who];
                holder.token = Some(token);
                let role = holder.role.clone();
                if !asked.waits && now < until {
                    self.holders().beliefs += 1;
                    self.checks.tokens.believes(now, who, &role, token, side, until)?;
                }
                if asked.waits { 1 } else { TTL.0 / 3 }
            }
            Told::Lost => {
                self.holders().all[who].token = None;
                self.checks.tokens.forget(who);
                1_000
            }
            Told::Nothing => 150_000,
        };
        self.holder_wakes_after(who, pause);
        Ok(())
    }

    /// A record has been applied by some node.
    pub fn side_grants(&mut self, at: Position, applied: &Applied) -> Check {
        for event in &applied.events {
            if let LeaseEvent::RoleAcquired { role, instance, token } = event {
                self.checks.tokens.granted(self.now, role, instance, *token, at)?;
            }
        }
        Ok(())
    }

    /// No holder renews any more: the leases that one side counts, and those that it has from others, end.
    pub fn roles_end(&mut self) -> Check {
        if self.holders.is_none() {
            return Ok(());
        }
        let held = |world: &World| world.hosts.iter().any(|host| host.state.store.leases().next().is_some());
        // The sides may still have to find their leader, and followers hear of the last commit by the next
        // beat.
        let timing = &self.hosts[0].settings.timing;
        let (led, beats) = (timing.election_timeout().times(4).0, timing.heartbeat.times(2).0);
        let until = self.now + led + 2 * TTL.0 + 2_000_000 + beats;
        let ended = self.run_until_true(until, |world| !held(world))?;
        ensure(ended, "P42 what nobody renews ends", || crate::run::states(self))
    }
}
