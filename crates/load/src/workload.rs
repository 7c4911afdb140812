//! The requests of one connection, always made in the same memory.

use super::http::Request;
use super::rng::Rng;
use super::tally::Kind;

/// The digits of a number in hexadecimal.
const STAMP_BYTES: usize = 16;

/// The letters that one random number gives: 26 to the power of 12 is well within 64 bits.
const LETTERS_OF_A_DRAW: usize = 12;

/// The consistency of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Sees every earlier acknowledged write
    Linear,
    /// The leader's state, checked against its lease
    Leader,
    /// The node's own state
    Local,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Linear => "linear",
            Level::Leader => "leader",
            Level::Local => "local",
        }
    }
}

/// The settings of all connections.
#[derive(Clone, Debug)]
pub struct Mix {
    pub keys: u64,
    pub value_bytes: usize,
    pub read_percent: u64,
    pub level: Level,
    /// Whether followers pass requests on to the leader, or answer 421.
    pub forward: bool,
    /// If set, every write carries a new idempotency key. The number distinguishes this run's keys from those
    /// of all other runs.
    pub idempotent: Option<u64>,
    pub headers: Vec<u8>,
}

#[derive(Debug)]
pub struct Workload {
    mix: Mix,
    rng: Rng,
    write: Request,
    read: Request,
    kind: Kind,
    /// The position of the write's number in `write.rest`.
    key_stamp: Option<usize>,
    value_stamp: usize,
}

impl Workload {
    pub fn new(mix: Mix, seed: u64) -> Workload {
        let mut rng = Rng::new(seed);
        let mut value = Vec::new();
        push_json_text(&mut value, mix.value_bytes, &mut rng);
        let mut headers = mix.headers.clone();
        let key_stamp = mix.idempotent.map(|run| {
            headers.extend_from_slice(format!("Idempotency-Key: bench-{run:016x}-").as_bytes());
            let at = headers.len();
            headers.extend_from_slice(b"0000000000000000\r\n");
            at
        });
        let mut write = Request::default();
        write.set_json(&headers, &value);
        let value_stamp = write.rest.len() - value.len() + 1;
        let read = Request::get("", &mix.headers);
        Workload { mix, rng, write, read, kind: Kind::Write, key_stamp, value_stamp }
    }

    /// Makes the next request.
    pub fn advance(&mut self) -> Kind {
        let key = self.rng.below(self.mix.keys);
        self.kind = if self.rng.below(100) < self.mix.read_percent { Kind::Read } else { Kind::Write };
        match self.kind {
            Kind::Write => self.set_write(key),
            Kind::Read => self.set_read(key),
        }
        self.kind
    }

    pub fn request(&self) -> &Request {
        match self.kind {
            Kind::Write => &self.write,
            Kind::Read => &self.read,
        }
    }

    /// Sets the write. No value is written twice, as far as its size allows.
    fn set_write(&mut self, key: u64) {
        let query = if self.mix.forward { "" } else { "?forward=no" };
        self.write.set_line("PUT", format_args!("/v1/docs/bench/{key}{query}"));
        let stamp = hexadecimal(self.rng.next());
        let digits = STAMP_BYTES.min(self.mix.value_bytes.saturating_sub(2));
        let value = &mut self.write.rest[self.value_stamp..][..digits];
        value.copy_from_slice(&stamp[STAMP_BYTES - digits..]);
        if let Some(at) = self.key_stamp {
            self.write.rest[at..at + STAMP_BYTES].copy_from_slice(&stamp);
        }
    }

    fn set_read(&mut self, key: u64) {
        let forward = if self.mix.forward { "" } else { "&forward=no" };
        let level = self.mix.level.name();
        self.read.set_line("GET", format_args!("/v1/docs/bench/{key}?level={level}{forward}"));
    }
}

