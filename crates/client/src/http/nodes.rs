//! Chooses the node to call: the one that answered last, or the leader that a node has named.

use std::sync::{Mutex, MutexGuard, PoisonError};

use reqwest::Url;

use crate::error::Error;

/// The nodes of the cluster, and which one calls go to.
#[derive(Debug)]
pub struct Nodes {
    urls: Vec<Url>,
    place: Mutex<Place>,
}

#[derive(Debug, Default)]
struct Place {
    at: usize,
    beside: usize,
}

impl Nodes {
    /// Reads the nodes' URLs. Fails with [`Error::BadNode`] if one is not valid, and with [`Error::BadOption`] if there is
    /// none.
    pub fn new<I: IntoIterator<Item = S>, S: AsRef<str>>(urls: I) -> Result<Nodes, Error> {
        let url = |text: S| {
            parsed(text.as_ref()).map_err(|why| Error::BadNode { url: text.as_ref().to_string(), why })
        };
        let urls = urls.into_iter().map(url).collect::<Result<Vec<_>, _>>()?;
        if urls.is_empty() {
            return Err(Error::BadOption { name: "nodes", why: "name at least one" });
        }
        Ok(Nodes { urls, place: Mutex::default() })
    }

    /// The number of nodes.
    pub fn count(&self) -> usize {
        self.urls.len()
    }

    /// The node that calls go to now.
    pub fn current(&self) -> Url {
        self.urls[self.place().at].clone()
    }

    /// A node other than the one that calls go to, if there is one, and a different one each time. A stream there survives
    /// a failure of the node that answers calls.
    pub fn beside(&self) -> Url {
        let mut place = self.place();
        place.beside = (place.beside + 1) % self.urls.len();
        if place.beside == place.at {
            place.beside = (place.beside + 1) % self.urls.len();
        }
        self.urls[place.beside].clone()
    }

    /// Notes a failure: the next call goes to the next node, unless calls already go to another one.
    pub fn failed(&self, url: &Url) {
        let mut place = self.place();
        if self.urls[place.at] == *url {
            place.at = (place.at + 1) % self.urls.len();
        }
    }

    /// Follows a hint about the leader, but only to a node in this client's list. A hint may be wrong or hostile, and
    /// every call carries the token.
    pub fn leads(&self, url: &str) {
        let Ok(url) = parsed(&alike(url, self.urls[0].as_str())) else {
            return;
        };
        if let Some(at) = self.urls.iter().position(|known| *known == url) {
            self.place().at = at;
        }
    }

    /// No change of the place can panic half-way, so a poisoned lock can be used.
    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The port of a node, unless its settings name another.
const PORT: u16 = 9000;

/// Parses a node's URL, or returns what is wrong with it. An address without a scheme and a port has the port of a node.
pub fn parsed(text: &str) -> Result<Url, &'static str> {
    let is_bare = !text.contains("://");
    let with_scheme = if is_bare { format!("http://{text}") } else { text.to_string() };
    let mut url = Url::parse(&with_scheme).map_err(|_| "write http://host:port")?;
    if is_bare && url.port().is_none() && !text.trim_end_matches('/').ends_with(":80") {
        url.set_port(Some(PORT)).map_err(|()| "write http://host:port")?;
    }
    match url.scheme() {
        "http" => Ok(url),
        "https" if cfg!(feature = "tls") => Ok(url),
        "https" => Err("this client was built without TLS"),
        _ => Err("use http or https"),
    }
}

/// The URL with the scheme of `example`. A client that uses TLS keeps using it even if a node names an `http` URL for the
/// leader: a node that serves both schemes may name either.
pub fn alike(url: &str, example: &str) -> String {
    let scheme = example.split_once("://").map_or("http", |(scheme, _)| scheme);
    match url.split_once("://") {
        Some(("http" | "https", rest)) => format!("{scheme}://{rest}"),
        _ => url.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes() -> Nodes {
        Nodes::new(["http://n1:9000", "n2:9000", "http://n3:9000"]).expect("three")
    }

    #[test]
    fn the_next_one_in_turn() {
        let nodes = nodes();
        let first = nodes.current();
        nodes.failed(&first);
        assert_eq!(nodes.current().as_str(), "http://n2:9000/");
        // Two calls that fail at the same node at the same time move on by one node only.
        nodes.failed(&first);
        assert_eq!(nodes.current().as_str(), "http://n2:9000/");
        nodes.failed(&nodes.current());
        nodes.failed(&nodes.current());
        assert_eq!(nodes.current(), first);
    }

    #[test]
    fn the_leader_that_is_named() {
        let nodes = nodes();
        nodes.leads("http://n3:9000");
        assert_eq!(nodes.current().as_str(), "http://n3:9000/");
        for strange in ["http://10.0.0.7:9000", "ftp://x", ""] {
            nodes.leads(strange);
            assert_eq!(nodes.current().as_str(), "http://n3:9000/");
        }
    }

    #[test]
    fn beside_the_one_that_is_called_each_in_turn() {
        let nodes = nodes();
        let beside: Vec<String> = (0..4).map(|_| nodes.beside().to_string()).collect();
        let [second, third] = ["http://n2:9000/", "http://n3:9000/"];
        assert_eq!(beside, [second, third, second, third]);
        nodes.leads(second);
        let beside: Vec<String> = (0..2).map(|_| nodes.beside().to_string()).collect();
        assert_eq!(beside, ["http://n1:9000/", third]);
    }

    /// A node's hint must not make a client send in plain text what it has sent over TLS.
    #[test]
    fn who_speaks_tls_goes_on_with_it() {
        let nodes = Nodes::new(["https://n1:9000", "https://n2:9000"]).expect("two");
        nodes.leads("http://n2:9000");
        assert_eq!(nodes.current().as_str(), "https://n2:9000/");
        assert_eq!(alike("https://n2:9000", "n1:9000"), "http://n2:9000");
        assert_eq!(alike("ftp://n2", "https://n1"), "ftp://n2");
    }

    #[test]
    fn an_address_alone_has_the_port_of_a_node() {
        for (text, url) in [
            ("n1", "http://n1:9000/"),
            ("n1:80", "http://n1/"),
            ("n1:8000/", "http://n1:8000/"),
            ("[::80]", "http://[::80]:9000/"),
            ("http://n1", "http://n1/"),
        ] {
            assert_eq!(parsed(text).as_ref().map(Url::as_str), Ok(url), "{text}");
        }
    }

    #[test]
    fn wrong_addresses_are_refused() {
        assert!(Nodes::new(Vec::<String>::new()).is_err());
        for url in ["ftp://n1:9000", "http://", "n1:port"] {
            assert!(matches!(Nodes::new([url]), Err(Error::BadNode { .. })), "{url}");
        }
    }
}
