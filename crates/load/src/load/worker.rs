//! The loop of one connection: ask, wait, count, and ask again.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::time::sleep;

use super::super::session::{Fate, RETRY_PAUSE, Session, Trouble};
use super::super::tally::lock;
use super::super::tally::{Kind, Tally};
use super::super::workload::Workload;

#[derive(Debug)]
pub struct Worker {
    session: Session,
    workload: Workload,
    idempotent: bool,
    tally: Arc<Mutex<Tally>>,
}

impl Worker {
    pub fn new(session: Session, workload: Workload, idempotent: bool, tally: Arc<Mutex<Tally>>) -> Worker {
        Worker { session, workload, idempotent, tally }
    }

    /// Works until the task is ended.
    pub async fn work(mut self) {
        loop {
            let kind = self.workload.advance();
            self.perform(kind).await;
        }
    }

    async fn perform(&mut self, kind: Kind) {
        let began = Instant::now();
        loop {
            let result = self.session.call(self.workload.request()).await;
            let trouble = match result {
                Ok(()) => return lock(&self.tally).succeeded(kind, began.elapsed()),
                Err(trouble) if kind == Kind::Read && trouble.status == Some(404) => {
                    let mut tally = lock(&self.tally);
                    tally.missing += 1;
                    return tally.succeeded(kind, began.elapsed());
                }
                Err(trouble) => trouble,
            };
            let again = self.may_repeat(kind, &trouble);
            lock(&self.tally).trouble.count(kind, &trouble, again);
            sleep(RETRY_PAUSE).await;
            if !again {
                return;
            }
        }
    }

    /// Whether a failed operation may be repeated. A write that may have been applied is repeated only if the servers
    /// can recognise it.
    fn may_repeat(&self, kind: Kind, trouble: &Trouble) -> bool {
        match trouble.fate {
            Fate::NotApplied => true,
            Fate::Unknown => kind == Kind::Read || self.idempotent,
            Fate::Rejected => false,
        }
    }
}
