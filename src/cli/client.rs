//! The nodes that the small commands call, and how the outcome of a call ends a command.
//!
//! Several addresses may be given. They are tried in turn while nothing has been sent. A node that does not lead
//! names the leader, and the call is sent to the leader, once.

use serde_json::Value;

pub use super::target::Target;
use crate::cli::exit::Failure;
use crate::cli::out::note;
use crate::client::{Answer, CallError, Caller, Client, ClientBuilder, End, Lines, Request};

impl Target {
    /// Calls the first node that accepts a connection, and the leader if that node names one.
    pub async fn call(&self, request: &Request) -> Result<Answer, Failure> {
        Ok(self.caller()?.call(&self.url, request).await?)
    }

    pub fn caller(&self) -> Result<Caller, Failure> {
        let (token, source) = self.credential()?.unzip();
        let caller = Caller::of_cluster(token, &self.tls, self.cluster_id.as_deref());
        let caller = caller.map_err(|error| match error {
            // It is a file that is missing or wrong, and the message names it.
            CallError::NoClient { why } => Failure::Certificate { why },
            error => error.into(),
        })?;
        Ok(caller.token_from(source))
    }

    /// A client that retries, as a program's client does.
    pub fn client(&self, urls: &[String]) -> Result<Client, Failure> {
        self.builder(urls)?.build().map_err(|error| Failure::Usage { what: error.to_string() })
    }

    /// The same, with further options to come.
    pub fn builder(&self, urls: &[String]) -> Result<ClientBuilder, Failure> {
        let builder = Client::builder(urls.to_vec()).tls(self.tls.clone());
        let builder =
            self.credential()?.into_iter().fold(builder, |builder, (token, _)| builder.token(token));
        Ok(self.cluster_id.iter().fold(builder, |builder, id| builder.cluster_id(id)))
    }

    /// Makes the call, and returns the JSON of the answer (or nothing). Any status but success is a refusal.
    pub async fn ask(&self, request: &Request) -> Result<Value, Failure> {
        json(&self.call(request).await?.taken()?)
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
        assert_eq!(code(CallError::NoAnswer { url: url.clone(), why: why.clone(), is_open: true }), 1);
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
