//! `eldest exec`: runs a command while it holds a role, and never without the role.
//!
//! ```text
//!  asked ── granted ──▶ runs ◀──────── proved ────────┐
//!                        │                            │
//!                        ├─ two thirds of the ttl ─▶ frozen ── nine tenths ─▶ killed
//!                        └─ ends by itself: survivors are killed, the role is released
//! ```
//!
//! The lease is counted from when it was asked for, so the command is frozen before another instance can have the
//! role.

pub mod end;
mod group;
mod mind;
mod signals;

use std::ffi::OsString;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use serde_json::json;

use super::client::Target;
use super::exit::Failure;
use super::span::span;
use crate::client::{Error, HeldBy, Lock, LockGuard, random_id};
use end::ExecEnd;
use group::Group;
use mind::GiveUp;
use signals::PassedSignals;

#[derive(Debug, Parser)]
#[command(mut_arg("url", |url| url.visible_aliases(["nodes", "node"])))]
#[command(after_help = "\
Example:
  eldest exec --role nightly-report -- /usr/local/bin/report --all
  eldest exec --role worker --wait --ttl 10s --nodes http://10.0.0.1:9000,http://10.0.0.2:9000 -- ./worker
  eldest exec --role migration --timeout 5m -- sh -c 'migrate --fence $ELDEST_TOKEN'

The command has ELDEST_TOKEN, ELDEST_ROLE, ELDEST_INSTANCE_ID and ELDEST_LEASE_SECRET in its environment. Pass the token to
every system it writes to: a token smaller than one seen before comes from a former holder. Signals are passed to the command
and all its children, except SIGKILL, SIGSTOP, SIGPIPE, faults and realtime signals; while waiting for the role they end the
wait. A command that is still running when this program ends is killed; its stdin is empty if it would be a terminal.

Exit codes:
  the command's own, or 128+n when signal n ended it (or ended the waiting)
  2    bad usage
  121  another instance holds the role: without --wait, or after --timeout
  122  the lease was lost, and the command was killed
  125  the cluster could not be reached
  126  the command cannot be run
  127  there is no such command")]
pub struct ExecArgs {
    /// The role to hold
    #[arg(long)]
    role: String,
    /// Wait for the role as long as it takes, instead of exiting with 121
    #[arg(long)]
    wait: bool,
    /// Wait at most this long
    #[arg(long, value_name = "SPAN", value_parser = span, conflicts_with = "wait_ms")]
    timeout: Option<Duration>,
    /// The same, in milliseconds
    #[arg(long, value_name = "MS")]
    wait_ms: Option<u64>,
    /// The time for which the role stays with a holder that does not renew it
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "30s")]
    ttl: Duration,
    /// connection: the lease and a connection hold the role, so it is free a second after this program is
    /// killed; lease: the lease alone holds it, so it is free when the ttl has passed
    #[arg(long, value_name = "WHAT", value_enum, default_value = "connection")]
    held_by: By,
    /// Id of this run of the process [default: random]
    #[arg(long, value_name = "ID")]
    instance_id: Option<String>,
    #[command(flatten)]
    target: Target,
    /// The command to run, with its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum By {
    Connection,
    Lease,
}

impl From<By> for HeldBy {
    fn from(by: By) -> HeldBy {
        match by {
            By::Connection => HeldBy::Connection,
            By::Lease => HeldBy::Lease,
        }
    }
}

/// The time to find a node that answers, before the role is asked for.
const LIVE_MOST: Duration = Duration::from_millis(500);

/// The time that a node has to say that the role is still held.
const ANSWER_MOST: Duration = Duration::from_secs(1);

impl ExecArgs {
    fn wait_most(&self) -> Option<Duration> {
        self.timeout.or(self.wait_ms.map(Duration::from_millis))
    }
}

/// The first process of the group, which becomes the command.
#[derive(Debug, Parser)]
pub struct BecomeArgs {
    /// The process that started this one; if another one is the parent now, it has ended
    parent: i32,
    #[arg(required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

pub fn become_command(args: &BecomeArgs) -> Failure {
    group::become_command(args.parent, &args.command).into()
}

pub fn run(args: &ExecArgs) -> Result<(), Failure> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::NoRuntime)?;
    let end = runtime.block_on(hold_and_run(args));
    runtime.shutdown_background();
    match end {
        ExecEnd::Code(0) => Ok(()),
        end => Err(end.into()),
    }
}

