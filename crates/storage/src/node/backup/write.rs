//! A state becomes a backup: in order, and as fast as whoever takes it. The state is a clone of its own, which no write changes.

use std::io::{self, Write};

use super::head::BackupHead;
use crate::node::summing::Summing;
use crate::store::{self, Store};

pub fn write(head: &BackupHead, store: &Store, out: impl Write) -> io::Result<()> {
    let mut out = Summing::new(out);
    writeln!(out, "{}", head.line())?;
    // Whoever finds the half of one knows whose it was.
    out.flush()?;
    let mut rows = 0;
    let mut line = String::new();
    for (key, value) in store.backup_rows() {
        line.clear();
        store::write_entry(&mut line, &key, &value).expect("a string takes everything");
        out.write_all(line.as_bytes())?;
        rows += 1;
    }
    out.end(rows)
}
