//! Tests of tokens: which give access, and which no longer do (P56).

use super::sides::{Side, meet};
use super::*;
use crate::types::Payload;

const HOUR: Span = Span::millis(60 * 60 * 1000);

fn new(id: u64, grant: &str, ttl: Option<Span>) -> NewToken {
    let grants = [Grant::parse(grant).expect("a grant")].into_iter().collect();
    let hash = TokenHash::of(&id.to_be_bytes());
    NewToken { id: TokenId(id), name: format!("t{id}").into(), hash, grants, ttl }
}

pub fn create(id: u64) -> Command {
    Command::create_token(new(id, "read docs", None))
}

pub fn revoke(id: u64) -> Command {
    Command::revoke_token(TokenId(id))
}

impl Bench {
    fn access(&mut self, command: &Command) -> Result<String, String> {
        told(self.apply(command, None))
    }

    fn ids(&self) -> Vec<u64> {
        ids(&self.store)
    }
}

impl Side {
    fn access(&mut self, command: &Command) -> Result<String, String> {
        told(self.apply(Entry::Client(command.to_payload(None))).0)
    }
}

fn ids(store: &Store) -> Vec<u64> {
    store.tokens(None, TOKENS_MOST).items.iter().map(|view| view.id.0).collect()
}

fn restore(document: &str) -> Vec<Payload> {
    restore_steps(document, 7).expect("a document").steps
}

