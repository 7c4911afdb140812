//! Documents: JSON values under keys, changed by compare-and-swap.

use std::time::Duration;

use reqwest::Method;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::Error;
use super::http::{Answer, Call, Client, Page, SECRET, query, segment};

/// The condition of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum If<'a> {
    Always,
    /// The document does not exist.
    Absent,
    /// The document exists, at any revision.
    Present,
    /// The document is at this revision.
    Rev(&'a str),
}

/// A grant of a role: the role's name and its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder<'a> {
    pub role: &'a str,
    pub token: u64,
}

/// The condition of a write, and optionally the role in whose name it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When<'a> {
    pub condition: If<'a>,
    pub holder: Option<Holder<'a>>,
}

impl<'a> If<'a> {
    /// Adds a condition: the role must be held under this token, or the write fails with [`Error::RoleNotHeld`]. A
    /// holder that was replaced and does not know it yet changes nothing, no matter which revision it has read.
    pub fn held(self, role: &'a str, token: u64) -> When<'a> {
        When { condition: self, holder: Some(Holder { role, token }) }
    }
}

impl<'a> From<If<'a>> for When<'a> {
    fn from(condition: If<'a>) -> When<'a> {
        When { condition, holder: None }
    }
}

/// When a document expires. Each write replaces this: after a write without an expiry, the document stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Until<'a> {
    /// The document expires when it was neither written nor renewed for this long: a second to a day.
    pub ttl: Option<Duration>,
    /// The document expires when this lease ends, in the same record of the log.
    pub with: Option<With<'a>>,
    /// The secret of that lease, if another client was granted it. For its own leases, a client shows its own secret.
    pub secret: Option<&'a str>,
}

/// The lease that a document is bound to: that of a role, or that of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum With<'a> {
    Role { name: &'a str, token: u64 },
    Process { id: &'a str },
}

/// A document: its value and its revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document<T> {
    pub value: T,
    /// Opaque: use it only for comparisons and in [`If::Rev`].
    pub rev: String,
}

/// A document in a page of a list.
#[derive(Clone, Debug, Deserialize)]
pub struct DocumentRow {
    pub key: String,
    pub rev: Value,
    /// The value as it is stored, to the last digit.
    pub value: Box<RawValue>,
}

impl DocumentRow {
    /// Reads the value as a `T`. Fails with [`Error::NotJson`] if the value is not a `T`, or if serde_json cannot
    /// read it. Other rows of the page are not affected.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        read(&self.key, self.value.get().as_bytes())
    }
}

#[derive(Clone, Debug, Deserialize)]
struct Written {
    rev: Value,
}

#[derive(Clone, Debug, Deserialize)]
struct Renewed {
    expires_in_ms: u64,
}

/// The consistency of a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// Sees every write that was acknowledged before the read began.
    #[default]
    Linear,
    /// The state of the leader, which relies on its lease.
    Leader,
    /// The state of the node that answers, however old.
    Local,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Linear => "linear",
            Level::Leader => "leader",
            Level::Local => "local",
        }
    }
}

impl Client {
    /// Reads a document. Returns `None` if it does not exist. Fails with [`Error::NotJson`] if the value is not a
    /// `T`. Every document can be read as a `Box<RawValue>`.
    pub async fn get_doc<T: DeserializeOwned>(
        &self,
        key: &str,
        level: Level,
    ) -> Result<Option<Document<T>>, Error> {
        let level = query([("level", Some(level.name().to_string()))]);
        let call = Call::get(format!("/v1/docs/{}{level}", segment("key", key)?));
        let answer = match self.send(&call).await {
            Err(Error::NotFound(_)) => return Ok(None),
            answer => answer?,
        };
        let rev = answer.header("etag").map(|tag| tag.trim_matches('"').to_string());
        let strange = || Error::Strange { url: answer.url.clone(), why: "no revision".to_string() };
        Ok(Some(Document { value: read(key, &answer.body)?, rev: rev.ok_or_else(strange)? }))
    }

