//! Chunked bodies: each chunk is a length in hexadecimal and its data. The last chunk has length zero.

use super::failure::Malformed;

/// The bound of a line, which is a length with its extensions, or a trailer. The cluster sends neither extensions nor
/// trailers.
const LINE_BYTES_MAX: usize = 256;

const TRAILERS_MAX: usize = 16;

/// The bound of the digits of a length, so that it cannot overflow.
const SIZE_DIGITS_MAX: usize = 8;

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Size,
    Data {
        left: usize,
    },
    DataEnd,
    Trailer {
        seen: usize,
    },
    Done,
}

/// The state of the decoder.
#[derive(Debug, Default)]
pub struct Chunks {
    state: State,
    /// The number of bytes that were decoded.
    pub taken: usize,
}

impl Chunks {
    /// Decodes what has arrived of `coded`, which must begin with the same bytes each time. Returns `true` at the end
    /// of the body.
    pub fn advance(&mut self, coded: &[u8], body: &mut Vec<u8>, bytes_max: usize) -> Result<bool, Malformed> {
        loop {
            let rest = &coded[self.taken..];
            let (next, bytes) = match self.state {
                State::Size => {
                    let Some(line) = line(rest)? else { return Ok(false) };
                    let size = parse_size(line)?;
                    if size > bytes_max - body.len() {
                        return Err(Malformed::BodyTooLong);
                    }
                    let next =
                        if size == 0 { State::Trailer { seen: 0 } } else { State::Data { left: size } };
                    (next, line.len() + 2)
                }
                State::Data { left: 0 } => (State::DataEnd, 0),
                State::Data { .. } if rest.is_empty() => return Ok(false),
                State::Data { left } => {
                    let bytes = left.min(rest.len());
                    body.extend_from_slice(&rest[..bytes]);
                    (State::Data { left: left - bytes }, bytes)
                }
                State::DataEnd => match rest {
                    [] | [b'\r'] => return Ok(false),
                    [b'\r', b'\n', ..] => (State::Size, 2),
                    _ => return Err(Malformed::Chunk),
                },
                State::Trailer { seen: TRAILERS_MAX } => return Err(Malformed::Chunk),
                State::Trailer { seen } => {
                    let Some(line) = line(rest)? else { return Ok(false) };
                    let next = if line.is_empty() { State::Done } else { State::Trailer { seen: seen + 1 } };
                    (next, line.len() + 2)
                }
                State::Done => return Ok(true),
            };
            self.state = next;
            self.taken += bytes;
        }
    }
}

/// The first line of the text without its line break, once it has arrived as a whole.
fn line(text: &[u8]) -> Result<Option<&[u8]>, Malformed> {
    let within = &text[..text.len().min(LINE_BYTES_MAX)];
    match within.iter().position(|byte| *byte == b'\n') {
        Some(at) => text[..at].strip_suffix(b"\r").map(Some).ok_or(Malformed::Chunk),
        None if within.len() == LINE_BYTES_MAX => Err(Malformed::Chunk),
        None => Ok(None),
    }
}

fn parse_size(line: &[u8]) -> Result<usize, Malformed> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let extension = line[digits..].trim_ascii_start();
    let valid = (1..=SIZE_DIGITS_MAX).contains(&digits) && matches!(extension.first(), None | Some(b';'));
    let digits = std::str::from_utf8(&line[..digits]).ok().filter(|_| valid).ok_or(Malformed::Chunk)?;
    usize::from_str_radix(digits, 16).map_err(|_| Malformed::Chunk)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(coded: &[u8]) -> Result<Option<Vec<u8>>, Malformed> {
        let (mut chunks, mut body) = (Chunks::default(), Vec::new());
        let done = chunks.advance(coded, &mut body, 1000)?;
        Ok(done.then_some(body))
    }

    #[test]
    fn chunks_are_put_together() {
        assert_eq!(decode(b"0\r\n\r\n"), Ok(Some(vec![])));
        assert_eq!(
            decode(b"3\r\nabc\r\n00A;x=y\r\n0123456789\r\n0\r\nT: x\r\n\r\n").unwrap().unwrap().len(),
            13
        );
    }

    #[test]
    fn every_prefix_waits_for_more() {
        let coded = b"3\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n";
        for cut in 0..coded.len() {
            assert_eq!(decode(&coded[..cut]), Ok(None), "cut at {cut}");
        }
        assert_eq!(decode(coded), Ok(Some(b"abcde".to_vec())));
    }

    #[test]
    fn malformed_chunks_are_refused() {
        let bad = ["\r\n", "x\r\n", "-1\r\n", "3 4\r\n", "3\n", "1\r\nab\r\n", "111111111\r\n", "1\r\na\n\n"];
        for coded in bad {
            assert_eq!(decode(coded.as_bytes()), Err(Malformed::Chunk), "{coded:?}");
        }
        assert_eq!(decode(&[b'1'; LINE_BYTES_MAX]), Err(Malformed::Chunk));
        let trailers = format!("0\r\n{}", "T: x\r\n".repeat(TRAILERS_MAX));
        assert_eq!(decode(trailers.as_bytes()), Err(Malformed::Chunk));
    }

    #[test]
    fn the_body_is_bounded() {
        assert_eq!(decode(b"3e9\r\n"), Err(Malformed::BodyTooLong));
        assert_eq!(decode(b"ffffffff\r\n"), Err(Malformed::BodyTooLong));
        let many = "64\r\n".to_string() + &"x".repeat(100) + "\r\n";
        assert_eq!(decode(many.repeat(11).as_bytes()), Err(Malformed::BodyTooLong));
    }
}
