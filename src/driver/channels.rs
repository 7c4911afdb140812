//! Messages to the listeners at this node, in the order in which each sender published them.
//!
//! A client publishes at any node. That node delivers the message to its own listeners and forwards it to all other nodes in one
//! hop (`http/routes/channels.rs`). No message is stored or repeated, and none passes through the loop or the log: a channel
//! works without a leader, and a listener that is away misses messages.
//!
//! ```text
//!   publish at n1 ── number 7 ──► listeners of n1
//!                      ├──── 7, given up 5 ───► n2: `Heard` ──► listeners of n2
//!                      └──── 7, given up 5 ───► n3 is silent: n1 gives 7 up there, and its next message to n3 says so
//! ```

use bytes::Bytes;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::mpsc;

use crate::types::NodeId;

/// The number of processes of one node whose stamps are remembered. A message that outlives this many restarts is not dropped.
/// The number is bounded because any caller can name a run if peers prove nothing.
const RUNS_MOST: usize = 16;

/// Travels with each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// A random number that identifies the sending process, because each process counts from 1.
    pub run: u64,
    pub number: u64,
    /// The highest number that the sender has given up on, or 0.
    pub given_up: u64,
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x} {} {}", self.run, self.number, self.given_up)
    }
}

/// Keeps the messages that one node forwards to another in order, and numbers the messages that this process forwards. A node waits for
/// each answer only for a bounded time, and then tells its client that the message was sent. The message may still be travelling, and may
/// arrive after a newer one. So each message carries the highest number that its node has given up on. A node that has read this number
/// drops every message up to it, even if another caller still waits for that message. That caller learns that no listener there received
/// it.
#[derive(Debug)]
pub struct Sent {
    run: u64,
    last: u64,
    given_up: BTreeMap<NodeId, u64>,
}

impl Sent {
    pub fn new(run: u64) -> Sent {
        Sent { run, last: 0, given_up: BTreeMap::new() }
    }

    /// Numbers the next message. It has the same number at every node.
    pub fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub fn stamp(&self, number: u64, to: NodeId) -> Stamp {
        let given_up = self.given_up.get(&to).copied().unwrap_or_default();
        // A later message may have been given up first. A stamp must not make the receiver drop the message that it belongs to.
        Stamp { run: self.run, number, given_up: given_up.min(number - 1) }
    }

    /// The node did not answer: it may deliver the message at any time, or never.
    pub fn give_up(&mut self, number: u64, to: NodeId) {
        let newest = self.given_up.entry(to).or_default();
        *newest = number.max(*newest);
    }
}

/// Remembers which messages other nodes have given up on. Each process of a node is counted separately, so a stray process cannot suppress
/// the messages of another.
#[derive(Debug, Default)]
pub struct Heard {
    /// Pairs of run and number given up, the oldest run first.
    given_up: VecDeque<(u64, u64)>,
}

impl Heard {
    /// Returns whether to deliver the message, and remembers the given-up number that it carries.
    pub fn takes(&mut self, stamp: Stamp) -> bool {
        match self.given_up.iter_mut().find(|(run, _)| *run == stamp.run) {
            Some((_, given_up)) => {
                *given_up = stamp.given_up.max(*given_up);
                stamp.number > *given_up
            }
            None => {
                if self.given_up.len() == RUNS_MOST {
                    self.given_up.pop_front();
                }
                self.given_up.push_back((stamp.run, stamp.given_up));
                stamp.number > stamp.given_up
            }
        }
    }
}

/// The maximum number of messages that wait for one listener.
const QUEUE_MOST: usize = 256;

/// The same bound in bytes: several of the largest messages.
const QUEUE_BYTES_MOST: usize = 8 << 20;

/// The maximum number of bytes that wait for all listeners together. Beyond it each listener is limited to an equal share of as
/// many bytes again, so a client with many slow listeners takes no room from the others. A message that waits for several
/// listeners is counted for each of them.
const BYTES_MOST: usize = 128 << 20;

/// The reason why a listener receives no more messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelOver {
    TooSlow,
    /// The node stops.
    Stopping,
}

/// The node is about to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

/// Channels deliver messages to the current listeners at this node, at most once, and store nothing. The queue of a listener is bounded in
/// messages and in bytes. A slow listener is dropped and told why: a late message is worth less than the next one, and no publisher waits
/// for a listener.
/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Channels(Arc<Hub>);

