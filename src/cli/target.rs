//! The cluster that a command calls: the addresses of its nodes, and what to show them.
//!
//! An option counts before a variable, and a variable before the context that is in use. What a context holds is shown to
//! its own nodes only: with addresses from elsewhere it does not count.

use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches, Id};
pub use eldest_load::TlsArgs;

use super::contexts::{ClusterContext, Contexts};
use super::exit::Failure;
use crate::client::Tls;

/// The nodes that `eldest dev` and the tour start on this machine.
const DEFAULT_URLS: [&str; 3] = ["http://127.0.0.1:9000", "http://127.0.0.2:9000", "http://127.0.0.3:9000"];

/// The nodes to call, for every command that calls the cluster.
#[derive(Clone, Debug, Default)]
pub struct Target {
    pub url: Vec<String>,
    /// Whether an option, a variable or a context names the cluster. Otherwise these are the nodes of `eldest dev`.
    pub is_named: bool,
    pub token: TokenSource,
    pub tls: Tls,
    /// Calls name this cluster, and a node of another one refuses them.
    pub cluster_id: Option<String>,
    /// Why there is no cluster to call. A command that calls none goes on.
    pub wrong: Option<String>,
}

/// The origin of the token. A refusal shows `from`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TokenSource {
    #[default]
    Nowhere,
    Given {
        token: String,
        from: String,
    },
    /// The file is read for each command, so that a new token counts at once.
    File {
        path: PathBuf,
        from: String,
    },
}

impl Target {
    /// The token, if there is one, and where it comes from.
    pub fn credential(&self) -> Result<Option<(String, String)>, Failure> {
        if let Some(what) = &self.wrong {
            return Err(Failure::Usage { what: what.clone() });
        }
        match &self.token {
            TokenSource::Nowhere => Ok(None),
            TokenSource::Given { token, from } => checked(token, from.clone()),
            TokenSource::File { path, from } => {
                let text = std::fs::read_to_string(path).map_err(Failure::file(path))?;
                checked(text.trim(), format!("{from} ({})", path.display()))
            }
        }
    }
}

/// The options, as they are parsed.
#[derive(Clone, Debug, Args)]
struct TargetArgs {
    /// Any node of the cluster; several, separated by commas, are tried in turn [default: the context in use, else the
    /// nodes of `eldest dev`]
    #[arg(long, env = "ELDEST_URL", value_delimiter = ',')]
    url: Vec<String>,
    /// The context to use, instead of the one in use (see `eldest context`)
    #[arg(long, env = "ELDEST_CONTEXT", value_name = "NAME")]
    context: Option<String>,
    #[command(flatten)]
    credential: CredentialArgs,
    #[command(flatten)]
    tls: TlsArgs,
}

/// The token to send with each call.
#[derive(Clone, Debug, Default, Args)]
pub struct CredentialArgs {
    /// A client token or the admin token, if the cluster requires one; prefer the variable, which `ps` does not show
    /// [env: ELDEST_ADMIN_TOKEN]
    #[arg(long)]
    token: Option<String>,
    /// A file with a client token or the admin token [env: ELDEST_TOKEN_FILE]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A file with the admin token, shared by all commands [env: ELDEST_ADMIN_TOKEN_FILE]
    #[arg(long, value_name = "FILE", hide = true)]
    admin_token_file: Option<PathBuf>,
}

/// An empty token, or one of several lines, is a mistake: without this check the call would go out without a token, or not at all.
fn checked(token: &str, from: String) -> Result<Option<(String, String)>, Failure> {
    let wrong = |why: &str| Err(Failure::Usage { what: format!("the token of {from} {why}") });
    match token {
        "" => wrong("is empty"),
        token if !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
            wrong("is not one word: give a token, or a file that has nothing but the token")
        }
        token => Ok(Some((token.to_string(), from))),
    }
}

