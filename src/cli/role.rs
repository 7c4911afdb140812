//! `eldest role`: who holds what, and holding it from a shell.

mod hold;
mod look;

use std::time::Duration;

use clap::{Parser, Subcommand};
use reqwest::StatusCode;
use serde_json::{Map, Value, json};

use super::client::{ACT_MAX, Answer, Call, Target};
use super::conflicts::encoded;
use super::exit::Failure;
use super::out::{note, print};

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest role acquire jobs host-1 --ttl-ms 10000 --wait 5000
  eldest role renew jobs host-1 1767323045000000
  eldest role release jobs host-1 1767323045000000
  eldest role elect jobs host-2
  eldest role check jobs 1767323045000000
  eldest role list --prefix jobs
  eldest role show jobs --json
  eldest role hold jobs host-1

A token rises with every grant: hand it to whatever the role protects, which refuses lower ones. `hold` renews for as
long as it runs, and gives the role back at Ctrl-C.")]
pub struct Args {
    #[command(subcommand)]
    order: Order,
}

#[derive(Debug, Subcommand)]
enum Order {
    /// Take a role if nobody has it, and print its token
    Acquire {
        #[command(flatten)]
        wish: Wish,
        /// Print JSON for scripts
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        target: Target,
    },
    /// Go on holding it
    Renew {
        #[command(flatten)]
        tenure: Tenure,
        /// Ask for less than it was granted for
        #[arg(long, value_name = "MS")]
        ttl_ms: Option<u64>,
        #[command(flatten)]
        target: Target,
    },
    /// Give it back
    Release {
        #[command(flatten)]
        tenure: Tenure,
        #[command(flatten)]
        target: Target,
    },
    /// Name the holder: whoever has it loses it
    Elect {
        role: String,
        /// Who is to have it
        instance: String,
        /// It ends after this many milliseconds without a renewal
        #[arg(long, value_name = "MS")]
        ttl_ms: Option<u64>,
        /// Print JSON for scripts
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        target: Target,
    },
    /// End with 0 if this token is the newest
    Check {
        role: String,
        /// As `acquire` printed it
        fencing_token: u64,
        #[command(flatten)]
        target: Target,
    },
    /// Show the roles that are held, in the order of their names
    List {
        /// Only those whose names begin like this
        #[arg(long)]
        prefix: Option<String>,
        /// Print JSON for scripts
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        target: Target,
    },
    /// Show one
    Show {
        role: String,
        /// Print JSON for scripts
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        target: Target,
    },
    /// Take it and keep it until Ctrl-C, or until it is lost
    Hold {
        #[command(flatten)]
        wish: Wish,
        #[command(flatten)]
        target: Target,
    },
}

/// What an `acquire` says.
#[derive(Clone, Debug, clap::Args)]
pub struct Wish {
    role: String,
    /// Who wants it: one life of one process
    instance: String,
    /// It ends after this many milliseconds without a renewal
    #[arg(long, value_name = "MS")]
    ttl_ms: Option<u64>,
    /// Wait for it for this many milliseconds, if somebody has it
    #[arg(long, value_name = "MS")]
    wait: Option<u64>,
    /// Among those who wait: higher first
    #[arg(long, allow_negative_numbers = true)]
    priority: Option<i64>,
    /// Where others find the holder
    #[arg(long)]
    address: Option<String>,
    /// JSON: whatever others should know
    #[arg(long, value_parser = json_text)]
    metadata: Option<Value>,
}

/// A grant that somebody has.
#[derive(Clone, Debug, clap::Args)]
pub struct Tenure {
    role: String,
    /// Who has it
    instance: String,
    /// As `acquire` printed it
    fencing_token: u64,
}

/// An argument that is JSON.
pub fn json_text(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("this is not JSON: {error}"))
}

