//! What the commands of a script mean.

use eldest::protocol::{Ack, Checkpoint, Input, Node, ServiceChange, Settings, Takeover};
use eldest::types::{Entry, Format, NodeId, Owner, Payload, Span};

use crate::inject;
use crate::look::{core, expect, show};
use crate::network::Rule;
use crate::stage::{MS, Stage};
use crate::trace::Fate;

/// How long a client's call runs unless the script says so.
const CALL: u64 = 10 * MS;
/// How long `settle` and `until` wait at most.
const PATIENCE: u64 = 60_000 * MS;

pub type Shown = Result<Vec<String>, String>;

/// A script being played.
#[derive(Default)]
pub struct Play {
    stage: Option<Stage>,
    /// What the last command that ran showed, for `expect said`.
    said: Vec<String>,
}

impl Play {
    pub fn command(&mut self, text: &str) -> Shown {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            ["quietly", rest @ ..] => self.perform(rest).map(|_| Vec::new()),
            ["expect", "said", text @ ..] => self.expect_said(&text.join(" "), true),
            ["expect", "unsaid", text @ ..] => self.expect_said(&text.join(" "), false),
            words => self.perform(words),
        }
    }

    fn expect_said(&self, text: &str, wanted: bool) -> Shown {
        let said = self.said.iter().any(|line| line.contains(text));
        expect(said == wanted).map(|()| Vec::new())
    }

    fn perform(&mut self, words: &[&str]) -> Shown {
        if let ["cluster", count, options @ ..] = words {
            return self.cluster(count, options);
        }
        let stage = self.stage.as_mut().ok_or("there is no cluster yet")?;
        let start = stage.now;
        if let Some(shown) = show(stage, words)? {
            return Ok(shown);
        }
        let (words, length) = length(words)?;
        let acted = client(stage, words, length.unwrap_or(CALL))?
            || machines(stage, words)?
            || network(stage, words)?
            || time(stage, words)?;
        if !acted {
            return Err("no such command".into());
        }
        self.said = stage.trace.take(start);
        Ok(self.said.clone())
    }

    /// `cluster 3 formed ack=all n3.format=2`: `formed` spares a script the first election.
    fn cluster(&mut self, count: &str, options: &[&str]) -> Shown {
        let members: Vec<NodeId> = (1..=parse(count)?).map(NodeId).collect();
        let settings = members.iter().map(|me| Settings::lan(*me, members.clone()));
        let mut settings: Vec<Settings> = settings.collect();
        for option in options.iter().filter(|option| **option != "formed") {
            for one in &mut settings {
                set(one, option)?;
            }
        }
        let mut stage = Stage::new(settings);
        if options.contains(&"formed") {
            members.iter().for_each(|node| stage.start(*node));
            // Beyond every lease and grace of the start.
            stage.run(1_000 * MS);
            stage.trace.take(0);
        }
        let shown = stage.leader().map(|leader| format!("        {leader} leads"));
        self.stage = Some(stage);
        Ok(shown.into_iter().collect())
    }
}

/// `key=value` for all, `n3.key=value` for one.
fn set(settings: &mut Settings, option: &str) -> Result<(), String> {
    let (key, value) = option.split_once('=').ok_or("an option is key=value")?;
    let key = match key.split_once('.') {
        Some((one, key)) if node(one)? == settings.me => key,
        Some(_) => return Ok(()),
        None => key,
    };
    match (key, value) {
        ("ack", "all") => settings.ack = Ack::All,
        ("takeover", "when_stable") => settings.takeover = Takeover::WhenStable,
        ("format", number) => settings.format = Format(parse(number)?),
        ("keep", number) => settings.limits.keep = parse(number)?,
        ("batch", number) => settings.limits.batch = parse(number)?,
        ("ready_lag", number) => settings.limits.ready_lag = parse(number)?,
        ("uncommitted", number) => settings.limits.uncommitted = parse(number)?,
        _ => return Err(format!("no such option: {option}")),
    }
    Ok(())
}

