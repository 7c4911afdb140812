//! The rights of a call without a credential: `"read docs/public/; watch *"`, or `"none"`.

use super::layers::Merged;
use super::mistakes::Findings;
use super::wrong::quoted;
use super::{Address, Anonymous, ConfigRemark, WrongValue};
use crate::store::{Grant, Grants};

const KEY: &str = "anonymous";

/// All rights on data. Administrative orders are not among them: they need a credential, or a caller on the same
/// machine.
const ALL: &str = "read,write,watch *";

/// Returns `None` only after a mistake.
pub fn read(listen: Option<&Address>, settings: &Merged, findings: &mut Findings) -> Option<Anonymous> {
    let text = settings.raw.anonymous.trim();
    if text.is_empty() {
        return Some(default_rights(listen?.host.is_loopback() || settings.raw.insecure));
    }
    match parse(text) {
        Ok(grants) => Some(Anonymous { grants, is_default: false }),
        Err(why) => {
            findings.spoil(settings.place(KEY), WrongValue::Contradiction { why });
            None
        }
    }
}

/// The default: a node that is reachable from other machines grants nothing to calls without a credential.
fn default_rights(open: bool) -> Anonymous {
    let grants = if open { parse(ALL).unwrap_or_default() } else { Grants::default() };
    Anonymous { grants, is_default: true }
}

/// Remarks on a node that no client can use: it refuses calls without a credential, and has no admin token to
/// create one.
pub fn check(anonymous: &Anonymous, admin: bool, listen: &Address, findings: &mut Findings) {
    if anonymous.grants.is_empty() && !admin {
        findings.remark(ConfigRemark::NobodyMayCall { listen: listen.clone() });
    }
}

fn parse(text: &str) -> Result<Grants, String> {
    if text == Anonymous::NOTHING {
        return Ok(Grants::default());
    }
    text.split(';').map(|text| grant(text.trim())).collect()
}

fn grant(text: &str) -> Result<Grant, String> {
    let grant = Grant::parse(text).map_err(|bad| format!("{} {bad}", quoted(text)))?;
    match grant == Grant::order() {
        true => Err("\"order\" cannot be granted to anonymous callers: set an admin token".to_string()),
        false => Ok(grant),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_are_read_or_refused() {
        let said = |text| parse(text).map(|grants| Anonymous { grants, is_default: false }.said());
        assert_eq!(said("none").as_deref(), Ok("none"));
        assert_eq!(said("read docs/public/;watch,read  *").as_deref().ok(), None, "one blank");
        assert_eq!(said("write,read docs/p/ ; watch *").as_deref(), Ok("read,write docs/p/; watch *"));
        for wrong in ["order", "read", "read *;", "all", "read docs, write docs"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_nobody_has_decided() {
        assert_eq!(default_rights(true).said(), ALL);
        assert_eq!(default_rights(false).said(), Anonymous::NOTHING);
    }
}
