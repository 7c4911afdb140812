//! Request headers: `If-Match`, `If-None-Match` and `If-Role`, and `Idempotency-Key`.
//!
//! Conditions are parsed by hand: their absence, `*`, weak tags and lists all mean different things, and a
//! condition that is misread loses a client's write. So a condition that cannot be read is refused with the
//! name of its header, and never ignored.
//!
//! An idempotency key identifies a write, as hashes that the store remembers with the result:
//!
//! ```text
//!   KeyedCall  key   the key and the principal: which call it is an attempt of
//!              body  method, path, body, query, role: whether it is the same call, or another one under a used key (422)
//!              who   the client's address: whose share of the remembered keys it takes (P52)
//! ```
//!
//! The hashes are in records and in the state of every node. So they must not change between versions: a
//! retry across an upgrade would not be recognized.

use axum::http::header::{HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};

use super::asker::Asker;
use crate::http::access::Who;
use crate::http::answer::{Code, Problem};
use crate::http::url::decode;
use crate::store::{DocCondition, Holding, SecretHash};
use crate::types::{ClusterId, KeyedCall};

pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The number of the first line of a chunk that one node forwards to another.
pub const FIRST_LINE: HeaderName = HeaderName::from_static("eldest-first-line");

/// The secret of a holder, in the head if the call has no body for it (P53).
pub const SECRET: HeaderName = HeaderName::from_static("eldest-secret");

/// The role in whose name a document is written (P59).
pub const IF_ROLE: HeaderName = HeaderName::from_static("if-role");

/// The identity of the cluster that a call is for.
pub const IF_CLUSTER: HeaderName = HeaderName::from_static("if-cluster");

/// Refuses a call that is for another cluster. A caller may have the address of a node that is now another cluster's.
pub fn check_cluster(headers: &HeaderMap, own: impl FnOnce() -> ClusterId) -> Result<(), Problem> {
    let Some(meant) = headers.get(IF_CLUSTER) else { return Ok(()) };
    let own = own();
    if own.is_known() && meant.as_bytes() == own.to_string().as_bytes() {
        return Ok(());
    }
    let meant = String::from_utf8_lossy(meant.as_bytes());
    let detail = match own.is_known() {
        true => format!("this node belongs to the cluster {own}, and the call is for {meant}"),
        false => format!("this node belongs to no cluster yet, and the call is for {meant}"),
    };
    Err(Problem::new(Code::WrongCluster, detail))
}

/// The same bound as that of a name.
const SECRET_MOST: usize = 256;

/// Returns the secret in the head of a call.
pub fn secret(headers: &HeaderMap) -> Result<Option<SecretHash>, Problem> {
    let Some(value) = headers.get(SECRET) else { return Ok(None) };
    match value.to_str() {
        Ok(text) if (1..=SECRET_MOST).contains(&text.len()) => Ok(Some(SecretHash::of(text))),
        _ => Err(Problem::field("Eldest-Secret", "it must have 1 to 256 visible ASCII characters")),
    }
}

/// Enough for random numbers, or for the client's own job names.
const KEY_MOST: usize = 255;

#[derive(Debug, PartialEq, Eq)]
enum Tags<'a> {
    Any,
    Listed(Vec<Tag<'a>>),
}

#[derive(Debug, PartialEq, Eq)]
struct Tag<'a> {
    weak: bool,
    text: &'a str,
}

/// The result of the conditions of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fresh {
    Send,
    NotModified,
}

/// Returns the condition of a write. It can require one revision, or any revision, or none.
/// A weak tag is refused and not taken as a mismatch: it never matches, so a client that sends one is in
/// error. On `DELETE`, `If-None-Match: *` would mean to delete what is not there.
pub fn condition(method: &Method, headers: &HeaderMap) -> Result<DocCondition, Problem> {
    let (matching, none) = (tags(headers, IF_MATCH)?, tags(headers, IF_NONE_MATCH)?);
    match (matching, none) {
        (None, None) => Ok(DocCondition::None),
        (Some(_), Some(_)) => Err(wrong(IF_NONE_MATCH, "it contradicts If-Match; send one of the two")),
        (Some(Tags::Any), None) => Ok(DocCondition::Present),
        (Some(Tags::Listed(tags)), None) => match tags.as_slice() {
            [Tag { weak: false, text }] => Ok(DocCondition::Rev((*text).into())),
            [_] => {
                Err(wrong(IF_MATCH, "a weak tag never matches; send the ETag as you received it, \"rev\""))
            }
            _ => Err(wrong(IF_MATCH, "a write can depend on one revision; send a single tag")),
        },
        (None, Some(Tags::Any)) if method == Method::PUT => Ok(DocCondition::Absent),
        (None, Some(Tags::Any)) => {
            Err(wrong(IF_NONE_MATCH, "a document that does not exist cannot be deleted"))
        }
        (None, Some(Tags::Listed(_))) => {
            Err(wrong(IF_NONE_MATCH, "on a write only * is allowed: the document must not exist"))
        }
    }
}

