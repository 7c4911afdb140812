//! Documents that one writer always writes together, in one batch.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{PAUSE, Round, items};
use crate::check::Verdict;
use crate::check::pairs::{Read, Write, check};
use crate::harness::{Answer, Call, Rng};

const GROUPS: u64 = 2;
const KEYS: usize = 3;

#[derive(Debug)]
pub struct History(Vec<(Vec<Write>, Vec<Read>)>, Rng);

pub async fn run(round: Arc<Round>, mut rng: Rng) -> History {
    let groups: Vec<_> = (0..GROUPS)
        .map(|group| {
            let writes = tokio::spawn(write_all(round.clone(), group, Rng::new(rng.next())));
            (writes, tokio::spawn(read_all(round.clone(), group, Rng::new(rng.next()))))
        })
        .collect();
    let mut history = Vec::new();
    for (writes, reads) in groups {
        const PANICS: &str = "a client does not panic";
        history.push((writes.await.expect(PANICS), reads.await.expect(PANICS)));
    }
    History(history, rng)
}

fn prefix(round: &Round, group: u64) -> String {
    format!("{}{group}/", round.prefix("pairs"))
}

async fn write_all(round: Arc<Round>, group: u64, mut rng: Rng) -> Vec<Write> {
    let mut writes = Vec::new();
    for version in 1.. {
        if !round.goes_on() {
            break;
        }
        let put = |number: usize| {
            let key = format!("{}{number}", prefix(&round, group));
            json!({"storage_cmd": "PutDoc", "payload": {"key": key, "value": version}})
        };
        let all: Value = (0..KEYS).map(put).collect();
        let invoked = round.now();
        let outcome = round.write("pairs", &mut rng, Call::post("/v1/commands").json(&all)).await;
        writes.push(Write { version, invoked, returned: round.now(), outcome });
    }
    writes
}

async fn read_all(round: Arc<Round>, group: u64, mut rng: Rng) -> Vec<Read> {
    let (mut reads, path) = (Vec::new(), format!("/v1/docs?prefix={}", prefix(&round, group)));
    while round.goes_on() {
        let invoked = round.now();
        match round.ask(&mut rng, Call::get(&path)).await {
            Ok(answer) if answer.ok() => reads.push(read(&answer, invoked, round.now())),
            _ => tokio::time::sleep(PAUSE).await,
        }
    }
    reads
}

fn read(answer: &Answer, invoked: u64, returned: u64) -> Read {
    let versions = items(answer).iter().map(|(_, value, _)| value.as_u64().expect("a number")).collect();
    Read { invoked, returned, versions }
}

impl History {
    pub async fn judge(self, round: &Round) -> Verdict {
        let History(groups, mut rng) = self;
        for ((writes, mut reads), group) in groups.into_iter().zip(0..) {
            let invoked = round.now();
            let path = format!("/v1/docs?prefix={}", prefix(round, group));
            let answer = round.read(&mut rng, &path).await;
            reads.push(read(&answer, invoked, round.now()));
            check(&writes, &reads, KEYS)?;
        }
        Ok(())
    }
}