/// What a client or an operator asks for; the stage runs on for a moment.
fn client(stage: &mut Stage, words: &[&str], length: u64) -> Result<bool, String> {
    let (words, at) = match words {
        [words @ .., "at", at] => (words, Some(node(at)?)),
        words => (words, None),
    };
    let at = at.or_else(|| stage.leader());
    let at = move || at.ok_or("nobody leads; say whom to ask: at n2");
    let spoken = words.join(" ");
    match words {
        ["write", texts @ ..] => texts.iter().try_for_each(|text| {
            let entry = client_entry(text)?;
            let make = |request| Input::Propose(vec![(request, entry.clone())]);
            stage.call(at()?, format!("write {text}"), make);
            Ok::<(), String>(())
        })?,
        ["read"] => stage.call(at()?, spoken, |request| Input::Read { request, at_least: 0 }),
        ["handover"] => stage.call(at()?, spoken, |request| Input::HandOver { request, to: None }),
        ["handover", to] => {
            let to = Some(node(to)?);
            stage.call(at()?, spoken, |request| Input::HandOver { request, to });
        }
        ["service", "down", ttl] => {
            let (owner, ttl) = (Owner::Operator, Span(micros(ttl)?));
            let change = ServiceChange::Down { owner, ttl, reason: "".into() };
            stage.call(at()?, spoken, |request| Input::Service { request, change: change.clone() });
        }
        ["service", "up"] => {
            let change = ServiceChange::Up { owner: Owner::Operator };
            stage.call(at()?, spoken, |request| Input::Service { request, change: change.clone() });
        }
        ["form", "without", absent @ ..] => {
            let without = absent.iter().map(|n| node(n)).collect::<Result<_, _>>()?;
            stage.give(at()?, Input::Form { without });
        }
        _ => return Ok(false),
    }
    stage.run(length);
    Ok(true)
}

/// `a` is a command of the first format; `a/2` needs a reader of the second.
fn client_entry(text: &str) -> Result<Entry, String> {
    let (text, format) = text.split_once('/').unwrap_or((text, "1"));
    Ok(Entry::Client(Payload { kind: 1, format: Format(parse(format)?), call: None, text: text.into() }))
}

