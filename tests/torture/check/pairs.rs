//! Keys that are always written together, by one writer, in versions that rise.

use std::collections::BTreeMap;

use super::{Outcome, Verdict};

#[derive(Clone, Copy, Debug)]
pub struct Write {
    pub version: u64,
    pub invoked: u64,
    /// It has no meaning if the outcome is unknown.
    pub returned: u64,
    pub outcome: Outcome,
}

/// A linear read of all keys of a group.
#[derive(Clone, Debug)]
pub struct Read {
    pub invoked: u64,
    pub returned: u64,
    pub versions: Vec<u64>,
}

/// One group's history. Its keys are `keys`, once there is a version.
pub fn check(writes: &[Write], reads: &[Read], keys: usize) -> Verdict {
    let by_version: BTreeMap<u64, &Write> = writes.iter().map(|write| (write.version, write)).collect();
    for read in reads {
        let version = read.versions.first().copied();
        let whole = version.is_none() || read.versions.len() == keys;
        if !whole || read.versions.iter().any(|other| Some(*other) != version) {
            return Err(format!("written together and seen apart: {read:?}"));
        }
        if let Some(version) = version {
            possible(version, by_version.get(&version).copied(), read)?;
        }
        let is_known = |write: &&Write| write.outcome == Outcome::Done && write.returned < read.invoked;
        let newest = writes.iter().filter(is_known).map(|write| write.version).max();
        // A write of unknown outcome may take effect at any time, even after those that followed it.
        let late = version.and_then(|version| by_version.get(&version)).map(|write| write.outcome);
        if version < newest && late != Some(Outcome::Unknown) {
            return Err(format!("version {newest:?} was acknowledged before this began: {read:?}"));
        }
    }
    Ok(())
}

fn possible(version: u64, write: Option<&Write>, read: &Read) -> Verdict {
    match write {
        None => Err(format!("nobody wrote version {version}: {read:?}")),
        Some(write) if write.outcome == Outcome::Refused => {
            Err(format!("refused, and seen: {write:?} {read:?}"))
        }
        Some(write) if write.invoked > read.returned => {
            Err(format!("seen before it was written: {write:?} {read:?}"))
        }
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(version: u64, outcome: Outcome) -> Write {
        Write { version, invoked: version * 10, returned: version * 10 + 5, outcome }
    }

    fn read(at: u64, versions: &[u64]) -> Read {
        Read { invoked: at, returned: at + 2, versions: versions.to_vec() }
    }

    fn writes() -> Vec<Write> {
        vec![
            write(1, Outcome::Done),
            write(2, Outcome::Unknown),
            write(3, Outcome::Done),
            write(4, Outcome::Refused),
        ]
    }

    #[test]
    fn a_good_history_passes() {
        let reads = [read(5, &[]), read(17, &[1, 1]), read(40, &[3, 3]), read(50, &[2, 2])];
        assert_eq!(check(&writes(), &reads, 2), Ok(()));
    }

    #[test]
    fn bad_reads_are_found() {
        let bad = [
            (read(40, &[3, 2]), "apart"),
            (read(40, &[3]), "apart"),
            (read(40, &[1, 1]), "acknowledged before"),
            (read(40, &[]), "acknowledged before"),
            (read(50, &[4, 4]), "refused"),
            (read(50, &[9, 9]), "nobody wrote"),
            (read(12, &[3, 3]), "before it was written"),
        ];
        for (read, why) in bad {
            let found = check(&writes(), std::slice::from_ref(&read), 2).unwrap_err();
            assert!(found.contains(why), "{read:?}: {found}");
        }
    }
}
