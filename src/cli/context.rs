//! `eldest context`: keeps clusters by name, so that a command need not be told where its cluster is.

use std::path::{Path, PathBuf, absolute};

use clap::{Parser, Subcommand};
use serde::Deserialize;
use serde_json::{Value, json};

use super::contexts::{ClusterContext, Contexts, context_name};
use super::exit::Failure;
use super::out::note;
use super::output::Output;
use super::table::Table;
use super::target::{CredentialArgs, Target, TlsArgs, TokenSource};
use crate::client::{CallError, Request, alike, parsed};

const LIST_EXAMPLE: &str = "Example:\n  eldest context list";
const USE_EXAMPLE: &str = "Example:\n  eldest context use prod";
const REMOVE_EXAMPLE: &str = "Example:\n  eldest context remove staging";

/// Variables that count before a context.
const BEFORE: [&str; 5] =
    ["ELDEST_URL", "ELDEST_NODES", "ELDEST_ADMIN_TOKEN", "ELDEST_TOKEN_FILE", "ELDEST_ADMIN_TOKEN_FILE"];

#[derive(Debug, Parser)]
#[command(after_help = "\
Examples:
  eldest context set prod --url https://10.0.0.1:9000 --ca ca.pem --token-file prod.token
  eldest context use prod
  eldest context list

Every command takes what it is not told from the context in use: an option counts before a variable, and a variable
before the context. With --url it counts only if the address is one of its own, so a token goes to no other cluster.
--context NAME, or ELDEST_CONTEXT, chooses another one for a command.")]
pub struct ContextArgs {
    #[command(subcommand)]
    order: Order,
}

#[derive(Debug, Subcommand)]
enum Order {
    /// Store a cluster under a name; what was stored under the name before is replaced
    Set(SetArgs),
    /// Use this cluster from now on
    #[command(after_help = USE_EXAMPLE)]
    Use {
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        output: Output,
    },
    /// List all clusters that are stored; * marks the one in use
    #[command(after_help = LIST_EXAMPLE)]
    #[command(alias = "ls")]
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Remove a name
    #[command(after_help = REMOVE_EXAMPLE)]
    #[command(aliases = ["rm", "delete"])]
    Remove {
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Debug, Parser)]
#[command(after_help = "\
Examples:
  eldest context set prod --url https://10.0.0.1:9000 --ca ca.pem --token-file prod.token
  eldest context set dev --url http://127.0.0.1:9000 --as-given

One address is enough: the cluster is asked for the others. Then all commands find a node that answers, and a node of
another cluster that has got one of these addresses refuses them. With --as-given nobody is asked. The token itself is not
stored: keep it in a file that only you may read. The first context is in use at once.")]
struct SetArgs {
    #[arg(value_name = "NAME", value_parser = context_name)]
    name: String,
    /// Any node of the cluster, or several, separated by commas
    #[arg(long, required = true, value_delimiter = ',', value_name = "URL", value_parser = address)]
    url: Vec<String>,
    /// Store the addresses as they are, and ask no node
    #[arg(long)]
    as_given: bool,
    #[command(flatten)]
    credential: CredentialArgs,
    #[command(flatten)]
    tls: TlsArgs,
    #[command(flatten)]
    output: Output,
}

/// The address as it is stored: with its scheme, and nothing but host and port.
fn address(text: &str) -> Result<String, &'static str> {
    let url = parsed(text.trim())?;
    let is_root = matches!(url.path(), "/") && url.query().is_none() && url.fragment().is_none();
    let is_anonymous = url.username().is_empty() && url.password().is_none();
    match is_root && is_anonymous {
        true => Ok(url.as_str().trim_end_matches('/').to_string()),
        false => Err("give only host and port, like http://10.0.0.1:9000"),
    }
}

/// The part of `GET /v1/members` that is stored.
#[derive(Debug, Default, Deserialize)]
struct Known {
    cluster_id: Option<String>,
    #[serde(default)]
    members: Vec<KnownMember>,
}

#[derive(Debug, Deserialize)]
struct KnownMember {
    url: String,
}

pub async fn run(args: &ContextArgs) -> Result<(), Failure> {
    match &args.order {
        Order::Set(args) => set(args).await,
        Order::Use { name, output } => {
            Contexts::read()?.named(name)?;
            Contexts::change(|contexts| {
                contexts.named(name)?;
                contexts.current = Some(name.clone());
                Ok(())
            })
            .await?;
            output.done(&json!({ "name": name, "in_use": true }), || format!("{name} is in use"))?;
            note_variables(output);
            Ok(())
        }
        Order::List { output } => list(output),
        Order::Remove { name, output } => {
            Contexts::read()?.named(name)?;
            let was_in_use = Contexts::change(|contexts| {
                contexts.named(name)?;
                contexts.contexts.remove(name);
                Ok(contexts.current.take_if(|current| current == name).is_some())
            })
            .await?;
            let told = if was_in_use { ", and no context is in use now" } else { "" };
            output.done(&json!({ "name": name, "in_use": was_in_use }), || format!("{name} is removed{told}"))
        }
    }
}

