//! Loopback addresses for one test alone: node i of a cluster is at 127.a.b.i, port 9000.
//!
//! A block is claimed by a listener that this process keeps until it ends. The kernel lets only one process have it, so two test
//! runs on one machine never share a block, not even between the moment when a node ends and the moment when it starts again.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// The contract's default: a topology in the seed's form names no port.
pub const PORT: u16 = 9000;

/// Blocks that are tried before giving up: far more than there are tests.
pub const TRIES: u32 = 4_000;

/// The address in a block that stands for the whole block. Nodes have small numbers.
const CLAIM: u8 = 254;

static NEXT: AtomicU32 = AtomicU32::new(0);

static CLAIMED: Mutex<Vec<TcpListener>> = Mutex::new(Vec::new());

/// Claims a block of addresses by one of them; false if another test has it, or if it is in use.
pub fn claim_by(address: Ipv4Addr) -> bool {
    let claimed = TcpListener::bind((address, PORT));
    let is_free = claimed.is_ok();
    CLAIMED.lock().expect("no claim panics").extend(claimed);
    is_free
}

/// The addresses of this many nodes. Blocks start at a place that depends on the process, so that two test
/// runs rarely try the same.
pub fn claim(nodes: u32) -> Vec<Ipv4Addr> {
    let start = std::process::id().wrapping_mul(7_919);
    for _ in 0..TRIES {
        let block = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let address = |last: u8| Ipv4Addr::new(127, (16 + (block >> 8) % 200) as u8, block as u8, last);
        let addresses: Vec<Ipv4Addr> = (1..=nodes).map(|node| address(node as u8)).collect();
        let free = |ip: &Ipv4Addr| TcpListener::bind((*ip, PORT)).is_ok();
        if claim_by(address(CLAIM)) && addresses.iter().all(free) {
            return addresses;
        }
    }
    panic!("no free block of {nodes} loopback addresses in {TRIES} tries");
}
