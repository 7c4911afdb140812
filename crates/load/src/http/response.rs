//! The parser of one answer, which may arrive in pieces of any size.

use super::chunked::Chunks;
use super::failure::Malformed;
use super::head::{self, Framing, Head};

/// The largest document has 1 MiB. The JSON around it does not double that.
const BODY_BYTES_MAX: usize = 2 * 1024 * 1024;

/// The bound of all bytes of one answer. With chunks of a few bytes, the framing may cost as much as the data.
const RAW_BYTES_MAX: usize = 2 * BODY_BYTES_MAX + head::HEAD_BYTES_MAX;

/// The room for one read. An answer to a write fits into it.
const ROOM_BYTES: usize = 4096;

/// The bound of interim answers such as `100 Continue`. This client asks for none.
const INTERIM_MAX: usize = 8;

/// A complete answer.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    pub status: u16,
    pub body: &'a [u8],
    head: &'a [u8],
}

impl<'a> Answer<'a> {
    pub fn header(&self, name: &str) -> Option<&'a str> {
        head::header(self.head, name)
    }
}

/// Collects bytes until they are an answer. Its buffers are reused for the next answer.
#[derive(Debug, Default)]
pub struct Reader {
    received: Vec<u8>,
    /// The number of bytes that are known not to contain the end of a head.
    searched: usize,
    head: Option<Head>,
    chunks: Chunks,
    decoded: Vec<u8>,
    interim: usize,
    /// The stream has ended.
    ended: bool,
}

impl Reader {
    /// Prepares for the next answer.
    pub fn reset(&mut self) {
        self.received.clear();
        self.decoded.clear();
        self.chunks = Chunks::default();
        (self.searched, self.head, self.interim, self.ended) = (0, None, 0, false);
    }

    /// The buffer to append arriving bytes to. It has room for a usual answer.
    pub fn room(&mut self) -> &mut Vec<u8> {
        self.received.reserve(ROOM_BYTES);
        &mut self.received
    }

    /// Parses what has arrived. Returns `true` once the answer is complete.
    pub fn advance(&mut self) -> Result<bool, Malformed> {
        if self.received.len() > RAW_BYTES_MAX {
            return Err(Malformed::BodyTooLong);
        }
        let Some(head) = self.final_head()? else {
            return if self.ended { Err(Malformed::CutShort) } else { Ok(false) };
        };
        let arrived = &self.received[head.bytes..];
        let (done, taken) = match head.framing {
            Framing::Length(length) if length > BODY_BYTES_MAX => return Err(Malformed::BodyTooLong),
            Framing::Length(length) => (arrived.len() >= length, length),
            Framing::Chunked => {
                let done = self.chunks.advance(arrived, &mut self.decoded, BODY_BYTES_MAX)?;
                (done, self.chunks.taken)
            }
            Framing::UntilClose if arrived.len() > BODY_BYTES_MAX => return Err(Malformed::BodyTooLong),
            Framing::UntilClose => (self.ended, arrived.len()),
        };
        match done {
            true if arrived.len() > taken => Err(Malformed::Unasked),
            false if self.ended => Err(Malformed::CutShort),
            done => Ok(done),
        }
    }

    /// Notes that the stream has ended: the answer is complete now or never.
    pub fn end(&mut self) -> Result<bool, Malformed> {
        self.ended = true;
        self.advance()
    }

    /// Whether the connection ends with this answer.
    pub fn closes(&self) -> bool {
        self.ended || self.head.is_none_or(|head| head.close)
    }

