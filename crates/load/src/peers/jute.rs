//! Jute, the encoding of ZooKeeper: big-endian numbers; texts, bytes and lists after their lengths.

pub const PERSISTENT: i32 = 0;
pub const EPHEMERAL_SEQUENTIAL: i32 = 3;

const CREATE: i32 = 1;
const DELETE: i32 = 2;
const EXISTS: i32 = 3;
const GET_DATA: i32 = 4;
const SET_DATA: i32 = 5;
const GET_CHILDREN: i32 = 8;
const SYNC: i32 = 9;

const ANY_VERSION: i32 = -1;

/// The bit mask of all permissions.
const ALL_PERMISSIONS: i32 = 31;

pub fn int(out: &mut Vec<u8>, number: i32) {
    out.extend_from_slice(&number.to_be_bytes());
}

fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    int(out, bytes.len() as i32);
    out.extend_from_slice(bytes);
}

fn text(out: &mut Vec<u8>, text: &str) {
    bytes(out, text.as_bytes());
}

/// Puts the length before the bytes that `write` appends.
pub fn framed(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    int(out, 0);
    write(out);
    let length = (out.len() - at - 4) as i32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

/// Opens a new session.
pub fn connect(out: &mut Vec<u8>, timeout_ms: i32) {
    framed(out, |out| {
        int(out, 0);
        out.extend_from_slice(&0_i64.to_be_bytes());
        int(out, timeout_ms);
        out.extend_from_slice(&0_i64.to_be_bytes());
        bytes(out, &[0; 16]);
        out.push(0);
    });
}

pub fn create(out: &mut Vec<u8>, path: &str, data: &[u8], flags: i32) {
    int(out, CREATE);
    text(out, path);
    bytes(out, data);
    int(out, 1);
    int(out, ALL_PERMISSIONS);
    text(out, "world");
    text(out, "anyone");
    int(out, flags);
}

pub fn delete(out: &mut Vec<u8>, path: &str) {
    int(out, DELETE);
    text(out, path);
    int(out, ANY_VERSION);
}

pub fn exists(out: &mut Vec<u8>, path: &str, watch: bool) {
    int(out, EXISTS);
    text(out, path);
    out.push(watch.into());
}

pub fn get_data(out: &mut Vec<u8>, path: &str, watch: bool) {
    int(out, GET_DATA);
    text(out, path);
    out.push(watch.into());
}

pub fn set_data(out: &mut Vec<u8>, path: &str, data: &[u8]) {
    int(out, SET_DATA);
    text(out, path);
    bytes(out, data);
    int(out, ANY_VERSION);
}

pub fn get_children(out: &mut Vec<u8>, path: &str) {
    int(out, GET_CHILDREN);
    text(out, path);
    out.push(0);
}

pub fn sync(out: &mut Vec<u8>, path: &str) {
    int(out, SYNC);
    text(out, path);
}

/// The bytes that are not read yet.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub fn int(&mut self) -> Option<i32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(i32::from_be_bytes(*number))
    }

    pub fn long(&mut self) -> Option<i64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(i64::from_be_bytes(*number))
    }

    pub fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.int()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    pub fn texts(&mut self) -> Option<Vec<&'a str>> {
        let count = self.int()?;
        (0..count).map(|_| self.text()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_begins_with_these_bytes() {
        let mut out = Vec::new();
        connect(&mut out, 30_000);
        let head = [0, 0, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x75, 0x30];
        assert_eq!(out[..20], head);
        assert_eq!(out[20..], [&[0; 8][..], &[0, 0, 0, 16], &[0; 16], &[0]].concat());
    }

    #[test]
    fn a_write_is_these_bytes() {
        let mut out = Vec::new();
        framed(&mut out, |out| {
            int(out, 7);
            set_data(out, "/b", b"v");
        });
        let expected = b"\0\0\0\x17\0\0\0\x07\0\0\0\x05\0\0\0\x02/b\0\0\0\x01v\xff\xff\xff\xff";
        assert_eq!(out, expected);
    }

    #[test]
    fn what_was_written_is_read() {
        let mut out = Vec::new();
        create(&mut out, "/a/n-", b"x", EPHEMERAL_SEQUENTIAL);
        let mut fields = Fields(&out);
        assert_eq!((fields.int(), fields.text(), fields.text()), (Some(CREATE), Some("/a/n-"), Some("x")));
        assert_eq!((fields.int(), fields.int()), (Some(1), Some(ALL_PERMISSIONS)));
        assert_eq!((fields.text(), fields.text()), (Some("world"), Some("anyone")));
        assert_eq!((fields.int(), fields.0), (Some(EPHEMERAL_SEQUENTIAL), &[][..]));
    }

    #[test]
    fn what_is_cut_short_is_none() {
        let children = b"\0\0\0\x02\0\0\0\x01a\0\0\0\x01b";
        assert_eq!(Fields(children).texts(), Some(vec!["a", "b"]));
        for cut in 0..children.len() {
            assert_eq!(Fields(&children[..cut]).texts(), None, "{cut}");
        }
        assert_eq!(Fields(b"\xff\xff\xff\xff").text(), None);
        assert_eq!(Fields(b"\0\0\0\0\0\0\0\x09").long(), Some(9));
    }
}
