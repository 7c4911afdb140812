//! The head of an answer: its status, and the way in which its body ends.

use super::failure::Malformed;

/// An answer with a longer head is malformed. The cluster's heads have some 400 bytes.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;

const END: &[u8] = b"\r\n\r\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Length(usize),
    Chunked,
    UntilClose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub status: u16,
    pub framing: Framing,
    /// No further request may use this connection.
    pub close: bool,
    /// The number of bytes before the body.
    pub bytes: usize,
}

impl Head {
    pub fn is_interim(&self) -> bool {
        self.status < 200
    }
}

/// The end of the head, once it has arrived as a whole. The first `searched` bytes were searched before.
pub fn find_end(buffer: &[u8], searched: usize) -> Result<Option<usize>, Malformed> {
    let from = searched.saturating_sub(END.len() - 1);
    let found = buffer[from..].windows(END.len()).position(|window| window == END);
    let end = found.map(|at| from + at + END.len());
    if end.unwrap_or(buffer.len()) > HEAD_BYTES_MAX {
        return Err(Malformed::HeadTooLong);
    }
    Ok(end)
}

/// Parses a head. `head` ends with the blank line.
pub fn parse(head: &[u8]) -> Result<Head, Malformed> {
    let (status_line, mut rest) = next_line(head).ok_or(Malformed::StatusLine)?;
    let (persistent, status) = parse_status_line(status_line)?;
    let mut fields = Fields::default();
    while let Some((line, after)) = next_line(rest) {
        if line.is_empty() {
            let framing = fields.framing(status, persistent)?;
            let kept = if persistent { !fields.close } else { fields.keep_alive && !fields.close };
            let close = !kept || framing == Framing::UntilClose;
            return Ok(Head { status, framing, close, bytes: head.len() - after.len() });
        }
        let (name, value) = parse_header(line)?;
        fields.note(name, value)?;
        rest = after;
    }
    Err(Malformed::Header)
}

/// The value of a header, in a head that was parsed.
pub fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a str> {
    let (_, mut rest) = next_line(head)?;
    while let Some((line, after)) = next_line(rest) {
        let (found, value) = parse_header(line).ok()?;
        if found.eq_ignore_ascii_case(name.as_bytes()) {
            return std::str::from_utf8(value).ok();
        }
        rest = after;
    }
    None
}

/// The headers that determine how the body ends and whether the connection stays open.
#[derive(Default)]
struct Fields {
    length: Option<usize>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
}

impl Fields {
    fn note(&mut self, name: &[u8], value: &[u8]) -> Result<(), Malformed> {
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = parse_length(value)?;
            if self.length.is_some_and(|before| before != length) {
                return Err(Malformed::Length);
            }
            self.length = Some(length);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Malformed::Coding);
            }
            self.chunked = true;
        } else if name.eq_ignore_ascii_case(b"connection") {
            for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                self.close |= option.eq_ignore_ascii_case(b"close");
                self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            }
        }
        Ok(())
    }

    fn framing(&self, status: u16, persistent: bool) -> Result<Framing, Malformed> {
        if self.chunked && (self.length.is_some() || !persistent) {
            return Err(Malformed::Coding);
        }
        Ok(match self.length {
            _ if status < 200 || status == 204 || status == 304 => Framing::Length(0),
            _ if self.chunked => Framing::Chunked,
            Some(length) => Framing::Length(length),
            None => Framing::UntilClose,
        })
    }
}

/// The first line without its line break, and the rest. A bare line feed does not end a line.
fn next_line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|byte| *byte == b'\n')?;
    Some((text[..at].strip_suffix(b"\r")?, &text[at + 1..]))
}

/// Whether connections stay open by default in this version, and the status.
fn parse_status_line(line: &[u8]) -> Result<(bool, u16), Malformed> {
    let (version, rest) = line.split_at_checked(9).ok_or(Malformed::StatusLine)?;
    let persistent = match version {
        b"HTTP/1.1 " => true,
        b"HTTP/1.0 " => false,
        _ => return Err(Malformed::StatusLine),
    };
    let [hundreds @ b'1'..=b'5', tens @ b'0'..=b'9', ones @ b'0'..=b'9', reason @ ..] = rest else {
        return Err(Malformed::StatusLine);
    };
    if !matches!(reason.first(), None | Some(b' ')) || reason.iter().any(u8::is_ascii_control) {
        return Err(Malformed::StatusLine);
    }
    let digit = |byte: &u8| u16::from(byte - b'0');
    Ok((persistent, digit(hundreds) * 100 + digit(tens) * 10 + digit(ones)))
}

