//! Writers that count up, each in its own document. At the end each checks whether the last acknowledged number
//! is still there.
//!
//! Each write requires the revision that the writer knows: a write without an answer cannot be applied later over a
//! newer one. All writers but one ask any node that answers, as a program's client does. One writer asks only the
//! node that is taken away, whatever it answers: it would notice if a replaced leader acknowledged a write.

use std::mem::take;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::cli::drill::tally::Tally;
use crate::cli::exit::Failure;
use crate::client::{CallError, Caller, Client, Election, Error, If, Level, Method, Request, encoded};

const PAUSE: Duration = Duration::from_millis(10);

/// The node may be frozen; a request to it waits no longer than this.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// The results of the writes of one kind of writers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Kept {
    pub acknowledged: u64,
    /// Acknowledged, and missing at the end.
    pub lost: u64,
    /// Certainly not applied.
    pub refused: u64,
    /// The outcome was unknown.
    pub doubtful: u64,
    /// The doubtful writes that were applied.
    pub took_effect: u64,
    /// Documents that could not be read at the end.
    pub unread: u64,
}

impl Kept {
    fn and(self, other: Kept) -> Kept {
        Kept {
            acknowledged: self.acknowledged + other.acknowledged,
            lost: self.lost + other.lost,
            refused: self.refused + other.refused,
            doubtful: self.doubtful + other.doubtful,
            took_effect: self.took_effect + other.took_effect,
            unread: self.unread + other.unread,
        }
    }
}

/// The results of the writers that ask any node, and of the writer that asks the node that is taken away.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllKept {
    pub anywhere: Kept,
    pub there: Kept,
}

#[derive(Debug)]
pub struct Writers {
    anywhere: JoinSet<Writer>,
    there: JoinSet<Writer>,
    stopped: Arc<AtomicBool>,
}

impl Writers {
    pub fn start(
        client: &Client,
        there: (&Caller, &str),
        prefix: &str,
        count: u16,
        tally: &Arc<Mutex<Tally>>,
    ) -> Writers {
        let stopped = Arc::new(AtomicBool::new(false));
        let writer = |name: String, way: Way| Writer {
            key: format!("{prefix}/{name}"),
            way,
            reader: client.clone(),
            rev: None,
            number: 0,
            acknowledged: Acknowledged::default(),
            doubtful: Vec::new(),
            kept: Kept::default(),
        };
        let mut anywhere = JoinSet::new();
        for number in 1..=count {
            let way = Way::Cluster(client.clone(), tally.clone());
            anywhere.spawn(writer(number.to_string(), way).write_on(stopped.clone()));
        }
        let (caller, url) = there;
        let way = Way::Node(caller.clone(), url.to_string());
        let mut there = JoinSet::new();
        there.spawn(writer("there".to_string(), way).write_on(stopped.clone()));
        Writers { anywhere, there, stopped }
    }

    /// Stops the writers, reads their documents, and removes them. Returns the keys that could not be removed as well.
    pub async fn end(self, client: &Client) -> (AllKept, Vec<String>) {
        self.stopped.store(true, Ordering::Relaxed);
        let (anywhere, mut left) = kept(self.anywhere, client).await;
        let (there, more) = kept(self.there, client).await;
        left.extend(more);
        (AllKept { anywhere, there }, left)
    }
}

async fn kept(writers: JoinSet<Writer>, client: &Client) -> (Kept, Vec<String>) {
    let mut looks = JoinSet::new();
    for writer in writers.join_all().await {
        let client = client.clone();
        looks.spawn(async move {
            let key = writer.key.clone();
            let kept = writer.look_again().await;
            let left = (!is_removed(&client, &key).await).then_some(key);
            (kept, left)
        });
    }
    let (kept, left): (Vec<Kept>, Vec<Option<String>>) = looks.join_all().await.into_iter().unzip();
    (kept.into_iter().fold(Kept::default(), Kept::and), left.into_iter().flatten().collect())
}

/// Removes a document. Returns whether it is gone.
pub async fn is_removed(client: &Client, key: &str) -> bool {
    matches!(client.delete_doc(key, If::Always).await, Ok(()) | Err(Error::NotFound(_)))
}

#[derive(Debug)]
enum Way {
    Cluster(Client, Arc<Mutex<Tally>>),
    Node(Caller, String),
}