/// Parses `If-Role: NAME; token=N`. The name is encoded as in a path if it contains characters that a header cannot hold.
/// The last semicolon divides: a role's name may have semicolons itself.
pub fn holder(headers: &HeaderMap) -> Result<Option<Holding>, Problem> {
    let mut lines = headers.get_all(IF_ROLE).iter();
    let Some(line) = lines.next() else { return Ok(None) };
    let wrong = || Problem::field("If-Role", "write one role and its token: If-Role: NAME; token=12");
    let (name, rest) = line.to_str().ok().and_then(|line| line.rsplit_once(';')).ok_or_else(wrong)?;
    let token = rest.trim().strip_prefix("token=").ok_or_else(wrong)?;
    let name = decode(name.trim()).ok_or_else(wrong)?;
    match lines.next() {
        None => Holding::of_text(&name, token).map(Some).map_err(|_| wrong()),
        Some(_) => Err(wrong()),
    }
}

/// Rejects the header on a call that does not support it.
pub fn no_holder(headers: &HeaderMap) -> Result<(), Problem> {
    match headers.contains_key(IF_ROLE) {
        true => Err(Problem::field(
            "If-Role",
            "it is for PUT and DELETE of a document; in a command use if_role and role_token",
        )),
        false => Ok(()),
    }
}

/// Returns whether a reader that knows some revisions wants this one.
/// `If-Match` compares strongly and `If-None-Match` weakly, as RFC 9110 says: a proxy may weaken the tags
/// that it passes on.
pub fn freshness(headers: &HeaderMap, rev: &str) -> Result<Fresh, Problem> {
    if let Some(Tags::Listed(tags)) = tags(headers, IF_MATCH)?
        && !tags.iter().any(|tag| !tag.weak && tag.text == rev)
    {
        let detail = format!("the document has revision {rev}");
        return Err(Problem::new(Code::PreconditionFailed, detail).with("current_rev", rev));
    }
    match tags(headers, IF_NONE_MATCH)? {
        Some(Tags::Any) => Ok(Fresh::NotModified),
        Some(Tags::Listed(tags)) if tags.iter().any(|tag| tag.text == rev) => Ok(Fresh::NotModified),
        _ => Ok(Fresh::Send),
    }
}

/// Returns all lines of that header as one list.
fn tags(headers: &HeaderMap, name: HeaderName) -> Result<Option<Tags<'_>>, Problem> {
    let mut found: Option<Tags> = None;
    for line in headers.get_all(&name) {
        let tags = line_of_tags(line)
            .ok_or_else(|| wrong(name.clone(), "write * or tags in double quotes, as in the ETag: \"12\""))?;
        found = match (found, tags) {
            (None, tags) => Some(tags),
            (Some(Tags::Listed(mut before)), Tags::Listed(more)) => {
                before.extend(more);
                Some(Tags::Listed(before))
            }
            _ => return Err(wrong(name, "* must be alone")),
        };
    }
    Ok(found)
}

fn line_of_tags(line: &HeaderValue) -> Option<Tags<'_>> {
    let mut rest = line.to_str().ok()?.trim();
    if rest == "*" {
        return Some(Tags::Any);
    }
    let mut tags = Vec::new();
    loop {
        let (weak, quoted) = match rest.strip_prefix("W/") {
            Some(quoted) => (true, quoted),
            None => (false, rest),
        };
        let (text, after) = quoted.strip_prefix('"')?.split_once('"')?;
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        tags.push(Tag { weak, text });
        rest = after.trim_start();
        match rest.strip_prefix(',') {
            None if rest.is_empty() => return Some(Tags::Listed(tags)),
            None => return None,
            Some(more) => rest = more.trim_start(),
        }
    }
}

