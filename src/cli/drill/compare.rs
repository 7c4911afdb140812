//! Compares two backups row by row: that of the cluster, and that of the node that restored it.

use std::cmp::Ordering;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde::Serialize;
use serde::de::IgnoredAny;

use crate::cli::exit::Failure;
use crate::store::entry_in;

/// The results for the rows of the backup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compared {
    pub same: u64,
    /// Missing, added or changed by the restore.
    pub differ: u64,
    /// Documents that expire: with time, or with a lease that the other node does not have.
    pub not_compared: u64,
    pub first_difference: Option<String>,
    pub has_marker: bool,
}

impl Compared {
    pub fn wrong(&self, marker: &str) -> Vec<String> {
        let first = self.first_difference.as_deref().unwrap_or_default();
        let all = [
            (self.differ > 0, format!("{} rows differ after the restore, the first is {first}", self.differ)),
            (!self.has_marker, format!("{marker} was acknowledged before the backup, and is not restored")),
        ];
        all.into_iter().filter_map(|(is_so, what)| is_so.then_some(what)).collect()
    }
}

/// Compares two backup files. This reads both files, so it blocks.
pub fn compare_files(taken: &Path, restored: &Path, marker: &str) -> Result<Compared, Failure> {
    // The failure names the folder: a read error may be that of either file.
    let folder = taken.parent().unwrap_or(taken);
    compare(lines(taken)?, lines(restored)?, marker).map_err(Failure::file(folder))
}

/// A row of a backup that a restore has to keep.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    table: String,
    key: String,
    content: String,
}

/// One line of a backup.
#[derive(Debug, PartialEq, Eq)]
enum BackupLine {
    Row(Row),
    EndsByItself,
    /// The head, the end, and the last fencing token, which a restore may raise.
    NotKept,
}

fn line(text: &str) -> BackupLine {
    let Some((table, key, value)) = entry_in(text).filter(|(table, ..)| *table != "token") else {
        return BackupLine::NotKept;
    };
    let content = without_revision(value);
    if table == "doc" && ends_by_itself(&content) {
        return BackupLine::EndsByItself;
    }
    BackupLine::Row(Row { table: table.to_string(), key, content })
}

/// Cuts out the revision, `"at":"…"`, which becomes a new one. It is the first member. All other bytes have to stay.
fn without_revision(value: &str) -> String {
    let rest = value.strip_prefix("{\"at\":\"").and_then(|rest| rest.split_once("\","));
    rest.map_or(value.to_string(), |(_, rest)| format!("{{{rest}"))
}

/// Whether a document has members after its value: a ttl, or a lease.
fn ends_by_itself(content: &str) -> bool {
    let Some(rest) = content.strip_prefix("{\"value\":") else { return false };
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
    let is_read = matches!(values.next(), Some(Ok(_)));
    is_read && rest.get(values.byte_offset()..) != Some("}")
}

fn lines(path: &Path) -> Result<impl Iterator<Item = io::Result<BackupLine>> + use<>, Failure> {
    let file = BufReader::new(File::open(path).map_err(Failure::file(path))?);
    Ok(file.lines().map(|text| text.map(|text| line(&text))))
}

/// Walks through two backups, which have their rows in the same order.
fn compare(
    mut taken: impl Iterator<Item = io::Result<BackupLine>>,
    mut restored: impl Iterator<Item = io::Result<BackupLine>>,
    marker: &str,
) -> io::Result<Compared> {
    let (mut compared, mut added_since) = (Compared::default(), 0);
    let mut one = next_row(&mut taken, &mut compared.not_compared)?;
    let mut other = next_row(&mut restored, &mut added_since)?;
    loop {
        let order = match (&one, &other) {
            (None, None) => return Ok(compared),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(one), Some(other)) => (&one.table, &one.key).cmp(&(&other.table, &other.key)),
        };
        let of_taken = if order.is_le() { one.take() } else { None };
        let of_restored = if order.is_ge() { other.take() } else { None };
        compared.has_marker |=
            of_restored.as_ref().is_some_and(|row| row.table == "doc" && row.key == marker);
        if of_taken == of_restored {
            compared.same += 1;
        } else {
            compared.differ += 1;
            let row = of_taken.or(of_restored).map(|row| format!("{} {}", row.table, row.key));
            compared.first_difference = compared.first_difference.take().or(row);
        }
        if order.is_le() {
            one = next_row(&mut taken, &mut compared.not_compared)?;
        }
        if order.is_ge() {
            other = next_row(&mut restored, &mut added_since)?;
        }
    }
}