    /// The answer, once it is complete. Before that, the part that is known.
    pub fn answer(&self) -> Answer<'_> {
        let Some(head) = self.head else {
            return Answer { status: 0, body: &[], head: &[] };
        };
        let (above, arrived) = self.received.split_at(head.bytes);
        let body = if head.framing == Framing::Chunked { &self.decoded[..] } else { arrived };
        Answer { status: head.status, body, head: above }
    }

    /// Parses the final head, and skips interim answers.
    fn final_head(&mut self) -> Result<Option<Head>, Malformed> {
        while self.head.is_none() {
            let Some(end) = head::find_end(&self.received, self.searched)? else {
                self.searched = self.received.len();
                return Ok(None);
            };
            let head = head::parse(&self.received[..end])?;
            if head.is_interim() {
                self.interim += 1;
                if head.status == 101 || self.interim > INTERIM_MAX {
                    return Err(Malformed::Interim);
                }
                self.received.drain(..end);
                self.searched = 0;
            } else {
                self.head = Some(head);
            }
        }
        Ok(self.head)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::rng::Rng;
    use super::*;

    /// The status, whether the connection ends, and the body.
    type Parsed = (u16, bool, Vec<u8>);

    /// Feeds the bytes in pieces of random length. A complete answer must be recognised at once.
    fn feed(reader: &mut Reader, bytes: &[u8], rng: &mut Rng) -> Result<Option<Parsed>, Malformed> {
        reader.reset();
        let mut rest = bytes;
        while !rest.is_empty() {
            let piece = 1 + rng.below(rest.len().min(40) as u64) as usize;
            reader.room().extend_from_slice(&rest[..piece]);
            rest = &rest[piece..];
            if reader.advance()? {
                assert_eq!(rest, b"", "complete before its end");
                return Ok(Some(parsed(reader)));
            }
        }
        Ok(None)
    }

    fn parsed(reader: &Reader) -> Parsed {
        let answer = reader.answer();
        (answer.status, reader.closes(), answer.body.to_vec())
    }

    /// A body, whole or cut into random chunks.
    fn random_answer(rng: &mut Rng) -> (Vec<u8>, Parsed) {
        let body: Vec<u8> = (0..rng.below(300)).map(|_| rng.next() as u8).collect();
        let status = [200, 201, 404, 409, 503, 504][rng.below(6) as usize];
        let close = rng.below(4) == 0;
        let mut bytes = Vec::new();
        for _ in 0..rng.below(3) {
            bytes.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        bytes.extend_from_slice(format!("HTTP/1.1 {status} Whatever\r\nEldest-Acks: 2/3\r\n").as_bytes());
        if close {
            bytes.extend_from_slice(b"Connection: close\r\n");
        }
        if rng.below(2) == 0 {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
            bytes.extend_from_slice(&body);
        } else {
            bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
            let mut rest = &body[..];
            while !rest.is_empty() {
                let (chunk, after) = rest.split_at(1 + rng.below(rest.len() as u64) as usize);
                bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
                rest = after;
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
        }
        (bytes, (status, close, body))
    }

    #[test]
    fn answers_in_random_pieces_are_the_same_answers() {
        let mut reader = Reader::default();
        for seed in 0..2000 {
            let mut rng = Rng::new(seed);
            let (bytes, expected) = random_answer(&mut rng);
            assert_eq!(feed(&mut reader, &bytes, &mut rng), Ok(Some(expected)), "seed {seed}");
        }
    }

    #[test]
    fn a_stream_cut_within_an_answer_is_an_error() {
        let mut reader = Reader::default();
        for seed in 0..2000 {
            let mut rng = Rng::new(seed);
            let (bytes, _) = random_answer(&mut rng);
            let cut = rng.below(bytes.len() as u64) as usize;
            assert_eq!(feed(&mut reader, &bytes[..cut], &mut rng), Ok(None), "seed {seed}");
            assert_eq!(reader.end(), Err(Malformed::CutShort), "seed {seed}");
        }
    }

    #[test]
    fn damaged_answers_never_panic() {
        let mut reader = Reader::default();
        let mut refused = 0;
        for seed in 0..5000 {
            let mut rng = Rng::new(seed);
            let (mut bytes, _) = random_answer(&mut rng);
            for _ in 0..1 + rng.below(4) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] = rng.next() as u8;
            }
            reader.reset();
            reader.room().extend_from_slice(&bytes);
            let result = reader.advance().and_then(|done| if done { Ok(done) } else { reader.end() });
            refused += usize::from(result.is_err());
            let _ = parsed(&reader);
        }
        assert!(refused > 1000, "{refused}");
    }

    #[test]
    fn a_body_may_end_with_the_stream() {
        let mut reader = Reader::default();
        let mut rng = Rng::new(1);
        assert_eq!(feed(&mut reader, b"HTTP/1.1 200 OK\r\n\r\nall of it", &mut rng), Ok(None));
        assert_eq!(reader.end(), Ok(true));
        assert_eq!(parsed(&reader), (200, true, b"all of it".to_vec()));
    }

    #[test]
    fn what_nobody_asked_for_is_an_error() {
        let twice = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab";
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nx";
        for bytes in [&twice[..], chunked] {
            let mut reader = Reader::default();
            reader.room().extend_from_slice(bytes);
            assert_eq!(reader.advance(), Err(Malformed::Unasked));
        }
    }

    #[test]
    fn bounds_are_kept() {
        let with = |text: String| {
            let mut reader = Reader::default();
            reader.room().extend_from_slice(text.as_bytes());
            reader.advance()
        };
        let length = |bytes| with(format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n"));
        assert_eq!(length(BODY_BYTES_MAX), Ok(false));
        assert_eq!(length(BODY_BYTES_MAX + 1), Err(Malformed::BodyTooLong));
        let endless = "x".repeat(BODY_BYTES_MAX + 1);
        assert_eq!(with(format!("HTTP/1.1 200 OK\r\n\r\n{endless}")), Err(Malformed::BodyTooLong));
        let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(INTERIM_MAX + 1);
        assert_eq!(with(interim), Err(Malformed::Interim));
        assert_eq!(with("HTTP/1.1 101 Upgrade\r\n\r\n".to_string()), Err(Malformed::Interim));
    }
}
