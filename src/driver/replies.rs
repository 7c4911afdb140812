//! Delivers the answers of the loop: of single calls, and of chunks of writes.
//!
//! ```text
//!   Handle::call ──── id, To ───────────► Replies ◄── Out::Answer(id, …) ──► the caller that waits
//!   Handle::propose ─ first id, calls ──► Replies ◄── Out::Answer(id, …) ──► when each has one: the stream
//! ```
//!
//! The replica gives each call exactly one answer, even if the caller has gone; the answer removes the call from here.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::numbers::Numbers;
use super::reads::Readers;
use crate::replica::{Answer, Call, CallId, Denied, Granted, In, Unheard, Written};
use crate::store::{Command, DocView, Process, Role};
use crate::types::KeyedCall;

/// The maximum number of undecided chunks in the loop, for all streams together. A chunk has up to 1,024 lines or 1 MiB. All
/// chunks together are fewer records than a log keeps for late followers, so a follower that lacks them needs no snapshot. Beyond
/// it streams wait in turn.
pub const CHUNKS_MOST: usize = 8;

/// A write, and its idempotency key.
pub type Keyed = (Command, Option<KeyedCall>);

pub type Verdict = Result<Written, Denied>;

// Chunks of writes: the lines that a command stream has gathered reach the loop as one message, are decided there in one round, and are
// answered by one wake-up.

/// Writes with consecutive call numbers, of one caller.
#[derive(Debug)]
pub struct CallChunk {
    pub first: CallId,
    pub calls: Vec<Call>,
    pub gathering: Gathering,
}

/// The answers of a chunk that have come so far. The caller receives all of them at once.
#[derive(Debug)]
pub struct Gathering {
    verdicts: Vec<Option<Verdict>>,
    missing: usize,
    reply: oneshot::Sender<Vec<Verdict>>,
    /// The permit is given back when all writes are decided, even if no caller waits for them any more.
    _room: OwnedSemaphorePermit,
}

/// The future verdicts of a chunk.
#[derive(Debug)]
pub struct Verdicts {
    count: usize,
    began: Instant,
    /// The counters for the time that the chunk takes.
    numbers: Option<Arc<Numbers>>,
    answer: Result<oneshot::Receiver<Vec<Verdict>>, Denied>,
}

impl Verdicts {
    /// Returns the verdicts of an empty chunk.
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

    /// Returns one verdict for each command. It must not be called again once it has returned; a cancelled wait may be repeated.
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
                // The loop has ended with this chunk. Its records may be in the log, and the next leader may commit them (P15).
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
            // The replica always answers a write as a write.
            Ok(_) => Err(Denied::Unknown),
            Err(denied) => Err(denied),
        };
        if let Some(place) = self.verdicts.get_mut(number)
            && place.replace(verdict).is_none()
        {
            self.missing -= 1;
        }
    }

    /// Sends the verdicts. A write without an answer may still be applied.
    pub fn tell(self) {
        let verdicts = self.verdicts.into_iter().map(|verdict| verdict.unwrap_or(Err(Denied::Unknown)));
        let _ = self.reply.send(verdicts.collect());
    }
}

/// The channel for one answer.
pub type Reply<T> = oneshot::Sender<Result<T, Denied>>;

/// The channel for an answer, by the kind of answer.
#[derive(Debug)]
pub enum To {
    Written(Reply<Written>),
    /// All reads that joined this call.
    View(Readers),
    Role(Reply<Granted<Role>>),
    Process(Reply<Granted<Process>>),
    Doc(Reply<Granted<DocView>>),
    Done(Reply<()>),
    /// No answer is sent: the end of the loop is the answer.
    Nobody,
}

