//! A connection may be silent, or slow, for a limited time. There is one deadline, derived from the activity of the connection; hyper's
//! own timers are off.
//!
//! - A connection has the header time-out until its first request is complete: that covers silent sockets and half a
//!   protocol preface.
//! - A later head that has begun has the header time-out too (HTTP/1 only: HTTP/2 also sends frames that begin no head).
//! - With no open request and no byte moving, it has the idle time-out. It must be longer than the time for which clients keep
//!   idle connections, because their calls would otherwise race with the close.
//! - If the reader does not take a response, the answer time-out ends the connection. Only bytes of responses
//!   count: frames that a client may send forever, such as pings, do not. On HTTP/1 nothing else is written.
//!   Small responses on HTTP/1 are not counted one by one. There a write that has to wait shows that the client takes
//!   nothing.
//! - If the client's host does not acknowledge written bytes for long enough, the connection ends, if a call
//!   requested this: bytes that move into a buffer do not show that the client is alive.
//!
//! ```text
//!   state of the connection                        it ends after
//!   no request has been complete                   header, from the beginning
//!   a request is open                              no limit: the call has its own
//!   a later head has begun, on HTTP/1              header, from the first byte of the head
//!   none of these                                  idle, from the last byte
//!   in addition: a response is not taken           answer, from the last progress of its reader
//! ```
//!
//! All values are written by the tasks that move bytes and read by the timer of the connection. They are
//! relaxed atomics: a value that is read a moment late delays the end of a silent connection. A request that
//! begins at the very end may still be answered, because the connection is shut down in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::http::Version;

#[derive(Debug)]
pub struct ConnectionTimeouts {
    began: Instant,
    header: Duration,
    idle: Duration,
    answer: Duration,
    /// The number of requests without a response.
    busy: AtomicU32,
    served: AtomicBool,
    http2: AtomicBool,
    /// The number of responses that have not been taken completely.
    untaken: AtomicU32,
    /// The time when a part of them was last taken, or when the first of them began, in the unit of `moved`.
    taken: AtomicU64,
    /// The time when bytes last moved, in milliseconds since the beginning.
    moved: AtomicU64,
    /// The current response is small, and so it is not among `untaken`: that the client does not take it shows only in a write that
    /// has to wait.
    small: AtomicBool,
    /// The last write of a small response had to wait.
    blocked: AtomicBool,
    /// The time when the first byte of the next head came; zero if none has.
    head: AtomicU64,
    /// Bytes that are written from now on must be acknowledged within this number of milliseconds; zero leaves the system's default.
    unheard: AtomicU32,
    /// The peer has closed the connection in order, as a kernel does for a process that has died. A reset says less: any device in between
    /// may have sent it.
    closed_by_peer: AtomicBool,
}

/// The next step for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Close,
    CheckAfter(Duration),
}

/// One open request; ends when dropped.
#[derive(Debug)]
pub struct Busy(Arc<ConnectionTimeouts>);

/// One response that is being taken; ends when dropped.
#[derive(Debug)]
pub struct Untaken(Arc<ConnectionTimeouts>);

impl ConnectionTimeouts {
    pub fn new(header: Duration, idle: Duration, answer: Duration) -> ConnectionTimeouts {
        ConnectionTimeouts {
            began: Instant::now(),
            header,
            idle,
            answer,
            busy: AtomicU32::new(0),
            served: AtomicBool::new(false),
            http2: AtomicBool::new(false),
            untaken: AtomicU32::new(0),
            taken: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            small: AtomicBool::new(false),
            blocked: AtomicBool::new(false),
            head: AtomicU64::new(0),
            unheard: AtomicU32::new(0),
            closed_by_peer: AtomicBool::new(false),
        }
    }

