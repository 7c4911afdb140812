//! The streams of this node by which clients hold roles: for people who ask how a role is held (P58).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::types::Text;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldingStream {
    pub token: u64,
    /// The number of the connection, if the holder renews the lease itself and has tied it to the stream. The lease ends with the stream
    /// only if the leader knows this number as the newest. None if the node renews the lease while the stream is open.
    pub tie: Option<u64>,
}

/// The open streams, by role. The places for streams bound their number.
#[derive(Debug, Default)]
pub struct HoldersHere {
    open: Mutex<BTreeMap<Text, Vec<HoldingStream>>>,
}

/// A stream is open for as long as this exists.
#[derive(Debug)]
pub struct HolderHere {
    holders: Arc<HoldersHere>,
    role: Text,
    stream: HoldingStream,
}

impl HoldersHere {
    pub fn enter(self: &Arc<HoldersHere>, role: Text, stream: HoldingStream) -> HolderHere {
        self.open().entry(role.clone()).or_default().push(stream);
        HolderHere { holders: self.clone(), role, stream }
    }

    pub fn of(&self, role: &Text) -> Vec<HoldingStream> {
        self.open().get(role).cloned().unwrap_or_default()
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<Text, Vec<HoldingStream>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HolderHere {
    fn drop(&mut self) {
        let mut open = self.holders.open();
        let Some(streams) = open.get_mut(&self.role) else { return };
        if let Some(place) = streams.iter().position(|stream| *stream == self.stream) {
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
    fn each_stream_is_known_by_its_role_until_it_ends() {
        let holders = Arc::new(HoldersHere::default());
        let role = Text::from("r");
        let (held, tied) = (HoldingStream { token: 4, tie: None }, HoldingStream { token: 5, tie: Some(1) });
        let entries = [held, tied, tied].map(|stream| holders.enter(role.clone(), stream));
        assert_eq!((holders.of(&role), holders.of(&Text::from("s"))), (vec![held, tied, tied], Vec::new()));
        let [first, second, third] = entries;
        drop(second);
        assert_eq!(holders.of(&role), [held, tied]);
        drop((first, third));
        assert!(holders.open().is_empty());
    }
}
