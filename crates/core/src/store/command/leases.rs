//! The commands on roles and processes, and their form in the log.
//!
//! | type | command | JSON |
//! |---|---|---|
//! | 105 | AcquireRole | `{"role", "instance_id", "ttl_ms", "address"?, "metadata"?, "secret_hash"?, "elect"?}`; `elect`: even if held |
//! | 106 | ReleaseRole | `{"role", "instance_id", "token", "secret_hash"?}` |
//! | 107 | EndLeases | `{"roles": [["name", token], …], "processes": […], "docs"?: [["key", index], …]}`: leases not renewed |
//! | 108 | AgeLeases | `{"aged": {"roles", "processes"}, "renewed": {…}}`: past half their ttl; renewed after that (C14) |
//! | 117 | PutProcess | `{"id", "identifier", "role"?, "capabilities"?, "metadata"?, "ttl_ms", "secret_hash"?}` |
//! | 118 | RemoveProcess | `{"id", "secret_hash"?}` |
//!
//! The leader alone proposes `EndLeases`. Renewals are not in the log (P38), so there is no command for them.

use std::fmt::{self, Write};
use std::sync::Arc;

use serde_json::value::RawValue;

use super::holding::SecretHash;
use super::kind::CommandKind;
use crate::store::encoding::{
    BadField, Fields, KEY_MOST, METADATA_MOST, NAME_MOST, PROCESS_TTL, Problem, ROLE_TTL, TTL_LEAST,
    TTL_MOST, compact, fields, write_list, write_text,
};
use crate::types::{LEASES_MOST, LeaseName, Span, Text};

/// Leases, each with its token.
pub type HeldLeases = Vec<(LeaseName, u64)>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseOperation {
    Acquire { role: Text, claim: Arc<RoleClaim>, elect: bool },
    Release { role: Text, instance: Text, token: u64, secret: Option<SecretHash> },
    End { leases: HeldLeases },
    Age { aged: HeldLeases, renewed: HeldLeases },
    Register { id: Text, process: Arc<NewProcess> },
    Remove { id: Text, secret: Option<SecretHash> },
}

/// A client's claim to a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleClaim {
    pub instance: Text,
    pub ttl: Span,
    pub address: Option<Text>,
    /// JSON on one line.
    pub metadata: Option<Text>,
    /// The holder must show it to continue the lease (P53).
    pub secret: Option<SecretHash>,
}

/// The description that a process registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewProcess {
    pub identifier: Text,
    pub role: Option<Text>,
    /// JSON on one line, like `metadata`.
    pub capabilities: Option<Text>,
    pub metadata: Option<Text>,
    pub ttl: Span,
    /// A caller must show it to act for the process (P53).
    pub secret: Option<SecretHash>,
}

impl RoleClaim {
    /// Reads a claim from an object that may have other members.
    pub fn read(fields: &Fields) -> Result<RoleClaim, BadField> {
        Ok(RoleClaim {
            instance: fields.name("instance_id")?,
            ttl: ttl(fields, ROLE_TTL)?,
            address: fields.name_if_given("address")?,
            metadata: described(fields, "metadata")?,
            secret: SecretHash::read(fields)?,
        })
    }
}

impl NewProcess {
    pub fn read(fields: &Fields) -> Result<NewProcess, BadField> {
        Ok(NewProcess {
            identifier: fields.name("identifier")?,
            role: fields.name_if_given("role")?,
            capabilities: described(fields, "capabilities")?,
            metadata: described(fields, "metadata")?,
            ttl: ttl(fields, PROCESS_TTL)?,
            secret: SecretHash::read(fields)?,
        })
    }
}

/// Reads a ttl, and checks its bounds.
pub fn ttl(fields: &Fields, default: Span) -> Result<Span, BadField> {
    Ok(span_of(fields, TTL_LEAST, TTL_MOST)?.unwrap_or(default))
}

/// Reads `"ttl_ms"`, if it is there.
pub fn span_of(fields: &Fields, least: Span, most: Span) -> Result<Option<Span>, BadField> {
    let ms = fields.number("ttl_ms", least.0 / 1000, most.0 / 1000)?;
    Ok(ms.map(Span::millis))
}

/// The text is made compact before it is measured, so the bound is the same for every way to write the same JSON.
fn described(fields: &Fields, field: &str) -> Result<Option<Text>, BadField> {
    let bad = |problem| BadField::new(field, problem);
    let Some(value) = fields.given(field) else { return Ok(None) };
    let text = compact(value).map_err(bad)?;
    match text.len() > METADATA_MOST {
        true => Err(bad(Problem::TooLarge { most: METADATA_MOST })),
        false => Ok(Some(text.into())),
    }
}

