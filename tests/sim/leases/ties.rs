//! Ties (P45): a connection to some node that a holder relies on in addition to its lease. The node that
//! serves it tells the leader when it has closed: after a grace, late, more than once, and after its holder
//! has gone on elsewhere. A connection may also break while its holder lives. The holder then believes for
//! half of the grace, and proves that it goes on under the next number.

use std::collections::BTreeMap;

use eldest::types::{Span, Text};

use super::contenders::{Contender, Wants};
use super::{Asked, Event, Told, Wish};
use crate::checks::Check;
use crate::rng::Rng;
use crate::world::{Event as Happens, World};

/// Both ends of a connection that is closed in order hear of it within half of the grace. This is in
/// thousandths of the grace, and a little less than half, as clocks differ.
const APART_MOST: u64 = 450;

/// The time between two tries to tell the leader.
const AGAIN: u64 = 250_000;

/// The share of the contenders for roles that use ties in such a seed, in thousandths.
const TIED: u64 = 700;

/// These are drawn separately, so that the other seeds stay what they are.
#[derive(Debug)]
pub struct Ties {
    rng: Rng,
    /// Keyed by the call that opens each.
    lines: BTreeMap<u64, Line>,
}

/// A connection, as the node that serves it knows it.
#[derive(Clone, Debug)]
pub struct Line {
    who: usize,
    role: Text,
    instance: Text,
    token: u64,
    number: u64,
    grace: u64,
    node: usize,
    /// The number of the node's process, once it has heard of the connection.
    life: Option<u64>,
    /// The leader has said that it is a renewal; before that there is nothing to close.
    answered: bool,
}

/// A holder's own view of its connection.
#[derive(Clone, Debug, Default)]
pub struct Tying {
    pub wanted: bool,
    /// The number that its renewals name. It only rises.
    number: u64,
    /// The holder goes on without a connection.
    plain: bool,
    line: Option<u64>,
    /// Answers to calls that were sent before this time are worth nothing.
    pub broke_at: u64,
    /// Its node has told it that the connection is open.
    heard: bool,
    /// It has lost a connection, and renews under the next number before it does anything else.
    pub in_doubt: bool,
}

impl Ties {
    pub fn new(mut rng: Rng, all: &mut [Contender]) -> Ties {
        for contender in all {
            let tied = matches!(contender.wants, Wants::Role(_)) && rng.chance(TIED);
            contender.tying = Tying { wanted: tied, number: 1, ..Tying::default() };
        }
        Ties { rng, lines: BTreeMap::new() }
    }
}

pub fn grace(ttl: Span) -> u64 {
    (ttl.0 / 2).min(1_000_000)
}

impl World {
    pub fn ties(&mut self) -> Option<&mut Ties> {
        self.lessees_mut().ties.as_mut()
    }

    fn tie_chance(&mut self, per_mille: u64) -> bool {
        self.ties().is_some_and(|ties| ties.rng.chance(per_mille))
    }

    fn tie_pause(&mut self, low: u64, high: u64) -> u64 {
        self.ties().map_or(low, |ties| ties.rng.range(low, high))
    }

    /// Now and then a process that has died comes back under the name that it had.
    pub fn comes_back_as_before(&mut self) -> bool {
        self.tie_chance(400)
    }

    /// The number that its next renewal names, and whether that opens a connection.
    pub fn names_tie(&mut self, who: usize) -> (Option<u64>, bool) {
        if !self.contender(who).tying.wanted {
            return (None, false);
        }
        self.notices_dead_node(who);
        let (turns, opens) = (self.tie_chance(60), self.tie_chance(900));
        let tying = &mut self.contender(who).tying;
        match (tying.plain, turns) {
            // A holder that is in doubt, or does not know whether it is tied, must name a number.
            (false, true) if tying.line.is_some() && tying.heard => tying.plain = true,
            (true, true) if tying.line.is_none() => {
                tying.plain = false;
                tying.number += 1;
            }
            _ => {}
        }
        let named = (!tying.plain).then_some(tying.number);
        (named, named.is_some() && tying.line.is_none() && opens)
    }

