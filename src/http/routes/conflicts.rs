//! Lists conflicts, which are values that a merge overrode, explains them, and applies or drops them.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use serde_json::json;
use serde_json::value::to_raw_value;

use crate::http::answer::{self, Answer, Code, Problem, unknown_route};
use crate::http::dispatch;
use crate::http::request::{ClientRequest, Context, NoFields};
use crate::http::url::{Query, name_after};
use crate::store::{Command, ConflictView, Json, Key, Version};

const PREFIX: &str = "/v1/conflicts/";
const EXPLAINED: &str = "/v1/explain/conflicts/";

/// The kinds of conflicts, by the names under which conflicts are sorted.
const KINDS: [&str; 4] = ["doc", "election", "user", "vote"];

/// The operations on a conflict: the end of the path, and the command.
const OPERATIONS: [(&str, &str); 2] = [("/apply", "ApplyConflict"), ("/drop", "DropConflict")];

pub async fn list(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    dispatch::list(&context, &request, &["kind", "prefix", "limit", "after"], |store, _, query| {
        let ids = ids_of(query)?;
        Ok(answer::stored(&store.conflicts(&ids, query.after.as_deref(), query.limit())))
    })
    .await
}

pub async fn get(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    dispatch::read(&context, &request, &[], |store, request, _| {
        let id = name_after(request.path(), PREFIX, "id")?;
        match store.conflict(&id) {
            Some(conflict) => Ok(answer::stored(&conflict)),
            None => Err(unknown()),
        }
    })
    .await
}

/// Shows a conflict, and explains it in sentences.
pub async fn explain(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    dispatch::read(&context, &request, &[], |store, request, _| {
        let id = name_after(request.path(), EXPLAINED, "id")?;
        let conflict = store.conflict(&id).ok_or_else(unknown)?;
        // The conflict is JSON already. Parsing it could change the numbers in its values.
        let mut text = conflict.to_json();
        text.pop();
        Ok(answer::json(StatusCode::OK, format!("{text},\"says\":{}}}", json!(sentences(&conflict)))))
    })
    .await
}

fn unknown() -> Problem {
    Problem::new(Code::NotFound, "there is no conflict with that id")
}

fn sentences(view: &ConflictView) -> [String; 5] {
    let what = match &view.key {
        Key::Doc(key) => format!("document {key}"),
        Key::Vote(name) => {
            let (election, voter): (String, String) = serde_json::from_str(name).unwrap_or_default();
            format!("vote of {voter} in the election {election}")
        }
        key => format!("{} {}", key.table(), key.name()),
    };
    let written = |version: &Version| {
        let value = version.value.as_deref().unwrap_or("a deletion");
        format!(
            "{value}, written on the side of node {}, in epoch {}",
            version.at.epoch.leader.0, version.at.epoch
        )
    };
    let id = shell_word(&view.id);
    [
        format!("Both sides of a split changed the {what}, and one value was kept when they merged."),
        format!("Kept: {}", written(&view.conflict.kept)),
        format!("Lost: {}", written(&view.conflict.lost)),
        format!("To restore the lost one: eldest conflicts apply {id}"),
        format!("To drop it:              eldest conflicts drop {id}"),
    ]
}

/// Quotes a text that a shell would split or change.
fn shell_word(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.,:/@+%".contains(c);
    match text.chars().all(is_plain) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(format!("'{}'", text.replace('\'', "'\\''"))),
    }
}

/// Handles `…/{id}/apply` and `…/{id}/drop`.
pub async fn resolve(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    dispatch::write(&context, &request, parse, |written| answer::result(written, StatusCode::OK)).await
}

/// A conflict is settled by a command like any other, so it is in the log, and every node's journal loses the
/// same entry.
fn parse(request: &ClientRequest) -> Result<Command, Problem> {
    let operation =
        OPERATIONS.iter().find_map(|(end, command)| Some((request.path().strip_suffix(end)?, *command)));
    let Some((path, command)) = operation else {
        return Err(unknown_route(request.path()));
    };
    request.object::<NoFields>()?;
    let id = name_after(path, PREFIX, "id")?;
    let payload = to_raw_value(&json!({ "id": id })).map_err(Problem::from)?;
    Ok(Command::parse(command, &payload)?)
}

/// Returns the prefix of the ids that a query requests: `doc:app/`, `vote:["lunch`.
/// Ids are sorted by kind, so a kind is a prefix of ids, and a page of one kind needs no filter.
fn ids_of<'a>(query: &Query<'a>) -> Result<Cow<'a, str>, Problem> {
    let Some(kind) = query.kind.as_deref() else {
        return match query.prefix {
            None => Ok(Cow::Borrowed("")),
            Some(_) => Err(Problem::field("prefix", "prefix needs a kind, such as kind=doc")),
        };
    };
    if !KINDS.contains(&kind) {
        return Err(Problem::field("kind", format!("kind must be one of {}", KINDS.join(", "))));
    }
    let prefix = query.prefix.as_deref().unwrap_or_default();
    Ok(Cow::Owned(match kind {
        // The name of a vote is JSON: the election, then the voter.
        "vote" => {
            let quoted = json!(prefix).to_string();
            format!("vote:[{}", quoted.strip_suffix('"').unwrap_or(&quoted))
        }
        kind => format!("{kind}:{prefix}"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_can_be_pasted_into_a_shell() {
        for (id, word) in [
            ("doc:app/config:8.2@41", "doc:app/config:8.2@41"),
            ("doc:a b:8.2@41", "'doc:a b:8.2@41'"),
            ("doc:it's:8.2@41", r"'doc:it'\''s:8.2@41'"),
        ] {
            assert_eq!(shell_word(id), word);
        }
    }

    #[test]
    fn ids_are_found_by_what_they_begin_with() {
        let ids = |text: &str| {
            let query = Query::parse(Some(text), &["kind", "prefix"]).expect("all of it is known");
            ids_of(&query).map(Cow::into_owned).map_err(|problem| problem.code())
        };
        assert_eq!(ids("").as_deref(), Ok(""));
        assert_eq!(ids("kind=doc").as_deref(), Ok("doc:"));
        assert_eq!(ids("kind=doc&prefix=app%2F").as_deref(), Ok("doc:app/"));
        assert_eq!(ids("kind=vote").as_deref(), Ok("vote:[\""));
        assert_eq!(ids("kind=vote&prefix=a%22b").as_deref(), Ok("vote:[\"a\\\"b"));
        assert_eq!(ids("prefix=app"), Err(Code::BadField));
        assert_eq!(ids("kind=call"), Err(Code::BadField));
    }
}
