//! The contenders: what each wants, what it knows, and what an answer means to it.

use std::collections::BTreeSet;

use eldest::store::{NewProcess, SecretHash};
use eldest::types::{Span, Text, Time};

use super::documents::Writers;
use super::ties::{Ties, Tying};
use super::{Asked, Event, Told, Wish, Witness};
use crate::checks::Check;
use crate::host::Clock;
use crate::rng::Rng;
use crate::world::{Event as Happens, World};

/// A process that wants a role, or is registered as one.
#[derive(Clone, Debug)]
pub struct Contender {
    pub wants: Wants,
    pub instance: Text,
    /// The number of instances that it has been.
    pub lives: u64,
    pub ttl: Span,
    pub clock: Clock,
    pub target: usize,
    pub frozen_until: u64,
    /// It does nothing by itself: a scenario directs it.
    pub idle: bool,
    pub dead: bool,
    /// The call under way.
    pub open: Option<u64>,
    /// All its calls of this life: their connections end with it.
    pub calls: Vec<u64>,
    /// The number of its newest wake-up: earlier ones are void.
    pub turn: u64,
    pub token: Option<u64>,
    /// Counted by its own clock.
    pub believes_until: Time,
    /// The newest token that it released or lost: answers about this one and earlier ones are ignored.
    pub done_with: u64,
    /// The key of the acquisition under way, the same for all its attempts.
    pub key: Option<u128>,
    pub tying: Tying,
    /// The secret that it shows with each call, if it keeps one.
    pub secret: Option<SecretHash>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wants {
    Role(Text),
    Process(NewProcess),
}

#[derive(Debug)]
pub struct Lessees {
    pub all: Vec<Contender>,
    pub rng: Rng,
    pub next_id: u64,
    /// The callers of which the nodes know that they have hung up.
    pub gone: BTreeSet<u64>,
    /// Callers that have hung up: they hear no answers any more.
    pub hung_up: BTreeSet<u64>,
    /// The share of answers that are lost, in thousandths.
    pub loses_answers: u64,
    /// No contender wants anything any more.
    pub stopped: bool,
    /// The answers that a scenario got, in order.
    pub heard: Vec<(u64, Told)>,
    /// A bug of the holders: they count from the time of the answer, not from the time of the request.
    pub count_from_answers: bool,
    /// All contenders renew in time, and none dies.
    pub steady: bool,
    /// Present in some seeds.
    pub ties: Option<Ties>,
    /// Present in some seeds: some holders keep secrets, and some contenders try to end what belongs to
    /// another.
    pub thieves: Option<Rng>,
    /// Present in some seeds.
    pub writers: Option<Writers>,
    pub witness: Witness,
}

impl Contender {
    pub fn new(wants: Wants, number: usize, ttl: Span, clock: Clock) -> Contender {
        Contender {
            wants,
            instance: format!("i{number}").into(),
            lives: 1,
            ttl,
            clock,
            target: 0,
            frozen_until: 0,
            idle: false,
            dead: false,
            open: None,
            calls: Vec::new(),
            turn: 0,
            token: None,
            believes_until: Time::default(),
            done_with: 0,
            key: None,
            tying: Tying::default(),
            secret: None,
        }
    }

    pub fn believes(&self, truth: u64) -> bool {
        self.token.is_some() && self.clock.now(truth).mono < self.believes_until
    }

    /// Another process takes its place, or the same one under another name.
    pub fn start_as_another(&mut self, number: usize) {
        self.lives += 1;
        self.instance = format!("i{number}.{}", self.lives).into();
        self.forget();
        self.dead = false;
        self.key = None;
    }

    /// Another process takes its place under the same name: it owns what was granted to the earlier one.
    pub fn begin_again(&mut self) {
        self.done_with = self.done_with.saturating_sub(1);
        self.dead = false;
        self.key = None;
    }

    pub fn forget(&mut self) {
        self.done_with = self.done_with.max(self.token.unwrap_or_default());
        self.token = None;
        self.believes_until = Time::default();
    }
}

impl Lessees {
    pub fn new(all: Vec<Contender>, rng: Rng) -> Lessees {
        Lessees {
            all,
            rng,
            next_id: 0,
            gone: BTreeSet::new(),
            hung_up: BTreeSet::new(),
            loses_answers: 0,
            stopped: false,
            heard: Vec::new(),
            count_from_answers: false,
            steady: false,
            ties: None,
            thieves: None,
            writers: None,
            witness: Witness::default(),
        }
    }
}

/// The part of a promise that a holder relies on: clocks differ by a hundredth, and timers are late.
pub fn certain(promise: Span) -> Span {
    let margin = Span(promise.0 / 100) + Span::millis(10);
    Span(promise.0.saturating_sub(margin.0))
}

impl World {
    pub fn lessees_mut(&mut self) -> &mut Lessees {
        self.lessees.as_mut().expect("contenders")
    }

    pub fn contender(&mut self, who: usize) -> &mut Contender {
        &mut self.lessees_mut().all[who]
    }