    /// This call opens a connection, at the node that is asked.
    pub fn opens_line(&mut self, id: u64, who: usize, node: usize, wish: &Wish) {
        let Wish::Renew { role, instance, token, tie: Some(number), .. } = wish.clone() else { return };
        let grace = grace(self.contender(who).ttl);
        self.contender(who).tying.line = Some(id);
        let line = Line { who, role, instance, token, number, grace, node, life: None, answered: false };
        self.contender(who).tying.heard = false;
        self.ties().map(|ties| ties.lines.insert(id, line));
    }

    /// A call has arrived at the node that it was sent to.
    pub fn line_arrives(&mut self, node: usize, asked: &Asked) {
        let life = self.hosts[node].life;
        let line = self.ties().and_then(|ties| ties.lines.get_mut(&asked.id));
        if let Some(line) = line.filter(|line| asked.via.is_none() && line.node == node) {
            line.life = Some(life);
        }
    }

    pub fn line_is_answered(&mut self, asked: &Asked) {
        if let Some(line) = self.ties().and_then(|ties| ties.lines.get_mut(&asked.id)) {
            line.answered = true;
        }
    }

    /// Some renewals take long: by then their holder has gone on under another number.
    pub fn straggles(&mut self, wish: &Wish) -> u64 {
        let tied = matches!(wish, Wish::Renew { tie: Some(_), .. });
        match tied && self.tie_chance(80) {
            true => self.ties().map_or(0, |ties| ties.rng.range(50_000, 2_000_000)),
            false => 0,
        }
    }

    /// Applies an answer, or its absence, to the connection that its call was to open.
    pub fn line_is_told(&mut self, asked: &Asked, told: Told) {
        let (who, id) = (asked.who, asked.id);
        if self.contender(who).tying.line == Some(id) {
            match told {
                Told::Yours { .. } => {
                    self.contender(who).tying.heard = true;
                    self.line_may_break(who, id);
                }
                Told::Refused(_) => {
                    self.contender(who).tying.line = None;
                    self.ties().map(|ties| ties.lines.remove(&id));
                }
                Told::Unknown => {
                    self.line_is_dropped(who, id);
                }
                Told::Lost | Told::Done | Told::Held => {}
            }
        } else if matches!(told, Told::Yours { .. }) && asked.wish.unties() && self.hears_of_itself(asked) {
            // The holder has proved that it goes on without the connection. Its number rises past that one.
            self.closes_line(who, 500_000);
            let (now, tying) = (self.now, &mut self.contender(who).tying);
            tying.number += 1;
            tying.broke_at = tying.broke_at.max(now);
        }
    }

    /// Whether the holder may believe an answer that the lease goes on. If it is in doubt, it believes only
    /// the answer to a renewal under its newest number.
    pub fn trusts(&mut self, asked: &Asked) -> bool {
        let tying = &mut self.contender(asked.who).tying;
        let proves = matches!(asked.wish, Wish::Renew { tie, .. } if tie == Some(tying.number));
        let trusts = asked.sent >= tying.broke_at && (proves || !tying.in_doubt);
        tying.in_doubt &= !trusts;
        trusts
    }

    /// Whether the answer is about the present instance and connection, not about earlier ones.
    fn hears_of_itself(&mut self, asked: &Asked) -> bool {
        let contender = self.contender(asked.who);
        let current = asked.sent >= contender.tying.broke_at && *asked.wish.instance() == contender.instance;
        current && contender.tying.line.is_some()
    }

    /// No answer came, so the connection may be open at the node.
    pub fn line_is_dropped(&mut self, who: usize, id: u64) -> bool {
        let dropped = self.contender(who).tying.line == Some(id);
        if dropped {
            self.closes_line(who, 5_000);
            self.is_in_doubt(who);
        }
        dropped
    }

