//! Compares the encoded tail with a plain list of lines.

use super::*;
use crate::batch::decode_all;
use crate::testing::{Dice, some_records};
use crate::types::{Epoch, NodeId, Position};

/// The same in the simplest form.
#[derive(Debug)]
struct Plain {
    base: Index,
    chain: u32,
    lines: Vec<(Vec<u8>, u32)>,
    /// The epoch changes after each truncation, so that no position is used twice.
    epoch: u64,
}

impl Plain {
    fn last_chain(&self) -> u32 {
        self.lines.last().map_or(self.chain, |(_, chain)| *chain)
    }

    fn append(&mut self, records: &[Record]) -> Vec<u8> {
        let mut all = Vec::new();
        for record in records {
            let mut line = Vec::new();
            let chain = line::encode(record, self.last_chain(), &mut line);
            all.extend_from_slice(&line);
            self.lines.push((line, chain));
        }
        all
    }

    fn chain_at(&self, index: Index) -> Option<u32> {
        match index.checked_sub(self.base)? {
            0 => Some(self.chain),
            above => self.lines.get(above as usize - 1).map(|(_, chain)| *chain),
        }
    }

    fn slice(&self, above: Index, count: usize) -> Option<Vec<u8>> {
        let from = above.checked_sub(self.base)? as usize;
        let lines = self.lines.get(from..from + count)?;
        Some(lines.iter().flat_map(|(line, _)| line.clone()).collect())
    }
}

#[test]
fn lines_are_what_a_plain_list_holds() {
    for seed in 0..200 {
        let mut rng = Dice::new(seed);
        let mut lines = Lines::new(&Boundary { chain: 5, ..Boundary::default() });
        let mut plain = Plain { base: 0, chain: 5, lines: Vec::new(), epoch: 1 };
        for _ in 0..60 {
            step(&mut rng, &mut lines, &mut plain);
            compare(&mut rng, &lines, &plain);
        }
    }
}

fn step(rng: &mut Dice, lines: &mut Lines, plain: &mut Plain) {
    let held = plain.lines.len() as u64;
    match rng.below(8) {
        0 => {
            let above = plain.base + rng.below(held + 1);
            lines.truncate(above);
            plain.lines.truncate((above - plain.base) as usize);
            plain.epoch += 1;
        }
        1 => {
            let upto = plain.base + rng.below(held + 1);
            lines.trim(upto);
            plain.chain = plain.chain_at(upto).unwrap();
            plain.lines.drain(..(upto - plain.base) as usize);
            plain.base = upto;
        }
        2 if rng.one_in(4) => {
            let mut boundary = Boundary { chain: rng.roll() as u32, ..Boundary::default() };
            boundary.meta.at.index = rng.below(1000);
            lines.reset(&boundary);
            let (base, chain, epoch) = (boundary.index(), boundary.chain, plain.epoch + 1);
            *plain = Plain { base, chain, lines: Vec::new(), epoch };
        }
        _ => {
            let after = Position::new(Epoch::new(plain.epoch, NodeId(1)), plain.base + held);
            let count = rng.below(5);
            let records = some_records(rng, after, plain.epoch, count);
            if rng.one_in(2) {
                receive(rng, lines, plain, &records);
            }
            assert_eq!(lines.append(&records), plain.append(&records));
        }
    }
}

/// Receives the batch as a leader sent it, perhaps preceded by lines that this node had already.
fn receive(rng: &mut Dice, lines: &mut Lines, plain: &Plain, records: &[Record]) {
    let overlap = rng.below(plain.lines.len().min(3) as u64 + 1) as usize;
    let from = plain.lines.len() - overlap;
    let before = plain.chain_at(plain.base + from as u64).unwrap();
    let mut bytes: Vec<u8> = plain.lines[from..].iter().flat_map(|(line, _)| line.clone()).collect();
    let mut chain = plain.last_chain();
    records.iter().for_each(|record| chain = line::encode(record, chain, &mut bytes));
    let batch = decode_all(bytes.into(), before).unwrap();
    assert_eq!(batch.records[overlap..], *records);
    lines.receive(batch.encoded);
}

fn compare(rng: &mut Dice, lines: &Lines, plain: &Plain) {
    let last = plain.base + plain.lines.len() as u64;
    assert_eq!(lines.last(), last);
    for index in plain.base.saturating_sub(2)..last + 3 {
        assert_eq!(lines.chain_at(index), plain.chain_at(index), "{index}");
    }
    let above = plain.base.saturating_sub(1) + rng.below(last - plain.base + 3);
    let count = rng.below(last - plain.base + 3) as usize;
    assert_eq!(lines.slice(above, count).map(Vec::from), plain.slice(above, count), "{above} {count}");
}

#[test]
fn received_lines_are_not_copied() {
    let mut rng = Dice::new(1);
    let records = some_records(&mut rng, Position::ZERO, 1, 8);
    let mut leader = Lines::new(&Boundary::default());
    let sent = leader.append(&records);
    let mut follower = Lines::new(&Boundary::default());
    follower.receive(decode_all(sent.clone(), 0).unwrap().encoded);
    assert_eq!(follower.append(&records[..3]).as_ptr(), sent.as_ptr());
    let part = follower.slice(1, 2).unwrap();
    assert!(sent.as_ptr_range().contains(&part.as_ptr()));
    assert_eq!(leader.slice(0, 8).unwrap().as_ptr(), sent.as_ptr());
}

#[test]
fn received_lines_of_another_history_are_not_used() {
    let mut rng = Dice::new(1);
    let records = some_records(&mut rng, Position::ZERO, 1, 3);
    let mut leader = Lines::new(&Boundary { chain: 9, ..Boundary::default() });
    let sent = leader.append(&records);
    let mut follower = Lines::new(&Boundary::default());
    follower.receive(decode_all(sent.clone(), 9).unwrap().encoded);
    let own = follower.append(&records);
    assert!(own != sent && decode_all(own, 0).is_ok());
}
