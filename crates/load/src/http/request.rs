//! A request in two parts. The connection puts the server's name between them.

use std::io::Write;

/// A request that can be sent to one server after another.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The first line, with its line break.
    pub line: Vec<u8>,
    /// The other headers, the blank line and the body.
    pub rest: Vec<u8>,
}

impl Request {
    /// `headers` are whole lines with their line breaks, here and below.
    pub fn get(path: &str, headers: &[u8]) -> Request {
        let mut request = Request { line: Vec::new(), rest: [headers, b"\r\n"].concat() };
        request.set_line("GET", format_args!("{path}"));
        request
    }

    /// Sets the first line. Allocates nothing if the line was as long before.
    pub fn set_line(&mut self, method: &str, path: std::fmt::Arguments<'_>) {
        self.line.clear();
        write!(self.line, "{method} {path} HTTP/1.1\r\n").expect("writing to a Vec cannot fail");
    }

    pub fn set_json(&mut self, headers: &[u8], body: &[u8]) {
        self.rest.clear();
        self.rest.extend_from_slice(headers);
        let length = body.len();
        write!(self.rest, "Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n")
            .expect("writing to a Vec cannot fail");
        self.rest.extend_from_slice(body);
    }

    pub fn write_to(&self, out: &mut Vec<u8>, host: &str) {
        out.clear();
        for part in [&self.line, &b"Host: "[..], host.as_bytes(), b"\r\n", &self.rest] {
            out.extend_from_slice(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_plain_http() {
        let mut out = b"left over".to_vec();
        Request::get("/v1/status", b"X: y\r\n").write_to(&mut out, "a:9000");
        assert_eq!(out, b"GET /v1/status HTTP/1.1\r\nHost: a:9000\r\nX: y\r\n\r\n");

        let mut request = Request::default();
        request.set_line("PUT", format_args!("/v1/docs/bench/{}", 7));
        request.set_json(b"X: y\r\n", b"\"v\"");
        request.write_to(&mut out, "a");
        let expected = "PUT /v1/docs/bench/7 HTTP/1.1\r\nHost: a\r\nX: y\r\n\
                        Content-Type: application/json\r\nContent-Length: 3\r\n\r\n\"v\"";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
