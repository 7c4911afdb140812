//! What has been given to the disk, and what the disk has said is safe (P29).

use std::collections::VecDeque;

use super::io::Seq;
use crate::types::Index;

/// Writes are numbered in order. The last write of each kind is kept, so that a message can name
/// the durability it needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Durability {
    issued: Seq,
    done: Seq,
    vote: Seq,
    log: Seq,
    /// Appends under way: the write and the index it reaches.
    appends: VecDeque<(Seq, Index)>,
    /// Every record up to here is on this node's own disk.
    upto: Index,
}

impl Durability {
    pub fn starting_at(upto: Index) -> Durability {
        Durability { upto, ..Durability::default() }
    }

    fn next(&mut self) -> Seq {
        self.issued.0 += 1;
        self.issued
    }

    pub fn vote_written(&mut self) -> Seq {
        self.vote = self.next();
        self.vote
    }

    pub fn appended(&mut self, upto: Index) -> Seq {
        self.log = self.next();
        self.appends.push_back((self.log, upto));
        self.log
    }

    /// Records above `index` go: what of them was on its way does not count any more.
    pub fn truncated(&mut self, index: Index) -> Seq {
        for (_, upto) in &mut self.appends {
            *upto = (*upto).min(index);
        }
        self.upto = self.upto.min(index);
        self.log = self.next();
        self.log
    }

    pub fn installed(&mut self, index: Index) -> Seq {
        self.truncated(index);
        self.appends.push_back((self.log, index));
        self.log
    }

    pub fn trimmed(&mut self) -> Seq {
        self.next()
    }

    pub fn done(&mut self, seq: Seq) {
        self.done = self.done.max(seq);
        while let Some((append, upto)) = self.appends.front().copied() {
            if append > self.done {
                break;
            }
            self.upto = self.upto.max(upto);
            self.appends.pop_front();
        }
    }

    /// What any message needs: it carries the promise (P2).
    pub fn vote(&self) -> Seq {
        self.vote
    }

    /// What an acknowledgement needs: promise and records.
    pub fn vote_and_log(&self) -> Seq {
        self.vote.max(self.log)
    }

    pub fn is_done(&self, seq: Seq) -> bool {
        seq <= self.done
    }

    pub fn upto(&self) -> Index {
        self.upto
    }
}
