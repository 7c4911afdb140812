//! Roles that instances contend for, renew, release, or let lapse. Each records the times in which it
//! was certain to hold one.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{PAUSE, Round, outcome_of};
use crate::check::Verdict;
use crate::check::beliefs::{Belief, Grant, one_at_a_time, tokens_differ, tokens_rise};
use crate::harness::{Answer, Call, Rng};

const CLIENTS: u32 = 5;
const ROLES: u64 = 2;
const TTL_MS: u64 = 3_000;
const MS: u64 = 1_000_000;

#[derive(Debug, Default)]
pub struct History {
    grants: Vec<Grant>,
    beliefs: Vec<Belief>,
}

pub async fn run(round: Arc<Round>, mut rng: Rng) -> History {
    let clients: Vec<_> =
        (0..CLIENTS).map(|id| tokio::spawn(client(round.clone(), id, Rng::new(rng.next())))).collect();
    let mut all = History::default();
    for client in clients {
        let History { grants, beliefs } = client.await.expect("a client does not panic");
        all.grants.extend(grants);
        all.beliefs.extend(beliefs);
    }
    all
}

async fn client(round: Arc<Round>, id: u32, mut rng: Rng) -> History {
    let mut history = History::default();
    for life in 0.. {
        if !round.goes_on() {
            break;
        }
        let role = rng.below(ROLES) as u32;
        // Each attempt has its own name: an earlier one of unknown outcome may still be granted.
        let instance = format!("i{id}.{life}");
        if let Some(token) = acquire(&round, &mut rng, role, &instance, &mut history).await {
            hold(&round, &mut rng, role, &instance, token, &mut history).await;
        }
    }
    history
}

fn path(round: &Round, role: u32, what: &str) -> String {
    format!("/v1/roles/{}-r{role}/{what}", round.number)
}

async fn acquire(
    round: &Round,
    rng: &mut Rng,
    role: u32,
    instance: &str,
    history: &mut History,
) -> Option<u64> {
    let body = json!({"instance_id": instance, "ttl_ms": TTL_MS});
    let call = Call::post(path(round, role, "acquire")).json(&body);
    let (invoked, answer) = (round.now(), round.ask(rng, call).await);
    round.count("roles", outcome_of(&answer));
    let Some(granted) = answer.ok().filter(Answer::ok) else {
        tokio::time::sleep(PAUSE * 10).await;
        return None;
    };
    let (granted, returned) = (granted.json(), round.now());
    let token = granted["token"].as_u64().expect("a token");
    history.grants.push(Grant { role, instance: instance.to_string(), token, invoked, returned });
    history.beliefs.push(Belief {
        role,
        instance: instance.to_string(),
        token,
        from: returned,
        until: certain(invoked, &granted),
    });
    Some(token)
}

/// The time until which the holder may believe, counted from its call.
fn certain(invoked: u64, answer: &Value) -> u64 {
    let promised = answer["expires_in_ms"].as_u64().expect("a time").min(TTL_MS);
    invoked + promised.saturating_sub(promised / 100 + 10) * MS
}

/// Renews for a while, and releases the role, or stops in the middle like a process that is killed.
async fn hold(round: &Round, rng: &mut Rng, role: u32, instance: &str, token: u64, history: &mut History) {
    let tenure = json!({"instance_id": instance, "token": token});
    for _ in 0..rng.below(6) {
        tokio::time::sleep(Duration::from_millis(TTL_MS / 3)).await;
        let (invoked, call) = (round.now(), Call::post(path(round, role, "renew")).json(&tenure));
        let answer = round.ask(rng, call).await;
        round.count("roles", outcome_of(&answer));
        let last = history.beliefs.last_mut().expect("it holds the role");
        match answer {
            Ok(answer) if answer.ok() => last.until = last.until.max(certain(invoked, &answer.json())),
            Ok(answer) if answer.status == 410 => {
                last.until = last.until.min(round.now());
                return;
            }
            _ => {}
        }
    }
    if rng.below(3) > 0 {
        let last = history.beliefs.last_mut().expect("it holds the role");
        last.until = last.until.min(round.now());
        let answer = round.ask(rng, Call::post(path(round, role, "release")).json(&tenure)).await;
        round.count("roles", outcome_of(&answer));
    }
}

impl History {
    pub fn judge(self) -> Verdict {
        tokens_differ(&self.grants)?;
        tokens_rise(&self.grants)?;
        one_at_a_time(&self.beliefs)
    }
}
