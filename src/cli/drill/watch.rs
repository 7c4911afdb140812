//! Watches which node leads, by asking the nodes twenty times a second.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::cli::status::{NodeReport, epoch_order};
use crate::client::{Caller, Request};

const EVERY: Duration = Duration::from_millis(50);

/// A node that is frozen is asked again soon.
const ASK_MAX: Duration = Duration::from_millis(500);

/// The newest leader, by the nodes' own answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leads {
    pub id: u32,
    pub name: String,
    pub epoch: String,
}

#[derive(Debug)]
pub struct LeaderWatch {
    newest: watch::Receiver<Option<Leads>>,
    /// These tasks end when this value is dropped.
    _nodes: JoinSet<()>,
}

impl LeaderWatch {
    /// Watches for leaders after this epoch.
    pub fn start(caller: &Caller, urls: &[String], epoch: &str) -> LeaderWatch {
        let (tell, newest) = watch::channel(None);
        let mut nodes = JoinSet::new();
        for url in urls {
            nodes.spawn(look(caller.clone(), url.clone(), epoch.to_string(), tell.clone()));
        }
        LeaderWatch { newest, _nodes: nodes }
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

/// Returns `None` if the node gives no answer.
pub async fn status(caller: &Caller, url: &str) -> Option<NodeReport> {
    let call = Request::get("/v1/status").within(ASK_MAX);
    let answer = timeout(ASK_MAX, caller.at(url, &call)).await.ok()?.ok()?;
    answer.taken().ok()?.read().ok()
}
