//! Watches which node leads, by asking the nodes twenty times a second, and whether two lead at once.
//!
//! A node says at `/leader` whether it leads by its lease. If a node is asked after the leader of a newer epoch has said
//! so, and still says that it leads in an older epoch, both leases were valid at the same time.

use std::cmp::Reverse;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::cli::status::{NodeReport, epoch_order};
use crate::client::{Answer, Caller, Request};

const EVERY: Duration = Duration::from_millis(50);

/// A frozen node does not answer. The question is given up after this time, and asked again.
const ASK_MAX: Duration = Duration::from_millis(500);

/// A leader: the one with the newest epoch among the nodes that say that they lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leads {
    pub id: u32,
    pub name: String,
    pub epoch: String,
}

/// The answers of the nodes about their own leases.
#[derive(Debug, Default)]
struct Leases {
    /// The number of answers, whether the node leads or not.
    heard: u64,
    /// The newest epoch in which a node said that it leads, and the time of the first such answer.
    newest: Option<((u64, Reverse<u32>), Instant)>,
    /// The number of answers that prove two leaders at once.
    at_once: u64,
}

impl Leases {
    /// Notes an answer: the node leads in this epoch. The question was sent and the answer came at these times.
    fn leads(&mut self, epoch: &str, asked: Instant, heard: Instant) {
        let epoch = epoch_order(epoch);
        match self.newest {
            Some((newest, since)) if newest > epoch => self.at_once += u64::from(since < asked),
            Some((newest, _)) if newest == epoch => {}
            _ => self.newest = Some((epoch, heard)),
        }
    }
}

#[derive(Debug)]
pub struct LeaderWatch {
    newest: watch::Receiver<Option<Leads>>,
    leases: Arc<Mutex<Leases>>,
    /// These tasks end when this value is dropped.
    _nodes: JoinSet<()>,
}

impl LeaderWatch {
    /// Watches for leaders after this epoch.
    pub fn start(caller: &Caller, urls: &[String], epoch: &str) -> LeaderWatch {
        let (tell, newest) = watch::channel(None);
        let leases = Arc::new(Mutex::new(Leases::default()));
        let mut nodes = JoinSet::new();
        for url in urls {
            nodes.spawn(look(caller.clone(), url.clone(), epoch.to_string(), tell.clone()));
            nodes.spawn(look_at_lease(caller.clone(), url.clone(), leases.clone()));
        }
        LeaderWatch { newest, leases, _nodes: nodes }
    }

    /// The number of times that a node said that it leads after a newer leader had said so. Returns `None` if no node
    /// has answered.
    pub fn led_at_once(&self) -> Option<u64> {
        let leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        (leases.heard > 0).then_some(leases.at_once)
    }

    pub fn newest(&self) -> Option<Leads> {
        self.newest.borrow().clone()
    }

    /// Waits for a leader after the one that the drill began with.
    pub async fn another_leads(&mut self) -> Option<Leads> {
        // The nodes are asked as long as this value lives.
        self.newest.wait_for(Option::is_some).await.ok().and_then(|leads| leads.clone())
    }
}

async fn look(caller: Caller, url: String, epoch: String, tell: watch::Sender<Option<Leads>>) {
    loop {
        if let Some(report) = status(&caller, &url).await.filter(|report| report.role == "leader") {
            let NodeReport { node, epoch: claimed, .. } = report;
            tell.send_if_modified(|newest| {
                let known = newest.as_ref().map_or(&epoch, |leads| &leads.epoch);
                let is_newer = epoch_order(&claimed) > epoch_order(known);
                if is_newer {
                    *newest = Some(Leads { id: node.id, name: node.name, epoch: claimed });
                }
                is_newer
            });
        }
        sleep(EVERY).await;
    }
}

async fn look_at_lease(caller: Caller, url: String, leases: Arc<Mutex<Leases>>) {
    let call = Request::get("/leader").within(ASK_MAX);
    loop {
        let asked = Instant::now();
        let answer = caller.at(&url, &call).await.ok();
        let heard = Instant::now();
        if let Some(epoch) = answer.as_ref().and_then(lease_of) {
            let mut leases = leases.lock().unwrap_or_else(PoisonError::into_inner);
            leases.heard += 1;
            if let Some(epoch) = epoch {
                leases.leads(epoch, asked, heard);
            }
        }
        sleep(EVERY).await;
    }
}

/// The epoch in which the node leads, or `Some(None)` if it says that it does not lead. Returns `None` for any other
/// answer, such as a refusal.
fn lease_of(answer: &Answer) -> Option<Option<&str>> {
    if answer.status.is_success() {
        return answer.header("eldest-epoch").map(Some);
    }
    answer.problem().filter(|problem| problem.code == "not_leader").map(|_| None)
}

/// Returns `None` if the node gives no answer.
pub async fn status(caller: &Caller, url: &str) -> Option<NodeReport> {
    let call = Request::get("/v1/status").within(ASK_MAX);
    let answer = timeout(ASK_MAX, caller.at(url, &call)).await.ok()?.ok()?;
    answer.taken().ok()?.read().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_leader_counts_only_if_it_was_asked_after_the_new_one_led() {
        let began = Instant::now();
        let at = |ms| began + Duration::from_millis(ms);
        let mut leases = Leases::default();
        leases.leads("7.1", at(0), at(1));
        leases.leads("8.2", at(10), at(20));
        leases.leads("7.1", at(15), at(30));
        assert_eq!(leases.at_once, 0, "it may have been right when it was asked");
        leases.leads("8.2", at(40), at(41));
        assert_eq!(leases.at_once, 0);
        leases.leads("7.1", at(21), at(22));
        assert_eq!(leases.at_once, 1);
    }
}
