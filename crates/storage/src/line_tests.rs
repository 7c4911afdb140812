//! The codec: each record has one form, no form stands for two records, and no input causes a panic.

use super::*;
use crate::batch::decode_all;
use crate::testing::{Dice, any_entry, payload, record, some_records};
use crate::types::{Founding, Member};

const CHAIN: u32 = 0x0123_abcd;

fn encoded(record: &Record) -> Vec<u8> {
    let mut line = Vec::new();
    encode(record, CHAIN, &mut line);
    line
}

#[test]
fn the_lines_are_these() {
    let call = Some(KeyedCall { key: 0xab, body: 0xcd, who: 0 });
    let client = Payload { kind: 3, format: Format(2), call, text: Text::from("{\"a\":1}") };
    let founders = [(NodeId(1), crate::types::Incarnation(0xfe))].into_iter().collect();
    let lines = [
        (payload("{}"), "1|{}"),
        (Entry::Lead { founding: None }, "0|{}"),
        (
            Entry::Lead { founding: Some(Box::new(Founding { founders, ..Founding::default() })) },
            "0|{\"founders\":{\"1\":\"fe\"}}",
        ),
        (
            Entry::Members { members: [Member::founder(NodeId(2))].into_iter().collect() },
            "116|{\"members\":[{\"id\":2,\"name\":\"n2\",\"address\":\"\",\"votes\":true}]}",
        ),
        (
            Entry::Rejoin { node: NodeId(2), incarnation: crate::types::Incarnation(0xbeef) },
            "110|{\"node\":2,\"incarnation\":\"beef\"}",
        ),
        (
            Entry::ServiceDown {
                owner: crate::types::Owner::Operator,
                ttl: Span(5),
                reason: Text::from("a\nb"),
            },
            "111|{\"owner\":\"operator\",\"ttl_us\":5,\"reason\":\"a\\nb\"}",
        ),
        (Entry::ServiceUp { owner: crate::types::Owner::Merge }, "112|{\"owner\":\"merge\"}"),
        (Entry::Client(client), "key=000000000000000000000000000000ab:00000000000000cd fmt=2 3|{\"a\":1}"),
    ];
    for (entry, end) in lines {
        let record = record(7, 12, entry);
        let line = String::from_utf8(encoded(&record)).unwrap();
        let without = format!("12 7.1 1763737161000012 12000 {end}");
        let crc = crc32fast::hash(format!("0123abcd{without}").as_bytes());
        assert_eq!(line, format!("12 7.1 {crc:08x} 1763737161000012 12000 {end}\n"));
        assert_eq!(decode(line.as_bytes(), CHAIN), Ok((record.clone(), crc)));
        assert_eq!(decode(line.trim_end().as_bytes(), CHAIN), Ok((record, crc)));
        assert_eq!(checksum_in(line.as_bytes()), Some(crc));
    }
}

/// Each record type has one meaning: no command and no step of a restore is read as a record of the protocol.
#[test]
fn what_clients_write_has_types_of_its_own() {
    use crate::store::{CommandKind, give_up_restore, merge_steps, restore_steps};
    let document = r#"{"users":[{"name":"u"}]}"#;
    let steps = [restore_steps(document, 1), merge_steps(document, 1)].map(|cut| cut.unwrap().steps);
    let steps: Vec<Payload> = steps.concat().into_iter().chain([give_up_restore(1)]).collect();
    assert!(CommandKind::ALL.iter().all(|kind| !steps.iter().any(|step| step.kind == kind.number())));
    let commands = CommandKind::ALL.map(|kind| Payload { kind: kind.number(), ..steps[0].clone() });
    for payload in commands.into_iter().chain(steps) {
        assert!(!protocol_records::is_own(payload.kind), "{}", payload.kind);
        let record = record(7, 12, Entry::Client(payload));
        assert_eq!(decode(&encoded(&record), CHAIN).map(|(read, _)| read), Ok(record));
    }
}

#[test]
fn a_line_follows_one_other_only() {
    let line = encoded(&record(7, 12, payload("{}")));
    assert!(matches!(decode(&line, CHAIN + 1), Err(LineError::Checksum { .. })));
}

