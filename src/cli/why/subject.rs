//! What is asked about.

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Leader,
    Role(String),
    /// By id or name.
    Node(String),
    Conflict(String),
    Call(String),
}

pub fn parse(text: &str) -> Result<Subject, String> {
    const WAYS: &str =
        "leader, role/NAME, node/NAME, conflict/ID and call/REQUEST-ID are what can be asked about";
    if text == "leader" {
        return Ok(Subject::Leader);
    }
    let (kind, name) = text.split_once('/').ok_or(WAYS)?;
    if name.is_empty() {
        return Err(format!("{kind}/ is followed by a name; {WAYS}"));
    }
    let name = name.to_string();
    match kind {
        "role" => Ok(Subject::Role(name)),
        "node" => Ok(Subject::Node(name)),
        "conflict" => Ok(Subject::Conflict(name)),
        "call" => Ok(Subject::Call(name)),
        _ => Err(WAYS.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_word() {
        assert_eq!(parse("leader"), Ok(Subject::Leader));
        assert_eq!(parse("role/a/b"), Ok(Subject::Role("a/b".to_string())));
        assert_eq!(parse("conflict/doc:a/b:8.2@41"), Ok(Subject::Conflict("doc:a/b:8.2@41".to_string())));
        for wrong in ["", "billing", "role/", "rolle/x"] {
            assert!(parse(wrong).is_err_and(|why| why.contains("role/NAME")), "{wrong}");
        }
    }
}
