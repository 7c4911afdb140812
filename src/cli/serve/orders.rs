//! What a program that started this node tells it over stdin. `wall 2 3` cuts it off from nodes 2 and 3 as a network
//! would that says nothing, `wall` from nobody; when stdin closes, the node ends.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::cli::signals::Signals;
use crate::driver::Wall;
use crate::types::NodeId;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

/// Every node of a cluster fits. What is longer is read in pieces, which are no orders.
const LINE_MOST: u64 = 1024;

/// Until there can be no more.
pub async fn obey(from: impl AsyncRead + Unpin, wall: &Wall) {
    let mut reader = BufReader::new(from);
    let mut line = Vec::new();
    while matches!((&mut reader).take(LINE_MOST).read_until(b'\n', &mut line).await, Ok(1..)) {
        match behind(&String::from_utf8_lossy(&line)) {
            Some(behind) => {
                let nodes: Vec<u32> = behind.iter().map(|node| node.0).collect();
                tracing::warn!(?nodes, "cut off from these nodes by order");
                wall.set(behind);
            }
            None => tracing::warn!("an order that is none"),
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

// What asks a node to end: the first signal, or stdin closed where somebody asked for that.

/// Added to a signal's number, as shells do.
const SIGNAL_BASE: i32 = 128;

/// Completes when the node should end. From the first signal on, a second one ends the process at once: somebody has
/// waited for long enough. Stdin is read only for whoever gives orders there: what they change is given.
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
        tracing::warn!(signal = number, "ending at once");
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
