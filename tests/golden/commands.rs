//! The meaning of each command of a script.

use eldest::protocol::HandOverReason;
use eldest::protocol::{Ack, Node, ServiceChange, Settings, Takeover};
use eldest::replica::{Call, In, ReadProof};
use eldest::store::Command;
use eldest::types::{Format, NodeId, Owner, Payload, Span};

use crate::documents;
use crate::host::{Host, user};
use crate::inject;
use crate::look::{core, expect, show};
use crate::network::Rule;
use crate::stage::{MS, Stage};
use crate::trace::Fate;

/// The time for which the stage runs after a client's call, unless the script gives one.
const CALL: u64 = 10 * MS;
/// More records than any script writes: snapshots are taken only where a script asks for them.
const NEVER: u64 = 1_000_000;
/// The longest time that `settle` and `until` wait.
const PATIENCE: u64 = 60_000 * MS;

pub type Shown = Result<Vec<String>, String>;

/// A script being played.
#[derive(Default)]
pub struct Play {
    stage: Option<Stage>,
    /// The lines that the last command showed, for `expect said`.
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
        let hosts = members.iter().map(|me| {
            let mut settings = Settings::lan(*me, members.clone());
            settings.timing.dead_after = Span::millis(1_000);
            Host::new(settings, NEVER)
        });
        let mut hosts: Vec<Host> = hosts.collect();
        for option in options.iter().filter(|option| **option != "formed") {
            for host in &mut hosts {
                set(host, option)?;
            }
        }
        let mut stage = Stage::new(hosts);
        if options.contains(&"formed") {
            members.iter().for_each(|node| stage.start(*node));
            // This is longer than every lease and grace period of the start.
            stage.run(1_000 * MS);
            stage.trace.take(0);
        }
        let shown = stage.leader().map(|leader| format!("        {leader} leads"));
        self.stage = Some(stage);
        Ok(shown.into_iter().collect())
    }
}

/// `key=value` for all, `n3.key=value` for one.
fn set(host: &mut Host, option: &str) -> Result<(), String> {
    let settings = &mut host.settings;
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
        ("every", number) => host.snapshot_every = parse(number)?,
        ("keep", number) => settings.limits.keep = parse(number)?,
        ("batch", number) => settings.limits.batch = parse(number)?,
        ("ready_lag", number) => settings.limits.ready_lag = parse(number)?,
        ("state", number) => settings.limits.state_bytes = parse(number)?,
        ("uncommitted", number) => settings.limits.uncommitted = parse(number)?,
        _ => return Err(format!("no such option: {option}")),
    }
    Ok(())
}

/// Calls of a client or an operator; the stage runs on for a moment.
fn client(stage: &mut Stage, words: &[&str], length: u64) -> Result<bool, String> {
    let (words, at) = match words {
        [words @ .., "at", at] => (words, Some(node(at)?)),
        words => (words, None),
    };
    let at = at.or_else(|| stage.leader());
    let at = move || at.ok_or("nobody leads; say whom to ask: at n2");
    let calls: Vec<(String, Call)> = match words {
        ["write", texts @ ..] => {
            let calls = texts.iter().map(|text| Ok((format!("write {text}"), write(text)?)));
            calls.collect::<Result<_, String>>()?
        }
        words => {
            let call = match at() {
                Ok(at) => documents::call(stage, at, words)?,
                Err(_) => None,
            };
            let call = call.or(order(words)?);
            call.into_iter().map(|call| (words.join(" "), call)).collect()
        }
    };
    if calls.is_empty() {
        return Ok(false);
    }
    for (spoken, call) in calls {
        stage.call(at()?, spoken, call);
    }
    stage.run(length);
    Ok(true)
}

/// Every call but writes.
fn order(words: &[&str]) -> Result<Option<Call>, String> {
    Ok(Some(match words {
        ["read"] => Call::Read(ReadProof::Round),
        ["handover"] => {
            Call::HandOver { to: None, reason: HandOverReason::Ordered { by: "operator".into() } }
        }
        ["handover", to] => {
            Call::HandOver { to: Some(node(to)?), reason: HandOverReason::Ordered { by: "operator".into() } }
        }
        ["service", "down", ttl] => {
            let (owner, ttl) = (Owner::Operator, Span(micros(ttl)?));
            Call::Service(ServiceChange::Down { owner, ttl, reason: "".into() })
        }
        ["service", "up"] => Call::Service(ServiceChange::Up { owner: Owner::Operator }),
        ["form", "without", absent @ ..] => {
            let without = absent.iter().map(|n| node(n)).collect::<Result<_, _>>()?;
            Call::Form { without }
        }
        _ => return Ok(None),
    }))
}

/// `a` makes a user. `a/2` needs a reader of the second format. No such command exists yet, but the end of a
/// restore that never began may have any format, and it changes nothing.
fn write(text: &str) -> Result<Call, String> {
    if let Some((_, format)) = text.split_once('/') {
        let (kind, format) = (114, Format(parse(format)?));
        let end = Payload { kind, format, call: None, text: r#"{"restore":1,"parts":0}"#.into() };
        return Ok(Call::Restore(vec![end].into()));
    }
    let command = Command::from_payload(&user(text)).map_err(|error| format!("{error:?}"))?;
    Ok(Call::Write { command: command.into(), key: None })
}

/// Commands for processes and disks.
fn machines(stage: &mut Stage, words: &[&str]) -> Result<bool, String> {
    match words {
        ["start" | "restart", "all"] => stage.ids().into_iter().for_each(|n| stage.start(n)),
        ["restart", one, options @ ..] => {
            let one = node(one)?;
            for option in options {
                set(stage.host(one), option)?;
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
        ["full", one] => stage.give(node(one)?, In::DiskFull(true)),
        ["room", one] => stage.give(node(one)?, In::DiskFull(false)),
        ["garble", one, name] => stage.garble(node(one)?, user(name)),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Commands for links and messages.
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

/// `*` is every other node.
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

pub fn micros(word: &str) -> Result<u64, String> {
    match word.strip_suffix("ms") {
        Some(number) => parse::<u64>(number).map(|ms| ms * MS),
        None => Err(format!("{word} is no length of time")),
    }
}

pub fn parse<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("what is {word}?"))
}
