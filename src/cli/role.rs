//! `eldest role`: shows which instance holds a role, and holds roles from a shell.

mod ask;
mod hold;
mod look;

use clap::{Parser, Subcommand};
use serde_json::Value;

use super::client::Target;
use super::exit::Failure;
use super::output::Output;
use super::span::Ttl;
use crate::client::Request;
use ask::{Tenure, Wish, body, granted, order, path_of};

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest role acquire jobs host-1 --ttl 10s --wait 5s
  eldest role renew jobs host-1 1767323045000000
  eldest role release jobs host-1 1767323045000000
  eldest role elect jobs host-2
  eldest role check jobs 1767323045000000
  eldest role list --prefix jobs
  eldest role show jobs --json
  eldest role hold jobs host-1

A token rises with every grant: hand it to whatever the role protects, which refuses lower ones. `hold` renews for as
long as it runs, and gives the role back at Ctrl-C.")]
pub struct RoleArgs {
    #[command(subcommand)]
    order: Order,
}

#[derive(Debug, Subcommand)]
enum Order {
    /// Take a role if nobody has it, and print its token
    Acquire {
        #[command(flatten)]
        wish: Wish,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Go on holding it
    Renew {
        #[command(flatten)]
        tenure: Tenure,
        #[command(flatten)]
        ttl: Ttl,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Give it back
    Release {
        #[command(flatten)]
        tenure: Tenure,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Name the holder: whoever has it loses it
    Elect {
        role: String,
        /// Who is to have it
        instance: String,
        #[command(flatten)]
        ttl: Ttl,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// End with 0 if this token is the newest
    Check {
        role: String,
        /// As `acquire` printed it
        fencing_token: u64,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Show the roles that are held, in the order of their names
    List {
        /// Only those whose names begin like this
        #[arg(long)]
        prefix: Option<String>,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Show one
    Show {
        role: String,
        #[command(flatten)]
        output: Output,
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

pub async fn run(args: &RoleArgs) -> Result<(), Failure> {
    match &args.order {
        Order::Acquire { wish, output, target } => acquire(wish, output, target).await,
        Order::Renew { tenure, ttl, output, target } => {
            let said = granted(target.call(&tenure.call("renew", ttl.millis())).await?)?;
            let (holder, left) = (&tenure.instance, &said["expires_in_ms"]);
            output.done(&said, || format!("{holder} has it for {left} ms"))
        }
        Order::Release { tenure, output, target } => {
            let said = granted(target.call(&tenure.call("release", None)).await?)?;
            output.done(&said, || format!("{} is free", tenure.role))
        }
        Order::Elect { role, instance, ttl, output, target } => {
            let given = [("ttl_ms", ttl.millis().map(Value::from))];
            let call = Request::post(order(role, "elect"), &body(instance, given));
            output.show(&granted(target.call(&call).await?)?, look::grant)
        }
        Order::Check { role, fencing_token, output, target } => {
            look::check(role, *fencing_token, output, target).await
        }
        Order::List { prefix, output, target } => look::list(prefix.as_deref(), output, target).await,
        Order::Show { role, output, target } => {
            look::show(&target.ask(&Request::get(path_of(role))).await?, output)
        }
        Order::Hold { wish, target } => hold::run(wish, target).await,
    }
}

async fn acquire(wish: &Wish, output: &Output, target: &Target) -> Result<(), Failure> {
    let mut said = granted(target.call(&wish.call()).await?)?;
    if wish.waits() {
        // The age of a grant that was waited for is unknown. The age of a renewal is known.
        let renewed = granted(target.call(&wish.tenure(&said).call("renew", None)).await?)?;
        said["expires_in_ms"] = renewed["expires_in_ms"].clone();
    }
    output.show(&said, look::grant)
}
