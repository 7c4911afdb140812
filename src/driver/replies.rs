//! Where the answers of calls go, by the number of each.

use std::collections::{BTreeMap, HashMap};

use tokio::sync::{mpsc, oneshot};

use super::chunks::Gathering;
use crate::replica::{Answer, CallId, Denied, Granted, View, Written};
use crate::store::{DocView, Process, Role};

/// Where one answer goes.
pub type Reply<T> = oneshot::Sender<Result<T, Denied>>;

/// One for each kind of answer.
#[derive(Debug)]
pub enum To {
    Written(Reply<Written>),
    View(Reply<View>),
    Role(Reply<Granted<Role>>),
    Process(Reply<Granted<Process>>),
    Doc(Reply<Granted<DocView>>),
    Done(Reply<()>),
    /// The end itself is the answer.
    Nobody,
}

impl To {
    /// Whether somebody was there to hear it.
    pub fn answer(self, answer: Result<Answer, Denied>) -> bool {
        match (self, answer) {
            (To::Written(reply), Ok(Answer::Written(written))) => reply.send(Ok(written)).is_ok(),
            (To::View(reply), Ok(Answer::View(view))) => reply.send(Ok(*view)).is_ok(),
            (To::Role(reply), Ok(Answer::Role(granted))) => reply.send(Ok(*granted)).is_ok(),
            (To::Process(reply), Ok(Answer::Process(granted))) => reply.send(Ok(*granted)).is_ok(),
            (To::Doc(reply), Ok(Answer::Doc(granted))) => reply.send(Ok(*granted)).is_ok(),
            (To::Done(reply), Ok(Answer::Done)) => reply.send(Ok(())).is_ok(),
            (To::Nobody, _) => true,
            (to, Err(denied)) => to.deny(denied),
            // The replica answers each call as what it is.
            (to, Ok(_)) => to.deny(Denied::Unknown),
        }
    }

    /// A role is wanted by somebody who has gone while the call was on its way to the loop.
    pub fn wants_no_role_any_more(&self) -> bool {
        matches!(self, To::Role(reply) if reply.is_closed())
    }

    fn deny(self, denied: Denied) -> bool {
        match self {
            To::Written(reply) => reply.send(Err(denied)).is_ok(),
            To::View(reply) => reply.send(Err(denied)).is_ok(),
            To::Role(reply) => reply.send(Err(denied)).is_ok(),
            To::Process(reply) => reply.send(Err(denied)).is_ok(),
            To::Doc(reply) => reply.send(Err(denied)).is_ok(),
            To::Done(reply) => reply.send(Err(denied)).is_ok(),
            To::Nobody => true,
        }
    }
}

/// Bounded by what the replica lets wait.
#[derive(Debug, Default)]
pub struct Replies {
    single: HashMap<CallId, To>,
    /// Each under the number of its first call.
    chunks: BTreeMap<CallId, Gathering>,
}

impl Replies {
    pub fn add(&mut self, call: CallId, to: To) {
        self.single.insert(call, to);
    }

    pub fn add_chunk(&mut self, first: CallId, gathering: Gathering) {
        self.chunks.insert(first, gathering);
    }

    /// Whether somebody was there to hear it. Of a chunk nobody needs to know: a write waits for no turn.
    pub fn answer(&mut self, call: CallId, answer: Result<Answer, Denied>) -> bool {
        let Some((first, number)) = self.place_in_chunk(call) else {
            return self.single.remove(&call).is_none_or(|to| to.answer(answer));
        };
        if let Some(gathering) = self.chunks.get_mut(&first) {
            gathering.add(number, answer);
            if gathering.is_whole()
                && let Some(whole) = self.chunks.remove(&first)
            {
                whole.tell();
            }
        }
        true
    }

    fn place_in_chunk(&self, call: CallId) -> Option<(CallId, usize)> {
        let (first, gathering) = self.chunks.range(..=call).next_back()?;
        let number = (call.0 - first.0) as usize;
        (number < gathering.len()).then_some((*first, number))
    }

    /// The loop ends: whatever has reached the log may yet be applied.
    pub fn end(&mut self) {
        for (_, to) in self.single.drain() {
            to.answer(Err(Denied::Unknown));
        }
        for (_, gathering) in std::mem::take(&mut self.chunks) {
            gathering.tell();
        }
    }
}

/// A caller that waits: if it goes away before it is answered, the loop hears of it.
#[derive(Debug)]
pub struct Caller {
    id: CallId,
    gone: Option<mpsc::Sender<CallId>>,
}

impl Caller {
    pub fn new(id: CallId, gone: mpsc::Sender<CallId>) -> Caller {
        Caller { id, gone: Some(gone) }
    }

    pub fn was_answered(mut self) {
        self.gone = None;
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        if let Some(gone) = &self.gone {
            // Where there is no room, the loop learns of it when it answers.
            let _ = gone.try_send(self.id);
        }
    }
}
