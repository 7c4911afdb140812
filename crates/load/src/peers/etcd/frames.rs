//! HTTP/2 frames, as far as one unary gRPC call after another needs them.
//!
//! Headers are sent as literals, and a setting tells the server to keep no table for the headers that it
//! sends. So the server's headers can be skipped: a successful call has a message, and a failed one has none.

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

/// Flags. In data and headers frames the first one means the last frame of the stream. In settings and pings, `ACK`
/// means an answer.
pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

pub const HEAD_BYTES: usize = 9;

/// The number of bytes that the server may send before it needs a new window: the largest possible number.
const WINDOW_MAX: u32 = i32::MAX as u32;
const WINDOW_AT_FIRST: u32 = 65_535;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    pub length: usize,
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
}

impl FrameHead {
    pub fn parse(bytes: [u8; HEAD_BYTES]) -> FrameHead {
        let [a, b, c, kind, flags, stream @ ..] = bytes;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        FrameHead { length, kind, flags, stream: u32::from_be_bytes(stream) & WINDOW_MAX }
    }

    pub fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The bytes that a client sends first.
pub fn preface(out: &mut Vec<u8>) {
    out.extend_from_slice(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    let settings = [(1_u16, 0_u32), (2, 0), (4, WINDOW_MAX)];
    let settings: Vec<u8> = settings
        .iter()
        .flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat())
        .collect();
    frame(out, SETTINGS, 0, 0, &settings);
    window_update(out, WINDOW_MAX - WINDOW_AT_FIRST);
}

/// Allows more bytes on the connection as a whole.
pub fn window_update(out: &mut Vec<u8>, more: u32) {
    frame(out, WINDOW_UPDATE, 0, 0, &more.to_be_bytes());
}

pub fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// A whole call: headers, and the message after its length.
pub fn call(out: &mut Vec<u8>, stream: u32, headers: &[u8], message: &[u8]) {
    frame(out, HEADERS, END_HEADERS, stream, headers);
    let length = message.len() as u32;
    out.extend_from_slice(&(length + 5).to_be_bytes()[1..]);
    out.extend_from_slice(&[DATA, END_STREAM]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.push(0);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(message);
}

/// The headers of a call of that method. The numbers are those of HPACK's table of common headers.
pub fn headers(method: &str, authority: &str) -> Vec<u8> {
    const METHOD_POST: u8 = 0x83;
    const SCHEME_HTTP: u8 = 0x86;
    let mut out = vec![METHOD_POST, SCHEME_HTTP];
    out.push(0x04);
    literal(&mut out, method);
    out.push(0x01);
    literal(&mut out, authority);
    // Number 31 is encoded as 15 in the first byte, and the rest in another byte.
    out.extend_from_slice(&[0x0f, 0x10]);
    literal(&mut out, "application/grpc");
    out.push(0x00);
    literal(&mut out, "te");
    literal(&mut out, "trailers");
    out
}

/// Appends a text. It must be shorter than 127 bytes, as all texts here are.
fn literal(out: &mut Vec<u8>, text: &str) {
    out.push(text.len() as u8 & 0x7f);
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_begins_with_these_bytes() {
        let mut out = Vec::new();
        preface(&mut out);
        let frames = &out[24..];
        assert_eq!(frames[..9], [0, 0, 18, SETTINGS, 0, 0, 0, 0, 0]);
        assert_eq!(frames[9..27], [0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff]);
        assert_eq!(frames[27..], [0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7f, 0xff, 0, 0]);
    }

    #[test]
    fn a_call_is_two_frames() {
        let mut out = Vec::new();
        call(&mut out, 3, &headers("/a/B", "h:1"), b"xyz");
        let expected = b"\x83\x86\x04\x04/a/B\x01\x03h:1\x0f\x10\x10application/grpc\0\x02te\x08trailers";
        let (length, after) = (expected.len(), HEAD_BYTES + expected.len());
        let head = FrameHead::parse(*out.first_chunk().unwrap());
        assert_eq!(head, FrameHead { length, kind: HEADERS, flags: END_HEADERS, stream: 3 });
        assert_eq!(out[HEAD_BYTES..after], expected[..]);
        assert_eq!(out[after..], [0, 0, 8, DATA, END_STREAM, 0, 0, 0, 3, 0, 0, 0, 0, 3, b'x', b'y', b'z']);
    }

    #[test]
    fn the_reserved_bit_of_a_stream_is_none() {
        let head = FrameHead::parse([1, 0, 2, DATA, END_STREAM, 0x80, 0, 0, 5]);
        assert_eq!((head.length, head.stream, head.is(END_STREAM)), (0x10002, 5, true));
    }
}
