//! Protocol buffers, as far as etcd's messages here need them: numbers and bytes, each after the number of its field.

const VARINT: u64 = 0;
const BYTES: u64 = 2;

pub fn number(out: &mut Vec<u8>, field: u64, number: u64) {
    varint(out, field << 3 | VARINT);
    varint(out, number);
}

pub fn bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    varint(out, field << 3 | BYTES);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The number in that field, if the message has it.
pub fn find_number(message: &[u8], field: u64) -> Option<u64> {
    match find(message, field)? {
        Value::Number(number) => Some(number),
        Value::Bytes(_) => None,
    }
}

pub fn find_bytes(message: &[u8], field: u64) -> Option<&[u8]> {
    match find(message, field)? {
        Value::Bytes(bytes) => Some(bytes),
        Value::Number(_) => None,
    }
}

fn find(mut rest: &[u8], wanted: u64) -> Option<Value<'_>> {
    while !rest.is_empty() {
        let tag = take_varint(&mut rest)?;
        let value = match tag & 7 {
            VARINT => Value::Number(take_varint(&mut rest)?),
            BYTES => {
                let length = usize::try_from(take_varint(&mut rest)?).ok()?;
                let (bytes, after) = rest.split_at_checked(length)?;
                rest = after;
                Value::Bytes(bytes)
            }
            _ => return None,
        };
        if tag >> 3 == wanted {
            return Some(value);
        }
    }
    None
}

fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_put_is_these_bytes() {
        let mut out = Vec::new();
        bytes(&mut out, 1, b"bench/7");
        bytes(&mut out, 2, &[b'v'; 256]);
        assert_eq!(out[..12], *b"\x0a\x07bench/7\x12\x80\x02");
        assert_eq!(out.len(), 12 + 256);
    }

    #[test]
    fn what_was_written_is_found() {
        let mut out = Vec::new();
        for (field, value) in [(1, 0), (2, 127), (3, 128), (4, u64::MAX), (16, 300)] {
            number(&mut out, field, value);
            assert_eq!(find_number(&out, field), Some(value));
        }
        bytes(&mut out, 5, b"text");
        assert_eq!(find_bytes(&out, 5), Some(&b"text"[..]));
        assert_eq!((find_bytes(&out, 1), find_number(&out, 5), find_number(&out, 6)), (None, None, None));
    }

    #[test]
    fn damaged_messages_are_none() {
        let tails: [&[u8]; 5] = [b"\x0a\x05abc", b"\x08", b"\x08\xff", &[0xff; 12], b"\x0d1234"];
        assert!(tails.iter().all(|tail| find(tail, 1).is_none()));
    }
}
