use super::*;
use rustix::time::{ClockId, clock_gettime};
use std::time::Instant;

fn cpu() -> f64 {
    let t = clock_gettime(ClockId::ProcessCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
}
fn rss() -> String {
    let s = fs::read_to_string("/proc/self/status").unwrap();
    s.lines().filter(|l| l.starts_with("VmHWM")).collect::<Vec<_>>().join(" ")
}
fn timed<T>(what: &str, f: impl FnOnce() -> T) -> T {
    let (w, c) = (Instant::now(), cpu());
    let r = f();
    println!(
        "{what}: wall {:.1} ms, cpu {:.1} ms, {}",
        w.elapsed().as_secs_f64() * 1e3,
        (cpu() - c) * 1e3,
        rss()
    );
    r
}

#[test]
fn measure() {
    let Ok(dir) = std::env::var("MEASURE") else { return };
    let dir = PathBuf::from(dir);
    let n: usize = 1_000_000;
    let (mut s, _) = Snapshots::open(&dir).unwrap();
    let pad = "x".repeat(240);
    let row = |i: usize, v: u64| Change {
        table: "doc",
        key: format!("some/key-{i:010}").into(),
        value: Some(format!("{{\"v\":{v:010},\"t\":\"{pad}\"}}").into()),
    };
    timed("write whole", || s.add(0, boundary(1), (0..n).map(|i| row(i, 0))).unwrap());
    println!("bytes {}", s.chain[0].written.bytes);
    let (s, _) = timed("open (verify)", || Snapshots::open(&dir).unwrap());
    let mut count = 0usize;
    timed("load", || {
        s.load(|_, k, v| {
            count += k.len() + v.len();
            Ok::<(), SnapshotError>(())
        })
        .unwrap()
    });
    let (mut s, _) = Snapshots::open(&dir).unwrap();
    let mut rng = Rng(1);
    let mut walls = Vec::new();
    let c = cpu();
    for to in 2..302u64 {
        let mut keys: Vec<_> = (0..10).map(|_| rng.below(n)).collect();
        keys.sort();
        keys.dedup();
        let w = Instant::now();
        let since = index(&s);
        s.add(since, boundary(to), keys.iter().map(|&k| row(k, to))).unwrap();
        walls.push(w.elapsed().as_secs_f64() * 1e3);
    }
    println!("delta cpu {:.3} ms", (cpu() - c) * 1e3 / 300.0);
    walls.sort_by(f64::total_cmp);
    println!(
        "delta of 10: p50 {:.2} ms p90 {:.2} ms p99 {:.2}, bytes {}",
        walls[150],
        walls[270],
        walls[297],
        s.chain.last().unwrap().written.bytes
    );
    timed("tier merges", || merge_all(&mut s));
    println!("files {}", s.chain.len());
    for round in 0..50u64 {
        let to = 1000 + round;
        s.add(index(&s), boundary(to), (0..n).filter(|i| i % 100 == round as usize).map(|i| row(i, to)))
            .unwrap();
    }
    println!("files {} after 50 large", s.chain.len());
    timed("load of a long chain", || {
        s.load(|_, k, v| {
            count += k.len() + v.len();
            Ok::<(), SnapshotError>(())
        })
        .unwrap()
    });
    timed("open of a long chain", || Snapshots::open(&dir).unwrap());
    let m = s.plan_merge().unwrap().unwrap();
    println!("merging {} bytes, {} files", m.bytes(), m.inputs.len());
    let m = timed("merge", || m.run().unwrap());
    timed("commit", || s.commit_merge(m).unwrap());
    timed("export+import", || {
        let mut e = s.export().unwrap().unwrap();
        let mut i = s.importer().unwrap();
        let mut b = vec![0; 65536];
        loop {
            let r = e.read(&mut b).unwrap();
            if r == 0 {
                break;
            }
            i.write(&b[..r]).unwrap();
        }
        s.install(i.finish().unwrap()).unwrap();
    });
    println!("{count}");
}

#[test]
fn full() {
    let Ok(dir) = std::env::var("FULL") else { return };
    let folder = PathBuf::from(dir);
    let (mut s, _) = Snapshots::open(&folder).unwrap();
    let row = |i: usize| Change {
        table: "doc",
        key: format!("k{i:010}").into(),
        value: Some(format!("\"{}\"", "x".repeat(300)).into()),
    };
    s.add(0, boundary(1), (0..1000).map(row)).unwrap();
    let e = s.add(1, boundary(2), (0..4000).map(row)).unwrap_err();
    println!("{e} full={} left={:?}", e.is_full(), list(&folder));
    let e = s.add(0, boundary(2), (0..4000).map(row)).unwrap_err();
    println!("{e} full={} left={:?}", e.is_full(), list(&folder));
    s.add(1, boundary(2), (0..800).map(row)).unwrap();
    let e = s.plan_merge().unwrap().unwrap().run().unwrap_err();
    println!("{e} full={} left={:?}", e.is_full(), list(&folder));
    let bytes = export(&s);
    let e = import(s.importer().unwrap(), &bytes).unwrap_err();
    println!("{e} full={} left={:?} {:?}", e.is_full(), list(&folder), s.newest().map(|b| b.index()));
    let (s2, o) = Snapshots::open(&folder).unwrap();
    println!("{} {:?} {}", index(&s2), o.bad, load(&s2).len());
}