async fn set(args: &SetArgs) -> Result<(), Failure> {
    let token = args.credential.of_options().unwrap_or_default();
    let token_file = match &token {
        TokenSource::File { path, .. } => Some(path.clone()),
        TokenSource::Given { .. } if args.output.is_for_scripts() => None,
        TokenSource::Given { from, .. } => {
            note(&format!("the token of {from} is not stored: keep it in a file, and give --token-file"));
            None
        }
        TokenSource::Nowhere => None,
    };
    let tls = args.tls.files();
    let target = Target { url: args.url.clone(), token, tls: tls.clone(), ..Target::default() };
    let known = if args.as_given { Known::default() } else { ask(&target, &args.output).await? };
    if known.cluster_id.is_none() && !args.as_given && !args.output.is_for_scripts() {
        note("this cluster has no identity yet: set the context again when it has formed");
    }
    let context = ClusterContext {
        urls: addresses(&args.url, &known),
        cluster_id: known.cluster_id,
        token_file: kept(token_file)?,
        ca: kept(tls.ca)?,
        cert: kept(tls.cert)?,
        key: kept(tls.key)?,
    };
    let in_use = Contexts::change(|contexts| {
        contexts.contexts.insert(args.name.clone(), context.clone());
        // The name in use may have been removed by hand.
        let usable = contexts.current.as_ref().is_some_and(|current| contexts.contexts.contains_key(current));
        if !usable {
            contexts.current = Some(args.name.clone());
        }
        Ok(contexts.current.as_ref() == Some(&args.name))
    })
    .await?;
    args.output.done(&document(&args.name, &context, in_use), || {
        let then = match in_use {
            true => "it is in use".to_string(),
            false => format!("`eldest context use {}` uses it", args.name),
        };
        format!("{}: {}; {then}", args.name, context.urls.join(", "))
    })
}

async fn ask(target: &Target, output: &Output) -> Result<Known, Failure> {
    let asked = target.call(&Request::get("/v1/members")).await;
    if let Err(Failure::Call(CallError::NotReached { .. })) = &asked
        && !output.is_for_scripts()
    {
        note("to store addresses without asking a node, use --as-given");
    }
    Ok(asked?.taken()?.read()?)
}

/// The addresses that were given, and then those of the other members, each once.
fn addresses(given: &[String], known: &Known) -> Vec<String> {
    let example = given.first().map_or("", String::as_str);
    let members = known.members.iter().map(|member| alike(&member.url, example));
    let mut urls = Vec::new();
    for url in given.iter().cloned().chain(members) {
        let so_far = ClusterContext { urls, ..ClusterContext::default() };
        let is_new = !so_far.has_all(std::slice::from_ref(&url));
        urls = so_far.urls;
        urls.extend(is_new.then_some(url));
    }
    urls
}

/// The path as it is stored: a command may be typed in any folder. The file must exist.
fn kept(path: Option<PathBuf>) -> Result<Option<PathBuf>, Failure> {
    let of = |path: &Path| std::fs::metadata(path).and_then(|_| absolute(path)).map_err(Failure::file(path));
    path.as_deref().map(of).transpose()
}

fn list(output: &Output) -> Result<(), Failure> {
    let contexts = Contexts::read()?;
    let in_use = |name: &String| contexts.current.as_ref() == Some(name);
    let items = contexts.contexts.iter().map(|(name, context)| document(name, context, in_use(name)));
    output.list(items.collect(), |_| {
        if contexts.contexts.is_empty() {
            return "no contexts; `eldest context set NAME --url URL` makes one".to_string();
        }
        let mut table = Table::new(["", "NAME", "ADDRESSES", "TOKEN FILE", "CA"]);
        for (name, context) in &contexts.contexts {
            let path = |path: &Option<PathBuf>| {
                path.as_ref().map_or("", |path| path.to_str().unwrap_or("?")).to_string()
            };
            let mark = if in_use(name) { "*" } else { "" };
            let urls = context.urls.join(",");
            table.row([mark.to_string(), name.clone(), urls, path(&context.token_file), path(&context.ca)]);
        }
        table.to_string()
    })?;
    note_variables(output);
    Ok(())
}

fn document(name: &str, context: &ClusterContext, in_use: bool) -> Value {
    let mut document = json!({ "name": name, "in_use": in_use });
    if let (Value::Object(document), Ok(Value::Object(context))) =
        (&mut document, serde_json::to_value(context))
    {
        document.extend(context);
    }
    document
}

/// A variable that was set long ago would make the context a surprise.
fn note_variables(output: &Output) {
    let set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let set: Vec<&str> = BEFORE.into_iter().filter(|name| set(name)).collect();
    if !set.is_empty() && !output.is_for_scripts() {
        note(&format!("these variables count before a context: {}", set.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_is_stored_once() {
        let member = |url: &str| KnownMember { url: url.to_string() };
        let known =
            Known { cluster_id: None, members: vec![member("http://n1:9000"), member("http://n2:9000")] };
        let given = ["https://n2:9000".to_string()];
        assert_eq!(addresses(&given, &known), ["https://n2:9000", "https://n1:9000"]);
        let given = ["a:9000", "http://A:9000/"].map(|url| address(url).expect("valid"));
        assert_eq!(addresses(&given, &Known::default()), ["http://a:9000"]);
        for wrong in ["", "ftp://a", "http://a:9000/v1", "http://u:p@a:9000"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_must_exist_and_is_stored_with_its_whole_path() {
        let told = kept(Some(PathBuf::from("no-such-file"))).expect_err("missing").to_string();
        assert!(told.starts_with("no-such-file: "), "{told}");
        let kept = kept(Some(PathBuf::from("Cargo.toml"))).expect("there").expect("a path");
        assert!(kept.is_absolute() && kept.ends_with("Cargo.toml"));
        assert_eq!(super::kept(None).ok(), Some(None));
    }
}