/// What happens to processes and disks.
fn machines(stage: &mut Stage, words: &[&str]) -> Result<bool, String> {
    match words {
        ["start" | "restart", "all"] => stage.ids().into_iter().for_each(|n| stage.start(n)),
        ["restart", one, options @ ..] => {
            let one = node(one)?;
            for option in options {
                set(&mut stage.host(one).settings, option)?;
            }
            stage.start(one);
        }
        ["start", nodes @ ..] => each(nodes, |one| stage.start(one))?,
        ["crash", nodes @ ..] => each(nodes, |one| stage.crash(one))?,
        ["wipe", one] => stage.host(node(one)?).wipe(),
        ["forget", one] => stage.host(node(one)?).forget(),
        ["doubt", one, "keep", index] => stage.host(node(one)?).doubt(parse(index)?),
        ["pause", one] => stage.host(node(one)?).asleep = Some(Vec::new()),
        ["resume", one] => stage.resume(node(one)?),
        ["full", one] => stage.give(node(one)?, Input::DiskFull(true)),
        ["room", one] => stage.give(node(one)?, Input::DiskFull(false)),
        ["snapshot", nodes @ ..] => each(nodes, |one| snapshot(stage, one))?,
        ["digest", nodes @ .., index, digest] => {
            let (index, digest) = (parse(index)?, parse(digest)?);
            let checkpoint = Checkpoint { index, digest };
            each(nodes, |one| stage.give(one, Input::Digest(checkpoint)))?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn snapshot(stage: &mut Stage, one: NodeId) {
    let host = stage.host(one);
    if let Some(node) = &host.node {
        let index = node.commit_index();
        host.disk.snapshot = node.log().meta_at(index);
        stage.give(one, Input::SnapshotTaken(index));
    }
}

/// What happens to links and messages.
fn network(stage: &mut Stage, words: &[&str]) -> Result<bool, String> {
    match words {
        ["cut", from, ">", to] => {
            for (from, to) in pairs(stage, from, to)? {
                stage.network.cut(from, to);
            }
        }
        ["cut", one, other] => {
            for (from, to) in pairs(stage, one, other)? {
                stage.network.cut(from, to);
                stage.network.cut(to, from);
            }
        }
        ["heal"] => stage.network.heal(),
        [verb @ ("hold" | "drop"), from, ">", to, kinds @ ..] => {
            let fate = if *verb == "hold" { Fate::Held } else { Fate::Lost };
            for (from, to) in pairs(stage, from, to)? {
                for kind in kinds.iter().map(|kind| kind.to_string()) {
                    stage.network.add(Rule { from, to, kind, fate });
                }
            }
        }
        ["release", order @ ..] => {
            let mut held = stage.network.release();
            if *order == ["backwards"] {
                held.reverse();
            }
            held.into_iter().for_each(|envelope| stage.send(envelope));
        }
        ["resend", from, ">", to, kind] => {
            let newest = stage.network.newest(node(from)?, node(to)?, kind).cloned();
            stage.send(newest.ok_or("nothing of that kind was sent there")?);
        }
        ["inject", from, ">", to, message @ ..] => {
            let envelope = inject::envelope(stage, node(from)?, node(to)?, message)?;
            stage.send(envelope);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// `*` is everybody else.
fn pairs(stage: &Stage, from: &str, to: &str) -> Result<Vec<(NodeId, NodeId)>, String> {
    let some = |word: &str| match word {
        "*" => Ok(stage.ids()),
        one => node(one).map(|one| vec![one]),
    };
    let (from, to) = (some(from)?, some(to)?);
    let all = from.iter().flat_map(|from| to.iter().map(|to| (*from, *to)));
    Ok(all.filter(|(from, to)| from != to).collect())
}

fn time(stage: &mut Stage, words: &[&str]) -> Result<bool, String> {
    let came = match words {
        ["run", length] => {
            stage.run(micros(length)?);
            true
        }
        ["settle"] => stage.run_until(PATIENCE, Stage::is_settled),
        ["until", one, "is_leader"] => {
            let one = node(one)?;
            stage.run_until(PATIENCE, |stage| {
                let now = crate::host::clocks(stage.now).mono;
                core(stage, one).is_some_and(|node| node.is_leader(now))
            })
        }
        ["until", one, "has", index] => {
            let (one, index) = (node(one)?, parse(index)?);
            stage.run_until(PATIENCE, |stage| {
                core(stage, one).is_some_and(|node| node.commit_index() >= index)
            })
        }
        ["until", one, "leads"] => {
            let one = node(one)?;
            stage.run_until(PATIENCE, |stage| core(stage, one).is_some_and(Node::is_open))
        }
        _ => return Ok(false),
    };
    came.then_some(true).ok_or("it never came to that".into())
}

fn each(nodes: &[&str], mut act: impl FnMut(NodeId)) -> Result<(), String> {
    nodes.iter().try_for_each(|one| {
        act(node(one)?);
        Ok(())
    })
}

/// `for 3ms` at the end of a client's call.
fn length<'a>(words: &'a [&'a str]) -> Result<(&'a [&'a str], Option<u64>), String> {
    match words {
        [words @ .., "for", length] => Ok((words, Some(micros(length)?))),
        words => Ok((words, None)),
    }
}

pub fn node(word: &str) -> Result<NodeId, String> {
    let number = word.strip_prefix('n').ok_or(format!("{word} is no node"))?;
    parse(number).map(NodeId)
}

fn micros(word: &str) -> Result<u64, String> {
    match word.strip_suffix("ms") {
        Some(number) => parse::<u64>(number).map(|ms| ms * MS),
        None => Err(format!("{word} is no length of time")),
    }
}

pub fn parse<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("what is {word}?"))
}
