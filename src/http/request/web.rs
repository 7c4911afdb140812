//! Protects the node from web pages. Any page can make its reader's browser call this node. If the page's owner points a domain name at
//! this node, the page can even read the responses. Browsers state the origin of a call and the name that was called; a program that
//! states neither is not a browser and is let through.
//!
//! - A call by a name other than this node's (`Host`) is refused: addresses, localhost and the topology's names are its own.
//!   With a credential any name is accepted: a page without a credential cannot show one.
//! - A call from another origin (`Origin`, `Sec-Fetch-Site`) is refused, unless an operator allows that origin, or it is that of
//!   another member: the dashboard of a node that has died goes on with the others.
//!
//! Both checks are needed. The first stops a page that has pointed its own name at this node: for the
//! browser, page and node are then one origin. The second stops a page that calls the node by its right name.

use std::net::IpAddr;

use axum::body::Body;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HOST, HeaderName,
    HeaderValue, ORIGIN, VARY,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Response, StatusCode, Version};

use crate::http::answer::{Code, Problem};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The request headers that a page of an allowed origin may send in addition to those of any page.
const ALLOWED_HEADERS: HeaderValue = HeaderValue::from_static(
    "accept, authorization, content-type, eldest-secret, idempotency-key, if-match, if-none-match, if-role, \
     last-event-id, x-request-id",
);
const ALLOWED_METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, DELETE");
/// The response headers that such a page may read in addition to those of any page.
const EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static(
    "eldest-node, eldest-leader, eldest-epoch, eldest-index, eldest-acks, eldest-age-ms, eldest-expires-in-ms, etag, \
     idempotency-replayed, retry-after, x-request-id",
);
/// The time that a browser may cache the answer about an origin, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// Pages that change nothing, and may be opened from anywhere.
const OPEN_PAGES: [&str; 4] = ["/", "/livez", "/readyz", "/leader"];

#[derive(Debug, Default)]
pub struct Web {
    /// Names of this node in addition to those of the topology, and origins that may call it. In lower case.
    pub hosts: Vec<String>,
    pub origins: Vec<String>,
}

/// Returns the name by which a node was called, without a port. None if an old program states none. A call with two `Host`
/// headers, with a `Host` that differs from `:authority`, or on HTTP/1 with a whole URL as its target is refused: a proxy and
/// this node might take different ones as the name.
pub fn host(request: &Parts) -> Result<Option<&str>, Problem> {
    let mut hosts = request.headers.get_all(HOST).iter();
    let (given, second) = (hosts.next(), hosts.next());
    if second.is_some() {
        return Err(Problem::field("Host", "send one Host header, not several"));
    }
    let given = given
        .map(|host| host.to_str().map_err(|_| Problem::field("Host", "it is not a host name")))
        .transpose()?;
    let target = request.uri.authority().map(|authority| authority.as_str());
    let authority = match (request.version, target, given) {
        (Version::HTTP_2, Some(target), given) => {
            if given.is_some_and(|given| !given.eq_ignore_ascii_case(target)) {
                return Err(Problem::field("Host", "it differs from :authority"));
            }
            Some(target)
        }
        (Version::HTTP_2 | Version::HTTP_10, None, given) => given,
        (_, Some(_), _) => {
            let detail = "this node is not a proxy: send only the path, and the name in Host";
            return Err(Problem::field("path", detail));
        }
        (_, None, None) => return Err(Problem::field("Host", "HTTP/1.1 needs a Host header")),
        (_, None, given) => given,
    };
    Ok(authority.map(without_port))
}

/// Removes the port, and the brackets around an IPv6 address.
fn without_port(authority: &str) -> &str {
    let name = match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => authority,
    };
    name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name)
}

