use super::recover::{Opened, Options, open};
use super::testing::*;
use super::writer::*;
use super::*;
use crate::protocol::Seq;
use crate::types::*;
use std::time::Instant;
fn cpu() -> std::time::Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    std::time::Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}
#[test]
fn bench() {
    let dir = std::path::PathBuf::from("/tmp/target-log/bench-data");
    let _ = std::fs::remove_dir_all(&dir);
    let options = Options::new(&dir, "x", NODE, Boot(1));
    let Opened { disk, mut lines, .. } = open(&options).unwrap();
    let n = 400_000u64;
    let text = format!("{{\"name\":\"{}\"}}", "x".repeat(60));
    let records: Vec<Record> = (1..=n).map(|i| record(3, i, payload(&text))).collect();
    let t = cpu();
    let mut bytes = Vec::new();
    let mut chain = 0;
    for r in &records {
        chain = line::encode(r, chain, &mut bytes);
    }
    eprintln!("encode {:?} per record, {} bytes", (cpu() - t) / n as u32, bytes.len());
    let t = cpu();
    let b = decode_all(bytes.into(), 0).unwrap();
    eprintln!("decode {:?} per record {}", (cpu() - t) / n as u32, b.records.len());
    let (tx, rx) = std::sync::mpsc::channel();
    let disk = disk.start(move |r| drop(tx.send(r))).unwrap();
    disk.submit(Seq(1), Job::Vote(vote(3)));
    let t = Instant::now();
    let mut seq = 1;
    for batch in records.chunks(64) {
        seq += 1;
        let l = lines.append(batch);
        disk.submit(Seq(seq), Job::Append { records: batch.into(), lines: l });
    }
    let mut groups = 0;
    loop {
        match rx.recv().unwrap() {
            Report::Durable(s) => {
                groups += 1;
                if s.0 == seq {
                    break;
                }
            }
            r => eprintln!("{r:?}"),
        }
    }
    eprintln!("write all {:?} {} groups {:?}", t.elapsed(), groups, disk.counted());
    let t = Instant::now();
    for (i, r) in (n + 1..n + 2001).zip(0u64..) {
        let rec = vec![record(3, i, payload(&format!("{{\"n\":{r}}}")))];
        let l = lines.append(&rec);
        seq += 1;
        disk.submit(Seq(seq), Job::Append { records: rec.into(), lines: l });
        loop {
            match rx.recv().unwrap() {
                Report::Durable(s) if s.0 == seq => break,
                _ => {}
            }
        }
    }
    eprintln!("one at a time {:?} each", t.elapsed() / 2000);
    drop(disk);
    let t = cpu();
    let again = open(&options).unwrap();
    eprintln!("open {:?} records {}", cpu() - t, again.recovered.records.len());
}