fn wrong(name: HeaderName, detail: &'static str) -> Problem {
    let shown = if name == IF_MATCH { "If-Match" } else { "If-None-Match" };
    Problem::field(shown, detail)
}

/// Returns None without the header. The same key with another method, path, query or body is another call under a used name.
pub fn idempotent_call(parts: &Parts, asker: &Asker, body: &[u8]) -> Result<Option<KeyedCall>, Problem> {
    let mut keys = parts.headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(key) = keys.next() else {
        return Ok(None);
    };
    let key = key.as_bytes();
    if keys.next().is_some() || !is_key(key) {
        let detail = format!("send one Idempotency-Key of 1 to {KEY_MOST} printable ASCII characters");
        return Err(Problem::field("Idempotency-Key", detail));
    }
    Ok(Some(KeyOwner::of(asker).call(key, hash_of_call(parts, body))))
}

/// The principal that an idempotency key belongs to. Each principal has its own keys, so no client can use up or find out those of another
/// (P52). It is the same on every node.
#[derive(Clone, Debug)]
pub struct KeyOwner {
    /// The room for keys is shared out by addresses; zero if the address is not known.
    address: u32,
    principal: Who,
}

impl KeyOwner {
    /// The address is the client's own, also at a leader to which another node forwards the call (`origin`).
    pub fn of(asker: &Asker) -> KeyOwner {
        let origin = asker.admitted.origin();
        let address = origin.map(|origin| hash(&[b"who", origin.address().to_string().as_bytes()]) as u32);
        KeyOwner { address: address.unwrap_or_default(), principal: asker.principal.who.clone() }
    }

    /// An anonymous caller's key is hashed alone, and any other caller's key with further parts. No two principals have a hash in
    /// common, because each part is hashed with its length.
    fn call(&self, key: &[u8], body: u64) -> KeyedCall {
        let key = match &self.principal {
            Who::Anonymous | Who::Unknown => hash(&[key]),
            Who::Admin => hash(&[key, b"admin"]),
            Who::Token { id, .. } => hash(&[key, b"token", &id.0.to_le_bytes()]),
        };
        KeyedCall { key, body, who: self.address }
    }
}

fn is_key(key: &[u8]) -> bool {
    let printable = key.iter().all(|byte| (b' '..=b'~').contains(byte));
    printable && (1..=KEY_MOST).contains(&key.len())
}

/// A line of a command stream names its key itself, and is recognized by its text.
pub fn call_of_line(key: &str, text: &[u8], owner: &KeyOwner) -> Result<KeyedCall, Problem> {
    if !is_key(key.as_bytes()) {
        let detail = format!("write 1 to {KEY_MOST} printable ASCII characters");
        return Err(Problem::field("idempotency_key", detail));
    }
    Ok(owner.call(key.as_bytes(), hash(&[b"line of /v1/commands", text]) as u64))
}

/// Hashes the call. The path is decoded first: another node on the way may have changed its percent signs.
fn hash_of_call(parts: &Parts, body: &[u8]) -> u64 {
    let path = parts.uri.path();
    let decoded = decode(path);
    let path = decoded.as_deref().unwrap_or(path);
    let asked = asked(parts.uri.query().unwrap_or_default());
    // The header counts, like a holder that the body names.
    let holder = parts.headers.get(IF_ROLE).map_or(&b""[..], |line| line.as_bytes());
    let call = [parts.method.as_str().as_bytes(), path.as_bytes(), body, asked.as_bytes(), holder];
    // Trailing empty parts are left out, so that calls without them keep their earlier hashes.
    let said = call.iter().rposition(|part| !part.is_empty()).map_or(0, |last| last + 1);
    hash(&call[..said.max(3)]) as u64
}

/// Returns the parameters, without the one that says where the call may be answered.
/// A retry may be sent with another `forward`, for example to a leader directly, and is still the same call.
fn asked(query: &str) -> String {
    let said = query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("forward="));
    said.map(|pair| decode(pair).unwrap_or(pair.into())).collect::<Vec<_>>().join("&")
}

