//! Orders on stdin, from the program that started this node. `wall 2 3` cuts the node off from nodes 2 and 3, like a
//! network that loses all messages. `wall` alone ends this. The node ends when stdin closes.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

use crate::cli::signals::Signals;
use crate::driver::Wall;
use crate::types::NodeId;

/// The bound of a line: every node of a cluster fits. A longer line is read in pieces, which are no valid orders.
const LINE_MOST: u64 = 1024;

/// Obeys orders until the input ends.
pub async fn obey(from: impl AsyncRead + Unpin, wall: &Wall) {
    let mut reader = BufReader::new(from);
    let mut line = Vec::new();
    while matches!((&mut reader).take(LINE_MOST).read_until(b'\n', &mut line).await, Ok(1..)) {
        match behind(&String::from_utf8_lossy(&line)) {
            Some(behind) => {
                let nodes: Vec<u32> = behind.iter().map(|node| node.0).collect();
                tracing::warn!(?nodes, "cut off from these nodes by a test order");
                wall.set(behind);
            }
            None => tracing::warn!("unknown test order"),
        }
        line.clear();
    }
}

fn behind(line: &str) -> Option<BTreeSet<NodeId>> {
    let mut words = line.strip_suffix('\n')?.split_whitespace();
    match words.next() {
        Some("wall") => words.map(|word| word.parse().ok().map(NodeId)).collect(),
        _ => None,
    }
}

// The events that ask a node to end: the first signal, or the end of stdin if the node was started to read orders
// there.

/// Added to a signal's number, as shells do.
const SIGNAL_BASE: i32 = 128;

/// Completes when the node should end. After the first signal, a second one ends the process at once: the user has
/// waited long enough. Stdin is read only if `orders` is given, the wall that the orders change.
pub async fn asked_to_stop(mut signals: Signals, orders: Option<Arc<Wall>>) {
    let told = async {
        match orders {
            Some(wall) => obey(tokio::io::stdin(), &wall).await,
            None => std::future::pending().await,
        }
    };
    let number = tokio::select! {
        number = signals.next() => number,
        () = told => 0,
    };
    tracing::info!(signal = number, "stopping");
    tokio::spawn(async move {
        let number = signals.next().await;
        tracing::warn!(signal = number, "exiting at once");
        std::process::exit(SIGNAL_BASE + number);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_order_holds_and_nonsense_is_none() {
        let wall = Wall::default();
        let hidden = || [1, 2, 3, 4].map(|id| wall.hides(NodeId(id)));
        obey(&b"wall 1 2\n"[..], &wall).await;
        assert_eq!(hidden(), [true, true, false, false]);
        obey(&b"wall 2 3\nwall 4 x\nwalls 4\n\n\xff\n"[..], &wall).await;
        assert_eq!(hidden(), [false, true, true, false]);
        let long = [b"wall 4".to_vec(), vec![b' '; 2 * LINE_MOST as usize], b"x\n".to_vec()].concat();
        obey(&long[..], &wall).await;
        assert_eq!(hidden(), [false, true, true, false]);
        obey(&b"wall\n"[..], &wall).await;
        assert_eq!(hidden(), [false; 4]);
    }
}
