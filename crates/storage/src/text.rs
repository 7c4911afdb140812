//! Splits bytes into lines, and reads single lines with their own checksum.

use std::io::BufRead;

/// A line and its offset. The text has no newline.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    pub offset: usize,
    pub text: &'a [u8],
    /// Whether the line has a newline. A line without one was cut.
    pub ended: bool,
}

impl Line<'_> {
    /// The offset of the next line.
    pub fn end(&self) -> usize {
        self.offset + self.text.len() + usize::from(self.ended)
    }
}

/// The lines that are not empty.
pub fn lines(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut offset = 0;
    std::iter::from_fn(move || {
        offset += blank(&bytes[offset..]);
        let mut rest = &bytes[offset..];
        // This searches a word at a time, unlike `position`.
        let length = rest.skip_until(b'\n').unwrap_or(0);
        if length == 0 {
            return None;
        }
        let line = &bytes[offset..offset + length];
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let found = Line { offset, text, ended: text.len() < length };
        offset += length;
        Some(found)
    })
}

/// The number of newlines at the beginning of the bytes.
/// Most of a new segment is newlines, so whole blocks are compared.
fn blank(bytes: &[u8]) -> usize {
    const BLOCK: usize = 64;
    let blocks = bytes.chunks_exact(BLOCK).take_while(|block| **block == [b'\n'; BLOCK]).count() * BLOCK;
    blocks + bytes[blocks..].iter().take_while(|byte| **byte == b'\n').count()
}

/// The end of the written part: only newlines follow.
pub fn written(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != b'\n').map_or(0, |last| last + 1)
}

/// `<name> <version> <checksum> <json>`: the form of every line outside a chain, for all versions.
/// The form must not change with the version: an older program has to tell a newer line from a damaged one, because it stops
/// at the first and repairs the second.
pub fn seal(name: &str, version: u32, json: &str) -> String {
    let crc = crc32fast::hash(format!("{name} {version} {json}").as_bytes());
    format!("{name} {version} {crc:08x} {json}\n")
}

/// The reason why a sealed line cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealError {
    /// The line checks, but a newer program wrote it.
    Newer(u32),
    Bad(&'static str),
}

/// The JSON of a sealed line. `line` has no newline.
pub fn unseal<'a>(name: &str, version: u32, line: &'a [u8]) -> Result<&'a str, SealError> {
    let line = std::str::from_utf8(line).map_err(|_| SealError::Bad("not UTF-8"))?;
    let mut words = line.splitn(4, ' ');
    let mut word = || words.next().ok_or(SealError::Bad("too short"));
    let (found_name, found_version, crc, json) = (word()?, word()?, word()?, word()?);
    let expected = crc32fast::hash(format!("{found_name} {found_version} {json}").as_bytes());
    // The checksum comes before the version: a version with a flipped bit is damage, and not a newer format.
    if crc != format!("{expected:08x}") {
        return Err(SealError::Bad("the checksum does not match"));
    }
    match found_version.parse() {
        Ok(found) if found_name == name && found == version => Ok(json),
        Ok(found) if found_name == name && found > version => Err(SealError::Newer(found)),
        _ => Err(SealError::Bad("not this kind of file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_between_blanks() {
        let text = [b"\n\na\n".as_slice(), &[b'\n'; 200], b"bc\n\n\nd"].concat();
        let found: Vec<_> = lines(&text).map(|line| (line.offset, line.text, line.ended)).collect();
        assert_eq!(found, [(2, &b"a"[..], true), (204, b"bc", true), (209, b"d", false)]);
        assert_eq!(written(&text), text.len());
        assert_eq!(written(&text[..208]), 206);
        assert_eq!(lines(b"\n\n").count() + written(b"\n\n"), 0);
    }

    #[test]
    fn a_seal_tells_newer_from_broken() {
        let line = seal("eldest-vote", 1, "{\"a\":1}");
        let line = line.trim_end().as_bytes();
        assert_eq!(unseal("eldest-vote", 1, line), Ok("{\"a\":1}"));
        let newer = seal("eldest-vote", 2, "{}");
        assert_eq!(unseal("eldest-vote", 1, newer.trim_end().as_bytes()), Err(SealError::Newer(2)));
        for at in 0..line.len() {
            for bit in 0..8 {
                let mut flipped = line.to_vec();
                flipped[at] ^= 1 << bit;
                assert!(matches!(unseal("eldest-vote", 1, &flipped), Err(SealError::Bad(_))), "{at} {bit}");
            }
        }
    }
}
