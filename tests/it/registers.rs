//! A client of a few registers, which are documents: its calls, the answers, and their meaning for a history.

use std::time::Duration;

use crate::harness::{Answer, Call, Cluster, Rng, Silence};
use crate::linear::{self, Op, Outcome};

const PATIENCE: Duration = Duration::from_secs(4);

#[derive(Debug)]
pub struct Asker {
    id: u32,
    /// The names of its registers begin with this.
    prefix: String,
    pub history: Vec<Op>,
    /// The value and revision that this client last read of each key.
    seen: Vec<Option<(u64, String)>>,
}

impl Asker {
    pub fn new(id: u32, prefix: &str, keys: u64) -> Asker {
        Asker { id, prefix: prefix.to_string(), history: Vec::new(), seen: vec![None; keys as usize] }
    }

    /// One call. `value` has never been written before, so that a revision stands for a value.
    pub async fn step(
        &mut self,
        cluster: &Cluster,
        node: u32,
        rng: &mut Rng,
        now: impl Fn() -> u64,
        value: impl Fn() -> u64,
    ) -> Outcome {
        let (key, path) = self.pick(rng);
        let (call, asked) = self.choose(key, &path, rng, value());
        self.ask(cluster, node, key, call, asked, now).await
    }

    /// One read.
    #[allow(dead_code, reason = "the long random test alone does nothing but look")]
    pub async fn look(
        &mut self,
        cluster: &Cluster,
        node: u32,
        rng: &mut Rng,
        now: impl Fn() -> u64,
    ) -> Outcome {
        let (key, path) = self.pick(rng);
        self.ask(cluster, node, key, Call::get(path), linear::Call::Read, now).await
    }

    fn pick(&self, rng: &mut Rng) -> (u64, String) {
        let key = rng.below(self.seen.len() as u64);
        (key, format!("/v1/docs/{}r{key}", self.prefix))
    }

    async fn ask(
        &mut self,
        cluster: &Cluster,
        node: u32,
        key: u64,
        call: Call,
        asked: linear::Call,
        now: impl Fn() -> u64,
    ) -> Outcome {
        let invoked = now();
        let answer = cluster.ask(node, &call.timeout(PATIENCE)).await;
        let returned = now();
        let (asked, outcome) = self.judge(key, asked, answer);
        let returned = (outcome != Outcome::Unknown).then_some(returned);
        self.history.push(Op { client: self.id, key: key as u32, invoked, returned, call: asked, outcome });
        outcome
    }

    fn choose(&mut self, key: u64, path: &str, rng: &mut Rng, new: u64) -> (Call, linear::Call) {
        let put = Call::put(path).raw_json(&new.to_string());
        match rng.below(10) {
            0..=3 => (Call::get(path), linear::Call::Read),
            4..=5 => (put, linear::Call::Write(new)),
            6 => (Call::delete(path), linear::Call::Delete),
            7 => (put.header("if-none-match", "*"), linear::Call::Create(new)),
            _ => match &self.seen[key as usize] {
                Some((value, tag)) => {
                    (put.header("if-match", tag), linear::Call::Cas { expect: Some(*value), new })
                }
                None => (put, linear::Call::Write(new)),
            },
        }
    }

    fn judge(
        &mut self,
        key: u64,
        asked: linear::Call,
        answer: Result<Answer, Silence>,
    ) -> (linear::Call, Outcome) {
        let answer = match answer {
            Ok(answer) => answer,
            Err(Silence::NotSent) => return (asked, Outcome::Refused),
            Err(Silence::Unknown) => return (asked, Outcome::Unknown),
        };
        let read = asked == linear::Call::Read;
        match answer.status {
            200 if read => {
                let value = answer.json().as_u64().expect("a number that a client wrote");
                let tag = answer.header("etag").expect("a revision").to_string();
                self.seen[key as usize] = Some((value, tag));
                (asked, Outcome::Value(Some(value)))
            }
            200..=204 => (asked, Outcome::Done),
            // A deletion of a missing document counts as a read.
            404 if read || asked == linear::Call::Delete => (linear::Call::Read, Outcome::Value(None)),
            412 => (asked, Outcome::Mismatch),
            421 | 429 | 503 => (asked, Outcome::Refused),
            504 => (asked, Outcome::Unknown),
            _ => panic!("{}", answer.show()),
        }
    }
}