pub async fn run(args: &Args) -> Result<(), Failure> {
    match &args.order {
        Order::Acquire { wish, json, target } => acquire(wish, *json, target).await,
        Order::Renew { tenure, ttl_ms, target } => {
            let said = granted(target.call(&tenure.call("renew", *ttl_ms)).await?)?;
            print(&format!("{} has it for {} ms", tenure.instance, said["expires_in_ms"]))
        }
        Order::Release { tenure, target } => {
            granted(target.call(&tenure.call("release", None)).await?)?;
            print(&format!("{} is free", tenure.role))
        }
        Order::Elect { role, instance, ttl_ms, json, target } => {
            let given = [("ttl_ms", ttl_ms.map(Value::from))];
            let call = Call::post(&order(role, "elect"), &body(instance, given));
            look::show_grant(&granted(target.call(&call).await?)?, *json)
        }
        Order::Check { role, fencing_token, target } => look::check(role, *fencing_token, target).await,
        Order::List { prefix, json, target } => look::list(prefix.as_deref(), *json, target).await,
        Order::Show { role, json, target } => {
            look::show(&target.ask(&Call::get(&path_of(role))).await?, *json)
        }
        Order::Hold { wish, target } => hold::run(wish, target).await,
    }
}

async fn acquire(wish: &Wish, json: bool, target: &Target) -> Result<(), Failure> {
    let mut said = granted(target.call(&wish.call()).await?)?;
    if wish.waits() {
        // How old a grant is that was waited for, nobody can tell; how old a renewal is, everybody can.
        let renewed = granted(target.call(&wish.tenure(&said).call("renew", None)).await?)?;
        said["expires_in_ms"] = renewed["expires_in_ms"].clone();
    }
    look::show_grant(&said, json)
}

impl Wish {
    fn call(&self) -> Call {
        let given = [
            ("ttl_ms", self.ttl_ms.map(Value::from)),
            ("wait_ms", self.wait.map(Value::from)),
            ("priority", self.priority.map(Value::from)),
            ("address", self.address.as_ref().map(|address| json!(address))),
            ("metadata", self.metadata.clone()),
        ];
        let within = ACT_MAX + Duration::from_millis(self.wait.unwrap_or(0));
        Call { within, ..Call::post(&order(&self.role, "acquire"), &body(&self.instance, given)) }
    }

    fn waits(&self) -> bool {
        self.wait.is_some_and(|wait| wait > 0)
    }

    /// What this wish was granted.
    fn tenure(&self, said: &Value) -> Tenure {
        let fencing_token = said["token"].as_u64().unwrap_or_default();
        Tenure { role: self.role.clone(), instance: self.instance.clone(), fencing_token }
    }
}

impl Tenure {
    fn call(&self, what: &str, ttl_ms: Option<u64>) -> Call {
        let given = [("token", Some(self.fencing_token.into())), ("ttl_ms", ttl_ms.map(Value::from))];
        Call::post(&order(&self.role, what), &body(&self.instance, given))
    }
}

/// A refusal says who has it.
fn granted(answer: Answer) -> Result<Value, Failure> {
    let refused = [StatusCode::CONFLICT, StatusCode::GONE].contains(&answer.status);
    if let (true, Ok(said)) = (refused, answer.json())
        && let Some(instance) = said["leader"]["instance_id"].as_str()
    {
        let address = said["leader"]["address"].as_str().map(|at| format!(" at {at}")).unwrap_or_default();
        note(&format!("{instance}{address} has it, with the token {}", said["token"]));
    }
    answer.accepted()?.json()
}

fn path_of(role: &str) -> String {
    format!("/v1/roles/{}", encoded(role))
}

fn order(role: &str, what: &str) -> String {
    format!("{}/{what}", path_of(role))
}

fn body<const N: usize>(instance: &str, given: [(&str, Option<Value>); N]) -> Value {
    let mut body = Map::from_iter([("instance_id".to_string(), json!(instance))]);
    body.extend(given.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?))));
    Value::Object(body)
}

#[cfg(test)]
mod tests {
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
        let (_, body) = sent("acquire r i --ttl-ms 9 --wait 5 --priority -3 --address h:1 --metadata [1]");
        let expected = json!({
            "instance_id": "i", "ttl_ms": 9, "wait_ms": 5, "priority": -3, "address": "h:1", "metadata": [1],
        });
        assert_eq!(body, expected);
        assert!(Typed::try_parse_from("acquire r i --metadata {".split(' ')).is_err());
    }

    #[test]
    fn a_grant_is_named_by_its_token() {
        let tenure = Tenure { role: "r".into(), instance: "i".into(), fencing_token: 7 };
        let call = tenure.call("renew", Some(9));
        assert_eq!(call.path, "/v1/roles/r/renew");
        let body: Value = serde_json::from_slice(&call.body.unwrap_or_default()).expect("JSON");
        assert_eq!(body, json!({"instance_id": "i", "token": 7, "ttl_ms": 9}));
    }
}
