//! The cost of each step of a write, alone and with warm caches. The sums are smaller than the figures in
//! `docs/performance.md`, where the same steps share a processor's caches with all others.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use eldest::driver::feed::{self, Filter, Next};
use eldest_core::replica::{Draft, Fact, Kind};
use eldest_core::store::{Command, Key, Store};
use eldest_core::types::{Entry, Epoch, History, NodeId, Position, WallTime};
use eldest_micro::{DOCS, Solo, full, key, put, record, scattered};
use eldest_storage::line;

const ROUND: u64 = 64;

fn codec(c: &mut Criterion) {
    let record = record(1, &put(7));
    let mut bytes = Vec::new();
    line::encode(&record, 0, &mut bytes);
    let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes).to_vec();
    let Entry::Client(payload) = &record.entry else { return };
    c.bench_function("codec: a record to a line", |b| {
        b.iter(|| {
            bytes.clear();
            line::encode(black_box(&record), 0, &mut bytes)
        });
    });
    c.bench_function("codec: a line to a record", |b| b.iter(|| line::decode(black_box(&text), 0)));
    c.bench_function("codec: a command to a payload", |b| {
        let command = put(7);
        b.iter(|| black_box(&command).to_payload(None));
    });
    c.bench_function("codec: a payload to a command", |b| {
        b.iter(|| Command::from_payload(black_box(payload)));
    });
}

fn state(c: &mut Criterion) {
    let store = full();
    let now = record(1, &put(1)).stamp;
    let mut number = 0;
    c.bench_function("judge", |b| {
        b.iter_batched(
            || {
                number += 1;
                put(scattered(number))
            },
            |command| store.judge(&command, None, now),
            BatchSize::SmallInput,
        );
    });
    // As on a node: a copy is kept at each boundary, and is settled together with the state that has gone on from it.
    for (name, every) in
        [("apply, nobody holds a copy", u64::MAX), ("apply, a copy is kept every 10 records", 10)]
    {
        let (mut state, mut boundary, mut index) = (full(), Store::default(), DOCS);
        c.bench_function(name, |b| {
            b.iter_batched(
                || {
                    index += 1;
                    record(index, &put(scattered(index)))
                },
                |record| {
                    state.apply(&record).expect("readable");
                    if record.index().is_multiple_of(every) {
                        boundary = state.clone();
                        Store::settle(&mut [&mut boundary, &mut state]);
                    }
                },
                BatchSize::PerIteration,
            );
        });
    }
    c.bench_function("digest of a state", |b| b.iter(|| black_box(&store).digest()));
    delta(c, &store);
}

/// The rows of a snapshot that holds the changes since the snapshot before.
fn delta(c: &mut Criterion, store: &Store) {
    let keys: Vec<Key> = (0..1000).map(|number| Key::Doc(key(scattered(number)).into())).collect();
    let mut group = c.benchmark_group("delta");
    group.throughput(Throughput::Elements(keys.len() as u64));
    group.bench_function("the rows of 1,000 keys", |b| {
        b.iter(|| keys.iter().filter_map(|key| store.entry(key)).map(|row| row.len()).sum::<usize>());
    });
    group.finish();
}

/// All work of a leader's replica for one round, except for the network and the disk.
fn round(c: &mut Criterion) {
    let mut group = c.benchmark_group("round");
    group.throughput(Throughput::Elements(ROUND));
    for (name, store) in [("an empty state", Store::default()), ("100,000 documents", full())] {
        let (mut solo, mut number) = (Solo::open(store), 0);
        group.bench_function(format!("64 writes to {name}"), |b| {
            b.iter_batched(
                || {
                    number += ROUND;
                    (number..number + ROUND).map(|number| put(scattered(number % DOCS))).collect()
                },
                |commands: Vec<Command>| assert_eq!(solo.round(commands), ROUND as usize),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

fn fan_out(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime");
    let mut group = c.benchmark_group("feed");
    for readers in [10_usize, 1000] {
        let (feed, writer) = feed::feed();
        writer.open(Position::ZERO, false, History::FIRST).expect("a thread");
        let subscribe = || feed.subscribe(Filter::new(None, ""), None).expect("there is room");
        let mut subscribed: Vec<_> = (0..readers).map(|_| subscribe()).collect();
        let mut index = 0;
        group.throughput(Throughput::Elements(readers as u64));
        group.bench_function(format!("an event to {readers} readers"), |b| {
            b.iter(|| {
                index += 1;
                let fact = Fact::Change {
                    key: Key::Doc("k".into()),
                    value: Some("1".into()),
                    rev: None,
                    ended: None,
                };
                let draft = Draft { kind: Kind::Change, for_all: false, fact };
                let at = Position::new(Epoch::new(1, NodeId(1)), index);
                writer.record(at, History::FIRST, WallTime::default(), vec![draft]);
                writer.wake();
                runtime.block_on(async {
                    for reader in &mut subscribed {
                        loop {
                            match reader.next(Duration::from_secs(1)).await {
                                Next::Event(_) => break,
                                Next::Bookmark(_) => {}
                                Next::Over(over) => panic!("a reader is let go: {over:?}"),
                            }
                        }
                    }
                });
            });
        });
    }
    group.finish();
}

criterion_group!(steps, codec, state, round, fan_out);
criterion_main!(steps);
