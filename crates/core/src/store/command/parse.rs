//! Turns a client's JSON, or a line of the log, into a command. Both pass the same checks, so that every node can read a
//! command that was accepted from a client. A client's values pass one more check, so that every client can read them.
//!
//! ```text
//!  client: storage_cmd, payload ──► Fields::of_client ──┐     of_client also checks that every client can read the values
//!                                                       ├──► operation ──► Command
//!  log:    type|text ─────────────► Fields::of_text ────┘
//! ```

use std::borrow::Cow;
use std::fmt;

use serde_json::value::RawValue;

use super::holding::Holding;
use super::holding::SecretHash;
use super::kind::{COMMANDS, CommandKind};
use super::leases::LeaseOperation;
use super::lifetime::Ending;
use super::operations::{Command, DocCondition, NewElection, NewUser, Operation};
use super::tokens::TokenOperation;
use crate::store::encoding::{
    BATCH_MOST, BadField, CHOICES_MOST, CONFLICT_ID_MOST, Fields, GROUPS_MOST, KEY_MOST, OPERATIONS_MOST,
    Problem, REV_MOST, check_readable, compact, date, fields,
};
use crate::types::{Format, Payload, Text};

/// Answers about an election add members with these names.
const RESERVED: [&str; 2] = ["tally", "votes"];

/// The reason why a client's call is not a valid command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadCommand {
    Unknown { path: String, storage_cmd: String },
    Field(BadField),
}

/// An entry of a log or snapshot that this binary cannot read: the node stops, because otherwise it would diverge from the
/// others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    Format(Format),
    Kind(u16),
    Command {
        kind: u16,
        field: BadField,
    },
    Table(String),
    Entry {
        table: &'static str,
        key: String,
    },
    /// A line of a state transfer is malformed. Lines count from one.
    Line(usize),
    /// Sides are to be merged, but this node is in safe mode.
    NotMergeable,
}

impl Command {
    /// One command of `POST /v1/commands` or `/writesync`. The payload may also be a string that contains the JSON.
    pub fn parse(storage_cmd: &str, payload: &RawValue) -> Result<Command, BadCommand> {
        match CommandKind::named(storage_cmd) {
            Some(CommandKind::Batch) => unwrapped(payload, "payload", |list| {
                Command::parse_batch(list).map_err(|error| error.within("payload"))
            }),
            Some(kind) => unwrapped(payload, "payload", |object| {
                let operation =
                    Fields::of_client(object).and_then(|fields| operation(kind, object.get(), &fields));
                Ok(Command::Single(operation.map_err(|error| error.within("payload"))?))
            }),
            None => Err(BadCommand::unknown(storage_cmd)),
        }
    }

    /// An array of commands, `[{"storage_cmd", "payload"}, …]`: one atomic batch.
    pub fn parse_batch(list: &RawValue) -> Result<Command, BadCommand> {
        let item = |(number, item): (usize, &RawValue)| {
            batch_item(item).map_err(|error| error.within(&format!("[{number}]")))
        };
        let items = batch_items(list)?.into_iter().enumerate();
        let operations = items.map(item).collect::<Result<Vec<_>, _>>()?;
        check_size(&operations)?;
        Ok(Command::Batch(operations))
    }

    /// `PUT /v1/docs/{key}`.
    pub fn put_doc(
        key: &str,
        value: &RawValue,
        condition: DocCondition,
        holder: Option<Holding>,
        ending: Ending,
    ) -> Result<Command, BadCommand> {
        let (key, condition) = (checked_key(key)?, checked(condition)?);
        check_readable(value).map_err(|problem| BadField::new("value", problem))?;
        Ok(Command::Single(Operation::PutDoc { key, value: value_text(value)?, condition, holder, ending }))
    }

    /// `DELETE /v1/docs/{key}`.
    pub fn delete_doc(
        key: &str,
        condition: DocCondition,
        holder: Option<Holding>,
    ) -> Result<Command, BadCommand> {
        let (key, condition) = (checked_key(key)?, checked(condition)?);
        Ok(Command::Single(Operation::DeleteDoc { key, condition, holder }))
    }