    pub fn contender_event(&mut self, event: Event) -> Check {
        let who = match &event {
            Event::Answer { asked, .. } => asked.who,
            Event::GivesUp { who, .. } | Event::Wakes { who, .. } => *who,
            _ => return Ok(()),
        };
        let frozen_until = self.contender(who).frozen_until;
        if frozen_until > self.now {
            self.at(frozen_until, Happens::Lease(event));
            return Ok(());
        }
        match event {
            Event::Answer { asked, told } if !self.lessees_mut().hung_up.contains(&asked.id) => {
                self.contender_hears(&asked, told)
            }
            Event::GivesUp { id, .. } if self.contender(who).open == Some(id) => {
                self.gives_up(who, id);
                Ok(())
            }
            Event::Wakes { turn, .. } if self.contender(who).turn == turn => self.contender_acts(who),
            _ => Ok(()),
        }
    }

    /// Sends a call, and returns its id.
    pub fn asks(&mut self, who: usize, node: usize, wish: Wish, patience: u64) -> u64 {
        let now = self.now;
        let lessees = self.lessees_mut();
        lessees.next_id += 1;
        let id = lessees.next_id;
        lessees.all[who].open = Some(id);
        lessees.all[who].calls.push(id);
        let secret = lessees.all[who].secret;
        let asked = Asked { id, who, sent: now, wish, secret, via: None };
        let delay = self.net.delay(&mut self.rng) + self.straggles(&asked.wish);
        if let Wish::Renew { token, tie: Some(tie), .. } = asked.wish {
            self.checks.early.names(token, tie, now);
        }
        self.after(delay, Happens::Lease(Event::Call { node, asked }));
        self.after(patience, Happens::Lease(Event::GivesUp { who, id }));
        id
    }

    fn contender_hears(&mut self, asked: &Asked, told: Told) -> Check {
        let (who, mut pause) = (asked.who, None);
        let lessees = self.lessees_mut();
        if lessees.all[who].idle {
            lessees.heard.push((asked.id, told));
        }
        let ours = lessees.all[who].open == Some(asked.id);
        if lessees.all[who].dead {
            return Ok(());
        }
        self.line_is_told(asked, told);
        match told {
            Told::Yours { token, expires_in, ttl } => {
                pause = self.is_told_that_it_holds(asked, token, expires_in.min(ttl))?;
            }
            Told::Lost => {
                // The grant of an earlier attempt is over: the next attempt is a new call.
                self.contender(who).key = None;
                self.is_told_that_it_lost(asked);
            }
            Told::Refused(leader) if ours => {
                self.aim_contender(who, leader);
                pause = Some((5_000, 60_000));
            }
            Told::Done | Told::Held | Told::Refused(_) | Told::Unknown => {}
        }
        if ours {
            self.contender(who).open = None;
            self.rests(who, told, pause);
        }
        Ok(())
    }

    /// The holder may believe from the time at which it sent that call.
    fn is_told_that_it_holds(
        &mut self,
        asked: &Asked,
        token: u64,
        promise: Span,
    ) -> Result<Option<(u64, u64)>, crate::checks::Violation> {
        let (now, who) = (self.now, asked.who);
        let contender = self.contender(who);
        if token <= contender.done_with || contender.token.is_some_and(|known| token < known) {
            return Ok(None);
        }
        if *asked.wish.instance() != contender.instance {
            return Ok(None);
        }
        if !self.trusts(asked) {
            return Ok(None);
        }
        let contender = self.contender(who);
        if contender.token != Some(token) {
            self.lets_go(who);
            let contender = self.contender(who);
            contender.token = Some(token);
            contender.believes_until = Time::default();
        }
        self.contender(who).key = None;
        if asked.wish.waits() {
            return Ok(Some((1, 1_000)));
        }
        let counted_from = if self.lessees_mut().count_from_answers { now } else { asked.sent };
        let contender = self.contender(who);
        let until = contender.clock.now(counted_from).mono + certain(promise);
        contender.believes_until = contender.believes_until.max(until);
        if contender.believes(now) {
            self.witness_belief(who)?;
        }
        Ok(None)
    }

    fn is_told_that_it_lost(&mut self, asked: &Asked) {
        let contender = self.contender(asked.who);
        let this = match &asked.wish {
            Wish::Renew { token, .. } => Some(*token),
            Wish::Heartbeat { .. } => contender.token,
            _ => None,
        };
        if this.is_some() && contender.token == this {
            contender.forget();
            self.lets_go(asked.who);
            self.checks.believers.forget(asked.who);
        }
    }

    fn gives_up(&mut self, who: usize, id: u64) {
        let hangs_up = self.lessees_mut().rng.chance(600);
        if hangs_up {
            self.lessees_mut().hung_up.insert(id);
            let delay = self.net.delay(&mut self.rng);
            self.after(delay, Happens::Lease(Event::Gone { id }));
        }
        self.contender(who).open = None;
        self.aim_contender(who, None);
        if self.line_is_dropped(who, id) {
            return;
        }
        self.rests(who, Told::Unknown, None);
    }

    fn aim_contender(&mut self, who: usize, leader: Option<eldest::types::NodeId>) {
        let target = match leader {
            Some(leader) => self.slot(leader),
            None => {
                let nodes = self.hosts.len() as u64;
                self.lessees_mut().rng.below(nodes) as usize
            }
        };
        self.contender(who).target = target;
    }
}
