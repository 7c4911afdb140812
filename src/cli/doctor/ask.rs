//! Asks every node twice. All nodes are asked at once, and each for a bounded time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::cli::client::Target;
use crate::cli::exit::Failure;
use crate::cli::status::SILENT_MOST;
use crate::client::{CallError, Caller, Request, Tried, alike};
use crate::doctor::{Node, NodeLook, Sample, Seen, SeenEnding, SeenMember, SeenSilence};
use crate::store::date_micros;

/// The time between the two looks: long enough to show the rate of a clock, and for a follower to catch up.
const BETWEEN: Duration = Duration::from_secs(1);

/// The time for an answer of one node, unless the caller sets it.
const WITHIN: Duration = Duration::from_secs(3);

/// The number of pages of tokens that are examined.
const PAGES_MOST: usize = 50;

#[derive(Clone)]
struct Asker {
    caller: Caller,
    request: Request,
    began: Instant,
    began_us: u64,
    gives_up: bool,
}

type Asked = Result<NodeLook, CallError>;

impl Asker {
    fn new(target: &Target, within: Option<Duration>) -> Result<Asker, Failure> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let began_us = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        let request = Request::get("/v1/diagnostics").within(within.unwrap_or(WITHIN));
        let (caller, began) = (target.caller()?, Instant::now());
        Ok(Asker { caller, request, began, began_us, gives_up: within.is_none() })
    }

    /// The time now: this machine's wall clock at the beginning plus its monotonic clock since then, so that it never
    /// jumps.
    fn now_us(&self) -> u64 {
        self.began_us.saturating_add(u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    async fn look(&self, url: &str) -> Asked {
        let sent_us = self.now_us();
        let answer = self.caller.at(url, &self.request).await?;
        let heard_us = self.now_us();
        Ok(NodeLook { said: answer.taken()?.read::<Sample>()?, sent_us, heard_us })
    }

    /// Asks all of these nodes at the same time. Those that the leader has given up have less time, unless
    /// the caller has set it.
    async fn look_at_all(&self, urls: impl Iterator<Item = String>) -> BTreeMap<String, Asked> {
        let mut asked = JoinSet::new();
        let mut left = BTreeSet::new();
        for url in urls {
            let asker = self.clone();
            left.insert(url.clone());
            asked.spawn(async move { (asker.look(&url).await, url) });
        }
        let began = Instant::now();
        let mut answers = BTreeMap::new();
        while !left.is_empty() {
            let answered = match self.gives_up && are_given_up(&left, &answers) {
                true => timeout_at(began + SILENT_MOST, asked.join_next()).await.unwrap_or_default(),
                false => asked.join_next().await,
            };
            let Some(answered) = answered else { break };
            // A task that panicked has no answer.
            if let Ok((look, url)) = answered {
                left.remove(&url);
                answers.insert(url, look);
            }
        }
        let why = format!("no answer within {} ms", began.elapsed().as_millis());
        let silent =
            |url: String| (url.clone(), Err(CallError::NoAnswer { url, why: why.clone(), is_open: false }));
        answers.extend(left.into_iter().map(silent));
        answers
    }
}

/// Whether the only leader has answered, and has given up all of these nodes. A frozen node takes the call and never answers.
fn are_given_up(left: &BTreeSet<String>, answers: &BTreeMap<String, Asked>) -> bool {
    let looks = answers.iter().filter_map(|(url, look)| Some((url, &look.as_ref().ok()?.said.status)));
    let leaders: Vec<_> = looks.filter(|(_, status)| status.role == "leader").collect();
    let [(at, leader)] = leaders[..] else { return false };
    let is_silent =
        |url: &String| leader.members.iter().any(|member| member.silent && alike(&member.url, at) == *url);
    left.iter().all(is_silent)
}

/// Fails only if no node at all has answered.
pub async fn examine(target: &Target, within: Option<Duration>) -> Result<Seen, Failure> {
    let asker = Asker::new(target, within)?;
    let mut first = asker.look_at_all(target.url.iter().cloned()).await;
    let Some((example, members)) = members_of(&first) else {
        return Err(no_answer_error(first).into());
    };
    let urls: Vec<(SeenMember, String)> =
        members.into_iter().map(|member| (member.clone(), alike(&member.url, &example))).collect();
    let more = urls.iter().map(|(_, url)| url.clone()).filter(|url| !first.contains_key(url));
    first.extend(asker.look_at_all(more.collect::<Vec<_>>().into_iter()).await);
    let placed: Vec<(SeenMember, String)> =
        urls.into_iter().map(|(member, url)| (member.clone(), place(&member, url, &first))).collect();
    sleep(BETWEEN).await;
    let up = placed.iter().filter(|(_, url)| first.get(url).is_some_and(Result::is_ok));
    let mut second = asker.look_at_all(up.map(|(_, url)| url.clone())).await;
    let nodes = placed.into_iter().map(|(member, url)| node(member, url, &first, &mut second));
    let nodes: Vec<Node> = nodes.collect();
    let up: Vec<&str> =
        nodes.iter().filter(|node| node.looks.is_ok()).map(|node| node.url.as_str()).collect();
    // If the time is up, the tokens that have arrived are kept.
    let mut tokens = Vec::new();
    let _ = timeout(within.unwrap_or(WITHIN), look_for_tokens(&asker, &up, &mut tokens)).await;
    Ok(Seen { asker: None, nodes, tokens })
}

/// All members that any node names, and the address of a node that answered.
fn members_of(first: &BTreeMap<String, Asked>) -> Option<(String, Vec<SeenMember>)> {
    let mut members: BTreeMap<u32, SeenMember> = BTreeMap::new();
    let mut example = None;
    for (url, look) in first.iter().filter_map(|(url, look)| Some((url, look.as_ref().ok()?))) {
        example.get_or_insert_with(|| url.clone());
        for member in &look.said.status.members {
            members.entry(member.id).or_insert_with(|| member.clone());
        }
    }
    Some((example?, members.into_values().collect()))
}

/// The error if no node answered. A refusal says more than silence does.
fn no_answer_error(first: BTreeMap<String, Asked>) -> CallError {
    let mut tried = Vec::new();
    let mut other = None;
    for error in first.into_values().filter_map(Result::err) {
        match error {
            CallError::NotReached { tried: mut more } => tried.append(&mut more),
            // A read changes nothing, so a node that accepts the connection and says nothing counts as not reached.
            CallError::NoAnswer { url, why, .. } => tried.push(Tried { url, why }),
            CallError::Refused(_) => return error,
            error => other = Some(error),
        }
    }
    other.unwrap_or(CallError::NotReached { tried })
}

/// The address that the member is known by. If it cannot be reached from here and the node answers at another
/// address, that one.
fn place(member: &SeenMember, url: String, first: &BTreeMap<String, Asked>) -> String {
    if !matches!(first.get(&url), Some(Err(CallError::NotReached { .. }))) {
        return url;
    }
    let is_it = |look: &Asked| look.as_ref().is_ok_and(|look| look.said.status.node.id == member.id);
    first.iter().find(|(_, look)| is_it(look)).map_or(url, |(other, _)| other.clone())
}

fn node(
    member: SeenMember,
    url: String,
    first: &BTreeMap<String, Asked>,
    second: &mut BTreeMap<String, Asked>,
) -> Node {
    let looks = match (first.get(&url), second.remove(&url)) {
        (Some(Ok(first)), Some(Ok(second))) => Ok([first.clone(), second]),
        (Some(Err(error)), _) => Err(silence(error)),
        (_, Some(Err(error))) => Err(silence(&error)),
        (_, None) => Err(SeenSilence::SameAddress),
        (None, Some(Ok(_))) => Err(SeenSilence::Strange { why: "it was not asked".to_string() }),
    };
    Node { id: member.id, name: member.name, url, votes: member.votes, looks }
}

fn silence(error: &CallError) -> SeenSilence {
    match error {
        CallError::NotReached { tried } => {
            SeenSilence::NotReached { why: tried.iter().map(|one| one.why.clone()).collect() }
        }
        CallError::NoAnswer { why, .. } => SeenSilence::NoAnswer { why: why.clone() },
        CallError::Refused(problem) if problem.status == 404 => SeenSilence::Older,
        CallError::Refused(problem) => {
            SeenSilence::Refused { code: problem.code.clone(), why: problem.detail.clone() }
        }
        CallError::Strange { why, .. } => SeenSilence::Strange { why: why.clone() },
        error => SeenSilence::Strange { why: error.to_string() },
    }
}

#[derive(Deserialize)]
struct Page {
    items: Vec<Shown>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct Shown {
    id: String,
    name: String,
    made_at: String,
    #[serde(default)]
    ends_at: Option<String>,
}

/// Finds the tokens that expire. A caller that may not list tokens sees none, and that is no finding.
async fn look_for_tokens(asker: &Asker, urls: &[&str], found: &mut Vec<SeenEnding>) {
    let mut path = "/v1/tokens".to_string();
    for _ in 0..PAGES_MOST {
        let request = Request::get(path.as_str()).within(asker.request.within);
        let Ok(answer) = asker.caller.call(urls, &request).await else { break };
        let Ok(page) = answer.taken().and_then(|answer| answer.read::<Page>()) else { break };
        found.extend(page.items.into_iter().filter_map(ending));
        match page.next {
            Some(next) => path = format!("/v1/tokens?after={next}"),
            None => break,
        }
    }
}

fn ending(shown: Shown) -> Option<SeenEnding> {
    let micros = |text: &str| u64::try_from(date_micros(text)?).ok();
    let (made_us, ends_us) = (micros(&shown.made_at)?, micros(shown.ends_at.as_deref()?)?);
    Some(SeenEnding { id: shown.id, name: shown.name, made_us, ends_us })
}
