//! The properties that a history must have. Every checker is a function of the clients' records: no clock, no
//! cluster. `tests/it` includes these modules, so that the gate runs their tests.
//!
//! Times are nanoseconds of one clock. A checker that finds a violation says what it is, and
//! what happened around it.

pub mod bank;
pub mod beliefs;
pub mod channels;
pub mod feed;
pub mod leaders;
pub mod pairs;
pub mod sets;
pub mod ttl;

/// The violation in words, if there is one.
pub type Verdict = Result<(), String>;

/// The outcome of a call, as far as its client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There was an answer, and it is final.
    Done,
    /// It has not happened and never will.
    Refused,
    /// It may have happened, or may still happen.
    Unknown,
}

/// The first two calls, if any, of which the later one began after the other was answered, but has a lesser
/// number. `times` returns when each began and when it was answered.
fn going_back<'a, T>(
    all: impl IntoIterator<Item = &'a T>,
    times: impl Fn(&T) -> (u64, u64),
    number: impl Fn(&T) -> u64,
) -> Option<(&'a T, &'a T)> {
    let mut by_end: Vec<&T> = all.into_iter().collect();
    by_end.sort_by_key(|one| times(one).1);
    let mut by_start = by_end.clone();
    by_start.sort_by_key(|one| times(one).0);
    let (mut answered, mut greatest): (usize, Option<&T>) = (0, None);
    for one in by_start {
        while answered < by_end.len() && times(by_end[answered]).1 < times(one).0 {
            let done = by_end[answered];
            greatest = greatest.filter(|greatest| number(greatest) >= number(done)).or(Some(done));
            answered += 1;
        }
        if let Some(greatest) = greatest.filter(|greatest| number(greatest) > number(one)) {
            return Some((greatest, one));
        }
    }
    None
}