/// Distinguishes options that were typed from variables.
#[derive(Clone, Copy)]
struct Said<'a>(&'a ArgMatches);

impl Said<'_> {
    fn is_option(self, id: &str) -> bool {
        self.0.value_source(id) == Some(ValueSource::CommandLine)
    }
}

impl TargetArgs {
    /// The addresses of the option, else of `ELDEST_URL`, else of `ELDEST_NODES`, as some programs call the variable.
    /// An empty variable counts as one that is not set.
    fn url(&self, said: Said<'_>) -> Vec<String> {
        if said.is_option("url") {
            return self.url.clone();
        }
        let nodes = std::env::var("ELDEST_NODES").unwrap_or_default();
        let set = |urls: &[String]| -> Vec<String> {
            urls.iter().map(|url| url.trim().to_string()).filter(|url| !url.is_empty()).collect()
        };
        let urls = set(&self.url);
        if urls.is_empty() { set(&nodes.split(',').map(str::to_string).collect::<Vec<_>>()) } else { urls }
    }

    fn resolve(self, said: Said<'_>) -> Result<Target, Failure> {
        let is_typed = said.is_option("context");
        let urls = if is_typed { Vec::new() } else { self.url(said) };
        let context = self.context(said, &urls)?.unwrap_or_default();
        let token = match self.credential.of_options() {
            Some(token) => token,
            // A context that is typed counts before variables: their token may be for another cluster.
            None if is_typed => token_of(&context),
            None => match of_variables()? {
                TokenSource::Nowhere => token_of(&context),
                token => token,
            },
        };
        let tls = tls(self.tls.files(), &context, |id| said.is_option(id) || !is_typed);
        // With an address that is typed, the caller decides which cluster it is.
        let cluster_id = context.cluster_id.filter(|_| !said.is_option("url"));
        let named = [urls, context.urls].into_iter().find(|urls| !urls.is_empty());
        let is_named = named.is_some();
        let url = named.unwrap_or_else(|| DEFAULT_URLS.map(str::to_string).to_vec());
        Ok(Target { url, is_named, token, tls, cluster_id, wrong: None })
    }

    /// The context that counts for these addresses, or for none.
    fn context(&self, said: Said<'_>, urls: &[String]) -> Result<Option<ClusterContext>, Failure> {
        let is_typed = said.is_option("context");
        let wrong = |what: String| Err(Failure::Usage { what });
        match self.context.as_deref() {
            Some("") if is_typed => wrong("--context is empty: give the name of a context".to_string()),
            Some(_) if is_typed && said.is_option("url") => {
                wrong("use --url or --context, not both".to_string())
            }
            name if urls.is_empty() => {
                let name = name.filter(|name| !name.is_empty());
                Ok(Contexts::read()?.chosen(name)?.cloned())
            }
            Some(name) if !name.is_empty() && !said.is_option("url") => {
                let context = Contexts::read()?.named(name)?.clone();
                match context.has_all(urls) {
                    true => Ok(Some(context)),
                    false => wrong(format!(
                        "ELDEST_CONTEXT ({name}) and the addresses of ELDEST_URL or ELDEST_NODES ({}) differ: unset one",
                        urls.join(",")
                    )),
                }
            }
            // A file that is wrong breaks no command that needs no context.
            name => {
                let contexts = Contexts::read().unwrap_or_default();
                let chosen = contexts.chosen(name.filter(|name| !name.is_empty())).ok().flatten();
                Ok(chosen.filter(|context| context.has_all(urls)).cloned())
            }
        }
    }
}

/// The files of the options and variables, and for the rest those of the context. `counts` says whether one that is given
/// counts before the context. A certificate and its key belong together.
fn tls(given: Tls, context: &ClusterContext, counts: impl Fn(&str) -> bool) -> Tls {
    let ca = match (given.ca, &context.ca) {
        (Some(_), Some(known)) if !counts("tls_ca") => Some(known.clone()),
        (given, known) => given.or(known.clone()),
    };
    let (cert, key) = match &context.cert {
        Some(known) if given.cert.is_none() || !counts("tls_cert") => {
            (Some(known.clone()), context.key.clone())
        }
        _ => (given.cert, given.key),
    };
    Tls { ca, cert, key }
}