impl To {
    /// Sends the answer. If the caller has gone, returns what must be undone. Only an answer about a role is undone (P41). A
    /// write stays written whether its caller hears of it or not, and a retry with its key gets the first answer.
    pub fn answer(self, answer: Result<Answer, Denied>) -> Option<Unheard> {
        match (self, answer) {
            (To::Role(reply), Ok(Answer::Role(granted))) => {
                return reply.send(Ok(*granted)).err().and_then(if_unheard);
            }
            (To::Written(reply), Ok(Answer::Written(written))) => drop(reply.send(Ok(written))),
            (To::View(readers), Ok(Answer::View(view))) => {
                drop(readers.send_replace(Some(Ok(Arc::new(*view)))))
            }
            (To::Process(reply), Ok(Answer::Process(granted))) => drop(reply.send(Ok(*granted))),
            (To::Doc(reply), Ok(Answer::Doc(granted))) => drop(reply.send(Ok(*granted))),
            (To::Done(reply), Ok(Answer::Done)) => drop(reply.send(Ok(()))),
            (to, Err(denied)) => to.deny(denied),
            // The replica answers each call with its own kind of answer.
            (to, Ok(_)) => to.deny(Denied::Unknown),
        }
        None
    }

    /// Returns whether a caller that wants a role disconnected before the loop received the call.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, To::Role(reply) if reply.is_closed())
    }

    fn deny(self, denied: Denied) {
        match self {
            To::Written(reply) => drop(reply.send(Err(denied))),
            To::View(readers) => drop(readers.send_replace(Some(Err(denied)))),
            To::Role(reply) => drop(reply.send(Err(denied))),
            To::Process(reply) => drop(reply.send(Err(denied))),
            To::Doc(reply) => drop(reply.send(Err(denied))),
            To::Done(reply) => drop(reply.send(Err(denied))),
            To::Nobody => {}
        }
    }
}

fn if_unheard(answer: Result<Granted<Role>, Denied>) -> Option<Unheard> {
    answer.ok()?.if_unheard
}

/// The channels for the answers to calls, by call number. Their number is bounded by the replica's bound on waiting calls.
#[derive(Debug, Default)]
pub struct Replies {
    single: HashMap<CallId, To>,
    /// Each chunk is kept under the number of its first call.
    chunks: BTreeMap<CallId, Gathering>,
}

impl Replies {
    pub fn add(&mut self, call: CallId, to: To) {
        self.single.insert(call, to);
    }

    pub fn add_chunk(&mut self, first: CallId, gathering: Gathering) {
        self.chunks.insert(first, gathering);
    }

    /// Sends the answer. If the caller has gone, returns what must be undone. A chunk has nothing to undo.
    pub fn answer(&mut self, call: CallId, answer: Result<Answer, Denied>) -> Option<Unheard> {
        let Some((first, number)) = self.place_in_chunk(call) else {
            return self.single.remove(&call)?.answer(answer);
        };
        if let Some(gathering) = self.chunks.get_mut(&first) {
            gathering.add(number, answer);
            if gathering.is_whole()
                && let Some(whole) = self.chunks.remove(&first)
            {
                whole.tell();
            }
        }
        None
    }

    /// The numbers of a chunk are consecutive (`Handle::next_calls`), so a call can only be in the last chunk that begins at or
    /// below it.
    fn place_in_chunk(&self, call: CallId) -> Option<(CallId, usize)> {
        let (first, gathering) = self.chunks.range(..=call).next_back()?;
        let number = (call.0 - first.0) as usize;
        (number < gathering.len()).then_some((*first, number))
    }

    /// The loop ends: every call that has reached the log may still be applied.
    pub fn end(&mut self) {
        for (_, to) in self.single.drain() {
            to.answer(Err(Denied::Unknown));
        }
        for (_, gathering) in std::mem::take(&mut self.chunks) {
            gathering.tell();
        }
    }
}

/// A caller that waits for a role: if it disconnects before it has its answer, the loop is informed.
#[derive(Debug)]
pub struct RoleCaller {
    id: CallId,
    answer: oneshot::Receiver<Result<Granted<Role>, Denied>>,
    gone: mpsc::Sender<In>,
    is_answered: bool,
}

