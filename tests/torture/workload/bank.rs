//! A few accounts between which clients move money: two documents in one batch, each with
//! the revision that was read.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{PAUSE, Round, index, items};
use crate::check::bank::{Statement, check};
use crate::check::{Outcome, Verdict};
use crate::harness::{Answer, Call, Rng};

const CLIENTS: u64 = 3;
const ACCOUNTS: usize = 5;
const PAID_IN: i64 = 100;

#[derive(Debug)]
pub struct History(Vec<Statement>, Rng);

pub async fn run(round: Arc<Round>, mut rng: Rng) -> History {
    let empty = |account| put(&round, account, PAID_IN, json!({"if_absent": true}));
    let opening: Value = (0..ACCOUNTS).map(empty).collect();
    loop {
        // A write of unknown outcome may take effect later: it finds the accounts there.
        round.write("bank", &mut rng, Call::post("/v1/commands").json(&opening)).await;
        if items(&round.read(&mut rng, &list(&round, "linear")).await).len() == ACCOUNTS {
            break;
        }
    }
    let clients: Vec<_> =
        (0..CLIENTS).map(|_| tokio::spawn(client(round.clone(), Rng::new(rng.next())))).collect();
    let mut history = Vec::new();
    for client in clients {
        history.extend(client.await.expect("a client does not panic"));
    }
    History(history, rng)
}

fn list(round: &Round, level: &str) -> String {
    format!("/v1/docs?prefix={}&level={level}", round.prefix("bank"))
}

fn put(round: &Round, account: usize, amount: i64, condition: Value) -> Value {
    let mut payload = json!({"key": format!("{}{account}", round.prefix("bank")), "value": amount});
    let members = condition.as_object().expect("an object").clone();
    payload.as_object_mut().expect("an object").extend(members);
    json!({"storage_cmd": "PutDoc", "payload": payload})
}

async fn client(round: Arc<Round>, mut rng: Rng) -> Vec<Statement> {
    let mut statements = Vec::new();
    while round.goes_on() {
        let linear = rng.below(4) > 0;
        let level = if linear { "linear" } else { "local" };
        let invoked = round.now();
        match round.ask(&mut rng, Call::get(list(&round, level))).await {
            Ok(answer) if answer.ok() => {
                statements.push(statement(&answer, invoked, round.now(), linear));
                if linear {
                    transfer(&round, &mut rng, &answer).await;
                }
            }
            _ => tokio::time::sleep(PAUSE).await,
        }
    }
    statements
}

fn statement(answer: &Answer, invoked: u64, returned: u64, linear: bool) -> Statement {
    let balances = items(answer).iter().map(|(_, value, _)| value.as_i64().expect("a number")).collect();
    Statement { invoked, returned, index: index(answer), linear, balances }
}

async fn transfer(round: &Round, rng: &mut Rng, answer: &Answer) -> Outcome {
    let accounts = items(answer);
    let from = rng.below(ACCOUNTS as u64) as usize;
    let to = (from + 1 + rng.below(ACCOUNTS as u64 - 1) as usize) % ACCOUNTS;
    let amount = 1 + rng.below(20) as i64;
    let change = |account: usize, by: i64| {
        let (_, value, rev) = &accounts[account];
        put(round, account, value.as_i64().expect("a number") + by, json!({"if_rev": rev}))
    };
    let both = json!([change(from, -amount), change(to, amount)]);
    round.write("bank", rng, Call::post("/v1/commands").json(&both)).await
}

impl History {
    pub async fn judge(self, round: &Round) -> Verdict {
        let History(mut statements, mut rng) = self;
        let invoked = round.now();
        let answer = round.read(&mut rng, &list(round, "linear")).await;
        statements.push(statement(&answer, invoked, round.now(), true));
        check(&statements, ACCOUNTS, ACCOUNTS as i64 * PAID_IN)
    }
}