    /// Reads a command from the log.
    pub fn from_payload(payload: &Payload) -> Result<Command, Unreadable> {
        // Before the type: a record of a newer format may have a known type and say more than this binary reads (P23).
        if payload.format > COMMANDS {
            return Err(Unreadable::Format(payload.format));
        }
        let kind = CommandKind::numbered(payload.kind).ok_or(Unreadable::Kind(payload.kind))?;
        let command = match kind {
            CommandKind::Batch => json(&payload.text).and_then(logged_batch),
            kind => logged(kind, &payload.text).map(Command::Single),
        };
        command.map_err(|field| Unreadable::Command { kind: payload.kind, field })
    }
}

/// Runs `read` on the payload, or on the JSON inside it if the payload is a string.
fn unwrapped(
    payload: &RawValue,
    path: &str,
    read: impl FnOnce(&RawValue) -> Result<Command, BadCommand>,
) -> Result<Command, BadCommand> {
    if !payload.get().starts_with('"') {
        return read(payload);
    }
    let inner = fields::text(payload).map_err(|error| error.within(path))?;
    read(json(&inner).map_err(|error| error.within(path))?)
}

fn json(text: &str) -> Result<&RawValue, BadField> {
    serde_json::from_str(text).map_err(|_| BadField::new("", Problem::NotJson))
}

fn batch_items(list: &RawValue) -> Result<Vec<&RawValue>, BadField> {
    let items = fields::array(list)?;
    match items.len() {
        0 => Err(BadField::new("", Problem::Empty)),
        count if count > OPERATIONS_MOST => {
            Err(BadField::new("", Problem::TooMany { most: OPERATIONS_MOST }))
        }
        _ => Ok(items),
    }
}

/// Clients' batches and those in a log pass the same check. So the bound may be raised, never lowered.
fn check_size(operations: &[Operation]) -> Result<(), BadField> {
    let size: usize = operations.iter().map(Operation::size).sum();
    match size > BATCH_MOST {
        true => Err(BadField::new("", Problem::TooLarge { most: BATCH_MOST })),
        false => Ok(()),
    }
}

/// `{"storage_cmd", "payload"}`
fn batch_item(item: &RawValue) -> Result<Operation, BadCommand> {
    let fields = Fields::read(item)?;
    fields.only(&["storage_cmd", "payload"])?;
    let storage_cmd = fields::text(fields.needed("storage_cmd")?);
    let storage_cmd = storage_cmd.map_err(|error| error.within("storage_cmd"))?;
    // This comes before the payload is read, so nesting costs no recursion.
    if storage_cmd == CommandKind::Batch.name() {
        return Err(BadField::new("storage_cmd", Problem::Nested).into());
    }
    match Command::parse(&storage_cmd, fields.needed("payload")?)? {
        Command::Single(operation) => Ok(operation),
        Command::Batch(_) => Err(BadField::new("storage_cmd", Problem::Nested).into()),
    }
}

/// `[{"type", "payload"}, …]`
fn logged_batch(list: &RawValue) -> Result<Command, BadField> {
    let item = |(number, item): (usize, &RawValue)| logged_item(item).map_err(|error| error.at(number));
    let operations = batch_items(list)?.into_iter().enumerate().map(item).collect::<Result<Vec<_>, _>>()?;
    check_size(&operations)?;
    Ok(Command::Batch(operations))
}

fn logged_item(item: &RawValue) -> Result<Operation, BadField> {
    let fields = Fields::read(item)?;
    fields.only(&["type", "payload"])?;
    let number = fields.needed("type")?.get().parse().ok();
    let kind =
        number.and_then(CommandKind::numbered).ok_or_else(|| BadField::new("type", Problem::Unknown))?;
    // A batch in a log has no operation that a client cannot put into one.
    if kind.stands_alone() {
        return Err(BadField::new("type", Problem::Unknown));
    }
    logged(kind, fields.needed("payload")?.get()).map_err(|error| error.within("payload"))
}

