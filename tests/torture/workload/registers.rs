//! Documents as registers: written, compared and swapped, created, deleted and read at all nodes.

use std::sync::Arc;
use std::time::Duration;

use super::Round;
use crate::check::{Outcome, Verdict};
use crate::harness::{Call, Rng};
use crate::linear::{self, Op};
use crate::registers::Asker;

const CLIENTS: u32 = 4;
/// The pause of a reader that stays with one node, so that no reader waits for another's answer.
const BETWEEN: Duration = Duration::from_millis(10);
/// Few, so that clients meet.
const KEYS: u64 = 4;

#[derive(Debug)]
pub struct History(Vec<Op>);

pub async fn run(round: Arc<Round>, mut rng: Rng) -> History {
    let mut clients: Vec<_> =
        (0..CLIENTS).map(|id| tokio::spawn(client(round.clone(), id, Rng::new(rng.next())))).collect();
    for node in round.arena.cluster.ids() {
        clients.push(tokio::spawn(reader(round.clone(), node, Rng::new(rng.next()))));
    }
    let mut history = Vec::new();
    for client in clients {
        history.extend(client.await.expect("a client does not panic"));
    }
    History(history)
}

async fn client(round: Arc<Round>, id: u32, mut rng: Rng) -> Vec<Op> {
    let mut asker = Asker::new(id, &round.prefix("registers"), KEYS);
    while round.goes_on() {
        let node = round.node(&mut rng);
        let now = || round.now();
        let outcome = asker.step(&round.arena.cluster, node, &mut rng, now, || round.value()).await;
        round.count("registers", known(outcome));
        if matches!(outcome, linear::Outcome::Refused | linear::Outcome::Unknown) {
            tokio::time::sleep(super::PAUSE).await;
        }
    }
    asker.history
}

async fn reader(round: Arc<Round>, node: u32, mut rng: Rng) -> Vec<Op> {
    let mut asker = Asker::new(CLIENTS + node, &round.prefix("registers"), KEYS);
    while round.goes_on() {
        let outcome = asker.look(&round.arena.cluster, node, &mut rng, || round.now()).await;
        round.count("looks", known(outcome));
        tokio::time::sleep(BETWEEN).await;
    }
    asker.history
}

fn known(outcome: linear::Outcome) -> Outcome {
    match outcome {
        linear::Outcome::Unknown => Outcome::Unknown,
        linear::Outcome::Refused => Outcome::Refused,
        _ => Outcome::Done,
    }
}

impl History {
    pub async fn judge(mut self, round: &Round) -> Verdict {
        let prefix = round.prefix("registers");
        for key in 0..KEYS {
            for node in round.arena.cluster.ids() {
                let invoked = round.now();
                let path = format!("/v1/docs/{prefix}r{key}");
                let answer = round.arena.cluster.answer(node, Call::get(path)).await;
                let value = (answer.status != 404).then(|| answer.expect(200).json().as_u64()).flatten();
                let (client, returned) = (CLIENTS, Some(round.now()));
                let (call, outcome) = (linear::Call::Read, linear::Outcome::Value(value));
                self.0.push(Op { client, key: key as u32, invoked, returned, call, outcome });
            }
        }
        linear::check(&self.0).map_err(|violation| violation.to_string())
    }
}
