//! The options in which a test's node differs from the default.

use std::time::Duration;

use crate::config::HttpLimits;
use crate::http::{Guard, Web};
use crate::protocol::Mode;
use crate::store::Grant;

#[derive(Debug)]
pub struct Options {
    pub limits: HttpLimits,
    pub token: Option<&'static str>,
    /// The grants of a call without a credential, if it may not do everything.
    pub anonymous: Option<&'static str>,
    /// The address of the other nodes, if they are not on this machine.
    pub elsewhere: Option<&'static str>,
    pub mode: Mode,
    /// The origins whose pages may call.
    pub origins: &'static [&'static str],
}

impl Default for Options {
    fn default() -> Options {
        Options {
            limits: limits(),
            token: None,
            anonymous: None,
            elsewhere: None,
            mode: Mode::Safe,
            origins: &[],
        }
    }
}

/// The limits are generous: on a busy machine no call of these tests may time out.
pub fn limits() -> HttpLimits {
    HttpLimits {
        connections: 64,
        connections_each: 64,
        requests: 64,
        address_percent: 50,
        body_bytes: 2 << 20,
        bodies_bytes: 64 << 20,
        bodies_bytes_each: 0,
        head_bytes: 8192,
        header_timeout: Duration::from_secs(60),
        body_timeout: Duration::from_secs(60),
        answer_timeout: Duration::from_secs(60),
        request_timeout: Duration::from_secs(60),
        idle_timeout: Duration::from_secs(60),
    }
}

pub fn guard(token: Option<&str>, anonymous: Option<&str>) -> Guard {
    let text = anonymous.unwrap_or("read,write,watch *");
    let grants = text.split(';').filter(|text| !text.is_empty());
    let grants = grants.map(|text| Grant::parse(text).expect("a grant")).collect();
    Guard::new(token, &grants, token.is_none() && anonymous.is_none())
}

/// These tests call every node by the name x.
pub fn web() -> Web {
    Web { hosts: vec!["x".to_string()], origins: Vec::new() }
}

impl Options {
    /// The guard of a loopback listener, unless the options say otherwise.
    pub fn guard(&self) -> Guard {
        guard(self.token, self.anonymous)
    }

    pub fn web(&self) -> Web {
        Web { origins: self.origins.iter().map(|origin| origin.to_string()).collect(), ..web() }
    }
}