#[derive(Debug)]
struct Hub {
    room: Mutex<Room>,
    sent: Mutex<Sent>,
    /// The number of bytes that wait for all listeners.
    waiting: AtomicUsize,
}

#[derive(Debug, Default)]
struct Room {
    last: u64,
    listeners: usize,
    by_name: HashMap<String, BTreeMap<u64, Seat>>,
    /// The key is the node that forwarded the messages.
    heard: BTreeMap<NodeId, Heard>,
    closed: bool,
}

#[derive(Debug)]
struct Seat {
    queue: mpsc::Sender<Bytes>,
    /// The number of bytes that wait for this listener.
    waiting: Arc<AtomicUsize>,
    over: Arc<OnceLock<ChannelOver>>,
}

/// Messages are delivered until this is dropped; then every listener learns that the channel has ended.
#[derive(Debug)]
pub struct Keeper(Arc<Hub>);

pub fn channels() -> (Channels, Keeper) {
    let run = getrandom::u64().expect("the boot id has been drawn from the same source of random numbers");
    let sent = Mutex::new(Sent::new(run));
    let channels = Channels(Arc::new(Hub { room: Mutex::default(), sent, waiting: AtomicUsize::new(0) }));
    let keeper = Keeper(channels.0.clone());
    (channels, keeper)
}

/// A listener to one channel.
#[derive(Debug)]
pub struct Listener {
    hub: Arc<Hub>,
    name: String,
    number: u64,
    queue: mpsc::Receiver<Bytes>,
    waiting: Arc<AtomicUsize>,
    over: Arc<OnceLock<ChannelOver>>,
}

impl Channels {
    /// Delivers a message to all current listeners, and returns their number.
    pub fn publish(&self, name: &str, message: &Bytes) -> usize {
        self.hand(&mut self.0.room(), name, message)
    }

    /// Delivers a message that a member has forwarded, unless the member has given it up. It is judged and delivered under one
    /// lock. Otherwise an older message could be judged first, and delivered after the newer one that gives it up.
    pub fn publish_of(&self, member: NodeId, stamp: Stamp, name: &str, message: &Bytes) -> usize {
        let mut room = self.0.room();
        match room.heard.entry(member).or_default().takes(stamp) {
            true => self.hand(&mut room, name, message),
            false => 0,
        }
    }

    /// The counter that numbers the messages that this node forwards.
    pub fn sent(&self) -> MutexGuard<'_, Sent> {
        self.0.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The caller holds the lock on the room until all listeners have the message, so two messages reach all listeners in the
    /// same order. It waits for no listener.
    fn hand(&self, room: &mut Room, name: &str, message: &Bytes) -> usize {
        let part = BYTES_MOST / room.listeners.max(1);
        let Some(seats) = room.by_name.get_mut(name) else {
            return 0;
        };
        let before = seats.len();
        seats.retain(|_, seat| self.0.give(seat, part, message));
        let reached = seats.len();
        if seats.is_empty() {
            room.by_name.remove(name);
        }
        room.listeners -= before - reached;
        reached
    }

    pub fn listeners(&self) -> usize {
        self.0.room().listeners
    }

    pub fn listen(&self, name: &str) -> Result<Listener, Closed> {
        let mut room = self.0.room();
        if room.closed {
            return Err(Closed);
        }
        room.last += 1;
        room.listeners += 1;
        let (number, name) = (room.last, name.to_string());
        let (sender, queue) = mpsc::channel(QUEUE_MOST);
        let (waiting, over): (Arc<AtomicUsize>, Arc<OnceLock<ChannelOver>>) = Default::default();
        let seat = Seat { queue: sender, waiting: waiting.clone(), over: over.clone() };
        room.by_name.entry(name.clone()).or_default().insert(number, seat);
        drop(room);
        Ok(Listener { hub: self.0.clone(), name, number, queue, waiting, over })
    }
}