/// Appends a JSON text of this number of bytes, quotes included. It has at least two bytes.
pub fn push_json_text(text: &mut Vec<u8>, bytes: usize, rng: &mut Rng) {
    let mut draw = 0;
    text.push(b'"');
    for at in 0..bytes.saturating_sub(2) {
        if at % LETTERS_OF_A_DRAW == 0 {
            draw = rng.next();
        }
        text.push(b'a' + (draw % 26) as u8);
        draw /= 26;
    }
    text.push(b'"');
}

/// Makes a text unique by writing a number into it, as far as its size allows.
pub fn stamp(text: &mut [u8], number: u64) {
    let digits = STAMP_BYTES.min(text.len().saturating_sub(2));
    text[1..1 + digits].copy_from_slice(&hexadecimal(number)[STAMP_BYTES - digits..]);
}

fn hexadecimal(number: u64) -> [u8; STAMP_BYTES] {
    std::array::from_fn(|at| b"0123456789abcdef"[(number >> (60 - 4 * at)) as usize & 15])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mix() -> Mix {
        let (level, headers) = (Level::Linear, b"X: y\r\n".to_vec());
        Mix { keys: 10, value_bytes: 40, read_percent: 0, level, forward: true, idempotent: None, headers }
    }

    fn next(workload: &mut Workload) -> String {
        workload.advance();
        let mut out = Vec::new();
        workload.request().write_to(&mut out, "host");
        String::from_utf8(out).unwrap()
    }

    fn value(request: &str) -> String {
        let (_, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(request.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{request}");
        serde_json::from_str(body).unwrap()
    }

    #[test]
    fn writes_put_new_texts_under_random_keys() {
        let mut workload = Workload::new(mix(), 1);
        let (first, second) = (next(&mut workload), next(&mut workload));
        assert!(first.starts_with("PUT /v1/docs/bench/") && first.contains("\r\nX: y\r\n"), "{first}");
        assert_eq!((value(&first).len(), value(&second).len()), (38, 38));
        assert_ne!(value(&first), value(&second));
        assert_eq!(first, next(&mut Workload::new(mix(), 1)));
        assert_ne!(first, next(&mut Workload::new(mix(), 2)));
    }

    #[test]
    fn values_have_any_size_from_two_bytes_up() {
        for value_bytes in [2, 3, 17, 18, 19, 1000] {
            let mut workload = Workload::new(Mix { value_bytes, ..mix() }, 1);
            assert_eq!(value(&next(&mut workload)).len(), value_bytes - 2);
        }
    }

    #[test]
    fn every_write_has_an_idempotency_key_of_its_own() {
        let mut workload = Workload::new(Mix { idempotent: Some(0xABC), ..mix() }, 1);
        let key = |request: String| {
            let at = request.find("Idempotency-Key: bench-0000000000000abc-").unwrap();
            request[at..].lines().next().unwrap().to_string()
        };
        let (first, second) = (next(&mut workload), next(&mut workload));
        assert_eq!(value(&first).len(), 38);
        assert_ne!(key(first), key(second));
    }

    #[test]
    fn reads_are_as_frequent_as_asked_for() {
        let reads = |read_percent| {
            let mut workload = Workload::new(Mix { read_percent, ..mix() }, 1);
            (0..10_000).filter(|_| workload.advance() == Kind::Read).count()
        };
        assert_eq!((reads(0), reads(100)), (0, 10_000));
        assert!((2500..3500).contains(&reads(30)));
    }

    #[test]
    fn whoever_wants_the_leader_alone_forbids_forwarding() {
        let mix = Mix { forward: false, keys: 1, level: Level::Local, ..mix() };
        assert!(next(&mut Workload::new(mix.clone(), 1)).starts_with("PUT /v1/docs/bench/0?forward=no HTTP"));
        let read = next(&mut Workload::new(Mix { read_percent: 100, ..mix }, 1));
        assert!(read.starts_with("GET /v1/docs/bench/0?level=local&forward=no HTTP"), "{read}");
    }

    #[test]
    fn hexadecimal_is_as_usual() {
        assert_eq!(hexadecimal(0x0123_4567_89AB_CDEF), *b"0123456789abcdef");
    }
}
