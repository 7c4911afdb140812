//! `eldest role`: who holds what, and holding it from a shell.

mod ask;
mod hold;
mod look;

use clap::{Parser, Subcommand};
use serde_json::Value;

use super::client::Target;
use super::exit::Failure;
use super::out::print;
use crate::client::Request;
use ask::{Tenure, Wish, body, granted, order, path_of};

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
            let call = Request::post(order(role, "elect"), &body(instance, given));
            look::show_grant(&granted(target.call(&call).await?)?, *json)
        }
        Order::Check { role, fencing_token, target } => look::check(role, *fencing_token, target).await,
        Order::List { prefix, json, target } => look::list(prefix.as_deref(), *json, target).await,
        Order::Show { role, json, target } => {
            look::show(&target.ask(&Request::get(path_of(role))).await?, *json)
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