#[test]
fn a_token_lets_in_until_it_is_revoked() {
    let mut bench = furnished();
    let made = bench.access(&create(7)).expect("new");
    assert_eq!(made, r#"{"id":"0000000000000007"}"#);
    let token = bench.store.token(TokenId(7)).expect("made").clone();
    assert!(token.verifies(&7_u64.to_be_bytes(), bench.now.wall));
    assert!(!token.verifies(&8_u64.to_be_bytes(), bench.now.wall) && !token.verifies(b"", bench.now.wall));
    assert!(token.grants().covers(Verb::Read, Area::Docs, "k"));
    assert_eq!(token.made_at, bench.now.wall);
    assert_eq!(load::reloaded(&bench.store), bench.store);
    assert_eq!(bench.access(&revoke(7)).expect("there"), made);
    assert_eq!(bench.store.token(TokenId(7)), None);
    assert_eq!(bench.access(&revoke(7)), Err("not_found: there is no token \"0000000000000007\"".into()));
}

#[test]
fn who_makes_the_same_token_again_is_told_the_same() {
    let mut bench = Bench::new();
    let made = bench.access(&create(7)).expect("new");
    let (at, before) = (bench.store.applied(), bench.store.token(TokenId(7)).cloned());
    bench.pass(HOUR);
    assert!(
        matches!(bench.store.judge(&create(7), None, bench.now), Judged::Replay { at: first, .. } if first == at)
    );
    let again = bench.apply(&create(7), call(1, 1));
    assert!(again.changes.is_empty() && again.tokens.is_empty());
    assert_eq!(told(again), Ok(made));
    assert_eq!(bench.store.token(TokenId(7)).cloned(), before);
    for other in [new(7, "write docs", None), new(7, "read docs", Some(HOUR))] {
        let told = bench.access(&Command::create_token(other)).expect_err("another");
        assert!(told.starts_with("exists: "), "{told}");
    }
}

#[test]
fn it_ends_by_itself_and_makes_room() {
    let mut bench = Bench::new();
    bench.access(&Command::create_token(new(1, "read docs", Some(HOUR)))).expect("new");
    for id in 2..=TOKENS_MOST as u64 {
        bench.access(&create(id)).expect("room");
    }
    let full = bench.access(&create(5000)).expect_err("full");
    assert!(full.starts_with("rule_violated: there are 1000 tokens"), "{full}");
    let token = bench.store.token(TokenId(1)).expect("made").clone();
    assert_eq!(token.ends_at(), Some(WallTime(bench.now.wall.0 + HOUR.0)));
    bench.pass(HOUR);
    assert!(!token.verifies(&1_u64.to_be_bytes(), bench.now.wall), "nobody has removed it yet");
    let applied = bench.apply(&create(5000), None);
    let gone =
        |event: &TokenEvent| matches!(event, TokenEvent::Revoked { id: TokenId(1), why: Gone::Ended, .. });
    assert!(applied.outcome.is_ok() && applied.tokens.iter().any(gone), "{:?}", applied.tokens);
    assert_eq!(bench.store.token(TokenId(1)), None);
    assert_eq!(bench.ids().len(), TOKENS_MOST);
    bench.store.check_sound();
}

#[test]
fn lists_come_in_pages_without_hashes() {
    let mut bench = Bench::new();
    [9, 3, 5].iter().for_each(|id| drop(bench.access(&create(*id)).expect("new")));
    let page = bench.store.tokens(None, 2);
    assert_eq!(page.next.as_deref(), Some("0000000000000005"));
    let rest = bench.store.tokens(Some(TokenId(5)), 2);
    assert_eq!((rest.items.len(), rest.next), (1, None));
    let shown =
        r#"{"id":"0000000000000003","name":"t3","grants":["read docs"],"made_at":"2026-11-30T00:53:20Z"}"#;
    let date = date_text(bench.now.wall);
    assert_eq!(page.items[0].to_json(), shown.replace("2026-11-30T00:53:20Z", &date));
}

#[test]
fn they_are_told_of_and_counted_in_the_size() {
    let mut bench = Bench::new();
    let before = bench.store.bytes();
    let applied = bench.apply(&Command::create_token(new(7, "read docs/a", Some(HOUR))), None);
    assert!(bench.store.bytes() > before + 128);
    let [event] = &applied.tokens[..] else { panic!("one event") };
    let members = event.members();
    assert!(
        members
            .starts_with(r#","token_id":"0000000000000007","name":"t7","grants":["read docs/a"],"made_at":"#)
    );
    assert!(members.contains("ends_at") && !members.contains("hash"), "{members}");
    let applied = bench.apply(&revoke(7), None);
    let told = r#","token_id":"0000000000000007","name":"t7","reason":"revoked""#;
    assert_eq!(applied.tokens.iter().map(TokenEvent::members).collect::<Vec<_>>(), [told]);
    assert_eq!((bench.store.bytes(), bench.store.digest()), (before, Store::default().digest()));
}

/// A whole-data document contains no tokens. Restoring one neither creates nor removes tokens.
#[test]
fn a_restore_leaves_tokens_as_they_are() {
    let mut bench = furnished();
    bench.access(&create(7)).expect("new");
    let document = document::document(&bench.store);
    assert!(!document.contains("t7") && !document.contains("hash"));
    bench.access(&create(8)).expect("new");
    bench.access(&revoke(7)).expect("there");
    restore(&document).into_iter().for_each(|step| drop(bench.apply_entry(Entry::Client(step))));
    assert_eq!(bench.ids(), [8]);
    bench.store.check_sound();
    let mut side = Side::new(1);
    side.access(&create(8)).expect("new");
    restore(&document).into_iter().for_each(|step| drop(side.apply(Entry::Client(step))));
    assert_eq!(ids(&side.store), [8]);
}

fn parted() -> Vec<Side> {
    Side::group(&[1, 2], |side| {
        side.access(&create(1)).expect("new");
        side.access(&create(2)).expect("new");
    })
}

fn both(sides: &[Side], expected: &[u64]) {
    for side in sides {
        assert_eq!(ids(&side.store), expected, "on node {}", side.id);
        assert_eq!(side.store.conflict_count(), 0, "nothing to decide, and nothing to show");
        side.check();
    }
}

#[test]
fn what_either_side_made_stays_and_what_either_revoked_is_gone() {
    let mut sides = parted();
    sides[0].access(&create(3)).expect("new");
    sides[1].access(&create(4)).expect("new");
    sides[0].access(&revoke(1)).expect("there");
    sides[1].access(&revoke(2)).expect("there");
    let before = sides[0].store.clone();
    assert_eq!(meet(&mut sides, 0, 1), 0);
    both(&sides, &[3, 4]);
    let events = sides[0].store.token_events_since(&before, &[2, 4, 4, 3].map(|id| Key::Access(TokenId(id))));
    let told: Vec<_> =
        events.iter().map(|event| (event.id().0, event.members().contains("merged"))).collect();
    assert_eq!(told, [(2, true), (4, false)]);
}

/// The same call has reached both sides, and one of them has revoked the token that it created.
#[test]
fn a_revocation_wins_over_what_it_did_not_know() {
    let mut sides = parted();
    sides.iter_mut().for_each(|side| drop(side.access(&create(5)).expect("new")));
    sides[1].access(&revoke(5)).expect("there");
    assert_eq!(meet(&mut sides, 0, 1), 0);
    both(&sides, &[1, 2]);
    let told = sides[0].access(&create(5)).expect_err("it is known to be gone");
    assert!(told.starts_with("rule_violated: a token with this id has been revoked"), "{told}");
}

#[test]
fn of_two_with_one_id_the_elders_stays_and_nothing_is_journaled() {
    let mut sides = parted();
    for (side, grant) in sides.iter_mut().zip(["read docs", "write docs"]) {
        side.access(&Command::create_token(new(5, grant, None))).expect("new");
    }
    assert_eq!(meet(&mut sides, 0, 1), 0);
    both(&sides, &[1, 2, 5]);
    let token = sides[1].store.token(TokenId(5)).expect("made").clone();
    assert!(
        token.grants().covers(Verb::Read, Area::Docs, "")
            && !token.grants().covers(Verb::Write, Area::Docs, "")
    );
}

/// The token is revoked before a restore. After the restore no difference can be computed, so the whole state is transferred.
#[test]
fn a_restore_on_one_side_brings_nothing_back() {
    let mut sides = parted();
    sides[1].access(&revoke(1)).expect("there");
    sides[1].access(&create(3)).expect("new");
    restore(r#"{"docs":[]}"#).into_iter().for_each(|step| drop(sides[1].apply(Entry::Client(step))));
    // The restore rewrites everything, and its changes do not list the entries.
    sides[1].mirror = sides[1].store.entries().collect();
    meet(&mut sides, 0, 1);
    both(&sides, &[2, 3]);
}