impl Hub {
    fn room(&self) -> MutexGuard<'_, Room> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the listener keeps its seat. A listener with an empty queue always has room for a message. `part` is the
    /// bound of each listener once all listeners together exceed theirs.
    fn give(&self, seat: &Seat, part: usize, message: &Bytes) -> bool {
        // The bytes are counted before the listener can take the message and subtract them: a count below zero would wrap around.
        let own = seat.waiting.fetch_add(message.len(), Ordering::Relaxed);
        let all = self.waiting.fetch_add(message.len(), Ordering::Relaxed);
        let own_most =
            if all + message.len() > BYTES_MOST { part.min(QUEUE_BYTES_MOST) } else { QUEUE_BYTES_MOST };
        let lags = own + message.len() > own_most;
        if (own == 0 || !lags) && seat.queue.try_send(message.clone()).is_ok() {
            return true;
        }
        self.waiting.fetch_sub(message.len(), Ordering::Relaxed);
        seat.waiting.fetch_sub(message.len(), Ordering::Relaxed);
        let _ = seat.over.set(ChannelOver::TooSlow);
        false
    }
}

impl Listener {
    /// Waits for the next message. A cancelled wait loses nothing.
    pub async fn next(&mut self) -> Result<Bytes, ChannelOver> {
        match self.queue.recv().await {
            Some(message) => {
                self.taken(message.len());
                Ok(message)
            }
            None => Err(self.over.get().copied().unwrap_or(ChannelOver::Stopping)),
        }
    }

    fn taken(&self, bytes: usize) {
        self.waiting.fetch_sub(bytes, Ordering::Relaxed);
        self.hub.waiting.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut room = self.hub.room();
        if let Some(seats) = room.by_name.get_mut(&self.name) {
            let gone = usize::from(seats.remove(&self.number).is_some());
            if seats.is_empty() {
                room.by_name.remove(&self.name);
            }
            room.listeners -= gone;
        }
        drop(room);
        // The seat is removed, so the queue gets no more messages.
        while let Ok(message) = self.queue.try_recv() {
            self.taken(message.len());
        }
    }
}

