//! Chunks of writes: what a stream of commands has brought together reaches the loop as one message, is judged there as one
//! round, and is answered by one wake-up.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::numbers::Numbers;
use crate::replica::{Answer, Call, CallId, Denied, Written};
use crate::store::Command;
use crate::types::KeyedCall;

/// Chunks that the loop has and that are not decided, of all streams, of 1,024 lines or 1 MiB each: fewer records than a log keeps
/// for those who are late, so that a follower that lacks all of them needs no snapshot. Beyond it streams wait for each other, in turn.
pub const CHUNKS_MOST: usize = 8;

/// A write, and its idempotency key.
pub type Keyed = (Command, Option<KeyedCall>);

pub type Verdict = Result<Written, Denied>;

/// Writes with consecutive numbers, of one caller.
#[derive(Debug)]
pub struct Chunk {
    pub first: CallId,
    pub calls: Vec<Call>,
    pub gathering: Gathering,
}

/// The answers of a chunk that have come so far. Its caller hears all of them at once.
#[derive(Debug)]
pub struct Gathering {
    verdicts: Vec<Option<Verdict>>,
    missing: usize,
    reply: oneshot::Sender<Vec<Verdict>>,
    /// Given back when all is decided, whether or not somebody still waits for it.
    _room: OwnedSemaphorePermit,
}

/// The verdicts of a chunk, once there are.
#[derive(Debug)]
pub struct Verdicts {
    count: usize,
    began: Instant,
    /// Where its time is counted.
    numbers: Option<Arc<Numbers>>,
    answer: Result<oneshot::Receiver<Vec<Verdict>>, Denied>,
}

impl Verdicts {
    /// Of no command.
    pub fn none() -> Verdicts {
        Verdicts { count: 0, began: Instant::now(), numbers: None, answer: Err(Denied::Unknown) }
    }

    pub fn new(
        count: usize,
        answer: Result<oneshot::Receiver<Vec<Verdict>>, Denied>,
        numbers: Arc<Numbers>,
    ) -> Verdicts {
        Verdicts { count, began: Instant::now(), numbers: Some(numbers), answer }
    }

    /// One for each command. To be asked for once; who stops to wait may ask again.
    pub async fn wait(&mut self) -> Vec<Verdict> {
        let denied = match &mut self.answer {
            Ok(answer) => match answer.await {
                Ok(verdicts) => {
                    let written = verdicts.iter().filter(|verdict| verdict.is_ok()).count();
                    if let Some(numbers) = &self.numbers {
                        numbers.commits.observe_many(self.began.elapsed(), written as u64);
                    }
                    return verdicts;
                }
                Err(_) => Denied::Unknown,
            },
            Err(denied) => denied.clone(),
        };
        vec![Err(denied); self.count]
    }
}

impl Gathering {
    pub fn new(count: usize, reply: oneshot::Sender<Vec<Verdict>>, room: OwnedSemaphorePermit) -> Gathering {
        let mut verdicts = Vec::new();
        verdicts.resize_with(count, || None);
        Gathering { verdicts, missing: count, reply, _room: room }
    }

    pub fn len(&self) -> usize {
        self.verdicts.len()
    }

    pub fn is_whole(&self) -> bool {
        self.missing == 0
    }

    pub fn add(&mut self, number: usize, answer: Result<Answer, Denied>) {
        let verdict = match answer {
            Ok(Answer::Written(written)) => Ok(written),
            // The replica answers a write as a write.
            Ok(_) => Err(Denied::Unknown),
            Err(denied) => Err(denied),
        };
        if let Some(place) = self.verdicts.get_mut(number)
            && place.replace(verdict).is_none()
        {
            self.missing -= 1;
        }
    }

    /// What has no answer may yet be applied.
    pub fn tell(self) {
        let verdicts = self.verdicts.into_iter().map(|verdict| verdict.unwrap_or(Err(Denied::Unknown)));
        let _ = self.reply.send(verdicts.collect());
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn a_chunk_is_answered_once_and_in_order() {
        let (reply, answer) = oneshot::channel();
        let room = Arc::new(Semaphore::new(1)).try_acquire_owned().expect("there is room");
        let mut gathering = Gathering::new(3, reply, room);
        gathering.add(2, Err(Denied::DiskFull));
        gathering.add(2, Err(Denied::DiskFull));
        gathering.add(9, Err(Denied::DiskFull));
        assert!(!gathering.is_whole());
        gathering.add(0, Err(Denied::NoLeader));
        gathering.tell();
        let verdicts = answer.await.expect("it was told");
        let is = |number: usize, wanted: fn(&Denied) -> bool| verdicts[number].as_ref().is_err_and(wanted);
        assert_eq!(verdicts.len(), 3);
        assert!(is(0, |denied| matches!(denied, Denied::NoLeader)));
        assert!(is(1, |denied| matches!(denied, Denied::Unknown)));
        assert!(is(2, |denied| matches!(denied, Denied::DiskFull)));
    }
}
