//! The streams of this node by which clients hold roles: for people who ask how a role is held (P58).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::types::Text;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HeldBy {
    /// The node renews the lease while the stream is open.
    Stream,
    /// The holder renews the lease, which ends with the connection.
    Tie,
    /// The holder renews the lease, and no node has a stream of it.
    Calls,
}

/// The open streams, by role, each with the token of its lease. The places for streams bound their number.
#[derive(Debug, Default)]
pub struct HoldersHere {
    open: Mutex<BTreeMap<Text, Vec<(u64, HeldBy)>>>,
}

/// A stream is open for as long as this exists.
#[derive(Debug)]
pub struct HolderHere {
    holders: Arc<HoldersHere>,
    role: Text,
    token: u64,
    by: HeldBy,
}

impl HoldersHere {
    pub fn enter(self: &Arc<HoldersHere>, role: Text, token: u64, by: HeldBy) -> HolderHere {
        self.open().entry(role.clone()).or_default().push((token, by));
        HolderHere { holders: self.clone(), role, token, by }
    }

    /// Returns the stream with the newest token of the role.
    pub fn newest(&self, role: &Text) -> Option<(u64, HeldBy)> {
        self.open().get(role)?.iter().copied().max_by_key(|(token, _)| *token)
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<Text, Vec<(u64, HeldBy)>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HolderHere {
    fn drop(&mut self) {
        let mut open = self.holders.open();
        let Some(streams) = open.get_mut(&self.role) else { return };
        if let Some(place) = streams.iter().position(|stream| *stream == (self.token, self.by)) {
            streams.swap_remove(place);
        }
        if streams.is_empty() {
            open.remove(&self.role);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stream_is_known_by_role_and_token_until_it_ends() {
        let holders = Arc::new(HoldersHere::default());
        let role = Text::from("r");
        let (old, new) =
            (holders.enter(role.clone(), 4, HeldBy::Stream), holders.enter(role.clone(), 5, HeldBy::Tie));
        let again = holders.enter(role.clone(), 5, HeldBy::Tie);
        assert_eq!((holders.newest(&role), holders.newest(&Text::from("s"))), (Some((5, HeldBy::Tie)), None));
        drop(again);
        assert_eq!(holders.newest(&role), Some((5, HeldBy::Tie)));
        drop(new);
        assert_eq!(holders.newest(&role), Some((4, HeldBy::Stream)));
        drop(old);
        assert!(holders.open().is_empty());
    }
}