impl LeaseOperation {
    pub fn end(leases: HeldLeases) -> LeaseOperation {
        LeaseOperation::End { leases: as_recorded(leases) }
    }

    pub fn age(aged: HeldLeases, renewed: HeldLeases) -> LeaseOperation {
        LeaseOperation::Age { aged: as_recorded(aged), renewed: as_recorded(renewed) }
    }

    /// The operation as readers see it, without secrets (P53).
    pub fn without_secret(mut self) -> LeaseOperation {
        match &mut self {
            LeaseOperation::Acquire { claim, .. } => Arc::make_mut(claim).secret = None,
            LeaseOperation::Register { process, .. } => Arc::make_mut(process).secret = None,
            LeaseOperation::Release { secret, .. } | LeaseOperation::Remove { secret, .. } => *secret = None,
            LeaseOperation::End { .. } | LeaseOperation::Age { .. } => {}
        }
        self
    }

    pub fn kind(&self) -> CommandKind {
        match self {
            LeaseOperation::Acquire { .. } => CommandKind::AcquireRole,
            LeaseOperation::Release { .. } => CommandKind::ReleaseRole,
            LeaseOperation::End { .. } => CommandKind::EndLeases,
            LeaseOperation::Age { .. } => CommandKind::AgeLeases,
            LeaseOperation::Register { .. } => CommandKind::PutProcess,
            LeaseOperation::Remove { .. } => CommandKind::RemoveProcess,
        }
    }

    /// Whether the operation also ends documents, which older nodes cannot read.
    pub(in crate::store) fn names_docs(&self) -> bool {
        matches!(self, LeaseOperation::End { leases } if has_docs(leases))
    }

    /// Returns `None` for a kind that is not about leases.
    pub(in crate::store) fn read(
        kind: CommandKind,
        fields: &Fields,
    ) -> Option<Result<LeaseOperation, BadField>> {
        Some(match kind {
            CommandKind::AcquireRole => read_acquire(fields),
            CommandKind::ReleaseRole => read_release(fields),
            CommandKind::EndLeases => read_leases(fields).map(|leases| LeaseOperation::End { leases }),
            CommandKind::AgeLeases => read_age(fields),
            CommandKind::PutProcess => read_register(fields),
            CommandKind::RemoveProcess => read_remove(fields),
            _ => return None,
        })
    }

    pub(in crate::store) fn size(&self) -> usize {
        let length = |text: &Option<Text>| text.as_ref().map_or(0, |text| text.len());
        match self {
            LeaseOperation::Acquire { role, claim, .. } => {
                role.len() + claim.instance.len() + length(&claim.address) + length(&claim.metadata)
            }
            LeaseOperation::Release { role, instance, .. } => role.len() + instance.len(),
            LeaseOperation::End { leases } => size_of(leases),
            LeaseOperation::Age { aged, renewed } => size_of(aged) + size_of(renewed),
            LeaseOperation::Register { id, process } => {
                let described = length(&process.capabilities) + length(&process.metadata);
                id.len() + process.identifier.len() + length(&process.role) + described
            }
            LeaseOperation::Remove { id, .. } => id.len(),
        }
    }

    pub(in crate::store) fn write(&self, out: &mut dyn Write) -> fmt::Result {
        match self {
            LeaseOperation::Acquire { role, claim, elect } => {
                write_member(out, "{", "role", role)?;
                claim.write(out)?;
                out.write_str(if *elect { ",\"elect\":true}" } else { "}" })
            }
            LeaseOperation::Release { role, instance, token, secret } => {
                write_member(out, "{", "role", role)?;
                write_member(out, ",", "instance_id", instance)?;
                write!(out, ",\"token\":{token}")?;
                SecretHash::write(*secret, out)?;
                out.write_char('}')
            }
            LeaseOperation::End { leases } => write_leases(out, leases),
            LeaseOperation::Age { aged, renewed } => {
                out.write_str("{\"aged\":")?;
                write_leases(out, aged)?;
                out.write_str(",\"renewed\":")?;
                write_leases(out, renewed)?;
                out.write_char('}')
            }
            LeaseOperation::Register { id, process } => {
                write_member(out, "{", "id", id)?;
                process.write(out)?;
                out.write_char('}')
            }
            LeaseOperation::Remove { id, secret } => {
                write_member(out, "{", "id", id)?;
                SecretHash::write(*secret, out)?;
                out.write_char('}')
            }
        }
    }
}

