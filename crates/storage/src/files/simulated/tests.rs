//! The files in memory behave like real files, and a power failure loses only unsynced data.

use super::*;

fn path(name: &str) -> PathBuf {
    Path::new("/a").join(name)
}

/// A durable folder with an empty folder in it.
fn blank(seed: u64) -> (Simulated, Files) {
    let disk = Simulated::new(seed);
    let files = disk.files();
    files.make_dirs(&path("b")).unwrap();
    files.sync_dir(Path::new("/")).unwrap();
    files.sync_dir(Path::new("/a")).unwrap();
    (disk, files)
}

#[test]
fn what_is_written_is_read() {
    let (_, files) = blank(1);
    let mut one = files.create_new(&path("one")).unwrap();
    one.write_at(b"abc", 2).unwrap();
    assert_eq!(files.read(&path("one")).unwrap(), b"\0\0abc");
    assert!(files.create_new(&path("one")).is_err());
    files.copy(&path("one"), &path("two")).unwrap();
    assert_ne!(files.inode(&path("one")).unwrap(), files.inode(&path("two")).unwrap());
    one.rename(&files, &path("b/one")).unwrap();
    assert_eq!(files.names(Path::new("/a")).unwrap(), ["b", "two"]);
    assert_eq!(files.read_if_there(&path("one")).unwrap(), None);
    files.remove_all(&path("b")).unwrap();
    one.write_at(b"x", 0).unwrap();
    assert_eq!((one.size().unwrap(), files.is_dir(&path("b")).unwrap()), (5, false), "it is open yet");
    assert!(files.names_if_there(&path("b")).unwrap().is_empty());
}

#[test]
fn what_is_synced_stays() {
    let (disk, files) = blank(1);
    let file = files.create(&path("file")).unwrap();
    file.write_at(b"old", 0).unwrap();
    file.sync().unwrap();
    file.write_at(b"new", 0).unwrap();
    files.sync_dir(Path::new("/a")).unwrap();
    files.create(&path("b/nameless")).unwrap().sync().unwrap();
    disk.fork(2).cut_power(Loss::Nothing);
    disk.cut_power(Loss::Everything);
    assert_eq!(disk.image(), BTreeMap::from([(path("file"), b"old".to_vec())]));
    assert!(file.write_at(b"x", 0).is_err() && files.read(&path("file")).is_err(), "that start is over");
    assert_eq!(disk.files().read(&path("file")).unwrap(), b"old");
}

/// A power failure keeps the name changes of a folder up to some change, and a change of two folders in both or in neither.
#[test]
fn names_come_in_their_order() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..500 {
        let (disk, files) = blank(seed);
        files.create(&path("1")).unwrap();
        files.create(&path("b/2")).unwrap();
        files.rename(&path("1"), &path("b/3")).unwrap();
        files.remove(&path("b/2")).unwrap();
        disk.cut_power(Loss::Some);
        seen.insert(disk.image().into_keys().collect::<Vec<_>>());
    }
    let expected = [
        vec![],
        vec![path("1")],
        vec![path("1"), path("b/2")],
        vec![path("b/2")],
        vec![path("b/2"), path("b/3")],
        vec![path("b/3")],
    ];
    assert_eq!(seen, expected.into());
}

#[test]
fn a_sync_of_one_folder_brings_what_it_rests_on() {
    let (disk, files) = blank(1);
    files.create(&path("1")).unwrap();
    files.rename(&path("1"), &path("b/1")).unwrap();
    files.create(&path("2")).unwrap();
    files.sync_dir(&path("b")).unwrap();
    disk.cut_power(Loss::Everything);
    assert_eq!(disk.image().into_keys().collect::<Vec<_>>(), [path("b/1")]);
}

/// Each sector has its old or new content, and one of them is torn.
#[test]
fn bytes_come_in_sectors() {
    let (mut torn, mut mixed) = (0, 0);
    for seed in 0..300 {
        let (disk, files) = blank(seed);
        let file = files.create(&path("file")).unwrap();
        file.write_at(&[b'a'; 2048], 0).unwrap();
        file.sync().unwrap();
        files.sync_dir(Path::new("/a")).unwrap();
        file.write_at(&[b'b'; 2048], 0).unwrap();
        disk.cut_power(Loss::Some);
        let bytes = &disk.image()[&path("file")];
        let whole = |sector: &&[u8]| sector.iter().all(|byte| *byte == sector[0]);
        let pieces = bytes.chunks(512).filter(|sector| !whole(sector)).count();
        assert!(bytes.len() == 2048 && pieces <= 1, "{seed}");
        torn += pieces;
        mixed += usize::from(bytes.starts_with(b"b") && bytes[512..1024].contains(&b'a'));
    }
    assert!(torn > 50 && mixed > 5, "{torn} {mixed}");
}

#[test]
fn faults_come_when_they_are_due() {
    let (disk, files) = blank(1);
    disk.schedule(1, Fault::Refuse(io::ErrorKind::StorageFull));
    disk.schedule(3, Fault::Power);
    let file = files.create(&path("file")).unwrap();
    assert_eq!(file.write_at(b"x", 0).unwrap_err().source.kind(), io::ErrorKind::StorageFull);
    file.write_at(b"y", 0).unwrap();
    assert_eq!(disk.struck(), Some(Change));
    assert!(file.sync().is_err() && disk.is_dead());
    assert!(file.size().is_err());
    disk.cut_power(Loss::Nothing);
    assert_eq!(disk.image()[&path("file")], b"y");
}

#[test]
fn a_full_folder_takes_what_fits() {
    let (disk, files) = blank(1);
    let (inside, outside) = (files.create(&path("b/in")).unwrap(), files.create(&path("out")).unwrap());
    disk.limit(&path("b"), 3);
    outside.write_at(b"12345", 0).unwrap();
    assert!(inside.write_at(b"12345", 0).is_err());
    assert_eq!(files.read(&path("b/in")).unwrap(), b"123");
    inside.write_at(b"abc", 0).unwrap();
    assert!(inside.write_at(b"d", 3).is_err());
    disk.lift_limit();
    inside.write_at(b"d", 3).unwrap();
}

#[test]
fn a_lock_goes_with_its_holder() {
    let (disk, files) = blank(1);
    let held = files.lock(&path("lock")).unwrap().unwrap();
    assert!(files.lock(&path("lock")).unwrap().is_none());
    disk.kill();
    let again = disk.files().lock(&path("lock")).unwrap();
    drop(held);
    assert!(again.is_some() && disk.files().lock(&path("lock")).unwrap().is_none());
}
