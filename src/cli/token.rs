//! `eldest token`: lets clients in, shows who is let in, and shuts one out again.

use std::time::Duration;

use clap::{Parser, Subcommand};
use serde::Deserialize;
use serde_json::json;

use super::client::Target;
use super::exit::Failure;
use super::out::{note, print};
use super::table::Table;
use crate::client::{Method, Request};

#[derive(Debug, Parser)]
#[command(after_help = "\
Examples:
  eldest token create web --grant 'read docs/web/' --grant 'watch docs/web/'
  eldest token create ci --grant 'read,write docs/ci/' --ttl 12h
  eldest token list
  eldest token revoke 00f3a2c41b7d9e58

A grant is verbs (read, write, watch), an area (docs, roles, processes, channels, users, elections, status, or * for all of them)
and, behind a slash, what the names begin with. \"order\" alone lets give orders, such as these. The token is printed once: a
client shows it with --token-file, ELDEST_TOKEN_FILE or `Authorization: Bearer`.")]
pub struct Args {
    #[command(subcommand)]
    change: Change,
}

#[derive(Debug, Subcommand)]
enum Change {
    /// Make a token, and print it
    Create {
        /// For people
        name: String,
        /// What whoever shows it may do; several may be given
        #[arg(long = "grant", value_name = "GRANT", required = true)]
        grants: Vec<String>,
        /// How long it is good, such as 90s, 15m, 12h or 30d; until it is revoked unless told
        #[arg(long, value_parser = duration)]
        ttl: Option<Duration>,
        #[command(flatten)]
        target: Target,
    },
    /// Show who is let in by tokens
    List {
        #[command(flatten)]
        target: Target,
    },
    /// Shut one out, at once and for good
    Revoke {
        /// As `list` shows it
        #[arg(value_parser = id)]
        id: String,
        #[command(flatten)]
        target: Target,
    },
}

#[derive(Debug, Deserialize)]
struct Made {
    id: String,
    token: String,
}

#[derive(Debug, Deserialize)]
struct Page {
    items: Vec<Shown>,
    next: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Shown {
    id: String,
    name: String,
    grants: Vec<String>,
    made_at: String,
    ends_at: Option<String>,
}

pub async fn run(args: &Args) -> Result<(), Failure> {
    match &args.change {
        Change::Create { name, grants, ttl, target } => {
            let mut body = json!({"name": name, "grants": grants});
            if let Some(ttl) = ttl {
                body["ttl_ms"] = json!(ttl.as_millis() as u64);
            }
            let answer = target.call(&Request::post("/v1/tokens", &body)).await?.taken()?;
            let made: Made = answer.read()?;
            note(&format!("token {} is made; it is shown this once:", made.id));
            print(&made.token)
        }
        Change::List { target } => list(target).await,
        Change::Revoke { id, target } => {
            let request = Request::new(Method::DELETE, format!("/v1/tokens/{id}"));
            target.call(&request).await?.taken()?;
            print(&format!("token {id} is revoked"))
        }
    }
}

async fn list(target: &Target) -> Result<(), Failure> {
    let mut table = Table::new(["ID", "NAME", "MADE", "ENDS", "GRANTS"]);
    let mut path = "/v1/tokens".to_string();
    loop {
        let page: Page = target.call(&Request::get(path.as_str())).await?.taken()?.read()?;
        for shown in page.items {
            let ends = shown.ends_at.unwrap_or_else(|| "-".to_string());
            table.row([shown.id, shown.name, shown.made_at, ends, shown.grants.join("; ")]);
        }
        match page.next {
            Some(next) => path = format!("/v1/tokens?after={next}"),
            None => return print(&table.to_string()),
        }
    }
}

/// What is no id would be another route.
fn id(text: &str) -> Result<String, &'static str> {
    let is_id = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_id {
        Ok(text.to_string())
    } else {
        Err("an id has 16 hexadecimal digits: `eldest token list` shows them")
    }
}

fn duration(text: &str) -> Result<Duration, &'static str> {
    const WRONG: &str = "write a number and a unit: 90s, 15m, 12h or 30d";
    let unit = text.chars().last().ok_or(WRONG)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        _ => return Err(WRONG),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| WRONG)?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or(WRONG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2d"), Ok(Duration::from_secs(172_800)));
        for wrong in ["", "s", "9", "1.5h", "-1s", "1w", "99999999999999999999d", "1é"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_id_is_no_other_route() {
        assert!(id("00f3a2c41b7d9e58").is_ok());
        assert!(id("../members").is_err() && id("00f3a2c41b7d9e5").is_err());
    }
}