fn parse_header(line: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let colon = line.iter().position(|byte| *byte == b':').ok_or(Malformed::Header)?;
    let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
    let in_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let in_value = |byte: &u8| *byte == b'\t' || !byte.is_ascii_control();
    if name.is_empty() || !name.iter().all(in_name) || !value.iter().all(in_value) {
        return Err(Malformed::Header);
    }
    Ok((name, value))
}

fn parse_length(value: &[u8]) -> Result<usize, Malformed> {
    let digits = std::str::from_utf8(value).map_err(|_| Malformed::Length)?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Malformed::Length);
    }
    digits.parse().map_err(|_| Malformed::Length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framing(head: &str) -> Result<Framing, Malformed> {
        parse(head.as_bytes()).map(|head| head.framing)
    }

    #[test]
    fn a_head_of_the_usual_kind() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\nEldest-Epoch:  7.1 \r\n\r\nbody";
        let end = find_end(text, 0).unwrap().unwrap();
        let head = parse(&text[..end]).unwrap();
        assert_eq!(head, Head { status: 200, framing: Framing::Length(12), close: false, bytes: 60 });
        assert_eq!(header(&text[..end], "eldest-epoch"), Some("7.1"));
        assert_eq!(header(&text[..end], "Eldest-Node"), None);
    }

    #[test]
    fn the_end_of_a_head_may_arrive_in_parts() {
        let text = b"HTTP/1.1 200 OK\r\n\r\n";
        for cut in 0..text.len() {
            assert_eq!(find_end(&text[..cut], 0), Ok(None));
            assert_eq!(find_end(text, cut), Ok(Some(text.len())), "searched {cut} before");
        }
    }

    #[test]
    fn how_a_body_ends() {
        assert_eq!(framing("HTTP/1.1 200\r\nTransfer-Encoding: Chunked\r\n\r\n"), Ok(Framing::Chunked));
        assert_eq!(framing("HTTP/1.1 200 OK\r\n\r\n"), Ok(Framing::UntilClose));
        assert_eq!(framing("HTTP/1.1 204 No Content\r\n\r\n"), Ok(Framing::Length(0)));
        let twice = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\nContent-Length: 3\r\n\r\n";
        assert_eq!(framing(twice), Ok(Framing::Length(3)));
    }

    #[test]
    fn what_becomes_of_the_connection() {
        let close = |version: &str, connection: &str| {
            let head = format!("{version} 200 OK\r\nContent-Length: 0\r\nConnection: {connection}\r\n\r\n");
            parse(head.as_bytes()).unwrap().close
        };
        assert!(close("HTTP/1.1", "close") && close("HTTP/1.1", "Upgrade, CLOSE"));
        assert!(!close("HTTP/1.1", "x") && !close("HTTP/1.0", "keep-alive") && close("HTTP/1.0", "x"));
    }

    #[test]
    fn malformed_heads_are_refused() {
        let with = |line: &str| framing(&format!("HTTP/1.1 200 OK\r\n{line}\r\n\r\n")).unwrap_err();
        assert_eq!(with("no colon"), Malformed::Header);
        assert_eq!(with(": no name"), Malformed::Header);
        assert_eq!(with(" folded: x"), Malformed::Header);
        assert_eq!(with("bare: line\nfeed: x"), Malformed::Header);
        assert_eq!(with("null: a\0b"), Malformed::Header);
        for length in ["", "-1", "+1", "1 2", "0x10", "99999999999999999999999"] {
            assert_eq!(with(&format!("Content-Length: {length}")), Malformed::Length, "{length}");
        }
        assert_eq!(with("Content-Length: 1\r\nContent-Length: 2"), Malformed::Length);
        assert_eq!(with("Content-Length: 1\r\nTransfer-Encoding: chunked"), Malformed::Coding);
        assert_eq!(with("Transfer-Encoding: gzip, chunked"), Malformed::Coding);
    }

    #[test]
    fn malformed_status_lines_are_refused() {
        let lines =
            ["", "HTTP/1.1", "HTTP/2.0 200 OK", "HTTP/1.1  200 OK", "HTTP/1.1 20 OK", "HTTP/1.1 2000"];
        for line in lines.into_iter().chain(["HTTP/1.1 600 OK", "ICY 200 OK", "HTTP/1.1 200 O\rK"]) {
            assert_eq!(framing(&format!("{line}\r\n\r\n")), Err(Malformed::StatusLine), "{line}");
        }
    }

    #[test]
    fn an_endless_head_is_refused() {
        assert_eq!(find_end(&[b'x'; HEAD_BYTES_MAX], 0), Ok(None));
        assert_eq!(find_end(&[b'x'; HEAD_BYTES_MAX + 1], 0), Err(Malformed::HeadTooLong));
    }
}