impl Keeper {
    /// Ends all listeners. `closed` is set under the same lock, so no listener can join afterwards and wait forever.
    pub fn end(&self) {
        let mut room = self.0.room();
        room.closed = true;
        room.listeners = 0;
        room.by_name.clear();
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod channel_order_tests {
    use super::*;

    const PEER: NodeId = NodeId(2);

    fn stamp(run: u64, number: u64, given_up: u64) -> Stamp {
        Stamp { run, number, given_up }
    }

    #[test]
    fn a_message_says_what_its_node_was_left_out_of() {
        let mut sent = Sent::new(7);
        assert_eq!([sent.number(), sent.number(), sent.number()], [1, 2, 3]);
        sent.give_up(2, PEER);
        sent.give_up(1, PEER);
        assert_eq!(sent.stamp(3, PEER), stamp(7, 3, 2));
        assert_eq!(sent.stamp(3, NodeId(3)), stamp(7, 3, 0), "another node has answered");
        assert_eq!(sent.stamp(2, PEER), stamp(7, 2, 1), "no message gives itself up");
    }

    #[test]
    fn what_comes_after_it_was_given_up_is_dropped() {
        let mut heard = Heard::default();
        assert!(heard.takes(stamp(7, 2, 0)));
        assert!(heard.takes(stamp(7, 1, 0)), "two senders may overtake each other");
        assert!(heard.takes(stamp(7, 5, 3)));
        assert!(!heard.takes(stamp(7, 3, 0)));
        assert!(heard.takes(stamp(7, 4, 0)), "its sender still waits for it");
    }

    #[test]
    fn each_process_counts_for_itself() {
        let mut heard = Heard::default();
        assert!(heard.takes(stamp(7, 9, 8)));
        assert!(heard.takes(stamp(8, 1, 0)));
        assert!(!heard.takes(stamp(7, 8, 0)));
        assert!(heard.takes(stamp(7, 10, 0)), "the other one may be a stray");
        for run in 9..9 + RUNS_MOST as u64 {
            assert!(heard.takes(stamp(run, 1, 0)));
        }
        assert_eq!(heard.given_up.len(), RUNS_MOST);
    }
}

#[cfg(test)]
mod channels_tests {
    use super::*;

    fn message(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    #[tokio::test]
    async fn who_listens_hears_in_order() {
        let (channels, _keeper) = channels();
        assert_eq!(channels.publish("a", &message("0")), 0);
        let mut one = channels.listen("a").expect("the node goes on");
        let mut two = channels.listen("a").expect("the node goes on");
        let mut other = channels.listen("b").expect("the node goes on");
        assert_eq!(channels.publish("a", &message("1")), 2);
        assert_eq!(channels.publish("a", &message("2")), 2);
        assert_eq!(channels.publish("b", &message("3")), 1);
        for listener in [&mut one, &mut two] {
            assert_eq!(listener.next().await, Ok(message("1")));
            assert_eq!(listener.next().await, Ok(message("2")));
        }
        assert_eq!(other.next().await, Ok(message("3")));
        drop(one);
        assert_eq!(channels.publish("a", &message("4")), 1);
    }

    #[tokio::test]
    async fn what_a_member_has_given_up_is_handed_to_nobody() {
        let (channels, _keeper) = channels();
        let mut listener = channels.listen("a").expect("the node goes on");
        let publish = |member, number, given_up, text| {
            let stamp = Stamp { run: 7, number, given_up };
            channels.publish_of(NodeId(member), stamp, "a", &message(text))
        };
        assert_eq!(publish(2, 2, 1, "newer"), 1);
        assert_eq!(publish(2, 1, 0, "older"), 0);
        assert_eq!(publish(3, 1, 0, "of another"), 1);
        assert_eq!(listener.next().await, Ok(message("newer")));
        assert_eq!(listener.next().await, Ok(message("of another")));
    }

    #[tokio::test]
    async fn who_lags_is_dropped_and_told() {
        let (channels, _keeper) = channels();
        let mut slow = channels.listen("a").expect("the node goes on");
        let reached: usize = (0..300).map(|_| channels.publish("a", &message("x"))).sum();
        assert_eq!(reached, QUEUE_MOST);
        for _ in 0..QUEUE_MOST {
            assert_eq!(slow.next().await, Ok(message("x")));
        }
        assert_eq!(slow.next().await, Err(ChannelOver::TooSlow));
        assert_eq!(channels.publish("a", &message("x")), 0);
    }

    #[tokio::test]
    async fn bytes_are_counted_and_given_back() {
        let (channels, _keeper) = channels();
        let large = Bytes::from(vec![b'x'; QUEUE_BYTES_MOST]);
        let mut slow = channels.listen("a").expect("the node goes on");
        assert_eq!(channels.publish("a", &large), 1, "the first always has room");
        assert_eq!(channels.publish("a", &message("x")), 0);
        assert_eq!(slow.next().await.map(|message| message.len()), Ok(QUEUE_BYTES_MOST));
        assert_eq!(slow.next().await, Err(ChannelOver::TooSlow));
        let left = channels.listen("a").expect("the node goes on");
        assert_eq!(channels.publish("a", &large), 1);
        drop((slow, left));
        assert_eq!(channels.0.waiting.load(Ordering::Relaxed), 0);
        assert_eq!(channels.0.room().listeners, 0);
    }

    /// Many slow listeners fill the common room; a listener that is a little behind keeps its seat.
    #[tokio::test]
    async fn those_who_lag_take_nothing_from_the_others() {
        let (channels, _keeper) = channels();
        let large = Bytes::from(vec![b'x'; QUEUE_BYTES_MOST]);
        let slow: Vec<_> = (0..BYTES_MOST / QUEUE_BYTES_MOST)
            .map(|_| channels.listen("slow").expect("the node goes on"))
            .collect();
        assert_eq!(channels.publish("slow", &large), slow.len());
        let mut other = channels.listen("a").expect("the node goes on");
        for _ in 0..3 {
            assert_eq!(channels.publish("a", &message("x")), 1);
        }
        assert_eq!(channels.publish("slow", &message("x")), 0);
        for _ in 0..3 {
            assert_eq!(other.next().await, Ok(message("x")));
        }
    }

    #[tokio::test]
    async fn all_are_told_of_the_end() {
        let (channels, keeper) = channels();
        let mut listener = channels.listen("a").expect("the node goes on");
        drop(keeper);
        assert_eq!(listener.next().await, Err(ChannelOver::Stopping));
        assert!(matches!(channels.listen("a"), Err(Closed)));
        assert_eq!(channels.publish("a", &message("x")), 0);
    }
}
