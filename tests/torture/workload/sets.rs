//! Elements, a document each, that are created once and never deleted.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Round, items};
use crate::arena::Mode;
use crate::check::Verdict;
use crate::check::sets::{Add, check};
use crate::harness::{Call, Rng};

const CLIENTS: u64 = 3;
const PAGE: usize = 1_000;

#[derive(Debug)]
pub struct History(Vec<Add>, Rng);

pub async fn run(round: Arc<Round>, mut rng: Rng) -> History {
    let clients: Vec<_> =
        (0..CLIENTS).map(|_| tokio::spawn(client(round.clone(), Rng::new(rng.next())))).collect();
    let mut history = Vec::new();
    for client in clients {
        history.extend(client.await.expect("a client does not panic"));
    }
    History(history, rng)
}

async fn client(round: Arc<Round>, mut rng: Rng) -> Vec<Add> {
    let (mut adds, prefix) = (Vec::new(), round.prefix("set"));
    while round.goes_on() {
        let element = round.value();
        let put = Call::put(format!("/v1/docs/{prefix}{element}")).raw_json(&element.to_string());
        let outcome = round.write("sets", &mut rng, put).await;
        adds.push(Add { element, outcome });
    }
    adds
}

impl History {
    pub async fn judge(self, round: &Round) -> Verdict {
        let History(adds, mut rng) = self;
        if round.arena.mode == Mode::Available {
            // Each side answers for itself.
            round.arena.settles().await;
        }
        let (mut found, prefix, mut after) = (BTreeSet::new(), round.prefix("set"), String::new());
        loop {
            let path = format!("/v1/docs?prefix={prefix}&limit={PAGE}{after}");
            let answer = round.read(&mut rng, &path).await;
            let page = items(&answer);
            found.extend(page.iter().map(|(_, value, _)| value.as_u64().expect("a number")));
            match answer.json()["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return check(&adds, &found),
            }
        }
    }
}
