//! `eldest role`: shows which instance holds a role, and holds roles from a shell.

mod ask;
mod hold;
mod look;

use clap::{Parser, Subcommand};
use serde_json::Value;

use super::client::Target;
use super::exit::Failure;
use super::output::Output;
use super::pages::{Listing, Reading};
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

The token rises with every grant: pass it to the resource that the role protects, which should refuse lower ones. `hold`
renews while it runs, and releases the role on Ctrl-C.")]
pub struct RoleArgs {
    #[command(subcommand)]
    order: Order,
}

#[derive(Debug, Subcommand)]
enum Order {
    /// Acquire a role if it is free, and print its token
    #[command(after_help = "Example:\n  eldest role acquire jobs host-1 --ttl 10s --wait 5s")]
    Acquire {
        #[command(flatten)]
        wish: Wish,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Renew the lease of a role
    #[command(after_help = "Example:\n  eldest role renew jobs host-1 1767323045000000")]
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
    /// Release a role
    #[command(after_help = "Example:\n  eldest role release jobs host-1 1767323045000000")]
    Release {
        #[command(flatten)]
        tenure: Tenure,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Set the holder; the current holder loses the role
    #[command(after_help = "Example:\n  eldest role elect jobs host-2 --ttl 30s")]
    Elect {
        role: String,
        /// The instance that gets the role
        instance: String,
        #[command(flatten)]
        ttl: Ttl,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Exit with 0 if this token is the newest
    #[command(after_help = "Example:\n  eldest role check jobs 1767323045000000")]
    Check {
        role: String,
        /// The token that `acquire` printed
        fencing_token: u64,
        #[command(flatten)]
        reading: Reading,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// List held roles, ordered by name
    #[command(after_help = "Example:\n  eldest role list --prefix jobs")]
    #[command(alias = "ls")]
    List {
        /// Show only names with this prefix
        #[arg(long)]
        prefix: Option<String>,
        #[command(flatten)]
        listing: Listing,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Show one role
    #[command(after_help = "Example:\n  eldest role show jobs --json")]
    Show {
        role: String,
        #[command(flatten)]
        reading: Reading,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Acquire a role and hold it until Ctrl-C, or until it is lost
    #[command(after_help = "Example:\n  eldest role hold jobs host-1")]
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
            output.done(&said, || format!("{holder} holds it for {left} ms"))
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
        Order::Check { role, fencing_token, reading, output, target } => {
            look::check(role, *fencing_token, reading, output, target).await
        }
        Order::List { prefix, listing, output, target } => {
            look::list(prefix.as_deref(), listing, output, target).await
        }
        Order::Show { role, reading, output, target } => {
            look::show(&target.ask(&Request::get(reading.of(&path_of(role)))).await?, output)
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
