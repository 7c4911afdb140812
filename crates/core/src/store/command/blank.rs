//! Detects invisible names: names that consist only of white space or of characters that show nothing. New names must not be
//! invisible. Older logs may contain such names: those can still be read and removed.

use super::leases::LeaseOperation;
use super::operations::{Command, Operation};
use super::tokens::TokenOperation;
use crate::store::encoding::{BadField, Problem};

/// Whether no character of the name is visible. The empty name is a different error.
pub fn is_blank(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_whitespace() || shows_nothing(c))
}

/// Joiners, direction marks and fillers of Unicode.
fn shows_nothing(c: char) -> bool {
    matches!(c,
        '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180E}'
        | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}'
        | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{E0000}'..='\u{E0FFF}')
}

impl Command {
    /// Checks the names that this command would create, and reports an invisible one by its path within the payload.
    /// Parsing does not check this: logs are parsed, too, and older ones may have such names.
    pub fn check_names(&self) -> Result<(), BadField> {
        let blank = |path: String| BadField { path, problem: Problem::Blank };
        match self {
            Command::Single(operation) => match operation.blank_name() {
                Some(field) => Err(blank(format!("payload.{field}"))),
                None => Ok(()),
            },
            Command::Batch(operations) => {
                let mut all = operations.iter().enumerate();
                let bad = all.find_map(|(place, operation)| Some((place, operation.blank_name()?)));
                bad.map_or(Ok(()), |(place, field)| Err(blank(format!("[{place}].payload.{field}"))))
            }
        }
    }
}

impl Operation {
    fn blank_name(&self) -> Option<&'static str> {
        let (field, name) = match self {
            Operation::CreateUser(user) => ("name", &user.name),
            Operation::CreateElection(election) => ("name", &election.name),
            Operation::PutDoc { key, .. } => ("key", key),
            Operation::Lease(lease) => match &**lease {
                LeaseOperation::Acquire { role, .. } => ("role", role),
                LeaseOperation::Register { id, .. } => ("id", id),
                _ => return None,
            },
            Operation::Token(TokenOperation::Create(new)) => ("name", &new.name),
            _ => return None,
        };
        is_blank(name).then_some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_shows_something() {
        for blank in [" ", "\t \u{a0}", "\u{200b}", "\u{feff}\u{2060}", "\u{3164}", "\u{2800}\u{200d}"] {
            assert!(is_blank(blank), "{blank:?}");
        }
        for seen in ["", "a", " a ", "\u{200b}x", "名", "🂡", "\u{1f468}\u{200d}\u{1f469}"] {
            assert!(!is_blank(seen), "{seen:?}");
        }
    }

    #[test]
    fn whatever_gives_a_name_is_looked_at() {
        let said = |command: &str, payload: &str| {
            let payload = serde_json::value::RawValue::from_string(payload.to_string()).expect("JSON");
            let command = Command::parse(command, &payload).expect("a command");
            command.check_names().err().map(|bad| bad.to_string())
        };
        let wrong = |field: &str| Some(format!("payload.{field} has no visible character"));
        assert_eq!(said("CreateUser", r#"{"name":" "}"#), wrong("name"));
        assert_eq!(said("CreateElection", r#"{"name":"\u200b","choices":["a"]}"#), wrong("name"));
        assert_eq!(said("PutDoc", r#"{"key":" ","value":1}"#), wrong("key"));
        assert_eq!(said("PutDoc", r#"{"key":"a","value":1}"#), None);
        assert_eq!(said("DeleteDoc", r#"{"key":" "}"#), None, "what is there can go");
        let batch = r#"[{"storage_cmd":"RemoveUser","payload":{"name":" "}},{"storage_cmd":"CreateUser","payload":{"name":" "}}]"#;
        let batch = serde_json::value::RawValue::from_string(batch.to_string()).expect("JSON");
        let bad = Command::parse_batch(&batch).expect("a batch").check_names().err();
        assert_eq!(bad.map(|bad| bad.path).as_deref(), Some("[1].payload.name"));
    }
}
