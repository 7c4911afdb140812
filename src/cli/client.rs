//! The nodes that the small commands call, and how the outcome of a call ends a command.
//!
//! Several addresses may be given. They are tried in turn while nothing has been sent. A node that does not lead
//! names the leader, and the call is sent to the leader, once.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

pub use eldest_load::TlsArgs;
use serde_json::Value;

use crate::cli::exit::Failure;
use crate::cli::out::note;
use crate::client::{Answer, CallError, Caller, End, Lines, Request};

/// The nodes that `ELDEST_NODES` names, as some programs call the variable. Without it, the nodes that `eldest dev`
/// and the tour start on this machine.
pub static DEFAULT_URLS: LazyLock<String> = LazyLock::new(|| {
    let named = std::env::var("ELDEST_NODES").ok().filter(|urls| !urls.is_empty());
    named.unwrap_or_else(|| "http://127.0.0.1:9000,http://127.0.0.2:9000,http://127.0.0.3:9000".to_string())
});

/// The nodes to call, for every command that calls the cluster.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Target {
    /// Any node of the cluster; several, separated by commas, are tried in turn
    #[arg(long, env = "ELDEST_URL", default_value = &**DEFAULT_URLS, value_delimiter = ',')]
    pub url: Vec<String>,
    #[command(flatten)]
    pub token: CredentialArgs,
    #[command(flatten)]
    pub tls: TlsArgs,
}

impl Target {
    /// Calls the first node that accepts a connection, and the leader if that node names one.
    pub async fn call(&self, request: &Request) -> Result<Answer, Failure> {
        Ok(self.caller()?.call(&self.url, request).await?)
    }

    pub fn caller(&self) -> Result<Caller, Failure> {
        let (token, source) = self.token.credential()?.unzip();
        Ok(Caller::with_tls(token, &self.tls.files())?.token_from(source))
    }

    /// Makes the call, and returns the JSON of the answer (or nothing). Any status but success is a refusal.
    pub async fn ask(&self, request: &Request) -> Result<Value, Failure> {
        json(&self.call(request).await?.taken()?)
    }
}

/// The token to send with each call.
#[derive(Clone, Debug, Default, clap::Args)]
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

impl CredentialArgs {
    pub fn of(token: String) -> CredentialArgs {
        CredentialArgs { token: Some(token), ..CredentialArgs::default() }
    }

    /// Returns the token, if there is one, and where it comes from. Arguments count before variables, because a variable may have been
    /// set long ago. An empty variable counts as one that is not set.
    pub fn credential(&self) -> Result<Option<(String, String)>, Failure> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let of_file = |path: &Path, named: String| {
            let text = std::fs::read_to_string(path).map_err(Failure::file(path))?;
            Ok(Some((text.trim().to_string(), format!("{named} ({})", path.display()))))
        };
        if let Some(token) = &self.token {
            return Ok(Some((token.clone(), "--token".to_string())));
        }
        for (path, flag) in
            [(&self.token_file, "--token-file"), (&self.admin_token_file, "--admin-token-file")]
        {
            if let Some(path) = path {
                return of_file(path, flag.to_string());
            }
        }
        if let Some(token) = variable("ELDEST_ADMIN_TOKEN") {
            let name = "ELDEST_ADMIN_TOKEN".to_string();
            let wrong = |_| Failure::Usage { what: format!("{name} is not valid UTF-8") };
            return Ok(Some((token.into_string().map_err(wrong)?, name)));
        }
        for name in ["ELDEST_TOKEN_FILE", "ELDEST_ADMIN_TOKEN_FILE"] {
            if let Some(path) = variable(name) {
                return of_file(Path::new(&path), name.to_string());
            }
        }
        Ok(None)
    }
}

/// An answer without a body gives null.
pub fn json(answer: &Answer) -> Result<Value, Failure> {
    if answer.body.is_empty() { Ok(Value::Null) } else { Ok(answer.read()?) }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        Failure::Call(error)
    }
}

/// Parses an argument that is JSON.
pub fn json_text(text: &str) -> Result<Value, String> {
    serde_json::from_str(text)
        .map_err(|error| format!("not valid JSON: {error}; write a string as '{}'", Value::from(text)))
}

// The functions below read an endless answer in order to print it.

/// The next line. Returns `None` when the answer has ended or has broken off.
pub async fn next(lines: &mut Lines) -> Result<Option<String>, Failure> {
    match lines.next().await {
        Ok(line) => Ok(Some(line)),
        Err(End::Ended) => Ok(None),
        Err(End::BrokenOff { why }) => {
            note(&format!("{}: {why}", lines.url()));
            Ok(None)
        }
        Err(End::TooLong { why }) => Err(CallError::Strange { url: lines.url().to_string(), why }.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(error: CallError) -> u8 {
        Failure::from(error).code()
    }

    #[test]
    fn each_error_has_its_code() {
        let (url, why) = (String::from("http://n1"), String::new());
        assert_eq!(code(CallError::NoClient { why: why.clone() }), 1);
        assert_eq!(code(CallError::NotAnAddress { url: url.clone(), why: "" }), 2);
        assert_eq!(code(CallError::NotReached { tried: Vec::new() }), 3);
        assert_eq!(code(CallError::NoAnswer { url: url.clone(), why: why.clone() }), 1);
        assert_eq!(code(CallError::Strange { url, why }), 1);
        assert_eq!(code(CallError::Refused(Box::default())), 4);
    }

    #[tokio::test]
    async fn a_closed_port_is_not_reachable() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        drop(listener);
        let target = Target { url: vec![url.clone(), url], ..Target::default() };
        let failure = target.ask(&Request::get("/livez")).await.expect_err("closed");
        assert!(
            matches!(&failure, Failure::Call(CallError::NotReached { tried }) if tried.len() == 2),
            "{failure}"
        );
        assert_eq!(failure.code(), 3);
    }
}