#[derive(Debug)]
struct Writer {
    key: String,
    way: Way,
    reader: Client,
    /// The revision of the last number that is known to be there.
    rev: Option<String>,
    number: u64,
    acknowledged: Acknowledged,
    /// Numbers that were written over the known revision with an unknown outcome. At most one of them has been
    /// applied, or will be.
    doubtful: Vec<u64>,
    kept: Kept,
}

/// The outcome of a write.
enum Came {
    Acknowledged { rev: String },
    Refused,
    Doubtful,
}

impl Writer {
    async fn write_on(mut self, stopped: Arc<AtomicBool>) -> Writer {
        while !stopped.load(Ordering::Relaxed) {
            self.number += 1;
            let began = Instant::now();
            match self.write().await {
                Came::Acknowledged { rev } => {
                    self.rev = Some(rev);
                    self.acknowledged.there.push(self.number);
                    self.doubtful.clear();
                    if let Way::Cluster(_, tally) = &self.way {
                        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
                        let now = tally.now();
                        tally.acknowledged(now, began.elapsed());
                    }
                }
                Came::Refused => {
                    self.kept.refused += 1;
                    self.catch_up().await;
                }
                Came::Doubtful => {
                    self.kept.doubtful += 1;
                    self.doubtful.push(self.number);
                    self.catch_up().await;
                }
            }
            sleep(PAUSE).await;
        }
        self
    }

    async fn write(&self) -> Came {
        let when = self.rev.as_deref().map_or(If::Absent, If::Rev);
        match &self.way {
            Way::Cluster(client, _) => match client.put_doc(&self.key, &self.number, when).await {
                Ok(rev) => Came::Acknowledged { rev },
                Err(Error::Indeterminate { .. } | Error::Strange { .. }) => Came::Doubtful,
                Err(_) => Came::Refused,
            },
            Way::Node(caller, url) => self.write_there(caller, url).await,
        }
    }

    /// Makes one attempt at this node.
    async fn write_there(&self, caller: &Caller, url: &str) -> Came {
        let put = Request::new(Method::PUT, format!("/v1/docs/{}", encoded(&self.key)));
        let put = put.body(self.number.to_string()).within(ANSWER_MAX);
        let put = match &self.rev {
            Some(rev) => put.header("if-match", format!("\"{rev}\"")),
            None => put.header("if-none-match", "*"),
        };
        let answer = match caller.at(url, &put).await {
            Ok(answer) => answer,
            Err(CallError::NotReached { .. }) => return Came::Refused,
            Err(_) => return Came::Doubtful,
        };
        match answer.taken() {
            Ok(answer) => match answer.read::<Value>().map(|written| written["rev"].clone()) {
                Ok(Value::String(rev)) => Came::Acknowledged { rev },
                Ok(Value::Number(rev)) => Came::Acknowledged { rev: rev.to_string() },
                _ => Came::Doubtful,
            },
            Err(CallError::Refused(problem)) if problem.code != "outcome_unknown" => Came::Refused,
            Err(_) => Came::Doubtful,
        }
    }

    /// Reads the document's revision, so that the next write requires that one.
    async fn catch_up(&mut self) -> Option<u64> {
        let found = self.reader.get_doc::<u64>(&self.key, Level::Linear).await.ok()?;
        let value = found.as_ref().map_or(0, |document| document.value);
        if self.doubtful.contains(&value) {
            self.kept.took_effect += 1;
            self.doubtful.clear();
        }
        self.acknowledged.found(value);
        self.rev = found.map(|document| document.rev);
        Some(value)
    }

    async fn look_again(mut self) -> Kept {
        if self.catch_up().await.is_none() {
            self.kept.unread = 1;
        }
        self.kept.acknowledged = self.acknowledged.count();
        self.kept.lost = self.acknowledged.lost();
        self.kept
    }
}

/// The numbers that were acknowledged. Each is written over the one before. So the numbers above the one that is
/// found are missing, even if the writer has gone on from there.
#[derive(Debug, Default)]
struct Acknowledged {
    there: Vec<u64>,
    /// The missing numbers, in one list for each time that some were missing. A merge of two sides may bring them
    /// back.
    missing: Vec<Vec<u64>>,
}