fn token_of(context: &ClusterContext) -> TokenSource {
    let file = |path: &PathBuf| TokenSource::File { path: path.clone(), from: "the context".to_string() };
    context.token_file.as_ref().map_or(TokenSource::Nowhere, file)
}

impl CredentialArgs {
    pub fn of_options(&self) -> Option<TokenSource> {
        if let Some(token) = &self.token {
            return Some(TokenSource::Given { token: token.clone(), from: "--token".to_string() });
        }
        let files = [(&self.token_file, "--token-file"), (&self.admin_token_file, "--admin-token-file")];
        files.into_iter().find_map(|(path, flag)| Some(file(path.as_ref()?, flag)))
    }
}

/// An empty variable counts as one that is not set.
fn of_variables() -> Result<TokenSource, Failure> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(token) = variable("ELDEST_ADMIN_TOKEN") {
        let from = "ELDEST_ADMIN_TOKEN".to_string();
        let wrong = |_| Failure::Usage { what: format!("{from} is not valid UTF-8") };
        let token = token.into_string().map_err(wrong)?;
        return Ok(TokenSource::Given { token, from });
    }
    let files = ["ELDEST_TOKEN_FILE", "ELDEST_ADMIN_TOKEN_FILE"];
    Ok(files.into_iter().find_map(|name| Some(file(Path::new(&variable(name)?), name))).unwrap_or_default())
}

fn file(path: &Path, from: &str) -> TokenSource {
    TokenSource::File { path: path.to_path_buf(), from: from.to_string() }
}

// The options are parsed as `TargetArgs`, and what is missing is filled in at once.

impl FromArgMatches for Target {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Target, clap::Error> {
        let resolved = TargetArgs::from_arg_matches(matches)?.resolve(Said(matches));
        Ok(resolved
            .unwrap_or_else(|failure| Target { wrong: Some(failure.to_string()), ..Target::default() }))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Target::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Target {
    fn group_id() -> Option<Id> {
        TargetArgs::group_id()
    }

    fn augment_args(command: Command) -> Command {
        TargetArgs::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        TargetArgs::augment_args_for_update(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> Option<PathBuf> {
        Some(PathBuf::from(name))
    }

    #[test]
    fn a_certificate_and_its_key_come_from_one_place() {
        let context = ClusterContext {
            ca: path("ca"),
            cert: path("cert"),
            key: path("key"),
            ..ClusterContext::default()
        };
        let all = Tls { ca: path("ca"), cert: path("cert"), key: path("key") };
        assert_eq!(tls(Tls::default(), &context, |_| true), all);
        let other_ca = Tls { ca: path("other"), ..Tls::default() };
        assert_eq!(tls(other_ca.clone(), &context, |_| true), Tls { ca: path("other"), ..all.clone() });
        assert_eq!(tls(other_ca, &context, |_| false), all, "a variable, and the context was typed");
        let other = Tls { cert: path("own"), ..Tls::default() };
        assert_eq!(tls(other, &context, |_| true), Tls { cert: path("own"), key: None, ..all });
    }

    #[test]
    fn options_count_before_everything() {
        let args =
            CredentialArgs { token: Some("t".into()), token_file: path("f"), ..CredentialArgs::default() };
        assert!(matches!(args.of_options(), Some(TokenSource::Given { .. })));
        let args = CredentialArgs {
            token_file: path("f"),
            admin_token_file: path("g"),
            ..CredentialArgs::default()
        };
        assert_eq!(args.of_options(), Some(file(Path::new("f"), "--token-file")));
        assert_eq!(CredentialArgs::default().of_options(), None);
    }
}
