//! Messages: at most once in a stream, and those of one sender in their order.

use std::collections::{BTreeMap, BTreeSet};

use super::{Outcome, Verdict};

/// Of a sender that waits for each answer.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub sender: u64,
    pub number: u64,
    pub outcome: Outcome,
}

/// What one stream brought, from its opening to its end, as sender and number.
pub type Stream = Vec<(u64, u64)>;

/// Nothing comes twice in a stream, nothing that was never sent, and nothing before an answered message that was sent earlier.
pub fn check(sent: &[Sent], streams: &[Stream]) -> Verdict {
    let sent: BTreeMap<(u64, u64), Outcome> =
        sent.iter().map(|sent| ((sent.sender, sent.number), sent.outcome)).collect();
    for stream in streams {
        let mut heard = BTreeSet::new();
        let mut last: BTreeMap<u64, u64> = BTreeMap::new();
        for message in stream {
            let outcome = sent.get(message).ok_or_else(|| format!("{message:?} was never sent"))?;
            if !heard.insert(message) {
                return Err(format!("{message:?} came twice in one stream: {stream:?}"));
            }
            let newest = last.entry(message.0).or_insert(message.1);
            // The sender of a message of unknown outcome has not waited for its answer.
            if *newest > message.1 && *outcome == Outcome::Done {
                return Err(format!("{message:?} came after number {newest}: {stream:?}"));
            }
            *newest = (*newest).max(message.1);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent() -> Vec<Sent> {
        let sent = |number, outcome| Sent { sender: 1, number, outcome };
        vec![
            sent(1, Outcome::Done),
            sent(2, Outcome::Unknown),
            sent(3, Outcome::Done),
            sent(4, Outcome::Done),
        ]
    }

    #[test]
    fn gaps_and_late_messages_of_unknown_outcome_pass() {
        assert_eq!(check(&sent(), &[vec![(1, 1), (1, 3), (1, 2)], vec![(1, 4)]]), Ok(()));
    }

    #[test]
    fn twice_out_of_order_and_unheard_of_are_found() {
        assert!(check(&sent(), &[vec![(1, 1), (1, 1)]]).unwrap_err().contains("twice"));
        assert!(check(&sent(), &[vec![(1, 4), (1, 3)]]).unwrap_err().contains("came after"));
        assert!(check(&sent(), &[vec![(2, 1)]]).unwrap_err().contains("never sent"));
    }
}
