//! Commands for documents that end by themselves, and for the roles that some of them end with.

use eldest::replica::{Acquire, Call, Renewal};
use eldest::store::{Command, DocCondition, Ending, LeaseOperation, Operation, RoleClaim, Store, Tether};
use eldest::types::{LeaseName, NodeId, Span, Text};

use crate::commands::{micros, parse};
use crate::stage::Stage;

/// Returns None if the words are no such call.
pub fn call(stage: &Stage, at: NodeId, words: &[&str]) -> Result<Option<Call>, String> {
    let key = |key: &str| Text::from(key);
    Ok(Some(match words {
        ["put", name, options @ ..] => put(stage, at, key(name), options)?,
        ["renew", name] => Call::Renew(Renewal::Doc { key: key(name), condition: DocCondition::None }),
        ["delete", name] => {
            write(Operation::DeleteDoc { key: key(name), condition: DocCondition::None, holder: None })
        }
        ["acquire", role, "by", instance, "ttl", ttl] => {
            let (instance, ttl) = (key(instance), Span(micros(ttl)?));
            let claim = RoleClaim { instance, ttl, address: None, metadata: None, secret: None }.into();
            let (until, priority) = (Default::default(), 0);
            Call::Acquire(
                Acquire { role: key(role), claim, elect: false, priority, until, by: None, key: None }.into(),
            )
        }
        ["release", role, "by", instance] => {
            let (role, instance, token) = (key(role), key(instance), token(stage, at, role)?);
            write(Operation::Lease(LeaseOperation::Release { role, instance, token, secret: None }.into()))
        }
        _ => return Ok(None),
    }))
}

/// `put k bytes=9 ttl=500ms with=r`
fn put(stage: &Stage, at: NodeId, key: Text, options: &[&str]) -> Result<Call, String> {
    let (mut ending, mut bytes) = (Ending::default(), 1);
    for option in options {
        match option.split_once('=') {
            Some(("ttl", ttl)) => ending.ttl = Some(Span(micros(ttl)?)),
            Some(("with", role)) => {
                let token = Some(token(stage, at, role)?);
                ending.with = Some(Tether { lease: LeaseName::Role(role.into()), token, secret: None });
            }
            Some(("bytes", count)) => bytes = parse(count)?,
            _ => return Err(format!("no such option: {option}")),
        }
    }
    let value = "7".repeat(bytes).into();
    Ok(write(Operation::PutDoc { key, value, condition: DocCondition::None, holder: None, ending }))
}

fn write(operation: Operation) -> Call {
    Call::Write { command: Command::Single(operation).into(), key: None }
}

/// The token under which the role is held, as that node sees it.
fn token(stage: &Stage, at: NodeId, role: &str) -> Result<u64, String> {
    let held = store(stage, at).and_then(|store| store.role(role));
    held.map(|held| held.token).ok_or(format!("nobody holds {role}"))
}

fn store(stage: &Stage, one: NodeId) -> Option<&Store> {
    Some(stage.hosts.get(&one)?.replica.as_ref()?.committed())
}

/// The roles and documents of a node's state, and its size.
pub fn state(stage: &Stage, one: NodeId) -> Vec<String> {
    let Some(store) = store(stage, one) else {
        return vec![format!("        {one} down")];
    };
    let role = |name: &Text| Some(format!("role {name} of {}", store.role(name)?.claim.instance));
    let roles = store.roles("", None, 100).0;
    let docs = store.docs("", None, 100).items;
    let docs = docs.iter().map(|item| {
        let ttl = item.doc.ttl().map(|ttl| format!(" ttl {}ms", ttl.0 / 1000)).unwrap_or_default();
        let with = item.doc.with().map(|with| format!(" with {with}")).unwrap_or_default();
        format!("doc {}{ttl}{with}", item.key)
    });
    let rows: Vec<String> = roles.iter().filter_map(role).chain(docs).collect();
    let rows = if rows.is_empty() { "nothing".to_string() } else { rows.join(", ") };
    vec![format!("        {one} has {rows}: {} bytes", store.bytes())]
}
