//! The command line, with one file for each subcommand. It reads arguments, calls and prints; it decides nothing.
//!
//! `serve` puts the node together. The small commands are HTTP clients like any other, and have no other access to a node.

mod backup;
mod call;
mod cert;
mod check;
mod client;
mod conflicts;
mod context;
mod contexts;
mod dev;
mod doc;
mod doctor;
mod drill;
mod exec;
mod exit;
mod feed;
mod generated;
mod help;
mod leadership;
mod local_time;
mod log;
mod manual;
mod members;
mod msg;
mod out;
mod output;
mod pages;
mod proc;
mod progress;
mod restore;
mod role;
mod serve;
mod service;
mod signals;
mod snapshot;
mod sources;
mod span;
mod status;
mod table;
mod target;
mod token;
mod top;
mod unit;
mod value;
mod why;
mod yaml;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use exit::Failure;
use help::with_tidy_ends;
use out::note;
use output::{are_for_scripts, is_for_scripts};

/// Leader, locks and a little replicated state for a handful of nodes: the lowest-index live node leads.
#[derive(Debug, Parser)]
#[command(name = "eldest", version, after_help = exit::TABLE, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run one node
    Serve(serve::ServeArgs),
    /// Run a whole cluster on this machine
    Dev(dev::DevArgs),
    /// Show every node: the leader, its heir, and nodes that lag
    Status(status::StatusArgs),
    /// Explain why: a change of leader, a role, the state of a node, a conflict or a refused call
    Why(why::WhyArgs),
    /// Check every node, and report what is wrong and how to fix it
    Doctor(doctor::DoctorArgs),
    /// Watch nodes, rates, roles and events continuously
    Top(top::TopArgs),
    /// Take the leader away under load, or restore a backup, and measure the effect
    Drill(drill::DrillArgs),
    /// Hand leadership to the given node
    Elect(leadership::ElectArgs),
    /// Hand leadership to the best heir
    Handoff(leadership::HandoffArgs),
    /// Refuse client writes on the whole cluster, or accept them again
    Service(service::ServiceArgs),
    /// List values that merges overrode, restore or drop them
    #[command(alias = "conflict")]
    Conflicts(conflicts::ConflictsArgs),
    /// Read and write documents
    #[command(alias = "docs")]
    Doc(doc::DocArgs),
    /// Acquire, renew, release and show roles
    #[command(alias = "roles")]
    Role(role::RoleArgs),
    /// Register and list processes
    #[command(aliases = ["procs", "process", "processes"])]
    Proc(proc::ProcArgs),
    /// Follow the events of the cluster
    #[command(aliases = ["events", "watch"])]
    Feed(feed::FeedArgs),
    /// Publish messages to a channel, or subscribe to it
    Msg(msg::MsgArgs),
    /// Run a command while holding a role
    Exec(exec::ExecArgs),
    /// Print a systemd unit for a command or an address that belongs where a role is held
    Unit(unit::UnitArgs),
    /// List, add, remove and move nodes of the cluster
    #[command(alias = "member")]
    Members(members::MembersArgs),
    /// Create, list and revoke client tokens
    #[command(alias = "tokens")]
    Token(token::TokenArgs),
    /// Form a new cluster while nodes are missing
    Form(leadership::FormArgs),
    /// Print or check a node's log
    Log(log::LogArgs),
    /// Print or check a node's newest state on disk
    Snapshot(snapshot::SnapshotArgs),
    /// Write the whole state to a file, or check such a file
    Backup(backup::BackupArgs),
    /// Replace all data with a backup
    Restore(restore::RestoreArgs),
    /// Keep clusters by name, with their addresses and the files of their credentials
    #[command(alias = "contexts")]
    Context(context::ContextArgs),
    /// Check settings and topology without starting anything
    Check(check::CheckArgs),
    /// Create and show certificates for nodes and clients
    Cert(cert::CertArgs),
    /// Measure a cluster
    Bench(eldest_load::Bench),
    /// Print a completion script for a shell
    Completions(generated::CompletionsArgs),
    /// Write man pages
    Man(generated::ManArgs),
    /// Make one HTTP call, for machines without curl
    Call(call::CallArgs),
    /// Internal: become a command, unless the parent process has changed
    #[command(hide = true)]
    Become(exec::BecomeArgs),
    /// Check that a node is alive and knows a leader, for container engines
    Healthcheck(doctor::HealthcheckArgs),
}

