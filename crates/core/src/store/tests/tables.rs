//! Tables that are copies of one another behave like plain maps, whatever was settled when.

use std::collections::BTreeMap;

use super::rng::Rng;
use crate::store::tables::{Doc, Table};
use crate::types::{Epoch, Position, Text};

/// A table, and the map with its expected rows.
#[derive(Clone, Default)]
struct Pair {
    table: Table<Text, Doc>,
    model: BTreeMap<Text, Doc>,
}

impl Pair {
    fn change(&mut self, rng: &mut Rng, index: u64) {
        let key: Text = format!("k/{:02}", rng.below(40)).into();
        if rng.below(3) == 0 {
            assert_eq!(self.table.remove(&key), self.model.remove(&key));
        } else {
            let doc = Doc {
                at: Position::new(Epoch::ZERO, index),
                value: index.to_string().into(),
                lifetime: None,
            };
            assert_eq!(self.table.insert(key.clone(), doc.clone()), self.model.insert(key, doc));
        }
    }

    fn check(&self, rng: &mut Rng) {
        assert!(self.table.iter().eq(self.model.iter()));
        assert_eq!(
            (self.table.len(), self.table.digest()),
            (self.model.len(), self.table.recomputed_digest())
        );
        assert_eq!(self.table.bytes(), self.table.recounted_bytes());
        let key = format!("k/{:02}", rng.below(40));
        assert_eq!(self.table.get(&key), self.model.get(key.as_str()));
        let prefix = format!("k/{}", rng.below(4));
        let begins = |key: &&Text| key.starts_with(&prefix);
        assert!(self.table.starting_with(&prefix).map(|(key, _)| key).eq(self.model.keys().filter(begins)));
        let (page, _) = self.table.page("k/", Some(&key), 5, |_, _| 1);
        let after = self.model.iter().filter(|(name, _)| name.as_ref() > key.as_str()).take(5);
        assert!(page.iter().map(|(key, doc)| (key, doc)).eq(after));
        let mut anew = Pair::default();
        self.model.iter().for_each(|(key, doc)| drop(anew.table.insert(key.clone(), doc.clone())));
        assert!(anew.table == self.table);
    }
}

#[test]
fn tables_in_one_line_hold_what_they_say() {
    for seed in 0..60 {
        let rng = &mut Rng::new(seed);
        // The oldest table first; each is a copy of the table before with some changes. Some readers keep a table.
        let (mut line, mut readers) = (vec![Pair::default()], Vec::new());
        for index in 1..600 {
            match rng.below(20) {
                0 | 1 => line.push(line.last().expect("there is one").clone()),
                2 if line.len() > 1 => drop(line.remove(0)),
                3 => readers.push(line[rng.below(line.len())].clone()),
                4 if !readers.is_empty() => drop(readers.remove(0)),
                5 | 6 => {
                    let mut tables: Vec<_> = line.iter_mut().map(|pair| &mut pair.table).collect();
                    Table::settle(&mut tables);
                }
                // A reader writes, too: from then on it has a separate line of tables.
                7 if !readers.is_empty() => readers[0].change(rng, index),
                _ => line.last_mut().expect("there is one").change(rng, index),
            }
            if index % 7 == 0 {
                line.iter().chain(&readers).for_each(|pair| pair.check(rng));
            }
        }
    }
}
