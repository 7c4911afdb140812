//! The contents of a certificate, as far as people and the check of its expiry need them: its subject, its names and
//! its validity.
//!
//! This is a reader of DER for this purpose alone (RFC 5280, section 4.1): it walks the fixed order of the fields and
//! skips those that it does not need. It checks nothing: signatures and chains are checked elsewhere, before anything
//! that is read here is used.

use std::fmt;
use std::net::IpAddr;

use rustls::pki_types::CertificateDer;
use rustls::server::ParsedCertificate;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The common name, or the first name of any kind.
    pub subject: String,
    pub issuer: String,
    /// In hexadecimal digits.
    pub serial: String,
    /// In seconds since 1970.
    pub not_before: i64,
    pub not_after: i64,
    pub dns: Vec<String>,
    pub ips: Vec<IpAddr>,
    pub uris: Vec<String>,
}

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT: u8 = 0x06;
const OCTETS: u8 = 0x04;
const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// The tags `[0]` and `[3]` of a certificate: its version and its extensions.
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
/// The kinds of alternative names.
const DNS: u8 = 0x82;
const URI: u8 = 0x86;
const IP: u8 = 0x87;

const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];

/// The bytes that are not read yet.
#[derive(Clone, Copy)]
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The next element, of any kind.
    fn next(&mut self) -> Option<(u8, Der<'a>)> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let (digits, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
                (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, Der(content)))
    }

    fn expect(&mut self, wanted: u8) -> Option<Der<'a>> {
        self.next().filter(|(tag, _)| *tag == wanted).map(|(_, content)| content)
    }

    /// The next element, if it is of this kind.
    fn optional(&mut self, wanted: u8) -> Option<Der<'a>> {
        let mut ahead = *self;
        let content = ahead.expect(wanted)?;
        *self = ahead;
        Some(content)
    }

    fn text(self) -> String {
        String::from_utf8_lossy(self.0).into_owned()
    }
}

impl Facts {
    /// Returns `None` if the bytes are not a certificate.
    pub fn read(certificate: &[u8]) -> Option<Facts> {
        let mut body = Der(certificate).expect(SEQUENCE)?.expect(SEQUENCE)?;
        let _version = body.optional(VERSION);
        let serial = body.expect(INTEGER)?;
        let _algorithm = body.expect(SEQUENCE)?;
        let issuer = name(body.expect(SEQUENCE)?)?;
        let mut validity = body.expect(SEQUENCE)?;
        let (not_before, not_after) = (time(&mut validity)?, time(&mut validity)?);
        let subject = name(body.expect(SEQUENCE)?)?;
        let _key = body.expect(SEQUENCE)?;
        let serial = serial.0.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut facts = Facts { subject, issuer, serial, not_before, not_after, ..Facts::default() };
        while let Some((tag, content)) = body.next() {
            if tag == EXTENSIONS {
                facts.take_extensions(content)?;
            }
        }
        Some(facts)
    }

    fn take_extensions(&mut self, mut content: Der<'_>) -> Option<()> {
        let mut extensions = content.expect(SEQUENCE)?;
        while !extensions.0.is_empty() {
            let mut extension = extensions.expect(SEQUENCE)?;
            let which = extension.expect(OBJECT)?;
            let _critical = extension.optional(BOOLEAN);
            let mut value = extension.expect(OCTETS)?;
            if which.0 == ALTERNATIVE_NAMES {
                self.take_names(value.expect(SEQUENCE)?)?;
            }
        }
        Some(())
    }

    fn take_names(&mut self, mut names: Der<'_>) -> Option<()> {
        while !names.0.is_empty() {
            match names.next()? {
                (DNS, name) => self.dns.push(name.text()),
                (URI, name) => self.uris.push(name.text()),
                (IP, address) => self.ips.extend(ip(address.0)),
                _ => {}
            }
        }
        Some(())
    }

    /// Whole days until the certificate expires. Negative after it has expired.
    pub fn days_left(&self, now_seconds: i64) -> i64 {
        self.not_after.saturating_sub(now_seconds).div_euclid(SECONDS_A_DAY)
    }

    /// All names of the certificate, as people write them.
    pub fn names(&self) -> Vec<String> {
        let ips = self.ips.iter().map(IpAddr::to_string);
        self.uris.iter().cloned().chain(self.dns.iter().cloned()).chain(ips).collect()
    }
}

/// Reads a name, which is a list of sets of pairs.
fn name(mut parts: Der<'_>) -> Option<String> {
    let mut found = None;
    while !parts.0.is_empty() {
        let mut pair = parts.expect(SET)?.expect(SEQUENCE)?;
        let which = pair.expect(OBJECT)?;
        let (_, value) = pair.next()?;
        if which.0 == COMMON_NAME {
            return Some(value.text());
        }
        found.get_or_insert(value);
    }
    Some(found.map(Der::text).unwrap_or_default())
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

const SECONDS_A_DAY: i64 = 24 * 60 * 60;

/// Reads a time: `YYMMDDHHMMSSZ` up to 2049, `YYYYMMDDHHMMSSZ` from 2050 on.
fn time(validity: &mut Der<'_>) -> Option<i64> {
    let (tag, content) = validity.next()?;
    let digits = std::str::from_utf8(content.0).ok()?.strip_suffix('Z')?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (year, rest) = match tag {
        UTC_TIME => {
            let year: i64 = digits.get(..2)?.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, digits.get(2..)?)
        }
        GENERALIZED_TIME => (digits.get(..4)?.parse().ok()?, digits.get(4..)?),
        _ => return None,
    };
    let two = |at: usize| rest.get(at..at + 2).and_then(|two| two.parse::<i64>().ok());
    let [month, day, hour, minute, second] = [two(0)?, two(2)?, two(4)?, two(6)?, two(8)?];
    let in_day = (hour * 60 + minute) * 60 + second;
    Some(days_since_1970(year, month, day) * SECONDS_A_DAY + in_day)
}

/// Years begin in March here, so that a leap day is the last day of its year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leaps + of_year - 719_468
}

/// The name of a node in its certificate: `eldest://CLUSTER/node/ID`, among the alternative names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeName {
    pub cluster: String,
    pub id: u32,
}

impl NodeName {
    pub fn parse(uri: &str) -> Option<NodeName> {
        let (cluster, id) = uri.strip_prefix("eldest://")?.split_once("/node/")?;
        let name = NodeName { cluster: cluster.to_string(), id: id.parse().ok()? };
        // Each name has one spelling only.
        (name.to_string() == uri && !cluster.contains('/')).then_some(name)
    }

    /// The names of all nodes that this certificate names.
    pub fn all(certificate: &CertificateDer<'_>) -> Vec<NodeName> {
        // A certificate that the library for signatures cannot read names no node.
        if ParsedCertificate::try_from(certificate).is_err() {
            return Vec::new();
        }
        let names = Facts::read(certificate).map(|facts| facts.uris).unwrap_or_default();
        names.iter().filter_map(|uri| NodeName::parse(uri)).collect()
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "eldest://{}/node/{}", self.cluster, self.id)
    }
}