/// Runs the whole program. Wrong usage ends it with code 2.
pub fn run() -> ExitCode {
    let matches = match with_tidy_ends(Cli::command()).try_get_matches() {
        Ok(matches) => matches,
        Err(error) if error.use_stderr() && are_for_scripts(&words()) => {
            return report_json(&Failure::Usage { what: plain(&error.to_string()) });
        }
        Err(error) => plainly(error).exit(),
    };
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) if is_for_scripts(&matches) => {
            return report_json(&Failure::Usage { what: error.to_string().trim_end().to_string() });
        }
        Err(error) => plainly(error).exit(),
    };
    match dispatch(&cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if is_for_scripts(&matches) => report_json(&failure),
        Err(failure) => report(&failure),
    }
}

/// The arguments. What is not UTF-8 is shown by replacement characters.
fn words() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Messages of the number parsers, and what they mean to a person who types.
const NUMBER_ERRORS: [(&str, &str); 4] = [
    ("invalid digit found in string", "write a whole number"),
    ("cannot parse integer from empty string", "write a whole number"),
    ("number too large to fit in target type", "the number is too large"),
    ("number too small to fit in target type", "the number is too small"),
];

fn plain(text: &str) -> String {
    NUMBER_ERRORS.iter().fold(text.to_string(), |text, (theirs, ours)| text.replace(theirs, ours))
}

fn plainly(error: clap::Error) -> clap::Error {
    let text = error.to_string();
    if plain(&text) == text {
        error
    } else {
        clap::Error::raw(error.kind(), plain(&text).trim_start_matches("error: "))
    }
}

/// Reports a failure for scripts: a problem as the cluster would write it, on one line of stderr.
fn report_json(failure: &Failure) -> ExitCode {
    if matches!(failure, Failure::NobodyReads) {
        return ExitCode::SUCCESS;
    }
    // If stderr is closed, the failure cannot be reported.
    let _ = writeln!(std::io::stderr(), "{}", failure.document());
    ExitCode::from(failure.code())
}

/// Reports a failure on stderr, and returns the exit code.
fn report(failure: &Failure) -> ExitCode {
    if !matches!(failure, Failure::NobodyReads) && !matches!(failure, Failure::Exec(end) if end.is_silent()) {
        note(&failure.to_string());
    }
    ExitCode::from(failure.code())
}

fn dispatch(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Serve(args) => serve::run(args),
        Command::Log(args) => log::run(args),
        Command::Snapshot(args) => snapshot::run(args),
        Command::Check(args) => check::run(args),
        Command::Cert(args) => cert::run(args),
        Command::Exec(args) => exec::run(args),
        Command::Unit(args) => unit::run(args),
        Command::Become(args) => Err(exec::become_command(args)),
        Command::Completions(args) => generated::completions(args, Cli::command()),
        Command::Man(args) => generated::man(args, Cli::command()),
        Command::Bench(args) => Ok(args.run_here()?),
        Command::Dev(args) => small(dev::run(args)),
        Command::Status(args) => small(status::run(args)),
        Command::Why(args) => small(why::run(args)),
        Command::Doctor(args) => small(doctor::run(args)),
        Command::Top(args) => small(top::run(args)),
        Command::Drill(args) => small(drill::run(args)),
        Command::Elect(args) => small(leadership::elect(args)),
        Command::Handoff(args) => small(leadership::handoff(args)),
        Command::Context(args) => small(context::run(args)),
        Command::Service(args) => small(service::run(args)),
        Command::Conflicts(args) => small(conflicts::run(args)),
        Command::Doc(args) => small(doc::run(args)),
        Command::Role(args) => small(role::run(args)),
        Command::Proc(args) => small(proc::run(args)),
        Command::Feed(args) => small(feed::run(args)),
        Command::Msg(args) => small(msg::run(args)),
        Command::Members(args) => small(members::run(args)),
        Command::Token(args) => small(token::run(args)),
        Command::Form(args) => small(leadership::form(args)),
        Command::Backup(args) => small(backup::run(args)),
        Command::Restore(args) => small(restore::run(args)),
        Command::Call(args) => small(call::run(args)),
        Command::Healthcheck(args) => small(doctor::healthcheck(args)),
    }
}