impl Acknowledged {
    fn found(&mut self, value: u64) {
        let back = self.missing.iter().position(|numbers| numbers.contains(&value));
        let back = back.map(|place| self.missing.swap_remove(place)).unwrap_or_default();
        // The number at which the returning line of writes separated from the line that went on.
        let fork = back.first().copied().unwrap_or(u64::MAX);
        let (there, gone): (Vec<u64>, Vec<u64>) =
            take(&mut self.there).into_iter().partition(|number| *number < fork && *number <= value);
        let (returned, still_gone): (Vec<u64>, Vec<u64>) =
            back.into_iter().partition(|number| *number <= value);
        self.there = [there, returned].concat();
        self.missing.extend([gone, still_gone].into_iter().filter(|numbers| !numbers.is_empty()));
    }

    fn count(&self) -> u64 {
        self.there.len() as u64 + self.lost()
    }

    fn lost(&self) -> u64 {
        self.missing.iter().map(|numbers| numbers.len() as u64).sum()
    }
}

// Three programs that compete for one role. The drill checks each millisecond which of them hold it.

const COUNT: usize = 3;

/// Longer than a failover takes, so that the drill tests the cluster and not the end of a lease.
const TTL: Duration = Duration::from_secs(10);

const LOOK_EVERY: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub struct Holders {
    elections: Arc<Vec<Election<Client>>>,
    looks: JoinHandle<()>,
}

impl Holders {
    pub fn start(client: &Client, role: &str, tally: &Arc<Mutex<Tally>>) -> Result<Holders, Failure> {
        let election = |_| Election::builder(client.clone(), role).ttl(TTL).build();
        let elections: Result<Vec<_>, _> = (0..COUNT).map(election).collect();
        let elections = Arc::new(elections.map_err(|error| Failure::Usage { what: error.to_string() })?);
        elections.iter().for_each(Election::start);
        let looks = tokio::spawn(look(elections.clone(), tally.clone()));
        Ok(Holders { elections, looks })
    }

    pub async fn end(self) {
        self.looks.abort();
        for election in self.elections.iter() {
            election.stop().await;
        }
    }
}

async fn look(elections: Arc<Vec<Election<Client>>>, tally: Arc<Mutex<Tally>>) {
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        let leads = |(number, election): (usize, &Election<Client>)| election.is_leader().then_some(number);
        let holders: Vec<usize> = elections.iter().enumerate().filter_map(leads).collect();
        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        let now = tally.now();
        tally.sampled(now, &holders);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the count of lost numbers, if these were acknowledged and this value is found afterwards.
    fn lost(acknowledged: &mut Acknowledged, numbers: &[u64], value: u64) -> u64 {
        acknowledged.there.extend(numbers);
        acknowledged.found(value);
        acknowledged.lost()
    }

    #[test]
    fn what_was_refused_is_not_lost() {
        let all = || Acknowledged::default();
        assert_eq!(lost(&mut all(), &[1, 2, 3, 7, 9], 3), 2);
        assert_eq!(lost(&mut all(), &[1, 2, 3, 7, 9], 9), 0);
        assert_eq!(lost(&mut all(), &[1, 2, 3], 4), 0, "one in doubt was carried out");
        assert_eq!(lost(&mut all(), &[1, 2], 0), 2, "the document is gone");
    }

    #[test]
    fn what_is_lost_stays_lost_when_the_writer_goes_on() {
        let mut acknowledged = Acknowledged::default();
        assert_eq!(lost(&mut acknowledged, &[1, 2, 3, 4], 2), 2);
        assert_eq!(lost(&mut acknowledged, &[6, 7], 7), 2);
        assert_eq!(lost(&mut acknowledged, &[8], 1), 6, "and again");
        assert_eq!((lost(&mut acknowledged, &[10], 10), acknowledged.count()), (6, 8));
    }

    #[test]
    fn a_side_that_wins_brings_back_its_own_and_costs_the_other_its_own() {
        let mut acknowledged = Acknowledged::default();
        assert_eq!(lost(&mut acknowledged, &[1, 2, 3, 4], 2), 2, "asked on the other side");
        assert_eq!(lost(&mut acknowledged, &[6, 7, 8], 8), 2);
        assert_eq!(lost(&mut acknowledged, &[], 4), 3, "the first side has won");
        assert_eq!((acknowledged.count(), acknowledged.there), (7, vec![1, 2, 3, 4]));
    }
}
