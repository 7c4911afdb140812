//! The memory of idempotency keys, when one client fills all of it (P52).

use eldest::store::{CALLS_MOST, Command, DocCondition, Ending, Loader};
use eldest::types::{Entry, Epoch, KeyedCall, NodeId, Position, Record, Stamp};

use crate::checks::{Check, ensure};

const QUIET: KeyedCall = KeyedCall { key: 0, body: 1, who: 7 };

/// A quiet client's call is the oldest of a million; all others are those of another client, which goes on.
pub fn one_client_fills_them() -> Check {
    let mut loader = Loader::default();
    for key in 0..CALLS_MOST as u64 {
        let who = if key == 0 { QUIET.who } else { 1 };
        let entry =
            format!(r#"{{"at":"1.1@{}","body":"{:016x}","since_us":0,"who":{who}}}"#, key + 1, QUIET.body);
        loader.add("call", &format!("{key:032x}"), &entry).expect("sound");
    }
    let epoch = Epoch::new(1, NodeId(1));
    let mut store = loader.finish(Position::new(epoch, CALLS_MOST as u64), Stamp::default());
    let put = Command::put_doc(
        "k",
        serde_json::from_str("1").expect("JSON"),
        DocCondition::None,
        None,
        Ending::default(),
    )
    .expect("a command");
    for number in 1..=100 {
        let call = KeyedCall { key: u128::from(number) << 64, body: 1, who: 1 };
        let position = Position::new(epoch, CALLS_MOST as u64 + number);
        let entry = Entry::Client(put.to_payload(Some(call)));
        store.apply(&Record { position, stamp: Stamp::default(), entry }).expect("readable");
        ensure(store.remembers(call), "P52 room for all", || format!("call {number} is not remembered"))?;
    }
    ensure(store.remembers(QUIET), "P52 for those who have few", || {
        "the quiet client's call is forgotten".into()
    })
}

#[test]
fn passes() {
    one_client_fills_them().expect("P52 holds");
}