impl RoleClaim {
    /// Writes its members, each with a comma before it.
    pub(in crate::store) fn write(&self, out: &mut dyn Write) -> fmt::Result {
        write_member(out, ",", "instance_id", &self.instance)?;
        write!(out, ",\"ttl_ms\":{}", self.ttl.0 / 1000)?;
        self.address.iter().try_for_each(|address| write_member(out, ",", "address", address))?;
        write_json(out, "metadata", &self.metadata)?;
        SecretHash::write(self.secret, out)
    }

    /// Whether the other claim is of the same instance, and shows the secret.
    pub fn admits(&self, other: &RoleClaim) -> bool {
        self.instance == other.instance && SecretHash::admits(self.secret, other.secret)
    }
}

impl NewProcess {
    /// Writes its members, each with a comma before it.
    pub(in crate::store) fn write(&self, out: &mut dyn Write) -> fmt::Result {
        write_member(out, ",", "identifier", &self.identifier)?;
        self.role.iter().try_for_each(|role| write_member(out, ",", "role", role))?;
        write_json(out, "capabilities", &self.capabilities)?;
        write_json(out, "metadata", &self.metadata)?;
        write!(out, ",\"ttl_ms\":{}", self.ttl.0 / 1000)?;
        SecretHash::write(self.secret, out)
    }
}

fn write_member(out: &mut dyn Write, before: &str, name: &str, text: &str) -> fmt::Result {
    write!(out, "{before}\"{name}\":")?;
    write_text(out, text)
}

fn write_json(out: &mut dyn Write, name: &str, json: &Option<Text>) -> fmt::Result {
    json.iter().try_for_each(|json| write!(out, ",\"{name}\":{json}"))
}

fn size_of(leases: &HeldLeases) -> usize {
    leases.iter().map(|(name, _)| name.text().len() + 24).sum()
}

fn write_leases(out: &mut dyn Write, leases: &HeldLeases) -> fmt::Result {
    let pair = |out: &mut dyn Write, (name, token): &(LeaseName, u64)| {
        out.write_char('[')?;
        write_text(out, name.text())?;
        write!(out, ",{token}]")
    };
    let of = |wanted: fn(&LeaseName) -> bool| leases.iter().filter(move |(name, _)| wanted(name));
    out.write_str("{\"roles\":")?;
    write_list(out, of(|name| matches!(name, LeaseName::Role(_))), pair)?;
    out.write_str(",\"processes\":")?;
    write_list(out, of(|name| matches!(name, LeaseName::Process(_))), pair)?;
    // The member is left out where it would be empty: nodes that read the first format only would refuse it (P23).
    if has_docs(leases) {
        out.write_str(",\"docs\":")?;
        write_list(out, of(|name| matches!(name, LeaseName::Doc(_))), pair)?;
    }
    out.write_char('}')
}

fn has_docs(leases: &HeldLeases) -> bool {
    leases.iter().any(|(name, _)| matches!(name, LeaseName::Doc(_)))
}

fn read_acquire(fields: &Fields) -> Result<LeaseOperation, BadField> {
    fields.only(&["role", "instance_id", "ttl_ms", "address", "metadata", "elect", "secret_hash"])?;
    let claim = RoleClaim::read(fields)?.into();
    Ok(LeaseOperation::Acquire { role: fields.name("role")?, claim, elect: fields.flag("elect")? })
}

fn read_release(fields: &Fields) -> Result<LeaseOperation, BadField> {
    fields.only(&["role", "instance_id", "token", "secret_hash"])?;
    let (role, instance) = (fields.name("role")?, fields.name("instance_id")?);
    let (token, secret) = (fields.token("token")?, SecretHash::read(fields)?);
    Ok(LeaseOperation::Release { role, instance, token, secret })
}

fn read_remove(fields: &Fields) -> Result<LeaseOperation, BadField> {
    Ok(LeaseOperation::Remove { id: fields.name("id")?, secret: SecretHash::read(fields)? })
}

fn read_age(fields: &Fields) -> Result<LeaseOperation, BadField> {
    fields.only(&["aged", "renewed"])?;
    let list = |field: &str| {
        let leases = Fields::read(fields.needed(field)?).and_then(|fields| read_leases(&fields));
        leases.map_err(|error| error.within(field))
    };
    Ok(LeaseOperation::Age { aged: list("aged")?, renewed: list("renewed")? })
}