impl RoleCaller {
    /// Returns the caller, and the channel on which its answer must be sent.
    pub fn new(id: CallId, gone: mpsc::Sender<In>) -> (RoleCaller, To) {
        let (reply, answer) = oneshot::channel();
        (RoleCaller { id, answer, gone, is_answered: false }, To::Role(reply))
    }

    pub async fn answer(mut self) -> Result<Granted<Role>, Denied> {
        let answer = (&mut self.answer).await;
        self.is_answered = true;
        answer.unwrap_or(Err(Denied::Unknown))
    }

    /// Returns the message for the loop, if one is needed. If no answer can arrive any more, then either the loop never received
    /// the call, or the loop has ended.
    ///
    /// The order of the steps matters. The channel is closed before `Gone` is sent: the loop either takes the call after that,
    /// and finds the channel closed, or has taken it already, and finds the number in `Gone`. The second look finds
    /// an answer that came between the first look and the close.
    fn left(&mut self) -> Option<In> {
        let early = self.answer.try_recv();
        if matches!(early, Err(TryRecvError::Closed)) {
            return None;
        }
        self.answer.close();
        match early.or_else(|_| self.answer.try_recv()) {
            Ok(answer) => if_unheard(answer).map(In::Unheard),
            Err(_) => Some(In::Gone(self.id)),
        }
    }
}

impl Drop for RoleCaller {
    fn drop(&mut self) {
        if !self.is_answered
            && let Some(word) = self.left()
        {
            // If the queue is full, the loop notices the disconnect when it answers. A role that it has already granted stays
            // granted for its ttl.
            let _ = self.gone.try_send(word);
        }
    }
}

#[cfg(test)]
mod chunks_tests {
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

#[cfg(test)]
mod replies_tests {
    use super::*;
    use crate::store::RoleClaim;
    use crate::types::{LeaseName, Position, Span, WallTime};

    fn unheard() -> Unheard {
        Unheard { name: LeaseName::Role("r".into()), token: 7, granted: true }
    }

    fn granted() -> Result<Answer, Denied> {
        let claim = RoleClaim {
            instance: "a".into(),
            ttl: Span::millis(1_000),
            address: None,
            metadata: None,
            secret: None,
        };
        let what =
            Role { claim: claim.into(), token: 7, since: WallTime(0), aged: false, at: Position::ZERO };
        let (new, waited, expires_in, position) = (true, true, Span::ZERO, Position::ZERO);
        let if_unheard = Some(unheard());
        Ok(Answer::Role(Granted { what, new, waited, expires_in, position, acks: None, if_unheard }.into()))
    }

    /// The caller may disconnect before the answer is sent, or before it has read the answer. One that has read it has nothing to undo.
    #[tokio::test]
    async fn what_nobody_hears_is_taken_back_whenever_the_caller_goes() {
        let (gone, mut words) = mpsc::channel(8);
        let (caller, to) = RoleCaller::new(CallId(1), gone.clone());
        drop(caller);
        assert!(matches!(words.try_recv(), Ok(In::Gone(CallId(1)))));
        assert_eq!(to.answer(granted()), Some(unheard()));

        let (caller, to) = RoleCaller::new(CallId(2), gone.clone());
        assert_eq!(to.answer(granted()), None);
        drop(caller);
        assert!(matches!(words.try_recv(), Ok(In::Unheard(said)) if said == unheard()));

        let (caller, to) = RoleCaller::new(CallId(3), gone.clone());
        assert_eq!(to.answer(granted()), None);
        assert!(caller.answer().await.is_ok());
        assert!(words.try_recv().is_err());

        // The loop has no room for the call. It gets no message about the caller's end either, least of all under load.
        let (caller, to) = RoleCaller::new(CallId(4), gone);
        drop(to);
        drop(caller);
        assert!(words.try_recv().is_err());
    }
}