/// Hashes all parts, each with its length, so that different lists of parts never look the same.
fn hash(parts: &[&[u8]]) -> u128 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    let mut first = [0; 16];
    first.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    u128::from_le_bytes(first)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;
    use crate::store::TokenId;

    fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
        let mut headers = HeaderMap::new();
        pairs.for_each(|(name, value)| {
            headers.append(name, value);
        });
        headers
    }

    #[test]
    fn a_call_for_another_cluster_is_refused() {
        let code = |meant: u128, own: ClusterId| {
            let named = headers(&[(IF_CLUSTER, ClusterId(meant).to_string().leak())]);
            check_cluster(&named, || own).map_err(|problem| problem.code())
        };
        assert_eq!(code(7, ClusterId(7)), Ok(()));
        assert_eq!(code(8, ClusterId(7)), Err(Code::WrongCluster));
        assert_eq!(code(7, ClusterId::default()), Err(Code::WrongCluster), "it belongs to none yet");
        assert!(check_cluster(&headers(&[]), || ClusterId(7)).is_ok());
    }

    #[test]
    fn a_condition_that_cannot_be_read_is_named() {
        for name in [IF_MATCH, IF_NONE_MATCH] {
            let problem = condition(&Method::PUT, &headers(&[(name.clone(), "12")])).expect_err("no tag");
            let shown = format!("{problem:?}").to_lowercase();
            assert!(shown.contains(&format!("(\"field\", string(\"{name}\"))")), "{shown}");
        }
    }

    #[test]
    fn conditions_of_writes() {
        let rev = |text: &str| Some(DocCondition::Rev(text.into()));
        let put = |pairs: &[_]| condition(&Method::PUT, &headers(pairs)).ok();
        assert_eq!(put(&[]), Some(DocCondition::None));
        assert_eq!(put(&[(IF_MATCH, "\"12\"")]), rev("12"));
        assert_eq!(put(&[(IF_MATCH, " \"7.1@12\" ")]), rev("7.1@12"));
        assert_eq!(put(&[(IF_MATCH, "*")]), Some(DocCondition::Present));
        assert_eq!(put(&[(IF_NONE_MATCH, "*")]), Some(DocCondition::Absent));
        assert_eq!(condition(&Method::DELETE, &headers(&[(IF_NONE_MATCH, "*")])).ok(), None);
        for wrong in [
            "12",
            "\"12",
            "12\"",
            "W/\"12\"",
            "\"1\",\"2\"",
            "\"1\" \"2\"",
            "",
            ",",
            "\"1\",",
            "*, \"1\"",
            "\"a b\"",
        ] {
            assert_eq!(put(&[(IF_MATCH, wrong)]), None, "{wrong}");
        }
        assert_eq!(put(&[(IF_MATCH, "\"1\""), (IF_MATCH, "\"2\"")]), None);
        assert_eq!(put(&[(IF_MATCH, "\"1\""), (IF_MATCH, "*")]), None);
        assert_eq!(put(&[(IF_NONE_MATCH, "\"1\"")]), None);
        assert_eq!(put(&[(IF_MATCH, "\"1\""), (IF_NONE_MATCH, "*")]), None);
    }

    #[test]
    fn a_write_names_one_role_and_its_token() {
        let held = |line: &'static str| holder(&headers(&[(IF_ROLE, line)]));
        let named = |role: &str| Some(Holding { role: role.into(), token: 12 });
        assert_eq!(holder(&headers(&[])).ok(), Some(None));
        for (line, role) in [
            ("r; token=12", "r"),
            ("r;token=12", "r"),
            ("a/b%3B c ; token=12 ", "a/b; c"),
            ("a; b; token=12", "a; b"),
        ] {
            assert_eq!(held(line).ok(), Some(named(role)), "{line}");
        }
        for wrong in [
            "r",
            "r; token=",
            "r; token=x",
            "r; token=-1",
            "r; token=+1",
            "r; 12",
            "; token=12",
            "%zz; token=12",
            "",
        ] {
            assert_eq!(held(wrong).expect_err(wrong).code(), Code::BadField, "{wrong}");
        }
        assert!(holder(&headers(&[(IF_ROLE, "r; token=12"), (IF_ROLE, "s; token=1")])).is_err());
        assert!(no_holder(&headers(&[(IF_ROLE, "r; token=12")])).is_err());
    }

    #[test]
    fn conditions_of_reads() {
        let get = |pairs: &[_]| freshness(&headers(pairs), "12").map_err(|problem| problem.code());
        assert_eq!(get(&[]), Ok(Fresh::Send));
        for same in ["\"12\"", "W/\"12\"", "\"1\", \"12\"", "*", "W/\"12\" ,\"x\""] {
            assert_eq!(get(&[(IF_NONE_MATCH, same)]), Ok(Fresh::NotModified), "{same}");
        }
        assert_eq!(get(&[(IF_NONE_MATCH, "\"1\""), (IF_NONE_MATCH, "\"12\"")]), Ok(Fresh::NotModified));
        assert_eq!(get(&[(IF_NONE_MATCH, "\"1\",\"2\"")]), Ok(Fresh::Send));
        assert_eq!(get(&[(IF_MATCH, "*")]), Ok(Fresh::Send));
        assert_eq!(get(&[(IF_MATCH, "\"1\", \"12\"")]), Ok(Fresh::Send));
        assert_eq!(get(&[(IF_MATCH, "W/\"12\"")]), Err(Code::PreconditionFailed));
        assert_eq!(get(&[(IF_NONE_MATCH, "12")]), Err(Code::BadField));
    }

    fn parsed(path: &str, key: &[u8], body: &str) -> Result<Option<KeyedCall>, Problem> {
        let request = Request::put(path).header(IDEMPOTENCY_KEY, key).body(());
        let (parts, ()) = request.expect("it is well formed").into_parts();
        idempotent_call(&parts, &Asker::node(), body.as_bytes())
    }

    #[test]
    fn a_call_is_its_key_and_its_content() {
        let call =
            |path, key, body| parsed(path, key, body).expect("the key is sound").expect("there is one");
        let first = call("/v1/docs/a%20b", b"k 1", "1");
        assert_eq!(first, call("/v1/docs/%61%20b", b"k 1", "1"));
        assert_eq!(first.key, call("/v1/docs/c", b"k 1", "2").key);
        assert_ne!(first.body, call("/v1/docs/a%20b", b"k 1", "2").body);
        assert_ne!(first.body, call("/v1/docs/a", b"k 1", "1").body);
        assert_ne!(first.key, call("/v1/docs/a%20b", b"k 2", "1").key);
    }

    #[test]
    fn in_the_name_of_another_role_it_is_another_call() {
        let call = |holder: Option<&str>| {
            let mut request = Request::put("/v1/docs/a").header(IDEMPOTENCY_KEY, "k");
            if let Some(holder) = holder {
                request = request.header(IF_ROLE, holder);
            }
            let (parts, ()) = request.body(()).expect("it is well formed").into_parts();
            idempotent_call(&parts, &Asker::node(), b"1")
                .expect("the key is sound")
                .expect("there is one")
                .body
        };
        let calls = [None, Some("r; token=1"), Some("r; token=2"), Some("s; token=1")].map(call);
        assert_eq!(calls.iter().collect::<std::collections::BTreeSet<_>>().len(), calls.len());
        assert_eq!(call(Some("r; token=1")), calls[1]);
    }

    #[test]
    fn each_principal_has_keys_of_its_own() {
        let token = |id| Who::Token { id: TokenId(id), name: "same".into() };
        let owners = [Who::Anonymous, Who::Admin, token(1), token(2)];
        let key = |principal: &Who| KeyOwner { address: 0, principal: principal.clone() }.call(b"k", 0).key;
        let keys: std::collections::BTreeSet<_> = owners.iter().map(key).collect();
        assert_eq!(keys.len(), owners.len());
        assert_eq!(key(&token(1)), key(&Who::Token { id: TokenId(1), name: "another".into() }));
    }

    #[test]
    fn a_key_is_a_short_printable_line() {
        let long = [b'k'; KEY_MOST + 1];
        assert!(parsed("/", &long[1..], "").is_ok());
        for wrong in [b"".as_slice(), &long, b"a\tb", "é".as_bytes()] {
            assert!(parsed("/", wrong, "").is_err());
        }
    }
}
