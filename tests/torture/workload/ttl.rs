//! Documents that end by themselves, some of them renewed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{PAUSE, Round, items};
use crate::check::ttl::{Gone, check};
use crate::check::{Outcome, Verdict};
use crate::harness::{Call, Rng};

const CLIENTS: u64 = 3;
const TTL_LEAST_MS: u64 = 1_000;
const TTL_MOST_MS: u64 = 3_000;
const MS: u64 = 1_000_000;
/// The time within which each must have ended once no fault is left: it only makes the run fail.
const ENDED_WITHIN: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct History(Vec<Gone>, Rng);

pub async fn run(round: Arc<Round>, mut rng: Rng) -> History {
    let clients: Vec<_> =
        (0..CLIENTS).map(|_| tokio::spawn(client(round.clone(), Rng::new(rng.next())))).collect();
    let mut gone = Vec::new();
    for client in clients {
        gone.extend(client.await.expect("a client does not panic"));
    }
    History(gone, rng)
}

async fn client(round: Arc<Round>, mut rng: Rng) -> Vec<Gone> {
    let mut gone = Vec::new();
    while round.goes_on() {
        gone.extend(one(&round, &mut rng).await);
    }
    gone
}

/// Writes a document, and reads it until it is gone.
async fn one(round: &Round, rng: &mut Rng) -> Option<Gone> {
    let (document, ttl_ms) = (round.value(), TTL_LEAST_MS + rng.below(TTL_MOST_MS - TTL_LEAST_MS));
    let path = format!("/v1/docs/{}{document}", round.prefix("ttl"));
    let mut invoked = round.now();
    let put = Call::put(format!("{path}?ttl_ms={ttl_ms}")).raw_json(&document.to_string());
    if round.write("ttl", rng, put).await != Outcome::Done {
        return None;
    }
    while round.goes_on() {
        tokio::time::sleep(Duration::from_millis(rng.below(ttl_ms / 3))).await;
        if rng.below(4) == 0 {
            let asked = round.now();
            // If it is gone, the next read shows that.
            if round.ask(rng, Call::post(format!("{path}?renew"))).await.is_ok_and(|answer| answer.ok()) {
                invoked = asked;
            }
        }
        match round.ask(rng, Call::get(&path)).await {
            Ok(answer) if answer.status == 404 => {
                return Some(Gone { document, invoked, ttl: ttl_ms * MS, missed: round.now() });
            }
            Ok(answer) if answer.ok() => {}
            _ => tokio::time::sleep(PAUSE).await,
        }
    }
    None
}

impl History {
    pub async fn judge(self, round: &Round) -> Verdict {
        let History(gone, mut rng) = self;
        check(&gone)?;
        let (began, path) = (Instant::now(), format!("/v1/docs?limit=1000&prefix={}", round.prefix("ttl")));
        loop {
            let there = items(&round.read(&mut rng, &path).await);
            if there.is_empty() {
                return Ok(());
            }
            if began.elapsed() > ENDED_WITHIN {
                return Err(format!("they do not end: {there:?}"));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