/// Runs a command that makes a few calls. One thread is enough for it.
fn small(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::NoRuntime)?;
    let outcome = runtime.block_on(work);
    // A thread that waits for the terminal's next line would never end.
    runtime.shutdown_background();
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_help_shows_an_example() {
        for (name, help) in helps() {
            assert!(help.contains("Example") && help.contains(&format!("\n  {name}")), "{name}: {help}");
        }
    }

    /// Each subcommand at any depth, with the end of its help as a terminal gets it.
    fn helps() -> Vec<(String, String)> {
        fn below(command: &clap::Command, path: &str) -> Vec<(String, String)> {
            let of = |command: &clap::Command| {
                let name = format!("{path} {}", command.get_name());
                let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                let below = below(command, &name);
                std::iter::once((name, help)).chain(below).collect::<Vec<_>>()
            };
            command.get_subcommands().filter(|command| !command.is_hide_set()).flat_map(of).collect()
        }
        below(&with_tidy_ends(Cli::command()), "eldest")
    }

    /// Every example must be a command that can be typed.
    #[test]
    fn every_example_is_understood() {
        for (_, help) in helps() {
            let help = help.replace(" \\\n", " ");
            for line in help.lines().filter(|line| line.starts_with("  eldest ")) {
                let parsed = Cli::try_parse_from(words(line));
                assert!(
                    parsed.is_ok(),
                    "{line}: {}",
                    parsed.err().map(|error| error.to_string()).unwrap_or_default()
                );
            }
        }
    }

    /// clap would break a longer line in the middle of a command.
    #[test]
    fn every_example_fits_a_terminal() {
        for (name, help) in helps() {
            let indented = help.lines().filter(|line| line.starts_with(' '));
            let long: Vec<&str> = indented.filter(|line| line.chars().count() > 80).collect();
            assert!(long.is_empty(), "{name}: {long:?}");
        }
    }

    /// The words of a line. Blanks separate words, except between single quotes; a pipe or `&&` ends the command.
    fn words(line: &str) -> Vec<String> {
        let command = line.split(" | ").next().unwrap_or(line);
        let command = command.split(" && ").next().unwrap_or(command);
        let mut words = Vec::new();
        for (place, part) in command.split('\'').enumerate() {
            match place % 2 {
                0 => words.extend(part.split_whitespace().map(str::to_string)),
                _ => words.push(part.to_string()),
            }
        }
        words
    }

    #[test]
    fn wrong_usage_ends_with_2() {
        for line in
            ["eldest elect", "eldest elect 2 3", "eldest form", "eldest call BREW /", "eldest nonsense"]
        {
            let error = Cli::try_parse_from(line.split(' ')).expect_err(line);
            assert_eq!(error.exit_code(), 2, "{line}");
        }
        let help = Cli::try_parse_from(["eldest", "--help"]).expect_err("help is shown instead");
        assert_eq!(help.exit_code(), 0);
    }

    #[test]
    fn forming_without_confirmation_does_nothing() {
        let cli = Cli::try_parse_from(["eldest", "form", "--without", "3"]).expect("understood");
        let failure = dispatch(&cli.command).expect_err("not confirmed");
        assert_eq!(failure.code(), 2);
        assert!(failure.to_string().ends_with("nothing was done; add --yes to do it"), "{failure}");
    }
}
