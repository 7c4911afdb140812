//! What a program that started this node tells it over stdin. `wall 2 3` cuts it off from nodes 2 and 3 as a network
//! would that says nothing, `wall` from nobody; when stdin closes, the node ends.

use std::collections::BTreeSet;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

use crate::driver::Wall;
use crate::types::NodeId;

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
