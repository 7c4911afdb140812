//! A client that asks every node all the time whether it leads.

use std::sync::Arc;
use std::time::Duration;

use super::{PATIENCE, Round};
use crate::check::leaders::{Belief, check};
use crate::check::{Outcome, Verdict};
use crate::harness::Call;

/// The pause between two questions to a node.
const PAUSE: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub struct History(Vec<Belief>);

pub async fn run(round: Arc<Round>) -> History {
    let nodes = round.arena.cluster.ids();
    let askers: Vec<_> = nodes.map(|node| tokio::spawn(ask_one(round.clone(), node))).collect();
    let mut history = Vec::new();
    for asker in askers {
        history.extend(asker.await.expect("a client does not panic"));
    }
    History(history)
}

async fn ask_one(round: Arc<Round>, node: u32) -> Vec<Belief> {
    let (mut beliefs, call) = (Vec::new(), Call::post("/is_leader").timeout(PATIENCE));
    while round.goes_on() {
        let invoked = round.now();
        if let Ok(answer) = round.arena.cluster.ask(node, &call).await
            && answer.ok()
            && answer.text().trim() == "true"
        {
            let epoch = answer.header("eldest-epoch").and_then(place).expect("an epoch");
            beliefs.push(Belief { node, epoch, invoked, returned: round.now() });
            round.count("leaders", Outcome::Done);
        }
        tokio::time::sleep(PAUSE).await;
    }
    beliefs
}

/// The place of an epoch in their order: the counter comes first, and of two epochs with the same counter the
/// one of the lower node comes later (P1). `7.1` is the seventh, led by node 1.
fn place(epoch: &str) -> Option<u64> {
    let (counter, leader) = epoch.split_once('.')?;
    let (counter, leader): (u64, u32) = (counter.parse().ok()?, leader.parse().ok()?);
    Some((counter << 32) + u64::from(u32::MAX - leader))
}

impl History {
    pub fn judge(self) -> Verdict {
        check(&self.0)
    }
}
