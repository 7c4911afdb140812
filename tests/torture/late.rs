//! Packets that arrive late. Few kernels can delay packets by themselves (`tc qdisc add … netem`), but most
//! hand packets to a program and wait for its verdict.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nfq::{Message, Queue, Verdict};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::harness::Rng;

const NEEDED: &str = "the long random test needs the kernel's queue for packets (NFQUEUE)";

/// The number of the queue in each namespace.
pub const QUEUE: u16 = 9;

/// More packets are dropped, as by a router.
const WAITING_MOST: u32 = 20_000;

/// The pauses between two looks at the queue: while packets wait, and while no rule sends any.
const SOON: Duration = Duration::from_micros(500);
const IDLE: Duration = Duration::from_millis(10);

/// The treatment of packets in the queue of one namespace.
#[derive(Debug, Default)]
struct Orders {
    delay_us: AtomicU64,
    /// Each packet waits up to this much longer, drawn for each, so that some overtake others.
    varies_us: AtomicU64,
    ends: AtomicBool,
}

/// Gives the packets of one namespace back when they are due, until it is dropped.
#[derive(Debug)]
pub struct Late {
    orders: Arc<Orders>,
    thread: Option<JoinHandle<()>>,
}

impl Late {
    pub fn in_namespace(name: &str, seed: u64) -> Late {
        let orders = Arc::new(Orders::default());
        let (given, path) = (orders.clone(), format!("/run/netns/{name}"));
        let (ready, opened) = sync_channel(1);
        let thread = thread::spawn(move || match open(&path) {
            Ok(queue) => {
                let _ = ready.send(Ok(()));
                serve(queue, &given, Rng::new(seed));
            }
            Err(error) => drop(ready.send(Err(error))),
        });
        // Without the queue, a packet that is sent there would be dropped, and a late
        // link would be a cut one.
        let opened = opened.recv().expect("the thread says how it went");
        opened.unwrap_or_else(|error| panic!("{NEEDED}: {error}"));
        Late { orders, thread: Some(thread) }
    }

    pub fn delay(&self, delay: Duration, varies: Duration) {
        self.orders.delay_us.store(delay.as_micros() as u64, Relaxed);
        self.orders.varies_us.store(varies.as_micros() as u64, Relaxed);
    }
}

impl Drop for Late {
    fn drop(&mut self) {
        self.orders.ends.store(true, Relaxed);
        // The thread itself prints why it has panicked.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Moves the calling thread, and no other, to the namespace, and opens the queue there.
fn open(namespace: &str) -> io::Result<Queue> {
    let namespace = File::open(namespace)?;
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
    let mut queue = Queue::open()?;
    queue.bind(QUEUE)?;
    queue.set_queue_max_len(QUEUE, WAITING_MOST)?;
    queue.set_nonblocking(true);
    Ok(queue)
}

#[allow(clippy::disallowed_methods, reason = "packets are due at some time: nothing else is waited for")]
fn serve(mut queue: Queue, orders: &Orders, mut rng: Rng) {
    let mut waiting: Vec<(Instant, Message)> = Vec::new();
    while !orders.ends.load(Relaxed) {
        loop {
            match queue.recv() {
                Ok(message) => {
                    let varies = rng.below(orders.varies_us.load(Relaxed) + 1);
                    let delay = Duration::from_micros(orders.delay_us.load(Relaxed) + varies);
                    waiting.push((Instant::now() + delay, message));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The queue was full, and some packets are lost.
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error()) => {}
                Err(error) => panic!("{NEEDED}: {error}"),
            }
        }
        waiting.sort_by_key(|(due, _)| *due);
        let now = Instant::now();
        for (_, mut message) in waiting.extract_if(.., |(due, _)| *due <= now) {
            message.set_verdict(Verdict::Accept);
            queue.verdict(message).unwrap_or_else(|error| panic!("{NEEDED}: {error}"));
        }
        thread::sleep(if waiting.is_empty() && orders.delay_us.load(Relaxed) == 0 { IDLE } else { SOON });
    }
}