fn read_register(fields: &Fields) -> Result<LeaseOperation, BadField> {
    fields.only(&["id", "identifier", "role", "capabilities", "metadata", "ttl_ms", "secret_hash"])?;
    let process = NewProcess::read(fields)?.into();
    Ok(LeaseOperation::Register { id: fields.name("id")?, process })
}

/// A record lists roles, then processes, then documents. Its reader relies on that order.
fn as_recorded(mut leases: HeldLeases) -> HeldLeases {
    leases.sort_by_key(|(name, _)| match name {
        LeaseName::Role(_) => 0,
        LeaseName::Process(_) => 1,
        LeaseName::Doc(_) => 2,
    });
    leases
}

fn read_leases(fields: &Fields) -> Result<HeldLeases, BadField> {
    fields.only(&["roles", "processes", "docs"])?;
    let mut all = list(fields, "roles", NAME_MOST, LeaseName::Role)?;
    all.append(&mut list(fields, "processes", NAME_MOST, LeaseName::Process)?);
    if fields.given("docs").is_some() {
        all.append(&mut list(fields, "docs", KEY_MOST, LeaseName::Doc)?);
    }
    // The leader never proposes more. A record that a node cannot read would end the node, so both use one bound.
    match all.len() > LEASES_MOST {
        true => Err(BadField::new("", Problem::TooMany { most: LEASES_MOST })),
        false => Ok(all),
    }
}

fn list(
    fields: &Fields,
    field: &str,
    most: usize,
    name: fn(Text) -> LeaseName,
) -> Result<HeldLeases, BadField> {
    let pair = |item: &RawValue| -> Result<(LeaseName, u64), BadField> {
        let [text, token] = fields::array(item)?[..] else {
            return Err(BadField::new("", Problem::NotAnArray));
        };
        Ok((name(fields::text_of(text, most)?), fields::token_of(token)?))
    };
    let items = fields::array(fields.needed(field)?).map_err(|error| error.within(field))?;
    let read = |(n, item): (usize, &RawValue)| pair(item).map_err(|error| error.at(n).within(field));
    items.into_iter().enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::super::operations::{Command, Operation};
    use super::*;

    fn back_and_forth(operation: LeaseOperation) -> String {
        let command = Command::Single(Operation::Lease(operation.clone().into()));
        let payload = command.to_payload(None);
        assert_eq!(Command::from_payload(&payload), Ok(command));
        payload.text.to_string()
    }

    fn claim() -> Arc<RoleClaim> {
        let (metadata, secret) = (Some("{\"a\":1}".into()), Some(SecretHash::of("s")));
        RoleClaim {
            instance: "i".into(),
            ttl: Span::millis(30_000),
            address: Some("h:1".into()),
            metadata,
            secret,
        }
        .into()
    }

    #[test]
    fn each_is_read_as_it_was_written() {
        let acquire = LeaseOperation::Acquire { role: "r\"".into(), claim: claim(), elect: true };
        let expected = "{\"role\":\"r\\\"\",\"instance_id\":\"i\",\"ttl_ms\":30000,\"address\":\"h:1\",\
                        \"metadata\":{\"a\":1},\"secret_hash\":\"2790dab617eb04d87132faa179ac4de2\",\"elect\":true}";
        assert_eq!(back_and_forth(acquire), expected);
        let token = (1 << 53) - 1;
        back_and_forth(LeaseOperation::Release {
            role: "r".into(),
            instance: "i".into(),
            token,
            secret: None,
        });
        let leases = vec![(LeaseName::Role("r".into()), 1), (LeaseName::Process("p".into()), 2)];
        let end = back_and_forth(LeaseOperation::End { leases: leases.clone() });
        assert_eq!(end, "{\"roles\":[[\"r\",1]],\"processes\":[[\"p\",2]]}");
        back_and_forth(LeaseOperation::Age { aged: leases, renewed: Vec::new() });
        let process = NewProcess {
            identifier: "cms".into(),
            role: None,
            capabilities: Some("[\"gpu\"]".into()),
            metadata: None,
            ttl: TTL_LEAST,
            secret: Some(SecretHash::of("")),
        };
        back_and_forth(LeaseOperation::Register { id: "p".into(), process: process.into() });
        back_and_forth(LeaseOperation::Remove { id: "p".into(), secret: Some(SecretHash::of("s")) });
    }

    #[test]
    fn clients_cannot_send_them_as_commands() {
        for kind in
            CommandKind::ALL.into_iter().filter(|kind| kind.number() > 104 && *kind != CommandKind::Batch)
        {
            assert_eq!(CommandKind::named(kind.name()), None, "{}", kind.name());
        }
    }
}
