//! etcd's gateway: JSON over HTTP, with keys and values in base64.

use std::time::Duration;

use super::super::super::http::{Connection, Request};
use super::super::super::session::Trouble;
use super::super::super::target::Target;
use super::super::op::{Op, unsupported};

#[derive(Debug)]
pub struct Gateway {
    connection: Connection,
    request: Request,
    patience: Duration,
}

impl Gateway {
    pub fn new(patience: Duration) -> Gateway {
        Gateway { connection: Connection::new(patience), request: Request::default(), patience }
    }

    pub fn disconnect(&mut self) {
        self.connection = Connection::new(self.patience);
    }

    pub async fn perform(&mut self, target: &Target, op: &Op<'_>) -> Result<(), Trouble> {
        let (path, body) = match op {
            Op::Write { key, value } => {
                let (key, value) = (base64(format!("bench/{key}").as_bytes()), base64(value));
                ("/v3/kv/put", format!("{{\"key\":\"{key}\",\"value\":\"{value}\"}}"))
            }
            Op::ReadLinear { key } => ("/v3/kv/range", range(*key, false)),
            Op::ReadLocal { key } => ("/v3/kv/range", range(*key, true)),
            Op::Acquire { .. } | Op::Release { .. } => return Err(unsupported()),
        };
        self.request.set_line("POST", format_args!("{path}"));
        self.request.set_json(b"", body.as_bytes());
        match self.connection.exchange(target, &self.request).await {
            Ok(200..=299) => Ok(()),
            Ok(_) => Err(Trouble::of_answer(self.connection.answer())),
            Err(failure) => Err(Trouble::of_failure(failure)),
        }
    }
}

fn range(key: u64, serializable: bool) -> String {
    let key = base64(format!("bench/{key}").as_bytes());
    format!("{{\"key\":\"{key}\",\"serializable\":{serializable}}}")
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let at = |place: usize| u32::from(three.get(place).copied().unwrap_or_default());
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= three.len() { letter as char } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_as_usual() {
        let cases = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        assert!(cases.iter().all(|(plain, coded)| base64(plain.as_bytes()) == *coded));
        assert_eq!(base64(&[0xff, 0xfe, 0xfb]), "//77");
    }

    #[test]
    fn a_read_says_how_strong_it_is() {
        assert_eq!(range(7, true), "{\"key\":\"YmVuY2gvNw==\",\"serializable\":true}");
    }
}
