//! Loopback addresses that nobody else uses: node i of a cluster is at 127.a.b.i, port 9000.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// The contract's default: a topology in the seed's form names no port.
pub const PORT: u16 = 9000;

/// Blocks that are tried before giving up: far more than there are tests.
const TRIES: u32 = 4_000;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// The addresses of as many nodes. Blocks start at a place of this process's own, so that two test
/// runs on one machine rarely try the same; who binds one all the same is noticed and passed over.
pub fn claim(nodes: u32) -> Vec<Ipv4Addr> {
    let start = std::process::id().wrapping_mul(7_919);
    for _ in 0..TRIES {
        let block = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let (a, b) = (16 + (block >> 8) % 200, block % 256);
        let addresses: Vec<Ipv4Addr> =
            (1..=nodes).map(|node| Ipv4Addr::new(127, a as u8, b as u8, node as u8)).collect();
        if addresses.iter().all(|ip| TcpListener::bind((*ip, PORT)).is_ok()) {
            return addresses;
        }
    }
    panic!("no free block of {nodes} loopback addresses in {TRIES} tries");
}
