//! Snapshots as a replica orders them: written down on top of the chain, which then is merged a step at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::meta::Boundary;
use crate::replica::SnapshotOrder;
use crate::snapshot::{Change, Rows, SnapshotError, Snapshots};
use crate::store::Key;
use crate::types::Index;

/// Writes a state down. Gives the index that the newest snapshot has reached at least.
pub fn take(
    snapshots: &Mutex<Snapshots>,
    boundary: Boundary,
    order: SnapshotOrder,
) -> Result<Index, SnapshotError> {
    let index = boundary.index();
    let mut snapshots = lock(snapshots);
    // One that was installed meanwhile is newer, and its state is another.
    if snapshots.newest().is_some_and(|newest| newest.index() >= index) {
        return Ok(index);
    }
    let since = if order.whole { 0 } else { snapshots.newest().map_or(0, Boundary::index) };
    let whole = order.whole;
    snapshots.add(since, boundary, SnapshotRows(order).changes(whole))?;
    Ok(index)
}

/// One merge, if one is due.
pub fn merge_once(snapshots: &Mutex<Snapshots>) -> Result<bool, SnapshotError> {
    let Some(plan) = lock(snapshots).plan_merge()? else {
        return Ok(false);
    };
    let merged = plan.run()?;
    lock(snapshots).commit_merge(merged)
}

/// A thread that has died over them has ended the process.
pub fn lock(snapshots: &Mutex<Snapshots>) -> MutexGuard<'_, Snapshots> {
    snapshots.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The rows of a snapshot, as the files take them.
#[derive(Debug)]
pub(super) struct SnapshotRows(pub SnapshotOrder);

impl Rows for SnapshotRows {
    fn changes(&self, whole: bool) -> Box<dyn Iterator<Item = Change<'_>> + '_> {
        let row = |(key, value): (Key, Option<String>)| Change {
            table: key.table(),
            key: key.name().into(),
            value: value.map(Into::into),
        };
        Box::new(self.0.rows(whole).map(row))
    }
}
