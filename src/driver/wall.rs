//! A partition for people to try: nodes that this one is cut off from as by a network that says nothing. No port
//! refuses, no call is answered, and whatever is sent ends when its time is up.
//!
//! The process that started a node puts it up, over the node's stdin (`cli/serve`); nothing that comes over the
//! network can.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::types::NodeId;

/// Shared by whatever sends and whatever takes. Where none stands it costs a look at one flag.
#[derive(Debug, Default)]
pub struct Wall {
    stands: AtomicBool,
    behind: watch::Sender<BTreeSet<NodeId>>,
}

impl Wall {
    /// From now on these are behind it, and nobody else is.
    pub fn set(&self, behind: BTreeSet<NodeId>) {
        let stands = !behind.is_empty();
        self.behind.send_replace(behind);
        self.stands.store(stands, Ordering::Relaxed);
    }

    pub fn hides(&self, node: NodeId) -> bool {
        self.stands.load(Ordering::Relaxed) && self.behind.borrow().contains(&node)
    }

    /// What a call to that node brings. None, and only when its time is up, if it is swallowed: on its way there or on
    /// its way back.
    pub async fn pass<T>(&self, node: NodeId, most: Duration, call: impl Future<Output = T>) -> Option<T> {
        let until = Instant::now() + most;
        if !self.hides(node) {
            let brought = call.await;
            if !self.hides(node) {
                return Some(brought);
            }
        }
        sleep_until(until).await;
        None
    }

    /// Until that node is behind it.
    pub async fn rises(&self, node: NodeId) {
        let mut behind = self.behind.subscribe();
        // The sender lives as long as this borrow.
        let _ = behind.wait_for(|behind| behind.contains(&node)).await;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const PEER: NodeId = NodeId(2);
    const LONG: Duration = Duration::from_secs(3600);

    fn up(wall: &Wall) {
        wall.set([PEER].into());
    }

    #[test]
    fn it_hides_whom_it_is_told_to() {
        let wall = Wall::default();
        assert!(!wall.hides(PEER));
        up(&wall);
        assert!(wall.hides(PEER) && !wall.hides(NodeId(3)));
        wall.set([NodeId(3)].into());
        assert!(!wall.hides(PEER) && wall.hides(NodeId(3)));
        wall.set(BTreeSet::new());
        assert!(!wall.hides(PEER) && !wall.hides(NodeId(3)));
    }

    #[tokio::test]
    async fn a_swallowed_call_ends_when_its_time_is_up() {
        let wall = Wall::default();
        assert_eq!(wall.pass(PEER, LONG, async { 7 }).now_or_never(), Some(Some(7)));
        let on_its_way_back = wall.pass(PEER, LONG, async { up(&wall) });
        assert_eq!(on_its_way_back.now_or_never(), None);
        let never_left = async { panic!("it left") };
        assert_eq!(wall.pass(PEER, LONG, never_left).now_or_never(), None::<Option<()>>);
        assert_eq!(wall.pass(PEER, Duration::ZERO, async { 7 }).await, None);
        assert_eq!(wall.pass(NodeId(3), LONG, async { 7 }).now_or_never(), Some(Some(7)));
    }

    #[tokio::test]
    async fn who_waits_for_it_sees_it_rise() {
        let wall = Wall::default();
        let mut rises = std::pin::pin!(wall.rises(PEER));
        assert!(rises.as_mut().now_or_never().is_none());
        wall.set([NodeId(3)].into());
        assert!(rises.as_mut().now_or_never().is_none());
        up(&wall);
        assert!(rises.now_or_never().is_some());
    }
}