async fn hold_and_run(args: &ExecArgs) -> ExecEnd {
    let mut signals = match PassedSignals::listen() {
        Ok(signals) => signals,
        Err(error) => return ExecEnd::Failed { why: error.to_string() },
    };
    let secret = random_id();
    let lock = match lock(args, &secret).await {
        Ok(lock) => lock,
        Err(end) => return end,
    };
    let guard = tokio::select! {
        biased;
        number = signals.ending() => {
            GiveUp::of(lock).await;
            return ExecEnd::Signal(number);
        }
        guard = in_time(args, obtained(args, lock.clone())) => guard,
    };
    let Some(guard) = guard else {
        GiveUp::soon(lock).await;
        let why = "no node could be reached in time, or none could grant the role; see `eldest status`";
        return ExecEnd::Failed { why: why.to_string() };
    };
    match guard {
        Ok(guard) => run_with(guard, &secret, &args.command, &mut signals).await,
        Err(error) => {
            // A node that did not answer may have granted the role.
            if matches!(error, Error::Indeterminate { .. }) {
                GiveUp::soon(lock).await;
            }
            ExecEnd::of_asking(error)
        }
    }
}

async fn lock(args: &ExecArgs, secret: &str) -> Result<Lock, ExecEnd> {
    let target = &args.target;
    let failed = |failure: Failure| match (failure.code(), failure.to_string()) {
        (2, why) => ExecEnd::Usage { why },
        (_, why) => ExecEnd::Failed { why },
    };
    let caller = target.caller().map_err(failed)?;
    // If no node answers now, the client tries all of them for a while.
    let live = tokio::time::timeout(LIVE_MOST, caller.live_first(&target.url)).await;
    let urls = live.ok().and_then(Result::ok).unwrap_or(target.url.clone());
    let client = target.builder(&urls).map_err(failed)?.secret(secret).build().map_err(ExecEnd::of_asking)?;
    let name = args.command.first().map(|name| name.to_string_lossy().into_owned());
    let about = json!({"command": name, "pid": std::process::id()});
    let lock = Lock::new(client, &args.role).ttl(args.ttl).held_by(args.held_by.into()).metadata(about);
    Ok(match &args.instance_id {
        Some(id) => lock.instance_id(id),
        None => lock,
    })
}

/// The wait is over a second after its time at the latest, also if no node says so.
async fn in_time<T>(args: &ExecArgs, obtained: impl Future<Output = T>) -> Option<T> {
    match args.wait_most() {
        Some(most) => tokio::time::timeout(most.saturating_add(ANSWER_MOST), obtained).await.ok(),
        None => Some(obtained.await),
    }
}

async fn obtained(args: &ExecArgs, lock: Lock) -> Result<LockGuard, crate::client::Error> {
    match (args.wait_most(), args.wait) {
        (Some(most), _) => lock.acquire_within(most).await,
        (None, true) => lock.acquire().await,
        (None, false) => lock.acquire_within(Duration::ZERO).await,
    }
}

async fn run_with(
    guard: LockGuard,
    secret: &str,
    command: &[OsString],
    signals: &mut PassedSignals,
) -> ExecEnd {
    let mut group = match Group::start(command, &guard, secret) {
        Ok(group) => group,
        Err(error) => {
            GiveUp::release(guard).await;
            return ExecEnd::Failed { why: error.to_string() };
        }
    };
    let end = mind::mind(&guard, &mut group, signals).await;
    let all_gone = group.clear(signals).await;
    match (&end, all_gone) {
        (ExecEnd::Lost { .. }, _) => {}
        (_, true) => GiveUp::release(guard).await,
        // Some process of the command may still be at work, so the role stays reserved until the lease lapses.
        (_, false) => {
            super::out::note("cannot kill children of the command; the role expires by itself");
            GiveUp::lapse(guard).await;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_keeps_its_own_arguments() {
        let args = ExecArgs::try_parse_from(["exec", "--role", "r", "--", "ls", "--role", "-la"])
            .expect("understood");
        assert_eq!(args.command, ["ls", "--role", "-la"]);
        assert!(ExecArgs::try_parse_from(["exec", "--", "ls"]).is_err(), "which role?");
        assert!(ExecArgs::try_parse_from(["exec", "--role", "r"]).is_err(), "which command?");
    }
}
