//! Documents: JSON under a key, changed by compare-and-swap.

use std::time::Duration;

use reqwest::Method;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::Error;
use super::http::{Answer, Call, Client, Page, SECRET, query, segment};

/// What a write is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum If<'a> {
    Always,
    /// There is no such document.
    Absent,
    /// There is one, whatever it says.
    Present,
    /// It is at this revision.
    Rev(&'a str),
}

/// A grant of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder<'a> {
    pub role: &'a str,
    pub token: u64,
}

/// An [`If`], and perhaps in whose name the write is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When<'a> {
    pub condition: If<'a>,
    pub holder: Option<Holder<'a>>,
}

impl<'a> If<'a> {
    /// Besides, that the role is held under this token; else [`Error::RoleNotHeld`]. So whoever was replaced, and does not know it yet,
    /// changes nothing, whichever revision it has read.
    pub fn held(self, role: &'a str, token: u64) -> When<'a> {
        When { condition: self, holder: Some(Holder { role, token }) }
    }
}

impl<'a> From<If<'a>> for When<'a> {
    fn from(condition: If<'a>) -> When<'a> {
        When { condition, holder: None }
    }
}

/// When a document ends by itself. Each write says it anew: one that does not makes it stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Until<'a> {
    /// Nobody has written or renewed it for so long: from a second to a day.
    pub ttl: Option<Duration>,
    /// This lease ends, in the same record.
    pub with: Option<With<'a>>,
    /// Of that lease, where another client was granted it. For its own each client shows its own.
    pub secret: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum With<'a> {
    Role { name: &'a str, token: u64 },
    Process { id: &'a str },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document<T> {
    pub value: T,
    /// Opaque: only to be compared, and named in [`If::Rev`].
    pub rev: String,
}

#[derive(Clone, Debug, Deserialize)]
pub struct DocumentRow {
    pub key: String,
    pub rev: Value,
    /// As it is stored, to the last digit.
    pub value: Box<RawValue>,
}

impl DocumentRow {
    /// [`Error::NotJson`] of a value that is no `T`, or that serde_json does not read. The other rows are as they are.
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

/// How a read is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// Sees every write acknowledged before the read began.
    #[default]
    Linear,
    /// What the leader has, by its lease.
    Leader,
    /// What the node that answers has, however old.
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
    /// None if there is no such document. [`Error::NotJson`] if it is no `T`; every document can be read as a `Box<RawValue>`.
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

    /// The new revision.
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

    /// The same for a document that ends by itself.
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

    /// A document with a ttl goes on; says for how long.
    pub async fn renew_doc(&self, key: &str) -> Result<Duration, Error> {
        let call = Call::harmless(Method::POST, format!("/v1/docs/{}?renew=", segment("key", key)?));
        let Renewed { expires_in_ms } = self.send(&call).await?.json()?;
        Ok(Duration::from_millis(expires_in_ms))
    }

    pub async fn delete_doc(&self, key: &str, when: impl Into<When<'_>>) -> Result<(), Error> {
        self.send(&self.doc_write(Method::DELETE, key, when)?).await.map(drop)
    }

    /// A page of them, in the order of their keys.
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

/// In safe mode a number, in available mode text: both are opaque.
fn rev(answer: &Answer) -> Result<String, Error> {
    let Written { rev } = answer.json()?;
    Ok(match rev {
        Value::String(rev) => rev,
        rev => rev.to_string(),
    })
}