    /// The network may break it at some time, though both ends live: in order for both, or for the holder
    /// alone.
    fn line_may_break(&mut self, who: usize, id: u64) {
        if self.contender(who).idle || !self.tie_chance(500) {
            return;
        }
        let (ttl, grace) = (self.contender(who).ttl, grace(self.contender(who).ttl));
        let apart = grace * APART_MOST / 1000;
        let breaks = self.tie_pause(1_000, ttl.0);
        let (here, there) = (self.tie_pause(0, apart), self.tie_pause(0, apart));
        self.after(breaks + here, Happens::Lease(Event::TieBreaks { who, id }));
        if self.tie_chance(700) {
            self.after(breaks + there, Happens::Lease(Event::LineCloses { id }));
        }
    }

    /// The holder's end hears of it. The kernel of a frozen holder does, too.
    pub fn tie_breaks(&mut self, who: usize, id: u64) {
        if self.contender(who).tying.line == Some(id) {
            self.contender(who).tying.line = None;
            self.is_in_doubt(who);
        }
    }

    fn notices_dead_node(&mut self, who: usize) {
        let Some(id) = self.contender(who).tying.line else { return };
        let line = self.ties().and_then(|ties| ties.lines.get(&id)).cloned();
        let serves =
            |line: &Line| line.life == Some(self.hosts[line.node].life) && self.hosts[line.node].is_up();
        if !line.as_ref().is_some_and(serves) {
            self.tie_breaks(who, id);
        }
    }

    /// The holder believes for half of the grace, and calls under way name the old number.
    fn is_in_doubt(&mut self, who: usize) {
        let now = self.now;
        let contender = self.contender(who);
        let (clock, half) = (contender.clock, Span(grace(contender.ttl) / 2));
        contender.tying.number += 1;
        contender.tying.broke_at = now;
        contender.tying.in_doubt = true;
        contender.tying.plain = false;
        contender.believes_until = contender.believes_until.min(clock.now(now).mono + half);
        let (until, idle) = (clock.truth_at(contender.believes_until), contender.idle);
        let open = contender.open.take();
        self.lessees_mut().hung_up.extend(open);
        self.checks.believers.shorten(who, until);
        self.note(|| format!("contender {who} has lost its connection, and believes until {until}"));
        if !idle {
            let pause = self.tie_pause(0, 30_000);
            self.wakes_after(who, pause);
        }
    }

    /// The holder holds nothing any more, or something else, to which nothing that it relied on before
    /// applies.
    pub fn lets_go(&mut self, who: usize) {
        self.closes_line(who, 5_000);
        let tying = &mut self.contender(who).tying;
        tying.number += 1;
        tying.plain = false;
        tying.in_doubt = false;
    }

    fn closes_line(&mut self, who: usize, within: u64) {
        if let Some(id) = self.contender(who).tying.line.take() {
            let pause = self.tie_pause(0, within);
            self.after(pause, Happens::Lease(Event::LineCloses { id }));
        }
    }

    /// The node's end hears that the other end has closed the connection. Once the grace is over it reports
    /// that to the leader of that time.
    pub fn line_closes(&mut self, id: u64) {
        let line = self.ties().and_then(|ties| ties.lines.remove(&id));
        let Some(line) = line.filter(|line| line.answered && line.life.is_some()) else { return };
        let late = match self.tie_chance(300) {
            true => self.ties().map_or(0, |ties| ties.rng.skewed(1_000, 3_000_000)),
            false => 0,
        };
        let tries = self.tie_pause(1, 5);
        for number in 0..tries {
            let line = Box::new(line.clone());
            self.after(line.grace + late + number * AGAIN, Happens::Lease(Event::Unties { line }));
        }
    }

    pub fn unties(&mut self, line: Line) -> Check {
        let Line { who, role, instance, token, number: tie, node, life, .. } = line;
        if !self.hosts[node].is_up() || life != Some(self.hosts[node].life) {
            return Ok(());
        }
        self.checks.early.unties(token, tie);
        let lessees = self.lessees_mut();
        lessees.next_id += 1;
        let (id, sent) = (lessees.next_id, self.now);
        let wish = Wish::Untie { role, instance, token, tie };
        let secret = self.contender(who).secret;
        self.lease_event(Event::Call { node, asked: Asked { id, who, sent, wish, secret, via: None } })
    }
}
