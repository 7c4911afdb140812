//! Roles of a cluster: leases with fencing tokens.

use std::time::Duration;

use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::backend::{Acquire, Backend, Grant, Hold, Outcome, Renewal, Tied, Watch};
use super::clock::Clock;
use super::error::Error;
use super::holder::{Leader, RoleState};
use super::http::{Answer, Call, Client, Page, query, segment};
use super::lease::{Term, millis};
use super::tied;
use super::watch;

/// Whether a token is the current token of a role.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Check {
    pub valid: bool,
    /// The current token. `None` if the role has no holder.
    #[serde(default)]
    pub token: Option<u64>,
}

#[derive(Deserialize)]
struct Granted {
    outcome: String,
    leader: Leader,
    token: u64,
    expires_in_ms: u64,
}

#[derive(Deserialize)]
struct Renewed {
    expires_in_ms: u64,
}

impl Client {
    /// A page of the roles that are held and whose names begin with `prefix`, in the order of their names.
    pub async fn roles(&self, prefix: &str, after: Option<&str>) -> Result<Page<RoleState>, Error> {
        let asked = [("prefix", Some(prefix.to_string())), ("after", after.map(str::to_string))];
        self.send(&Call::get(format!("/v1/roles{}", query(asked)))).await?.json()
    }

    /// The present state of a role. A role that no instance holds is not an error.
    pub async fn role(&self, role: &str) -> Result<RoleState, Error> {
        self.send(&Call::get(format!("/v1/roles/{}", segment("role", role)?))).await?.json()
    }

    /// Asks whether the token is the current one. A resource asks this before it accepts a write with a token.
    pub async fn check(&self, role: &str, token: u64) -> Result<Check, Error> {
        let path = format!("/v1/roles/{}/check?token={token}", segment("role", role)?);
        self.send(&Call::get(path)).await?.json()
    }

    async fn grant(&self, order: &str, ask: &Acquire, body: Value) -> Result<Grant, Error> {
        let path = format!("/v1/roles/{}/{order}", segment("role", &ask.role)?);
        let attempt = self.attempt_within(ask.ttl * 2);
        let call = Call::write(Method::POST, path).json(&body)?.attempt(attempt).wait(ask.wait);
        granted(&self.send(&self.shows_secret(call)).await?, ask.ttl)
    }
}

impl Backend for Client {
    fn clock(&self) -> Clock {
        self.http().clock
    }

    async fn acquire(&self, ask: &Acquire) -> Result<Grant, Error> {
        let mut body = asked(ask);
        body["priority"] = json!(ask.priority);
        body["wait_ms"] = json!(millis(ask.wait));
        self.grant("acquire", ask, body).await
    }

    /// This call has no idempotency key: a second attempt must be judged by the state at that time, and must not get
    /// the answer to the first.
    async fn renew(&self, hold: &Hold) -> Result<Renewal, Error> {
        let mut body = json!({
            "instance_id": hold.instance_id, "token": hold.token, "ttl_ms": millis(hold.ttl),
        });
        if let Some(tie) = hold.tie {
            body["tie"] = json!(tie);
        }
        let path = format!("/v1/roles/{}/renew", segment("role", &hold.role)?);
        let call = Call::harmless(Method::POST, path).json(&body)?.attempt(self.attempt_within(hold.ttl));
        let answer = self.send(&self.shows_secret(call)).await?;
        let Renewed { expires_in_ms } = answer.json()?;
        Ok(Renewal { sent: answer.sent, expires_in: Duration::from_millis(expires_in_ms) })
    }

    async fn tie(&self, hold: &Hold, grace: Duration) -> Result<Option<Tied>, Error> {
        tied::open(self, hold, grace).await.map(Some)
    }

    async fn release(&self, hold: &Hold) -> Result<(), Error> {
        let body = json!({"instance_id": hold.instance_id, "token": hold.token});
        let path = format!("/v1/roles/{}/release", segment("role", &hold.role)?);
        let call = self.shows_secret(Call::harmless(Method::POST, path).json(&body)?);
        let answer = self.ask(&call).await?;
        let after_doubt = answer.after_doubt;
        match answer.accepted() {
            // An earlier attempt, whose answer was lost, has released the role.
            Err(Error::LeaseLost { .. }) if after_doubt => Ok(()),
            done => done.map(drop),
        }
    }

    async fn elect(&self, ask: &Acquire) -> Result<Grant, Error> {
        self.grant("elect", ask, asked(ask)).await
    }

    async fn holder(&self, role: &str) -> Result<RoleState, Error> {
        self.role(role).await
    }

    async fn watch(&self, role: &str) -> Result<Watch, Error> {
        watch::open(self, role).await
    }
}

fn asked(ask: &Acquire) -> Value {
    let mut body = json!({"instance_id": ask.instance_id, "ttl_ms": millis(ask.ttl)});
    if let Some(address) = &ask.address {
        body["address"] = json!(address);
    }
    if let Some(metadata) = &ask.metadata {
        body["metadata"] = metadata.clone();
    }
    body
}

fn granted(answer: &Answer, ttl: Duration) -> Result<Grant, Error> {
    let Granted { outcome, leader, token, expires_in_ms } = answer.json()?;
    let outcome = match outcome.as_str() {
        "elected" => Outcome::Elected,
        "already_leader" => Outcome::AlreadyLeader,
        _ => return Err(Error::Strange { url: answer.url.clone(), why: format!("outcome {outcome:?}") }),
    };
    let term = Term::new(token, answer.sent, ttl, Duration::from_millis(expires_in_ms));
    Ok(Grant { outcome, leader, term })
}
