//! The counts of a run so far, which its tasks share, and the end of a task that fails.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;

use super::histogram::Histogram;
use super::session::{Code, Fate, Trouble};

/// Servers have some thirty codes. All codes beyond this bound are counted together.
const CODES_MAX: usize = 64;

const OTHER_CODES: Code = Code::Borrowed("other");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Write,
    Read,
}

#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub writes: Histogram,
    pub reads: Histogram,
    /// Reads of keys that were never written. They were answered, and count among the reads.
    pub missing: u64,
    pub trouble: Errors,
    /// Reads and writes since the last line of progress.
    pub recent: Histogram,
}

impl Tally {
    /// Counts a success. The latency counts from the first attempt, so that retries do not make a slow cluster look
    /// fast.
    pub fn succeeded(&mut self, kind: Kind, took: Duration) {
        match kind {
            Kind::Write => self.writes.record(took),
            Kind::Read => self.reads.record(took),
        }
        self.recent.record(took);
    }

    pub fn done(&self) -> u64 {
        self.writes.count() + self.reads.count()
    }
}

#[derive(Clone, Debug, Default)]
pub struct Errors {
    pub by_code: BTreeMap<Code, u64>,
    /// Writes of unknown outcome.
    pub unknown: u64,
    pub retried: u64,
}

impl Errors {
    pub fn count(&mut self, kind: Kind, trouble: &Trouble, retried: bool) {
        self.unknown += u64::from(kind == Kind::Write && trouble.fate == Fate::Unknown);
        self.retried += u64::from(retried);
        let known = self.by_code.len() < CODES_MAX || self.by_code.contains_key(&trouble.code);
        let code = if known { trouble.code.clone() } else { OTHER_CODES };
        *self.by_code.entry(code).or_default() += 1;
    }

    pub fn total(&self) -> u64 {
        self.by_code.values().sum()
    }

    pub fn most_frequent(&self) -> Option<String> {
        let (code, _) = self.by_code.iter().max_by_key(|(_, count)| **count)?;
        Some(code.to_string())
    }
}

/// Locks the shared state. The counts are right after any number of whole steps, so a panic in another task does no
/// harm.
pub fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for the first of several endless tasks. A task that ends has failed, and then the program has failed.
pub async fn failure(tasks: &mut JoinSet<()>) {
    if let Some(Err(ended)) = tasks.join_next().await
        && let Ok(panic) = ended.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble(fate: Fate, code: String) -> Trouble {
        Trouble { fate, code: code.into(), status: None }
    }

    #[test]
    fn only_writes_are_unknown() {
        let mut errors = Errors::default();
        errors.count(Kind::Write, &trouble(Fate::Unknown, "timeout".into()), false);
        errors.count(Kind::Read, &trouble(Fate::Unknown, "timeout".into()), true);
        errors.count(Kind::Write, &trouble(Fate::NotApplied, "no_leader".into()), true);
        assert_eq!((errors.unknown, errors.retried, errors.total()), (1, 2, 3));
        assert_eq!(errors.most_frequent(), Some("timeout".into()));
    }

    #[test]
    fn codes_without_end_are_counted_together() {
        let mut errors = Errors::default();
        for number in 0..1000 {
            errors.count(Kind::Read, &trouble(Fate::Rejected, format!("code_{number}")), false);
        }
        assert_eq!(errors.by_code.len(), CODES_MAX + 1);
        assert_eq!(errors.total(), 1000);
    }
}
