//! Controls the effects of the library `shim.c` on one node: its clocks, its disk, and the data that
//! remain when the power fails.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::time::{ClockId, clock_gettime};

use crate::harness::Rng;
use crate::power;

const NEEDED: &str = "the long random test compiles a library for x86-64 with `cc`";

/// The words of the page, in the order of `struct orders` in the library.
const WALL_MS: u64 = 0;
const SLEEP_MS: u64 = 1;
const PAUSE_MS: u64 = 2;
const RATE: u64 = 3;
const RATES: [u64; 2] = [4, 7];
const STALLED: u64 = 10;
const REFUSALS: u64 = 11;
const REFUSED: u64 = 12;
const SYNC_US: u64 = 13;

/// The time of a good disk: a record that is acknowledged before its sync can be lost.
const USUAL_US: i64 = 3_000;

const PAGE: u64 = 4096;

/// Compiles the library into this folder.
pub fn compile(folder: &Path) -> PathBuf {
    let library = folder.join("shim.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/torture/shim.c");
    let path = library.to_str().expect("our own path is text");
    crate::harness::system(&["cc", "-shared", "-fPIC", "-O2", "-o", path, source], NEEDED);
    library
}

#[derive(Debug)]
pub struct Machine {
    page: File,
    page_path: PathBuf,
    image: PathBuf,
    data: PathBuf,
    rate: Mutex<Rate>,
}

/// The rate of the monotonic clocks from a moment on, and the time that they had gained until then.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    since_ns: i64,
    gained_ns: i64,
    millionths: i64,
}

impl Machine {
    /// A machine with its own folder for its files, and the node's data folder.
    pub fn new(folder: &Path, data: PathBuf) -> Machine {
        let (page_path, image) = (folder.join("orders"), folder.join("image"));
        fs::create_dir_all(&image).expect("a folder for the image");
        let mut options = File::options();
        let page = options.read(true).write(true).create(true).truncate(true).open(&page_path);
        let page = page.expect("the page of orders");
        page.set_len(PAGE).expect("a page");
        let machine = Machine { page, page_path, image, data, rate: Mutex::default() };
        machine.sync_takes(USUAL_US);
        machine
    }

    /// The command that starts a process with the library preloaded.
    pub fn launcher(&self, library: &Path) -> Vec<String> {
        let set = |name: &str, path: &Path| format!("{name}={}", path.display());
        let paths = [
            set("LD_PRELOAD", library),
            set("TORTURE_ORDERS", &self.page_path),
            set("TORTURE_IMAGE", &self.image),
            set("TORTURE_DATA", &self.data),
        ];
        ["env".to_string()].into_iter().chain(paths).collect()
    }

    pub fn image(&self) -> &Path {
        &self.image
    }

    fn put(&self, word: u64, value: i64) {
        self.page.write_all_at(&value.to_ne_bytes(), word * 8).expect("an order");
    }

    fn get(&self, word: u64) -> i64 {
        let mut bytes = [0; 8];
        self.page.read_exact_at(&mut bytes, word * 8).expect("an order");
        i64::from_ne_bytes(bytes)
    }

    pub fn shift_wall(&self, ms: i64) {
        self.put(WALL_MS, ms);
    }

    /// Simulates a sleep of this length: only the clock that continues in a sleep shows it.
    pub fn sleep(&self, ms: i64) {
        self.put(SLEEP_MS, self.get(SLEEP_MS) + ms);
    }

    /// Simulates a guest whose host has stopped it for this long: all its clocks but the
    /// wall clock have stood still.
    pub fn lose(&self, ms: i64) {
        self.put(PAUSE_MS, self.get(PAUSE_MS) - ms);
    }

    /// From now on the monotonic clocks gain this many millionths of the time that passes.
    pub fn drift(&self, millionths: i64) {
        let now = clock_gettime(ClockId::Monotonic);
        let now_ns = now.tv_sec * 1_000_000_000 + now.tv_nsec;
        let mut rate = self.rate.lock().expect("nobody panics with it");
        let gained_ns = rate.gained_ns + (now_ns - rate.since_ns) / 1_000 * rate.millionths / 1_000;
        *rate = Rate { since_ns: now_ns, gained_ns, millionths };
        let next = 1 - self.get(RATE);
        let place = RATES[next as usize];
        self.put(place, rate.since_ns);
        self.put(place + 1, rate.gained_ns);
        self.put(place + 2, rate.millionths);
        self.put(RATE, next);
    }

    /// Stalls the disk, which then accepts no write and ends no sync, or ends the stall.
    pub fn stall(&self, stalls: bool) {
        self.put(STALLED, i64::from(stalls));
    }

    /// Each sync takes this long.
    fn sync_takes(&self, us: i64) {
        self.put(SYNC_US, us);
    }

    /// Each sync takes this long until the disk is as fast as usual again.
    pub fn slow_down(&self, ms: Option<i64>) {
        self.sync_takes(ms.map_or(USUAL_US, |ms| ms * 1_000));
    }

    /// The next write or sync fails.
    pub fn refuse_once(&self) {
        self.put(REFUSALS, 1);
    }

    /// Ends the failures; returns the number of failures so far.
    pub fn refuses_no_more(&self) -> i64 {
        self.put(REFUSALS, 0);
        self.get(REFUSED)
    }

    /// The node has been killed: replaces its data by what its disk would have, and says what was lost.
    pub fn lose_power(&self, rng: &mut Rng) -> String {
        // The library had not recorded the initial contents yet, and the process had not written anything.
        if !self.image.join("begun").exists() {
            return "lost: nothing, it had not begun".to_string();
        }
        let told = power::fail(&self.data, &self.image, rng);
        self.replace_disk();
        told
    }

    /// The present contents of the data folder become the contents of its disk.
    pub fn replace_disk(&self) {
        fs::remove_dir_all(&self.image).expect("the image is ours");
        fs::create_dir_all(&self.image).expect("a folder for the image");
    }
}
