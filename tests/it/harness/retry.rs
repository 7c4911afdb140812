//! A client that does not give up: the same call, with one idempotency key, through any node that runs.

use std::sync::atomic::{AtomicU64, Ordering};

use super::call::{Answer, Call, Silence};
use super::cluster::Cluster;
use super::wait::watch_for;

static NEXT: AtomicU64 = AtomicU64::new(0);

/// The statuses after which the contract lets a client try again.
const TRY_AGAIN: [u16; 4] = [421, 429, 503, 504];

impl Cluster {
    /// The first answer that is final, from any running node.
    pub async fn eventually(&self, call: Call) -> Answer {
        let key = format!("it-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let call = call.header("idempotency-key", key);
        watch_for("a final answer from any node", async || {
            let running = self.running();
            let node = running[NEXT.fetch_add(1, Ordering::Relaxed) as usize % running.len()];
            final_answer(node, self.ask(node, &call).await)
        })
        .await
    }

    /// The first final answer of this node. The call must be safe to repeat.
    pub async fn eventually_at(&self, id: u32, call: &Call) -> Answer {
        watch_for("a final answer from one node", async || final_answer(id, self.ask(id, call).await)).await
    }

    /// Writes a document, and retries until it is written.
    pub async fn write_doc(&self, key: &str, value: u64) {
        let answer = self.eventually(Call::put(format!("/v1/docs/{key}")).raw_json(&value.to_string())).await;
        assert!(answer.ok(), "{}", answer.show());
    }

    /// The document as this node reads it, once it answers; None if it says that there is none.
    pub async fn read_doc(&self, node: u32, key: &str, level: &str) -> Option<u64> {
        let call = Call::get(format!("/v1/docs/{key}?level={level}"));
        let answer =
            watch_for("a node answers a read", async || final_answer(node, self.ask(node, &call).await))
                .await;
        match answer.status {
            200 => Some(answer.json().as_u64().expect("a number")),
            404 => None,
            _ => panic!("{}", answer.show()),
        }
    }
}

/// The answer if there is one that a repetition would not change.
fn final_answer(node: u32, said: Result<Answer, Silence>) -> Result<Answer, String> {
    match said {
        Ok(answer) if TRY_AGAIN.contains(&answer.status) => Err(format!("n{node}: {}", answer.show())),
        Ok(answer) => Ok(answer),
        Err(silence) => Err(format!("n{node}: no answer ({silence:?})")),
    }
}