/// The next row to compare. Counts the documents before it that end by themselves.
fn next_row(
    lines: &mut impl Iterator<Item = io::Result<BackupLine>>,
    not_compared: &mut u64,
) -> io::Result<Option<Row>> {
    for line in lines {
        match line? {
            BackupLine::Row(row) => return Ok(Some(row)),
            BackupLine::EndsByItself => *not_compared += 1,
            BackupLine::NotKept => {}
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> impl Iterator<Item = io::Result<BackupLine>> {
        text.lines().map(|text| Ok(line(text)))
    }

    fn compared(taken: &str, restored: &str, marker: &str) -> Compared {
        compare(lines(taken), lines(restored), marker).expect("no read error")
    }

    const TAKEN: &str = r#"eldest-backup 1 {"cluster":"prod"}
doc "a" {"at":"7.1@12","value":"hello"}
doc "drill/1/restore" {"at":"7.1@13","value":"x"}
doc "number" {"at":"7.1@13","value":{"at":"7.1@13","n":1.0}}
doc "short" {"at":"7.1@14","value":{"a":[1]},"with":"lease"}
doc "ttl" {"at":"7.1@14","value":1,"ttl_ms":1000}
token "last" 17
user "u" {"at":"7.1@15","value":{"name":"u"}}
end 7 9c1f03aa"#;

    #[test]
    fn what_a_restore_changes_by_design_is_no_difference() {
        let restored =
            TAKEN.replace("{\"at\":\"7.1@", "{\"at\":\"1.1@").replace("\"last\" 17", "\"last\" 99");
        let restored = restored.replace("\"value\":{\"at\":\"1.1@13", "\"value\":{\"at\":\"7.1@13");
        let restored: Vec<&str> = restored.lines().filter(|line| !line.contains("short")).collect();
        let found = compared(TAKEN, &restored.join("\n"), "drill/1/restore");
        let expected = Compared { same: 4, not_compared: 2, has_marker: true, ..Compared::default() };
        assert_eq!(found, expected);
        assert_eq!(found.wrong("drill/1/restore"), Vec::<String>::new());
    }

    #[test]
    fn what_is_missing_changed_or_added_is_a_difference() {
        for (from, to, first) in [
            ("\"hello\"", "\"bye\"", "doc a"),
            ("\"n\":1.0", "\"n\":1", "doc number"),
            ("\"n\":1.0", "\"n\":1.00", "doc number"),
            ("\"value\":{\"at\":\"7.1@13\"", "\"value\":{\"at\":\"1.1@13\"", "doc number"),
            ("user \"u\"", "user \"v\"", "user u"),
            ("doc \"a\" {\"at\":\"7.1@12\",\"value\":\"hello\"}\n", "", "doc a"),
            ("end 7", "vote \"w\" {}\nend 7", "vote w"),
        ] {
            let restored = TAKEN.replace(from, to);
            let found = compared(TAKEN, &restored, "drill/1/restore");
            assert_eq!(found.first_difference.as_deref(), Some(first), "{from}");
            assert_eq!(found.wrong("drill/1/restore").len(), 1, "{from}");
        }
        let found = compared(TAKEN, TAKEN, "drill/2/restore");
        assert_eq!(found.wrong("drill/2/restore").len(), 1, "the marker is missing");
    }

    #[test]
    fn a_read_error_is_no_end() {
        let failing = || lines(TAKEN).take(3).chain([Err(io::Error::other("the disk"))]);
        for error in [
            compare(failing(), lines(TAKEN), "").expect_err("one"),
            compare(lines(TAKEN), failing(), "").expect_err("the other"),
            compare(failing(), failing(), "").expect_err("both"),
        ] {
            assert_eq!(error.to_string(), "the disk");
        }
    }
}
