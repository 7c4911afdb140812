//! The lines that a script shows: each message with its sender, its receivers and its fate, and the events
//! that an operator would see.

use std::fmt::Write as _;

use eldest::protocol::{Envelope, Event, Message};
use eldest::replica::{Answer, Denied, End, Written};
use eldest::types::NodeId;

/// The fate of a message in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Sent,
    Lost,
    Held,
}

#[derive(Debug)]
struct Line {
    at: u64,
    /// The last time that the same message was sent again, and the number of times that it was sent.
    again: u64,
    times: u64,
    from: NodeId,
    to: Vec<NodeId>,
    verb: &'static str,
    text: String,
}

#[derive(Debug, Default)]
pub struct Trace {
    lines: Vec<Line>,
    pub heartbeats: bool,
    pub disk: bool,
}

impl Trace {
    pub fn message(&mut self, at: u64, envelope: &Envelope, fate: Fate) {
        if kind(&envelope.message).starts_with("hear") && !self.heartbeats {
            return;
        }
        let ending = match fate {
            Fate::Sent => "",
            Fate::Lost => " (lost)",
            Fate::Held => " (held)",
        };
        let text = format!("{}{ending}", envelope.message);
        self.told(at, envelope.from, "→", envelope.to, text);
    }

    pub fn refused(&mut self, at: u64, by: NodeId, whom: NodeId) {
        self.told(at, by, "refuses", whom, String::new());
    }

    /// One line for all receivers of the same message at the same moment.
    fn told(&mut self, at: u64, from: NodeId, verb: &'static str, to: NodeId, text: String) {
        let same =
            |line: &&mut Line| line.at == at && line.from == from && line.verb == verb && line.text == text;
        match self.lines.iter_mut().rev().find(same) {
            Some(line) if !line.to.contains(&to) => line.to.push(to),
            _ => self.push(at, from, vec![to], verb, text),
        }
    }

    pub fn note(&mut self, at: u64, who: NodeId, text: String) {
        self.push(at, who, Vec::new(), "", text);
    }

    pub fn event(&mut self, at: u64, who: NodeId, event: Event) {
        let text = match event {
            Event::Suspected { leader, cause, .. } => format!("suspects {leader} ({cause:?})"),
            // The claim itself follows, and the answers stand in the messages.
            Event::Claimed { .. }
            | Event::Declined { .. }
            | Event::Approved { .. }
            | Event::Deferred { .. }
            | Event::Refused { .. }
            | Event::Backed { .. }
            | Event::TurnedDown { .. } => return,
            // These explain the steps that follow.
            Event::HandsOver { .. }
            | Event::HandedOver { .. }
            | Event::StandsBack { .. }
            | Event::Slept { .. }
            | Event::WallClockSet { .. }
            | Event::Held { .. } => return,
            Event::Opened { epoch } => format!("opens {epoch}"),
            Event::Following { epoch } => format!("follows {epoch}"),
            Event::SteppedDown { epoch, cause } => format!("stops leading {epoch} ({cause:?})"),
            Event::Admitted { incarnation } => format!("is admitted as {incarnation}"),
            Event::Replaced { by } => format!("is replaced by {by}"),
            Event::Impasse { other, why } => format!("does not merge with {other}: {why:?}"),
            Event::Met { other } => format!("meets {other}"),
            Event::Merged { with, index } => format!("has merged {with} as of {index}"),
            Event::Overridden { index } => format!("is brought up to {index}"),
            Event::Accused { fault } => format!("is told without proof: {fault:?}"),
            Event::Forgot { node, kept, end } => {
                format!("hears that {node}, which had {kept}, ends at {end}")
            }
            Event::Diverged { index } => format!("cannot tell who is odd at {index}"),
        };
        self.note(at, who, text);
    }

    fn push(&mut self, at: u64, from: NodeId, to: Vec<NodeId>, verb: &'static str, text: String) {
        self.lines.push(Line { at, again: at, times: 1, from, to, verb, text });
    }

    /// The lines since the last call, with times relative to `start`. A message that was sent several times
    /// stands where it was sent first.
    pub fn take(&mut self, start: u64) -> Vec<String> {
        let mut merged: Vec<Line> = Vec::new();
        for line in std::mem::take(&mut self.lines) {
            let same = |other: &&mut Line| {
                !line.verb.is_empty()
                    && (line.from, &line.to, line.verb, &line.text)
                        == (other.from, &other.to, other.verb, &other.text)
            };
            match merged.iter_mut().find(same) {
                Some(first) => {
                    first.again = line.at;
                    first.times += 1;
                }
                None => merged.push(line),
            }
        }
        merged.iter().map(|line| line.show(start)).collect()
    }
}

impl Line {
    fn show(&self, start: u64) -> String {
        let mut shown = format!("{:>6}  {}", millis(self.at - start), self.from);
        let to = self.to.iter().map(NodeId::to_string).collect::<Vec<_>>();
        for word in [self.verb, &to.join(" "), &self.text] {
            if !word.is_empty() {
                let _ = write!(shown, " {word}");
            }
        }
        if self.times > 1 {
            let until = millis(self.again - start);
            let _ = write!(shown, "  ×{} to {until}", self.times);
        }
        shown
    }
}

fn millis(us: u64) -> String {
    match us % 1000 {
        0 => format!("{}", us / 1000),
        rest => format!("{}.{rest:03}", us / 1000),
    }
}

pub fn answer(answer: &Result<Answer, Denied>) -> String {
    match answer {
        Ok(Answer::Written(Written { position, acks, .. })) => {
            format!("written {position}, {} acks", acks.unwrap_or_default())
        }
        Ok(Answer::View(view)) => format!("readable at {}", view.index),
        Ok(Answer::Role(granted)) => format!("granted at {}", granted.position),
        Ok(Answer::Doc(granted)) => format!("renewed for {}ms", granted.expires_in.0 / 1000),
        Ok(_) => "done".into(),
        Err(Denied::NotLeader { leader }) => format!("refused, {leader} leads"),
        Err(Denied::NoLeader) => "refused, no leader".into(),
        Err(Denied::ServiceDown { .. }) => "refused, ServiceDown".into(),
        Err(Denied::Unknown) => "outcome unknown".into(),
        Err(Denied::Rejected(rejection)) => format!("refused, {}", rejection.code()),
        Err(denied) => format!("refused, {denied:?}"),
    }
}

pub fn end(end: &End) -> String {
    match end {
        End::Fault(fault) => format!("stops: {fault:?}"),
        end => format!("stops: {end:?}"),
    }
}

/// The first word of a message in the scripts' notation.
pub fn kind(message: &Message) -> String {
    let shown = message.to_string();
    shown.split(' ').next().unwrap_or_default().to_string()
}