    /// Makes the connection break off when written bytes are not acknowledged for this long.
    pub fn end_unheard(&self, after: Duration) {
        self.unheard.store(u32::try_from(after.as_millis()).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    /// Returns the time-out in milliseconds, once, if a call requested it.
    pub fn user_timeout_ms(&self) -> Option<u32> {
        match self.unheard.load(Ordering::Relaxed) {
            0 => None,
            _ => Some(self.unheard.swap(0, Ordering::Relaxed)),
        }
    }

    pub fn peer_closed(&self) {
        self.closed_by_peer.store(true, Ordering::Relaxed);
    }

    pub fn was_closed_by_peer(&self) -> bool {
        self.closed_by_peer.load(Ordering::Relaxed)
    }

    /// Bytes that arrive while a request is open are its body, or a pipelined head that is not read before
    /// the response.
    pub fn read_some(&self) {
        let now = self.now();
        self.moved.store(now, Ordering::Relaxed);
        if self.busy.load(Ordering::Relaxed) == 0 && self.head.load(Ordering::Relaxed) == 0 {
            self.head.store(now.max(1), Ordering::Relaxed);
        }
    }

    pub fn wrote_some(&self) {
        self.blocked.store(false, Ordering::Relaxed);
        self.wrote_at(self.now());
    }

    /// Notes whether the response that begins is a small one.
    pub fn answers_small(&self, is_small: bool) {
        self.small.store(is_small, Ordering::Relaxed);
    }

    /// A write has to wait until the client takes what was written before.
    pub fn write_waits(&self) {
        if self.small.load(Ordering::Relaxed) && !self.blocked.swap(true, Ordering::Relaxed) {
            self.taken.store(self.now(), Ordering::Relaxed);
        }
    }

    /// On HTTP/2 the bytes may be frames of any kind, so only the body itself tells of progress
    /// (`Untaken::goes_on`).
    fn wrote_at(&self, now: u64) {
        self.moved.store(now, Ordering::Relaxed);
        if !self.http2.load(Ordering::Relaxed) {
            self.taken.store(now, Ordering::Relaxed);
        }
    }

    /// Notes a response with a body that its reader must take.
    pub fn answer(self: &Arc<ConnectionTimeouts>) -> Untaken {
        if self.untaken.fetch_add(1, Ordering::Relaxed) == 0 {
            self.taken.store(self.now(), Ordering::Relaxed);
        }
        Untaken(self.clone())
    }

    /// Notes a complete head: its request is open.
    pub fn begin(self: &Arc<ConnectionTimeouts>, version: Version) -> Busy {
        self.busy.fetch_add(1, Ordering::Relaxed);
        self.head.store(0, Ordering::Relaxed);
        self.served.store(true, Ordering::Relaxed);
        self.http2.store(version == Version::HTTP_2, Ordering::Relaxed);
        Busy(self.clone())
    }

    pub fn check(&self) -> Decision {
        self.check_at(self.now())
    }

    fn check_at(&self, now: u64) -> Decision {
        let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let head = self.head.load(Ordering::Relaxed);
        let deadline = if self.busy.load(Ordering::Relaxed) > 0 {
            u64::MAX
        } else if !self.served.load(Ordering::Relaxed) {
            ms(self.header)
        } else if head > 0 && !self.http2.load(Ordering::Relaxed) {
            head.saturating_add(ms(self.header))
        } else {
            self.moved.load(Ordering::Relaxed).saturating_add(ms(self.idle))
        };
        let untaken = self.untaken.load(Ordering::Relaxed) > 0 || self.blocked.load(Ordering::Relaxed);
        let taken_by = self.taken.load(Ordering::Relaxed).saturating_add(ms(self.answer));
        let deadline = if untaken { deadline.min(taken_by) } else { deadline };
        match deadline.checked_sub(now).filter(|left| *left > 0) {
            None => Decision::Close,
            // A head that begins meanwhile has an earlier deadline than an idle connection.
            Some(left) => Decision::CheckAfter(Duration::from_millis(left).min(self.first_deadline())),
        }
    }

    /// Returns the first time at which a deadline can pass.
    /// No deadline can arise that is earlier than this, so a check after this time misses none.
    pub fn first_deadline(&self) -> Duration {
        self.header.min(self.idle).min(self.answer)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // The idle time begins with the response, however long the call took.
        self.0.moved.store(self.0.now(), Ordering::Relaxed);
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Untaken {
    /// Notes that the reader has taken more.
    pub fn goes_on(&self) {
        self.0.taken.store(self.0.now(), Ordering::Relaxed);
    }
}

impl Drop for Untaken {
    fn drop(&mut self) {
        self.0.moved.store(self.0.now(), Ordering::Relaxed);
        self.0.untaken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: u64 = 10_000;
    const IDLE: u64 = 60_000;
    const ANSWER: u64 = 20_000;

    fn timeouts() -> Arc<ConnectionTimeouts> {
        let [header, idle, answer] = [HEADER, IDLE, ANSWER].map(Duration::from_millis);
        Arc::new(ConnectionTimeouts::new(header, idle, answer))
    }

    fn left(timeouts: &ConnectionTimeouts, now: u64) -> Option<u64> {
        match timeouts.check_at(now) {
            Decision::Close => None,
            Decision::CheckAfter(after) => Some(after.as_millis() as u64),
        }
    }

    #[test]
    fn a_connection_without_a_request_ends() {
        let timeouts = timeouts();
        timeouts.read_some();
        assert_eq!(left(&timeouts, HEADER - 1), Some(1));
        assert_eq!(left(&timeouts, HEADER), None);
    }

    #[test]
    fn a_request_under_way_keeps_it() {
        let timeouts = timeouts();
        let busy = timeouts.begin(Version::HTTP_11);
        assert_eq!(left(&timeouts, u64::MAX / 2), Some(HEADER));
        drop(busy);
        assert_eq!(left(&timeouts, 1), Some(HEADER));
        assert_eq!(left(&timeouts, 2 * IDLE), None);
    }

    #[test]
    fn an_answer_that_nobody_takes_ends_it_whatever_else_is_sent() {
        for (version, ends) in [(Version::HTTP_2, true), (Version::HTTP_11, false)] {
            let timeouts = timeouts();
            drop(timeouts.begin(version));
            let answer = timeouts.answer();
            timeouts.moved.store(ANSWER, Ordering::Relaxed);
            timeouts.taken.store(0, Ordering::Relaxed);
            assert_eq!(left(&timeouts, ANSWER - 1), Some(1));
            assert_eq!(left(&timeouts, ANSWER), None);
            // On HTTP/2 these may be frames without a body.
            timeouts.taken.store(0, Ordering::Relaxed);
            timeouts.wrote_at(ANSWER);
            assert_eq!(left(&timeouts, ANSWER).is_none(), ends, "{version:?}");
            drop(answer);
            assert!(left(&timeouts, ANSWER).is_some());
        }
    }

    #[test]
    fn a_write_that_waits_ends_it_until_the_client_takes_more() {
        let timeouts = timeouts();
        drop(timeouts.begin(Version::HTTP_11));
        timeouts.write_waits();
        assert!(left(&timeouts, ANSWER).is_some(), "a stream has bounds of its own");
        timeouts.answers_small(true);
        timeouts.write_waits();
        // Further calls arrive, and their responses wait behind the first one.
        timeouts.moved.store(ANSWER, Ordering::Relaxed);
        timeouts.write_waits();
        assert_eq!(left(&timeouts, ANSWER - 1), Some(1));
        assert_eq!(left(&timeouts, ANSWER), None);
        timeouts.wrote_some();
        assert!(left(&timeouts, ANSWER).is_some());
    }

    #[test]
    fn a_slow_head_ends_it_sooner_than_silence() {
        for (version, ends) in [(Version::HTTP_11, true), (Version::HTTP_2, false)] {
            let timeouts = timeouts();
            drop(timeouts.begin(version));
            assert!(left(&timeouts, HEADER + 5_000).is_some());
            timeouts.read_some();
            assert_eq!(left(&timeouts, HEADER + 5_000).is_none(), ends, "{version:?}");
        }
    }
}
