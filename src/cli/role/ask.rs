//! The requests about a role, and their answers.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::cli::client::{self, json_text};
use crate::cli::exit::Failure;
use crate::cli::out::note;
use crate::cli::span::{Ttl, millis, span};
use crate::client::{ACT_MAX, Answer, Request, StatusCode, encoded};

/// The arguments of `acquire`.
#[derive(Clone, Debug, clap::Args)]
pub struct Wish {
    pub role: String,
    /// Id of one run of a process
    pub instance: String,
    #[command(flatten)]
    pub ttl: Ttl,
    /// Wait this long if the role is held, such as 30s
    #[arg(long, value_name = "SPAN", value_parser = span)]
    wait: Option<Duration>,
    /// Priority among those that wait, highest first
    #[arg(long, allow_negative_numbers = true)]
    priority: Option<i64>,
    /// Address of the holder, for others
    #[arg(long)]
    address: Option<String>,
    /// A secret that is then required to renew or release the role
    #[arg(long)]
    pub secret: Option<String>,
    /// Metadata for others, as JSON
    #[arg(long, value_parser = json_text)]
    metadata: Option<Value>,
}

/// A grant of a role.
#[derive(Clone, Debug, clap::Args)]
pub struct Tenure {
    pub role: String,
    /// The holder
    pub instance: String,
    /// The token that `acquire` printed
    pub fencing_token: u64,
    /// The secret that `acquire` was given
    #[arg(long)]
    pub secret: Option<String>,
}

impl Wish {
    pub fn call(&self) -> Request {
        let given = [
            ("ttl_ms", self.ttl.millis().map(Value::from)),
            ("wait_ms", self.wait.map(|wait| Value::from(millis(wait)))),
            ("priority", self.priority.map(Value::from)),
            ("address", self.address.as_ref().map(|address| json!(address))),
            ("metadata", self.metadata.clone()),
            ("secret", self.secret.as_ref().map(|secret| json!(secret))),
        ];
        let within = ACT_MAX + self.wait.unwrap_or_default();
        Request::post(order(&self.role, "acquire"), &body(&self.instance, given)).within(within)
    }

    pub fn waits(&self) -> bool {
        self.wait.is_some_and(|wait| !wait.is_zero())
    }

    /// The grant that this wish got.
    pub fn tenure(&self, said: &Value) -> Tenure {
        let fencing_token = said["token"].as_u64().unwrap_or_default();
        let Wish { role, instance, secret, .. } = self.clone();
        Tenure { role, instance, fencing_token, secret }
    }
}

impl Tenure {
    pub fn call(&self, what: &str, ttl_ms: Option<u64>) -> Request {
        let given = [
            ("token", Some(self.fencing_token.into())),
            ("ttl_ms", ttl_ms.map(Value::from)),
            ("secret", self.secret.as_ref().map(|secret| json!(secret))),
        ];
        Request::post(order(&self.role, what), &body(&self.instance, given))
    }
}

/// The grant in an answer. A refusal names the present holder.
pub fn granted(answer: Answer) -> Result<Value, Failure> {
    let refused = [StatusCode::CONFLICT, StatusCode::GONE].contains(&answer.status);
    if let (true, Ok(said)) = (refused, client::json(&answer))
        && let Some(instance) = said["leader"]["instance_id"].as_str()
    {
        let address = said["leader"]["address"].as_str().map(|at| format!(" at {at}")).unwrap_or_default();
        note(&format!("{instance}{address} holds it with token {}", said["token"]));
    }
    client::json(&answer.taken()?)
}

pub fn path_of(role: &str) -> String {
    format!("/v1/roles/{}", encoded(role))
}

pub fn order(role: &str, what: &str) -> String {
    format!("{}/{what}", path_of(role))
}

pub fn body<const N: usize>(instance: &str, given: [(&str, Option<Value>); N]) -> Value {
    let mut body = Map::from_iter([("instance_id".to_string(), json!(instance))]);
    body.extend(given.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?))));
    Value::Object(body)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        wish: Wish,
    }

    fn sent(line: &str) -> (String, Value) {
        let call = Typed::try_parse_from(line.split(' ')).expect("understood").wish.call();
        (call.path, serde_json::from_slice(&call.body.unwrap_or_default()).expect("JSON"))
    }

    #[test]
    fn what_is_asked_for() {
        let (path, body) = sent("acquire a/b host-1");
        assert_eq!((path.as_str(), body), ("/v1/roles/a%2Fb/acquire", json!({"instance_id": "host-1"})));
        let (_, body) = sent("acquire r i --ttl-ms 9 --wait 5ms --priority -3 --address h:1 --metadata [1]");
        let expected = json!({
            "instance_id": "i", "ttl_ms": 9, "wait_ms": 5, "priority": -3, "address": "h:1", "metadata": [1],
        });
        assert_eq!(body, expected);
        assert!(Typed::try_parse_from("acquire r i --metadata {".split(' ')).is_err());
    }

    #[test]
    fn a_grant_is_named_by_its_token() {
        let tenure = Tenure { role: "r".into(), instance: "i".into(), fencing_token: 7, secret: None };
        let call = tenure.call("renew", Some(9));
        assert_eq!(call.path, "/v1/roles/r/renew");
        let body: Value = serde_json::from_slice(&call.body.unwrap_or_default()).expect("JSON");
        assert_eq!(body, json!({"instance_id": "i", "token": 7, "ttl_ms": 9}));
    }
}
