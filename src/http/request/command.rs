//! Parses commands as `POST /v1/commands` takes them: one in a body, or one in each line of a stream.
//!
//! `headers` makes the idempotency key of a single call from its method, path, query and body. A line has
//! none of these by itself, so its key stands for its text.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::body::{object, raw};
use super::headers::{KeyOwner, call_of_line};
use crate::http::answer::Problem;
use crate::store::{BadCommand, Command};
use crate::types::KeyedCall;

/// `{"storage_cmd", "payload"}`, borrowed from the body.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Single<'a> {
    #[serde(borrow)]
    storage_cmd: Option<Cow<'a, str>>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

/// The same in a stream, where no header can name the key.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(borrow)]
    storage_cmd: Option<Cow<'a, str>>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    #[serde(borrow)]
    idempotency_key: Option<Cow<'a, str>>,
}

/// Parses one command, or an array of commands as one batch.
pub fn command(body: &[u8]) -> Result<Command, Problem> {
    let body = raw(body)?;
    if body.get().starts_with('[') {
        return named(Command::parse_batch(body)?);
    }
    let single: Single = object(body.get().as_bytes())?;
    operation(single.storage_cmd.as_deref(), single.payload)
}

/// Parses a line, with the key that it names. A line with a key is recognized by its text, which must be the same each time.
/// A batch that is written as an array has no member for a key; with a key it is written as the command
/// `Batch`.
pub fn line(text: &[u8], owner: &KeyOwner) -> Result<(Command, Option<KeyedCall>), Problem> {
    let text = text.trim_ascii();
    if text.first() == Some(&b'[') {
        return Ok((named(Command::parse_batch(raw(text)?)?)?, None));
    }
    // If a line is wrong, a second parse finds the field.
    // The first parse borrows and reports no path. Most lines are right, and the parse that reports a path
    // costs more.
    let line: Line = match serde_json::from_slice(text) {
        Ok(line) => line,
        Err(_) => {
            raw(text)?;
            object(text)?
        }
    };
    let call = line.idempotency_key.as_deref().map(|key| call_of_line(key, text, owner)).transpose()?;
    Ok((operation(line.storage_cmd.as_deref(), line.payload)?, call))
}

fn operation(storage_cmd: Option<&str>, payload: Option<&RawValue>) -> Result<Command, Problem> {
    let missing = |field| Problem::field(field, format!("{field} is missing"));
    let storage_cmd = storage_cmd.ok_or_else(|| missing("storage_cmd"))?;
    let payload = payload.ok_or_else(|| missing("payload"))?;
    named(Command::parse(storage_cmd, payload)?)
}

/// Rejects names that are invisible.
fn named(command: Command) -> Result<Command, Problem> {
    command.check_names().map_err(BadCommand::Field)?;
    Ok(command)
}