/// A form that our writer would not produce is refused, even with a correct checksum.
#[test]
fn a_record_has_one_form() {
    let bad = [
        ("01 7.1 ", "1 2 1|{}", LineError::Field("index")),
        ("1 7.01 ", "1 2 1|{}", LineError::Field("epoch")),
        ("1 7 ", "1 2 1|{}", LineError::Field("epoch")),
        ("1 7.1 ", "01 2 1|{}", LineError::Field("wall time")),
        ("1 7.1 ", "1  2 1|{}", LineError::Field("cluster time")),
        ("1 7.1 ", "1 2 key=ab:cd 1|{}", LineError::Field("key")),
        ("1 7.1 ", "1 2 fmt=1 1|{}", LineError::Field("format")),
        ("1 7.1 ", "1 2 fmt=65536 1|{}", LineError::Field("format")),
        ("1 7.1 ", "1 2 1{}", LineError::Field("type")),
        ("1 7.1 ", "1 2 65536|{}", LineError::Field("type")),
        ("1 7.1 ", "1 2 1|{\n}", LineError::Field("end")),
        ("1 7.1 ", "1 2 0|{\"founders\":{\"x\":\"1\"}}", LineError::Entry(0)),
        ("1 7.1 ", "1 2 110|{\"node\":1}", LineError::Entry(110)),
        ("1 7.1 ", "1 2 112|{\"owner\":\"me\"}", LineError::Entry(112)),
    ];
    for (before, after, error) in bad {
        let crc = checksum(CHAIN, before.as_bytes(), after.as_bytes());
        let line = format!("{before}{crc:08x} {after}");
        assert_eq!(decode(line.as_bytes(), CHAIN), Err(error), "{line}");
    }
    let own_with_key = format!("1 2 key={:032x}:{:016x} 0|{{}}", 1, 2);
    let crc = checksum(CHAIN, b"1 7.1 ", own_with_key.as_bytes());
    let line = format!("1 7.1 {crc:08x} {own_with_key}");
    assert_eq!(decode(line.as_bytes(), CHAIN), Err(LineError::Entry(0)));
}

#[test]
#[should_panic(expected = "compact")]
fn a_newline_cannot_be_written() {
    encoded(&record(7, 12, payload("{\n}")));
}

#[test]
fn everything_survives_its_line() {
    let mut rng = Dice::new(1);
    for index in 1..2_000 {
        let record = record(7, index, any_entry(&mut rng));
        let line = encoded(&record);
        let (decoded, crc) = decode(&line, CHAIN).unwrap();
        assert_eq!(decoded, record);
        assert_eq!(encode(&decoded, CHAIN, &mut Vec::new()), crc);
    }
}

/// Twenty thousand lines that are nearly right: each gives an error, or the same record.
#[test]
fn damaged_lines_are_refused() {
    let mut rng = Dice::new(2);
    for round in 0..20_000 {
        let record = record(7, 1 + rng.below(1000), any_entry(&mut rng));
        let mut line = encoded(&record);
        line.pop();
        damage(&mut rng, &mut line);
        match decode(&line, CHAIN) {
            Ok((decoded, _)) => assert_eq!(decoded, record, "round {round}"),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        let _ = (checksum_in(&line), position_in(&line));
    }
}

fn damage(rng: &mut Dice, line: &mut Vec<u8>) {
    for _ in 0..=rng.below(3) {
        let at = rng.below(line.len() as u64 + 1) as usize;
        match rng.below(6) {
            0 => line.truncate(at),
            1 => line.insert(at, rng.roll() as u8),
            2 if at < line.len() => drop(line.remove(at)),
            3 => line.extend_from_slice(&rng.roll().to_le_bytes()),
            4 => *line = (0..rng.below(80)).map(|_| rng.roll() as u8).collect(),
            _ if at < line.len() => line[at] ^= 1 << rng.below(8),
            _ => {}
        }
    }
}

#[test]
fn a_batch_is_taken_whole_or_not_at_all() {
    let mut rng = Dice::new(3);
    let records = some_records(&mut rng, Position::ZERO, 7, 9);
    let mut bytes = Vec::new();
    let mut chain = CHAIN;
    records.iter().for_each(|record| chain = encode(record, chain, &mut bytes));
    let batch = decode_all(bytes.clone().into(), CHAIN).unwrap();
    assert_eq!(batch.records, records);
    assert!(decode_all(bytes.clone().into(), CHAIN + 1).is_err());
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        assert!(decode_all(flipped.into(), CHAIN).is_err(), "{at}");
    }
    bytes.pop();
    assert_eq!(decode_all(bytes.into(), CHAIN).unwrap_err().error, LineError::Field("end"));
}

/// The lines are written to the log as they came. An empty line between them would be taken for a record.
#[test]
fn a_batch_has_nothing_but_lines() {
    let records = [record(7, 1, payload("{}")), record(7, 2, payload("{}"))];
    let mut first = Vec::new();
    let chain = encode(&records[0], CHAIN, &mut first);
    let mut second = Vec::new();
    encode(&records[1], chain, &mut second);
    for lines in [["\n", "", ""], ["", "\n", ""], ["", "", "\n\n"]] {
        let [before, between, after] = lines.map(str::as_bytes);
        let bytes = [before, &first, between, &second, after].concat();
        assert_eq!(decode_all(bytes.into(), CHAIN).unwrap_err().error, LineError::Field("line"), "{lines:?}");
    }
    assert_eq!(decode_all([first, second].concat().into(), CHAIN).unwrap().records, records);
}

#[test]
fn a_batch_has_no_gap() {
    let gap = [record(7, 1, payload("{}")), record(7, 3, payload("{}"))];
    let back = [record(7, 1, payload("{}")), record(6, 2, payload("{}"))];
    for records in [gap, back] {
        let mut bytes = Vec::new();
        let chain = encode(&records[0], CHAIN, &mut bytes);
        encode(&records[1], chain, &mut bytes);
        let error = decode_all(bytes.into(), CHAIN).unwrap_err();
        assert_eq!(error.error, LineError::Order(records[1].position));
    }
}
