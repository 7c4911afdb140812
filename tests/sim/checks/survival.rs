//! I2: a record that is committed anywhere is in the log of every later leader, and is never replaced.

use std::collections::VecDeque;

use eldest::protocol::Log;
use eldest::types::{Epoch, Index, NodeId, Record};

use super::{Check, ensure};

const NAME: &str = "I2 acknowledged records survive";

/// The one history, as far as any node has committed it: each record, and the epoch that committed it.
#[derive(Debug, Default)]
pub struct Survival {
    committed: Vec<(Record, Epoch)>,
    /// Records that an operator's order may have lost, as long as no later record is committed.
    doubtful: VecDeque<(Record, Epoch)>,
}

impl Survival {
    /// `promise` is the node's own: the first node to commit a record is the leader of that epoch.
    pub fn committed(&mut self, node: NodeId, promise: Epoch, record: &Record) -> Check {
        let index = record.index() as usize;
        while self.committed.len() + 1 < index && !self.doubtful.is_empty() {
            self.committed.extend(self.doubtful.pop_front());
        }
        if index == self.committed.len() + 1 {
            self.committed.push((record.clone(), promise));
            return Ok(());
        }
        let known = self.committed.get(index.wrapping_sub(1)).map(|(record, _)| record);
        ensure(known == Some(record), NAME, || {
            let known = known.map(ToString::to_string);
            format!("{node} committed {record}, but {known:?} was committed there")
        })
    }

    /// A leader has opened its epoch: its log must hold all that earlier epochs have committed. (A leader
    /// that opens late may already be followed by a later one, whose commits it need not have.)
    pub fn opened(&self, node: NodeId, epoch: Epoch, log: &Log) -> Check {
        let above = self.committed.iter().skip(log.base().index as usize);
        for (record, _) in above.filter(|(_, committed_in)| *committed_in < epoch) {
            let there = log.position(record.index());
            ensure(there == Some(record.position), NAME, || {
                format!("{node} leads without {record}; it has {there:?} there")
            })?;
        }
        Ok(())
    }

    /// Records after this index may be lost, by an operator's order.
    pub fn may_lose_beyond(&mut self, index: Index) {
        self.doubtful = self.committed.split_off((index as usize).min(self.committed.len())).into();
    }

    /// Whether `is_so` holds for any committed record.
    pub fn any(&self, is_so: impl Fn(&Record) -> bool) -> bool {
        self.committed.iter().any(|(record, _)| is_so(record))
    }

    /// The newest value that `says` finds in a committed record.
    pub fn newest<T>(&self, says: impl Fn(&Record) -> Option<T>) -> Option<T> {
        self.committed.iter().rev().find_map(|(record, _)| says(record))
    }

    pub fn len(&self) -> Index {
        self.committed.len() as Index
    }
}
