//! A backup restores the whole state, or nothing.

use std::fs;
use std::path::PathBuf;

use serde_json::value::RawValue;

use super::*;
use crate::store::{Command, RowSteps, Steps, Store};
use crate::testing::TempDir;
use crate::types::{Entry, Epoch, NodeId, Position, Record, Stamp, WallTime};

const NOW: WallTime = WallTime(1_790_000_000_000_000);

fn apply(store: &mut Store, entry: Entry) {
    let position = Position::new(Epoch::new(7, NodeId(1)), store.applied().index + 1);
    let stamp = Stamp { wall: NOW, ..Stamp::default() };
    store.apply(&Record { position, stamp, entry }).unwrap().outcome.unwrap();
}

fn run(store: &mut Store, name: &str, payload: &str) {
    let payload = RawValue::from_string(payload.to_string()).unwrap();
    let entry = Entry::Client(Command::parse(name, &payload).unwrap().to_payload(None));
    apply(store, entry);
}

fn state() -> Store {
    let mut store = Store::default();
    for (name, payload) in [
        ("CreateUser", r#"{"name":"ann","group":"a"}"#),
        ("CreateElection", r#"{"name":"e","choices":["x","y"]}"#),
        ("CreateElection", r#"{"name":"f","choices":["x"]}"#),
        ("VoteElection", r#"{"election_name":"e","voter_name":"ann","choice":"x"}"#),
        ("PutDoc", r#"{"key":"a \"key\" \\","value":"x y"}"#),
        ("PutDoc", r#"{"key":"é","value":[1,2],"ttl_ms":60000}"#),
    ] {
        run(&mut store, name, payload);
    }
    store
}

fn home() -> Home {
    Home { cluster: "prod".into(), cluster_id: Some("0f".into()), mode: "safe".into(), node: 1 }
}

fn text_of(store: &Store) -> Vec<u8> {
    let mut text = Vec::new();
    write(&BackupHead::new(&home(), store, NOW), store, &mut text).unwrap();
    text
}

fn read_as(home: Home, text: &[u8], pieces: usize) -> Result<(BackupHead, Steps), BadBackup> {
    let mut reader = BackupReader::new(RowSteps::new(9, 1 << 20), home);
    text.chunks(pieces).try_for_each(|piece| reader.take(piece))?;
    reader.finish(false)
}

fn read(text: &[u8], pieces: usize) -> Result<(BackupHead, Steps), BadBackup> {
    read_as(home(), text, pieces)
}

/// The rows without their positions.
fn content(store: &Store) -> Vec<String> {
    let text = String::from_utf8(text_of(store)).unwrap();
    let rows = text.lines().skip(1).filter(|line| !line.starts_with("end ") && !line.starts_with("token "));
    rows.map(|row| {
        let at = row.find("\"at\":\"").unwrap();
        let end = at + 6 + row[at + 6..].find('"').unwrap();
        format!("{}{}", &row[..at], &row[end..])
    })
    .collect()
}

#[test]
fn what_is_restored_is_what_was_there() {
    let store = state();
    let text = text_of(&store);
    assert!(
        text.starts_with(b"eldest-backup 1 {\"cluster\":\"prod\",\"cluster_id\":\"0f\",\"mode\":\"safe\",")
    );
    for pieces in [1, 7, text.len()] {
        let (head, steps) = read(&text, pieces).unwrap();
        assert_eq!(head, BackupHead::new(&home(), &store, NOW));
        let mut other = Store::default();
        run(&mut other, "PutDoc", r#"{"key":"goes","value":1}"#);
        assert!(!steps.guard.only_if_empty && steps.replaces_with.is_some());
        steps.steps.into_iter().for_each(|step| apply(&mut other, Entry::Client(step)));
        assert_eq!(content(&other), content(&store));
        assert_eq!(other.election("e").map(|election| election.votes()), Some(1));
    }
}

#[test]
fn an_empty_state_is_a_backup_too() {
    let (head, steps) = read(&text_of(&Store::default()), 64).unwrap();
    assert_eq!((head.rows, steps.steps.len()), (0, 2));
    let mut store = state();
    steps.steps.into_iter().for_each(|step| apply(&mut store, Entry::Client(step)));
    assert!(store.has_no_data());
}

#[test]
fn whatever_is_cut_or_changed_is_refused() {
    let text = text_of(&state());
    for length in 0..text.len() {
        assert!(read(&text[..length], 64).is_err(), "{length} bytes of {}", text.len());
    }
    for at in 0..text.len() {
        for bit in [0, 5, 7] {
            let mut changed = text.clone();
            changed[at] ^= 1 << bit;
            assert!(read(&changed, 64).is_err(), "bit {bit} of byte {at}");
        }
    }
    assert!(matches!(read(&[&text[..], b"doc \"z\" 1\n"].concat(), 64), Err(BadBackup::AfterEnd)));
    assert!(matches!(read(&[&text[..], b"x"].concat(), 64), Err(BadBackup::AfterEnd)));
    assert!(matches!(read(b"{\"users\":[]}", 64), Err(BadBackup::Head)));
}

/// A text with these rows and a correct checksum.
fn forged(rows: &[&str]) -> Vec<u8> {
    let store = Store::default();
    let mut head = BackupHead::new(&home(), &store, NOW);
    head.rows = rows.len() as u64;
    let mut text = format!("{}\n{}\nend {} ", head.line(), rows.join("\n"), rows.len()).into_bytes();
    let crc = crc32fast::hash(&text);
    text.extend_from_slice(format!("{crc:08x}\n").as_bytes());
    text
}

#[test]
fn rows_that_no_state_has_are_refused() {
    let doc = r#"doc "b" {"at":"7.1@1","value":1}"#;
    assert!(read(&forged(&[doc]), 64).is_ok());
    let wrong: [&[&str]; 9] = [
        &[doc, doc],
        &[doc, r#"doc "a" {"at":"7.1@2","value":1}"#],
        &[r#"role "r" {"at":"7.1@2","value":1}"#],
        &[r#"call "0" 1"#],
        &[r#"nothing "a" 1"#],
        &[r#"doc "a" {"value":1}"#],
        &[r#"token "last" 0"#],
        &[r#"vote "[\"e\",\"ann\"]" {"at":"7.1@2","value":"x"}"#],
        &[r#"user "a" {"at":"7.1@2","value":{"name":"b"}}"#],
    ];
    for rows in wrong {
        let read = read(&forged(rows), 64);
        assert!(read.as_ref().is_err_and(|bad| bad.line().is_some()), "{rows:?}: {:?}", read.err());
    }
}

#[test]
fn more_than_the_state_may_have_is_refused_before_it_is_held() {
    let value = "x".repeat(400_000);
    let rows: Vec<String> =
        (0..9).map(|number| format!("doc \"{number}\" {{\"at\":\"7.1@1\",\"value\":\"{value}\"}}")).collect();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let bad = read(&forged(&rows), 4096).expect_err("it has more than a mebibyte");
    assert!(bad.is_too_large() && bad.line().is_some_and(|line| line < 6), "{bad}");
}

#[test]
fn elsewhere_it_replaces_nothing_and_no_document_ends_with_a_strangers_lease() {
    let bound = r#"doc "b" {"at":"7.1@1","value":1,"with":"role/r","token":7}"#;
    let text = forged(&[bound, r#"token "last" 7"#]);
    let (_, here) = read(&text, 64).unwrap();
    assert!(here.steps[0].text.contains("role/r") && here.guard.token == 7);
    for other in [Home { cluster: "test".into(), ..home() }, Home { cluster_id: Some("1f".into()), ..home() }]
    {
        let (_, steps) = read_as(other, &text, 64).unwrap();
        assert!(steps.guard.only_if_empty && !steps.steps[0].text.contains("role/r"));
    }
}

fn names(dir: &TempDir) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn the_newest_copies_are_kept_and_nobody_elses_is_touched() {
    let dir = TempDir::new();
    let copies = Copies::new(dir.path().to_path_buf(), 2);
    let foreign = dir.path().join("eldest-prod-other.backup");
    fs::write(&foreign, "not mine").unwrap();
    let other_node = dir.path().join("eldest-prod-00000000000000000000-x.backup");
    let head = BackupHead::new(&Home { node: 2, ..home() }, &Store::default(), NOW);
    fs::write(&other_node, head.line() + "\n").unwrap();
    let mut store = state();
    let second = |number: u64| WallTime(NOW.0 + number * 1_000_000);
    assert!(copies.add(&home(), &store, second(0)).unwrap().is_some());
    assert_eq!(copies.add(&home(), &store, second(1)).unwrap(), None, "nothing has changed");
    for number in 2..6 {
        run(&mut store, "PutDoc", &format!("{{\"key\":\"k{number}\",\"value\":1}}"));
        assert!(copies.add(&home(), &store, second(number)).unwrap().is_some());
    }
    let own: Vec<String> = names(&dir).into_iter().filter(|name| name.contains("-2026")).collect();
    assert_eq!((own.len(), names(&dir).len()), (2, 4), "{:?}", names(&dir));
    let newest: PathBuf = dir.path().join(own.last().unwrap());
    assert_eq!(content_of(&newest), content(&store));
    assert_eq!(fs::read(&foreign).unwrap(), b"not mine");
    // The clock is set back.
    run(&mut store, "PutDoc", r#"{"key":"later","value":1}"#);
    assert!(copies.add(&home(), &store, NOW).unwrap().is_some());
    let has = |name: &String| fs::read_to_string(dir.path().join(name)).unwrap().contains("\"later\"");
    assert!(names(&dir).len() == 4 && names(&dir).iter().any(has), "{:?}", names(&dir));
}

fn content_of(path: &std::path::Path) -> Vec<String> {
    let (_, steps) = read(&fs::read(path).unwrap(), 1024).unwrap();
    let mut store = Store::default();
    steps.steps.into_iter().for_each(|step| apply(&mut store, Entry::Client(step)));
    content(&store)
}

#[test]
fn a_draft_has_its_name_only_when_it_is_kept() {
    use std::io::Write as _;
    let dir = TempDir::new();
    let path = dir.path().join("x.backup");
    let mut draft = Draft::begin(&path).unwrap();
    draft.write_all(b"half").unwrap();
    drop(draft);
    assert_eq!(names(&dir), [""; 0]);
    let mut draft = Draft::begin(&path).unwrap();
    draft.write_all(b"whole").unwrap();
    assert!(!path.exists());
    draft.keep().unwrap();
    assert_eq!((names(&dir), fs::read(&path).unwrap()), (vec!["x.backup".to_string()], b"whole".to_vec()));
}