impl Web {
    /// Checks that a node may be called by this name; `is_member` knows the topology's names. None if the call states no name.
    /// Any address is accepted: a page can point a name of its owner at this node, but it cannot be served
    /// under an address that it does not have.
    pub fn check_host(&self, host: Option<&str>, is_member: impl Fn(&str) -> bool) -> Result<(), Problem> {
        let Some(host) = host else {
            return Ok(());
        };
        let name = host.strip_suffix('.').unwrap_or(host);
        if name.parse::<IpAddr>().is_ok() {
            return Ok(());
        }
        let name = name.to_ascii_lowercase();
        let local = name == "localhost" || name.ends_with(".localhost");
        if local || self.hosts.contains(&name) || is_member(&name) {
            return Ok(());
        }
        let detail = "Host is not a name of this node: call it by an address or by a name of the topology, or \
            list the name in allowed_hosts";
        Err(Problem::new(Code::Forbidden, detail).with("field", "Host").with("setting", "allowed_hosts"))
    }

    /// Returns the origin that may read the response, if the call comes from a page of another origin.
    /// Browsers send `Origin` with everything but plain reads, and `Sec-Fetch-Site` with all calls by https
    /// or to the loopback. `same-site` is foreign, too: another port of this machine has the same site.
    pub fn check_origin(
        &self,
        request: &Parts,
        is_member: impl Fn(&str) -> bool,
    ) -> Result<Option<HeaderValue>, Problem> {
        let headers = &request.headers;
        if let Some(origin) = headers.get(ORIGIN) {
            let text = origin.to_str().unwrap_or_default().to_ascii_lowercase();
            if is_own(&text, request) {
                return Ok(None);
            }
            let is_allowed = self.origins.contains(&text) || is_member(&text);
            return if is_allowed { Ok(Some(origin.clone())) } else { Err(foreign("Origin")) };
        }
        let site = headers.get(SEC_FETCH_SITE).map(HeaderValue::as_bytes);
        let reads = [Method::GET, Method::HEAD].contains(&request.method);
        let open = reads && OPEN_PAGES.contains(&request.uri.path());
        match site {
            Some(b"cross-site" | b"same-site") if !open => Err(foreign("Sec-Fetch-Site")),
            _ => Ok(None),
        }
    }
}

/// Returns whether the page was served by this node, or by a proxy in front of it, under the name that the call uses.
/// The scheme is not compared: a proxy may take TLS for this node. `null`, which a sandboxed page sends, has
/// no authority and is foreign.
fn is_own(origin: &str, request: &Parts) -> bool {
    let called = request.headers.get(HOST).and_then(|host| host.to_str().ok());
    let called = request.uri.authority().map(|authority| authority.as_str()).or(called);
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    authority.zip(called).is_some_and(|(authority, called)| authority.eq_ignore_ascii_case(called))
}

fn foreign(field: &'static str) -> Problem {
    let detail = "a page of another origin sent this, and its origin is not in allowed_origins";
    Problem::new(Code::Forbidden, detail).with("field", field).with("setting", "allowed_origins")
}

/// Returns whether this is the question that a browser asks before it sends a request that forms cannot send. The answer names no
/// origin: `allow` adds it, and only if `check_origin` has accepted it.
pub fn is_preflight(request: &Parts) -> bool {
    request.method == Method::OPTIONS && request.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

pub fn preflight() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, ALLOWED_METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    response
}

