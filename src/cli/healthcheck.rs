//! `eldest healthcheck`: checks whether the node on this machine lives, for containers without curl.

use clap::Parser;

use super::client::TlsArgs;
use super::exit::Failure;
use crate::client::{Caller, Request};

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest healthcheck

Ends with 0 if the node lives and with another code if not, as container engines want it.")]
pub struct HealthcheckArgs {
    /// The node's own address
    #[arg(long, env = "ELDEST_URL", default_value = "http://127.0.0.1:9000")]
    url: String,
    #[command(flatten)]
    tls: TlsArgs,
}

pub async fn run(args: &HealthcheckArgs) -> Result<(), Failure> {
    let caller = Caller::with_tls(None, &args.tls.files())?;
    caller.at(&args.url, &Request::get("/livez")).await?.taken()?;
    Ok(())
}
