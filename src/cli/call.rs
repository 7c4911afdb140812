//! `eldest call`: one HTTP call, for images and machines that have no curl.

use clap::Parser;

use super::client::Target;
use super::exit::Failure;
use super::out::Out;
use crate::client::{ACT_MAX, Method, Request};

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest call PUT /v1/docs/greeting '\"hello\"'
  eldest call GET /v1/docs/greeting")]
pub struct CallArgs {
    /// GET, PUT, POST or DELETE
    #[arg(value_parser = method)]
    method: Method,
    /// The path, such as /v1/status
    #[arg(value_parser = path)]
    path: String,
    /// The body, as JSON
    body: Option<String>,
    #[command(flatten)]
    target: Target,
}

fn method(text: &str) -> Result<Method, &'static str> {
    const KNOWN: [Method; 5] = [Method::GET, Method::PUT, Method::POST, Method::DELETE, Method::HEAD];
    KNOWN
        .into_iter()
        .find(|method| method.as_str().eq_ignore_ascii_case(text))
        .ok_or("unsupported method: use GET, PUT, POST or DELETE")
}

fn path(text: &str) -> Result<String, &'static str> {
    if text.starts_with('/') { Ok(text.to_string()) } else { Err("a path must start with a slash") }
}

/// Prints the body of the answer unchanged. A refusal ends the command like in every other command.
pub async fn run(args: &CallArgs) -> Result<(), Failure> {
    let mut request = Request::new(args.method.clone(), args.path.as_str()).within(ACT_MAX);
    if let Some(body) = &args.body {
        request = request.body(body.as_str());
    }
    let answer = args.target.call(&request).await?.taken()?;
    let mut out = Out::new();
    if !answer.body.is_empty() {
        out.line(answer.body.strip_suffix(b"\n").unwrap_or(&answer.body))?;
    }
    out.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_and_paths() {
        assert_eq!(method("put"), Ok(Method::PUT));
        assert!(method("BREW").is_err());
        assert!(path("v1/status").is_err());
    }
}
