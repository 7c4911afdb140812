//! The bodies that clients send about leases.

use serde_json::value::RawValue;

use super::holding::SecretHash;
use super::leases::{LeaseOperation, NewProcess, RoleClaim, ttl};
use super::operations::{Command, Operation};
use super::parse::BadCommand;
use crate::store::encoding::{BadField, Fields, NAME_MOST, PRIORITY_MOST, ROLE_TTL, WAIT_MOST, fields};
use crate::types::{Payload, Span, Text};

/// `{"instance_id", "ttl_ms"?, "address"?, "metadata"?, "priority"?, "wait_ms"?, "secret"?}`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acquisition {
    pub claim: RoleClaim,
    pub priority: i64,
    pub wait: Span,
}

/// `{"instance_id", "token", "ttl_ms"?, "tie"?, "secret"?}`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenure {
    pub instance: Text,
    pub token: u64,
    pub ttl: Option<Span>,
    /// The number of the connection that the lease is to end with (P45).
    pub tie: Option<u64>,
    pub secret: Option<SecretHash>,
}

impl Acquisition {
    pub fn read(body: &RawValue) -> Result<Acquisition, BadCommand> {
        let fields = Fields::of_client(body)?;
        // `RoleClaim::read` also reads `secret_hash`, which records have. A client may not set that hash: it is not
        // named here, so it is refused.
        fields.only(&["instance_id", "ttl_ms", "address", "metadata", "priority", "wait_ms", "secret"])?;
        let priority = fields.number("priority", -PRIORITY_MOST, PRIORITY_MOST)?.unwrap_or(0);
        let wait = fields.number("wait_ms", 0, WAIT_MOST.0 / 1000)?.map_or(Span::ZERO, Span::millis);
        let claim = RoleClaim { secret: SecretHash::of_field(&fields)?, ..RoleClaim::read(&fields)? };
        Ok(Acquisition { claim, priority, wait })
    }
}

impl RoleClaim {
    /// The body of an order that names the holder. It has no secret: an operator may name another holder, and may not
    /// set or change a secret (P53).
    pub fn of_body(body: &RawValue) -> Result<RoleClaim, BadCommand> {
        let fields = Fields::of_client(body)?;
        fields.only(&["instance_id", "ttl_ms", "address", "metadata"])?;
        Ok(RoleClaim::read(&fields)?)
    }
}

impl NewProcess {
    pub fn of_body(body: &RawValue) -> Result<NewProcess, BadCommand> {
        let fields = Fields::of_client(body)?;
        // As for a role: `secret_hash` is for records alone.
        fields.only(&["identifier", "role", "capabilities", "metadata", "ttl_ms", "secret"])?;
        Ok(NewProcess { secret: SecretHash::of_field(&fields)?, ..NewProcess::read(&fields)? })
    }
}

impl Tenure {
    pub fn read(body: &RawValue) -> Result<Tenure, BadCommand> {
        let fields = Fields::read(body)?;
        fields.only(&["instance_id", "token", "ttl_ms", "tie", "secret"])?;
        let asked = fields.given("ttl_ms").map(|_| ttl(&fields, ROLE_TTL)).transpose()?;
        let tie = fields.given("tie").map(|_| fields.token("tie")).transpose()?;
        let (instance, token) = (fields.name("instance_id")?, fields.token("token")?);
        Ok(Tenure { instance, token, ttl: asked, tie, secret: SecretHash::of_field(&fields)? })
    }

    /// The command that releases the role.
    pub fn release(self, role: Text) -> Command {
        let Tenure { instance, token, secret, .. } = self;
        let release = LeaseOperation::Release { role, instance, token, secret };
        Command::Single(Operation::Lease(release.into()))
    }
}

impl Command {
    /// A record's text as readers see it: without holders' secrets (P53) and without the hashes of tokens (P56).
    pub fn shown(payload: &Payload) -> Text {
        match Command::from_payload(payload) {
            Ok(Command::Single(Operation::Lease(operation))) => {
                let shown = Operation::Lease(LeaseOperation::clone(&operation).without_secret().into());
                Command::Single(shown).to_payload(None).text
            }
            Ok(Command::Single(Operation::Token(operation))) => operation.shown(),
            _ => payload.text.clone(),
        }
    }

    pub fn remove_process(id: Text, secret: Option<SecretHash>) -> Command {
        Command::Single(Operation::Lease(LeaseOperation::Remove { id, secret }.into()))
    }
}

/// The name of a role or the id of a process, from a path.
pub fn lease_name(what: &str, name: &str) -> Result<Text, BadCommand> {
    fields::check_text(name, NAME_MOST).map_err(|error: BadField| error.within(what))?;
    Ok(name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(body: &str) -> Option<String> {
        let body = serde_json::from_str(body).expect("JSON");
        Acquisition::read(body).err().map(|bad| bad.to_string())
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(complaint("{\"instance_id\":\"a\",\"wait_ms\":60000,\"priority\":-5}"), None);
        for (body, field) in [
            ("{}", "instance_id"),
            ("{\"instance_id\":\"\"}", "instance_id"),
            ("{\"instance_id\":\"a\",\"ttl_ms\":999}", "ttl_ms"),
            ("{\"instance_id\":\"a\",\"ttl_ms\":3600001}", "ttl_ms"),
            ("{\"instance_id\":\"a\",\"ttl_ms\":\"30000\"}", "ttl_ms"),
            ("{\"instance_id\":\"a\",\"wait_ms\":60001}", "wait_ms"),
            ("{\"instance_id\":\"a\",\"wait_ms\":-1}", "wait_ms"),
            ("{\"instance_id\":\"a\",\"priority\":1.5}", "priority"),
            ("{\"instance_id\":\"a\",\"address\":7}", "address"),
            ("{\"instance_id\":\"a\",\"ttl\":5}", "ttl"),
        ] {
            let said = complaint(body).unwrap_or_default();
            assert!(said.starts_with(&format!("{field} ")), "{body}: {said}");
        }
        let deep = format!("{{\"instance_id\":\"a\",\"metadata\":\"{}\"}}", "x".repeat(17 << 10));
        assert!(complaint(&deep).unwrap_or_default().starts_with("metadata "));
    }

    #[test]
    fn a_token_is_a_whole_number_below_2_to_the_53() {
        let tenure = |token: &str| {
            let body = format!("{{\"instance_id\":\"a\",\"token\":{token}}}");
            Tenure::read(serde_json::from_str(&body).expect("JSON")).ok().map(|tenure| tenure.token)
        };
        assert_eq!(tenure("9007199254740991"), Some(9_007_199_254_740_991));
        for wrong in ["9007199254740992", "-1", "1.5", "\"7\"", "null"] {
            assert_eq!(tenure(wrong), None, "{wrong}");
        }
    }
}