/// Tells the browser that this origin may read the response.
/// `Vary` keeps a cache from giving one origin's answer to another.
pub fn allow(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
    headers.append(VARY, HeaderValue::from_static("origin"));
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn request(line: &str, version: Version, headers: &[(&str, &str)]) -> Parts {
        let (method, target) = line.split_once(' ').expect("a method and a target");
        let builder = Request::builder().method(method).uri(target).version(version);
        let add = |builder: axum::http::request::Builder, (name, value): &(&str, &str)| {
            builder.header(*name, *value)
        };
        headers.iter().fold(builder, add).body(()).expect("it is well formed").into_parts().0
    }

    fn called(target: &str, version: Version, hosts: &[&str]) -> Result<Option<String>, Code> {
        let headers: Vec<_> = hosts.iter().map(|host| ("host", *host)).collect();
        let request = request(&format!("GET {target}"), version, &headers);
        host(&request).map(|host| host.map(str::to_string)).map_err(|problem| problem.code())
    }

    #[test]
    fn a_call_says_once_by_which_name_it_was_made() {
        let some = |host: &str| Ok(Some(host.to_string()));
        assert_eq!(called("/", Version::HTTP_11, &["n1:9000"]), some("n1"));
        assert_eq!(called("/", Version::HTTP_11, &["[::1]:9000"]), some("::1"));
        assert_eq!(called("/", Version::HTTP_11, &["[::1]"]), some("::1"));
        assert_eq!(called("http://n1:9000/", Version::HTTP_2, &[]), some("n1"));
        assert_eq!(called("http://n1:9000/", Version::HTTP_2, &["n1:9000"]), some("n1"));
        assert_eq!(called("/", Version::HTTP_10, &[]), Ok(None));
        for (target, version, hosts) in [
            ("/", Version::HTTP_11, &[][..]),
            ("/", Version::HTTP_11, &["a", "b"]),
            ("/", Version::HTTP_11, &["a", "a"]),
            ("http://n1/", Version::HTTP_11, &["n1"]),
            ("http://n1/", Version::HTTP_10, &[]),
            ("http://n1/", Version::HTTP_2, &["n2"]),
        ] {
            assert_eq!(called(target, version, hosts), Err(Code::BadField), "{target} {version:?} {hosts:?}");
        }
    }

    #[test]
    fn only_names_of_the_node_are_answered() {
        let web = Web { hosts: vec!["eldest.example".to_string()], ..Web::default() };
        let check = |host: &str| web.check_host(Some(host), |name| name == "node-1").is_ok();
        for good in [
            "127.0.0.1",
            "10.1.2.3",
            "::1",
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "Node-1",
            "eldest.Example",
        ] {
            assert!(check(good), "{good}");
        }
        for wrong in
            ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "xlocalhost", "node-12"]
        {
            assert!(!check(wrong), "{wrong}");
        }
    }

    #[test]
    fn pages_of_other_origins_are_told_by_what_browsers_say() {
        let web = Web { origins: vec!["https://console.example".to_string()], ..Web::default() };
        let check = |line: &str, headers: &[(&str, &str)]| {
            let headers = [&[("host", "127.0.0.1:9000")], headers].concat();
            let request = request(line, Version::HTTP_11, &headers);
            let checked = web.check_origin(&request, |origin| origin == "http://127.0.0.2:9000");
            checked.map(|origin| origin.is_some()).map_err(|problem| problem.code())
        };
        let (origin, site) = ("origin", "sec-fetch-site");
        assert_eq!(check("POST /v1/commands", &[]), Ok(false), "no browser");
        assert_eq!(
            check("POST /v1/commands", &[(origin, "http://127.0.0.1:9000"), (site, "same-origin")]),
            Ok(false)
        );
        assert_eq!(check("GET /v1/docs", &[(site, "none")]), Ok(false), "typed by hand");
        assert_eq!(check("GET /", &[(site, "cross-site")]), Ok(false), "a link");
        let allowed = [(origin, "https://console.example"), (site, "cross-site")];
        assert_eq!(check("PUT /v1/docs/a", &allowed), Ok(true));
        let member = [(origin, "http://127.0.0.2:9000"), (site, "cross-site")];
        assert_eq!(check("PUT /v1/docs/a", &member), Ok(true));
        for (line, headers) in [
            ("POST /v1/commands", &[(origin, "http://evil.example")][..]),
            ("POST /v1/commands", &[(origin, "null")]),
            ("POST /v1/commands", &[(origin, "https://127.0.0.2:9000")]),
            ("POST /v1/commands", &[(origin, "http://127.0.0.1:9001"), (site, "same-site")]),
            ("POST /v1/commands", &[(site, "cross-site")]),
            ("GET /v1/docs", &[(site, "same-site")]),
            ("POST /", &[(site, "cross-site")]),
            ("GET /livez", &[(origin, "https://console.example.evil")]),
        ] {
            assert_eq!(check(line, headers), Err(Code::Forbidden), "{line} {headers:?}");
        }
    }
}