/// Reads an operation from the log without the check of its values: they were accepted before.
fn logged(kind: CommandKind, object: &str) -> Result<Operation, BadField> {
    operation(kind, object, &Fields::of_text(object)?)
}

/// `fields` are those of the object.
fn operation(kind: CommandKind, object: &str, fields: &Fields) -> Result<Operation, BadField> {
    if let Some(lease) = LeaseOperation::read(kind, fields) {
        return lease.map(|lease| Operation::Lease(lease.into()));
    }
    if let Some(token) = TokenOperation::read(kind, fields) {
        return token.map(Operation::Token);
    }
    match kind {
        CommandKind::CreateUser => {
            new_user(json(object)?, fields).map(|user| Operation::CreateUser(user.into()))
        }
        CommandKind::RemoveUser => Ok(Operation::RemoveUser { name: fields.name("name")? }),
        CommandKind::CreateElection => {
            fields.without(&RESERVED)?;
            new_election(value_text_of(json(object)?)?, fields)
                .map(|election| Operation::CreateElection(election.into()))
        }
        CommandKind::VoteElection => Ok(Operation::VoteElection {
            election: fields.name("election_name")?,
            voter: fields.name("voter_name")?,
            choice: fields.name("choice")?,
        }),
        CommandKind::PutDoc => {
            let own = ["key", "value", "if_rev", "if_absent", "secret"];
            fields.only(&[&own[..], &Holding::MEMBERS, &Ending::MEMBERS].concat())?;
            let (value, mut ending) = (value_text(fields.needed("value")?)?, Ending::read(fields)?);
            ending.show(SecretHash::of_field(fields)?);
            let (condition, holder) = (condition(fields)?, Holding::read(fields)?);
            Ok(Operation::PutDoc { key: key(fields)?, value, condition, holder, ending })
        }
        CommandKind::DeleteDoc => {
            fields.only(&[&["key", "if_rev"][..], &Holding::MEMBERS].concat())?;
            let (condition, holder) = (condition(fields)?, Holding::read(fields)?);
            Ok(Operation::DeleteDoc { key: key(fields)?, condition, holder })
        }
        CommandKind::ApplyConflict => conflict_id(fields).map(|id| Operation::ApplyConflict { id }),
        CommandKind::DropConflict => conflict_id(fields).map(|id| Operation::DropConflict { id }),
        _ => Err(BadField::new("", Problem::Nested)),
    }
}

fn conflict_id(fields: &Fields) -> Result<Text, BadField> {
    fields.only(&["id"])?;
    fields::text_of(fields.needed("id")?, CONFLICT_ID_MOST).map_err(|error| error.within("id"))
}

/// The whole object is kept as text, so members that this build does not know are not lost.
pub fn new_user(object: &RawValue, fields: &Fields) -> Result<NewUser, BadField> {
    if let Some(key) = fields.given("public_key") {
        fields::text(key).map_err(|error| error.within("public_key"))?;
    }
    let (name, group) = (fields.name("name")?, fields.name_if_given("group")?);
    Ok(NewUser { name, group, text: value_text_of(object)? })
}

/// `text` is the whole object, compact.
pub fn new_election(text: Text, fields: &Fields) -> Result<NewElection, BadField> {
    let groups = fields.given("groups").map(|_| fields.names("groups", GROUPS_MOST)).transpose()?;
    Ok(NewElection {
        name: fields.name("name")?,
        choices: fields.names("choices", CHOICES_MOST)?,
        groups: groups.map(|groups| groups.into_iter().collect()),
        ends: fields.given("end_date").map(end_date).transpose()?,
        text,
    })
}

fn end_date(value: &RawValue) -> Result<i64, BadField> {
    let text = fields::text(value).map_err(|error| error.within("end_date"))?;
    date::micros(&text).ok_or_else(|| BadField::new("end_date", Problem::NotADate))
}

