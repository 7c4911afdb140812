//! Messages: at most once in a stream, and those of one sender in their order.

use std::collections::{BTreeMap, BTreeSet};

use super::Verdict;

/// A message of a sender that stays with one node and waits for each answer.
#[derive(Clone, Debug)]
pub struct Sent {
    pub sender: u64,
    pub number: u64,
    /// Identifies the process that accepted the message, if it was accepted.
    pub taken_by: Option<String>,
}

/// The messages of one stream, from its opening to its end, as sender and number.
pub type Stream = Vec<(u64, u64)>;

/// A stream has no message twice and none that was never sent. Messages that one process has accepted from
/// one sender come in the order in which they were sent.
pub fn check(sent: &[Sent], streams: &[Stream]) -> Verdict {
    let sent: BTreeMap<(u64, u64), Option<&str>> =
        sent.iter().map(|sent| ((sent.sender, sent.number), sent.taken_by.as_deref())).collect();
    for stream in streams {
        let mut heard = BTreeSet::new();
        let mut last: BTreeMap<(u64, &str), u64> = BTreeMap::new();
        for message in stream {
            let taken_by = sent.get(message).ok_or_else(|| format!("{message:?} was never sent"))?;
            if !heard.insert(message) {
                return Err(format!("{message:?} came twice in one stream: {stream:?}"));
            }
            // For any other message the sender got no answer, so its order is not promised.
            let Some(process) = taken_by else { continue };
            let newest = last.entry((message.0, process)).or_insert(message.1);
            if *newest > message.1 {
                return Err(format!("{message:?} came after number {newest}: {stream:?}"));
            }
            *newest = message.1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent() -> Vec<Sent> {
        let sent =
            |number, process: Option<&str>| Sent { sender: 1, number, taken_by: process.map(str::to_string) };
        vec![sent(1, Some("a")), sent(2, None), sent(3, Some("a")), sent(4, Some("a")), sent(5, Some("b"))]
    }

    #[test]
    fn gaps_and_what_nobody_promised_to_order_pass() {
        let streams = [vec![(1, 1), (1, 3), (1, 2)], vec![(1, 4)], vec![(1, 5), (1, 4)]];
        assert_eq!(check(&sent(), &streams), Ok(()));
    }

    #[test]
    fn twice_out_of_order_and_unheard_of_are_found() {
        assert!(check(&sent(), &[vec![(1, 1), (1, 1)]]).unwrap_err().contains("twice"));
        assert!(check(&sent(), &[vec![(1, 4), (1, 3)]]).unwrap_err().contains("came after"));
        assert!(check(&sent(), &[vec![(2, 1)]]).unwrap_err().contains("never sent"));
    }
}