    /// Writes a document, and returns its new revision.
    pub async fn put_doc(
        &self,
        key: &str,
        value: &impl Serialize,
        when: impl Into<When<'_>>,
    ) -> Result<String, Error> {
        let call = self.doc_write(Method::PUT, key, when)?.json(value)?;
        let answer = self.send(&call).await?;
        rev(&answer)
    }

    /// Writes a document that expires, and returns its new revision.
    pub async fn put_doc_until(
        &self,
        key: &str,
        value: &impl Serialize,
        when: impl Into<When<'_>>,
        until: Until<'_>,
    ) -> Result<String, Error> {
        let mut call = self.doc_write(Method::PUT, key, when)?.json(value)?;
        call.path.push_str(&until.query());
        call = match until {
            Until { with: None, .. } => call,
            Until { secret: Some(secret), .. } => call.header(SECRET, secret.to_string()),
            _ => self.shows_secret(call),
        };
        rev(&self.send(&call).await?)
    }

    /// Renews a document with a ttl, and returns how long it lasts from now on.
    pub async fn renew_doc(&self, key: &str) -> Result<Duration, Error> {
        let call = Call::harmless(Method::POST, format!("/v1/docs/{}?renew=", segment("key", key)?));
        let Renewed { expires_in_ms } = self.send(&call).await?.json()?;
        Ok(Duration::from_millis(expires_in_ms))
    }

    /// Deletes a document. Fails with [`Error::PreconditionFailed`] if the condition does not hold, and with
    /// [`Error::RoleNotHeld`] if the write names a role that is not held under that token.
    pub async fn delete_doc(&self, key: &str, when: impl Into<When<'_>>) -> Result<(), Error> {
        self.send(&self.doc_write(Method::DELETE, key, when)?).await.map(drop)
    }

    /// A page of the documents whose keys begin with `prefix`, in the order of their keys.
    pub async fn docs(&self, prefix: &str, after: Option<&str>) -> Result<Page<DocumentRow>, Error> {
        let asked = [("prefix", Some(prefix.to_string())), ("after", after.map(str::to_string))];
        self.send(&Call::get(format!("/v1/docs{}", query(asked)))).await?.json()
    }

    fn doc_write<'a>(&self, method: Method, key: &str, when: impl Into<When<'a>>) -> Result<Call, Error> {
        let When { condition, holder } = when.into();
        let mut call = Call::write(method, format!("/v1/docs/{}", segment("key", key)?));
        if let Some(Holder { role, token }) = holder {
            call = call.header("if-role", format!("{}; token={token}", segment("role", role)?));
        }
        Ok(match condition {
            If::Always => call,
            If::Absent => call.header("if-none-match", "*".to_string()),
            If::Present => call.header("if-match", "*".to_string()),
            If::Rev(rev) => call.header("if-match", format!("\"{rev}\"")),
        })
    }
}

impl Until<'_> {
    fn query(&self) -> String {
        let (with, token) = match self.with {
            Some(With::Role { name, token }) => (Some(format!("role/{name}")), Some(token.to_string())),
            Some(With::Process { id }) => (Some(format!("process/{id}")), None),
            None => (None, None),
        };
        let ttl = self.ttl.map(|ttl| ttl.as_millis().to_string());
        query([("ttl_ms", ttl), ("with", with), ("token", token)])
    }
}

fn read<T: DeserializeOwned>(key: &str, value: &[u8]) -> Result<T, Error> {
    let not_json = |error: serde_json::Error| Error::NotJson {
        what: format!("document {key:?}"),
        why: error.to_string(),
    };
    serde_json::from_slice(value).map_err(not_json)
}

/// The revision is a number in safe mode and text in available mode. Both are opaque.
fn rev(answer: &Answer) -> Result<String, Error> {
    let Written { rev } = answer.json()?;
    Ok(match rev {
        Value::String(rev) => rev,
        rev => rev.to_string(),
    })
}