fn key(fields: &Fields) -> Result<Text, BadField> {
    fields::text_of(fields.needed("key")?, KEY_MOST).map_err(|error| error.within("key"))
}

fn condition(fields: &Fields) -> Result<DocCondition, BadField> {
    let rev = fields.given("if_rev").map(fields::text).transpose();
    let rev: Option<Cow<'_, str>> = rev.map_err(|error| error.within("if_rev"))?;
    let condition = match (rev.as_deref(), fields.flag("if_absent")?) {
        (None, false) => DocCondition::None,
        (None, true) => DocCondition::Absent,
        (Some(_), true) => return Err(BadField::new("if_absent", Problem::Contradicts)),
        (Some("*"), false) => DocCondition::Present,
        (Some(rev), false) => DocCondition::Rev(rev.into()),
    };
    checked(condition)
}

/// A revision of `*` would be read back from the log as a different condition.
fn checked(condition: DocCondition) -> Result<DocCondition, BadField> {
    match condition {
        DocCondition::Rev(rev) if &*rev == "*" => Ok(DocCondition::Present),
        DocCondition::Rev(rev) => {
            fields::check_text(&rev, REV_MOST).map_err(|error| error.within("if_rev"))?;
            Ok(DocCondition::Rev(rev))
        }
        other => Ok(other),
    }
}

fn checked_key(key: &str) -> Result<Text, BadField> {
    check_key(key).map_err(|error| error.within("key"))?;
    Ok(key.into())
}

pub fn check_key(key: &str) -> Result<(), BadField> {
    fields::check_text(key, KEY_MOST)
}

/// The member `value`.
pub fn value_text(value: &RawValue) -> Result<Text, BadField> {
    value_text_of(value).map_err(|error| error.within("value"))
}

/// The text of the value, compact.
pub fn value_text_of(value: &RawValue) -> Result<Text, BadField> {
    compact(value).map(Text::from).map_err(|problem| BadField::new("", problem))
}

impl BadCommand {
    fn unknown(storage_cmd: &str) -> BadCommand {
        BadCommand::Unknown { path: "storage_cmd".into(), storage_cmd: fields::printable(storage_cmd) }
    }

    /// The stable code of the HTTP contract.
    pub fn code(&self) -> &'static str {
        match self {
            BadCommand::Unknown { .. } => "unknown_command",
            BadCommand::Field(BadField { problem: Problem::TooLarge { .. }, .. }) => "body_too_large",
            BadCommand::Field(_) => "bad_field",
        }
    }

    fn within(self, step: &str) -> BadCommand {
        match self {
            BadCommand::Unknown { path, storage_cmd } => {
                let BadField { path, .. } = BadField::new(path, Problem::Unknown).within(step);
                BadCommand::Unknown { path, storage_cmd }
            }
            BadCommand::Field(field) => BadCommand::Field(field.within(step)),
        }
    }
}

impl From<BadField> for BadCommand {
    fn from(field: BadField) -> BadCommand {
        BadCommand::Field(field)
    }
}

impl fmt::Display for BadCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadCommand::Unknown { path, storage_cmd } => write!(f, "{path} {storage_cmd:?} is not a command"),
            BadCommand::Field(field) => write!(f, "{field}"),
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::Format(format) => {
                write!(f, "a record of format {}, newer than this binary", format.0)
            }
            Unreadable::Kind(kind) => write!(f, "a record of type {kind}, which this binary does not know"),
            Unreadable::Command { kind, field } => write!(f, "a record of type {kind}: {field}"),
            Unreadable::Table(table) => write!(f, "an entry of a table {table:?}"),
            Unreadable::Entry { table, key } => write!(f, "the entry {key:?} of table {table}"),
            Unreadable::Line(number) => write!(f, "line {number} of another side's state transfer"),
            Unreadable::NotMergeable => write!(f, "a state transfer of another side, in safe mode"),
        }
    }
}

impl std::error::Error for BadCommand {}
impl std::error::Error for Unreadable {}
