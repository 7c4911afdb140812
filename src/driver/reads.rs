//! Reads that come at the same time share their work. All reads of one level that wait for the loop are one call to it, and get
//! the same view of the state.
//!
//! ```text
//!   local            `latest`, if no input has come since another local read ──► answered without the loop
//!   otherwise        joins the open call of its level, or opens one ── Ask::Read ──► the loop ──► one view for all who joined
//! ```
//!
//! The loop closes a call before it begins to answer it. So a linear read never joins a round that began before the read (P13).
//! When the loop ends, it denies what is still open, and no state is shown any more.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

use crate::replica::{Denied, View};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The read sees every write that was acknowledged before the read began.
    Linear,
    /// The leader answers under its lease. The read needs a round only if the lease does not prove the leadership (P11).
    Leader,
    /// The node answers from its own state, however old that is.
    Local,
}

/// The answer to all reads that joined a call. It is `None` until the loop has answered.
pub type ReadAnswer = Option<Result<Arc<View>, Denied>>;

/// All reads that have joined a call, and wait for its answer.
pub type Readers = Arc<watch::Sender<ReadAnswer>>;

#[derive(Debug, Default)]
pub struct Reads {
    /// The state since the last input of the loop, if a local read has asked for it.
    latest: Mutex<Option<Arc<View>>>,
    open: Mutex<OpenReads>,
}

/// For each level, the call that further reads may join.
#[derive(Debug, Default)]
struct OpenReads {
    linear: Option<Readers>,
    leader: Option<Readers>,
    local: Option<Readers>,
    ended: bool,
}

impl OpenReads {
    fn of(&mut self, level: Level) -> &mut Option<Readers> {
        match level {
            Level::Linear => &mut self.linear,
            Level::Leader => &mut self.leader,
            Level::Local => &mut self.local,
        }
    }
}

impl Reads {
    /// Returns the state of this node, unless the loop must be asked for it.
    pub fn latest(&self) -> Option<Arc<View>> {
        lock(&self.latest).clone()
    }

    /// Joins the open call of this level. If there is none, `ask` must give a new one to the loop.
    pub fn join(
        &self,
        level: Level,
        ask: impl FnOnce(Readers) -> Result<(), Denied>,
    ) -> Result<watch::Receiver<ReadAnswer>, Denied> {
        let mut open = lock(&self.open);
        if open.ended {
            return Err(Denied::Stopping);
        }
        let place = open.of(level);
        if let Some(readers) = place {
            return Ok(readers.subscribe());
        }
        let (reply, answer) = watch::channel(None);
        let readers = Arc::new(reply);
        ask(readers.clone())?;
        *place = Some(readers);
        Ok(answer)
    }

    // The loop's side.

    /// No further read joins the call that the loop is about to answer.
    pub fn close(&self, level: Level) {
        lock(&self.open).of(level).take();
    }

    pub fn show(&self, view: Arc<View>) {
        *lock(&self.latest) = Some(view);
    }

    /// The state is about to change. This comes before the input is handled, for two reasons: a client that was told of a write
    /// finds it in a later read of the same node, and the view does not make the next writes copy the rows that they change.
    pub fn forget(&self) {
        let view = lock(&self.latest).take();
        // If this was the last reference, its rows are freed here, when no reader waits for the lock.
        drop(view);
    }

    /// The loop has ended: it answers no call that is still open, or that comes too late to be taken from the queue.
    pub fn end(&self) {
        self.forget();
        let mut open = lock(&self.open);
        open.ended = true;
        let OpenReads { linear, leader, local, .. } = &mut *open;
        for readers in [linear, leader, local].into_iter().filter_map(Option::take) {
            readers.send_replace(Some(Err(Denied::Stopping)));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use crate::types::{Epoch, Time};

    fn view(index: u64) -> Arc<View> {
        View { store: Store::default(), leader: None, epoch: Epoch::default(), index, heard_at: Time(0) }
            .into()
    }

    async fn denied(mut answer: watch::Receiver<ReadAnswer>) -> bool {
        let answer = answer.wait_for(Option::is_some).await.expect("it is answered");
        matches!(*answer, Some(Err(Denied::Stopping)))
    }

    async fn index(mut answer: watch::Receiver<ReadAnswer>) -> Option<u64> {
        let answer = answer.wait_for(Option::is_some).await.ok()?;
        answer.as_ref()?.as_ref().ok().map(|view| view.index)
    }

    #[tokio::test]
    async fn reads_share_a_call_until_the_loop_takes_it() {
        let reads = Reads::default();
        let mut calls = Vec::new();
        let mut read = |level| {
            reads
                .join(level, |reply| {
                    calls.push(reply);
                    Ok(())
                })
                .expect("it is asked")
        };
        let (first, second, other) = (read(Level::Linear), read(Level::Linear), read(Level::Leader));
        reads.close(Level::Linear);
        let late = read(Level::Linear);
        assert_eq!(calls.len(), 3, "two reads share the first call");
        for (number, call) in calls.into_iter().enumerate() {
            call.send_replace(Some(Ok(view(number as u64))));
        }
        let answers = [index(first).await, index(second).await, index(other).await, index(late).await];
        assert_eq!(answers, [Some(0), Some(0), Some(1), Some(2)]);
    }

    /// A call that found no room leaves nothing behind that a later read would join. If the first of those who joined goes away, the
    /// others are answered.
    #[tokio::test]
    async fn one_read_ends_and_the_others_go_on() {
        let reads = Reads::default();
        let refused = reads.join(Level::Local, |_| Err(Denied::Stopping));
        assert!(matches!(refused, Err(Denied::Stopping)));
        let mut queue = Vec::new();
        let mut push = |readers| {
            queue.push(readers);
            Ok(())
        };
        let first = reads.join(Level::Local, &mut push).expect("it is asked");
        let second = reads.join(Level::Local, |_| panic!("there is an open call")).expect("it has joined");
        drop(first);
        reads.close(Level::Local);
        let call = queue.pop().expect("the first asked");
        assert!(!call.is_closed());
        call.send_replace(Some(Ok(view(3))));
        assert_eq!(index(second).await, Some(3));
    }

    /// The loop ends while a call is in its queue, or on the way there.
    #[tokio::test]
    async fn the_end_denies_what_is_open_and_what_comes() {
        let reads = Reads::default();
        reads.show(view(7));
        let mut queue = Vec::new();
        let push = |readers| {
            queue.push(readers);
            Ok(())
        };
        let waiting = reads.join(Level::Linear, push).expect("it is asked");
        let joined = reads.join(Level::Linear, |_| panic!("there is an open call")).expect("it has joined");
        reads.end();
        assert!(denied(waiting).await && denied(joined).await);
        assert!(matches!(reads.join(Level::Linear, |_| panic!("nobody takes it")), Err(Denied::Stopping)));
        assert!(reads.latest().is_none());
    }

    #[test]
    fn a_state_is_shown_until_the_next_input() {
        let reads = Reads::default();
        assert!(reads.latest().is_none());
        reads.show(view(7));
        assert_eq!(reads.latest().map(|view| view.index), Some(7));
        reads.forget();
        assert!(reads.latest().is_none());
    }
}
