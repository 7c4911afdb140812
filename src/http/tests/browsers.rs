//! Calls that a browser sends for a page of another origin, or for a foreign name that points here.

use super::node::{Node, Options, TOKEN};
use super::request;

const CONSOLE: &str = "https://console.example";

async fn node() -> Node {
    Node::with(Options { token: Some(TOKEN), origins: &[CONSOLE], ..Options::default() }).await
}

#[tokio::test]
async fn a_page_of_another_origin_changes_nothing() {
    let node = node().await;
    let body = "{\"storage_cmd\":\"PutDoc\",\"payload\":{\"key\":\"k\",\"value\":1}}";
    let bearer = format!("Bearer {TOKEN}");
    for headers in [
        &[("origin", "http://evil.example"), ("sec-fetch-site", "cross-site")][..],
        &[("origin", "null")],
        &[("sec-fetch-site", "same-site")],
        // A page that knows the token is still not allowed to call.
        &[("origin", "http://evil.example"), ("authorization", &bearer)],
    ] {
        for line in
            ["POST /v1/commands", "PUT /v1/docs/k", "DELETE /v1/docs/k", "OPTIONS /v1/docs/k", "GET /v1/docs"]
        {
            let answer = node.call(line, headers, body).await;
            assert_eq!(answer.problem(), (403, "forbidden".to_string()), "{line} {headers:?}");
            assert_eq!(answer.json()["setting"], "allowed_origins");
            assert_eq!(answer.header("access-control-allow-origin"), "", "{line} {headers:?}");
        }
    }
    assert!(node.seen().is_empty(), "{:?}", node.seen());
    // A call of curl, and one from a page of this node.
    for headers in [&[("content-type", "application/x-www-form-urlencoded")][..], &[("origin", "http://x")]] {
        assert_eq!(node.call("POST /v1/commands", headers, body).await.status, 200, "{headers:?}");
    }
    assert_eq!(node.call("GET /", &[("sec-fetch-site", "cross-site")], "").await.status, 200, "a link");
}

#[tokio::test]
async fn a_page_of_an_allowed_origin_may_call_and_read() {
    let node = node().await;
    let asked =
        [("origin", CONSOLE), ("access-control-request-method", "PUT"), ("sec-fetch-site", "cross-site")];
    let answer = node.call("OPTIONS /v1/docs/k", &asked, "").await;
    assert_eq!((answer.status.as_u16(), answer.header("access-control-allow-origin")), (204, CONSOLE));
    assert!(answer.header("access-control-allow-methods").contains("PUT"));
    // The client in JavaScript sends all of these.
    let allowed = answer.header("access-control-allow-headers");
    for sent in [
        "authorization",
        "content-type",
        "eldest-secret",
        "idempotency-key",
        "if-match",
        "if-none-match",
        "if-role",
    ] {
        assert!(allowed.split(", ").any(|header| header == sent), "{sent}");
    }
    for (line, status) in [("PUT /v1/docs/k", 201), ("GET /v1/docs/k", 200), ("GET /v1/docs/none", 404)] {
        let answer = node.call(line, &[("origin", CONSOLE), ("sec-fetch-site", "cross-site")], "1").await;
        assert_eq!((answer.status.as_u16(), answer.header("access-control-allow-origin")), (status, CONSOLE));
        assert!(answer.header("access-control-expose-headers").contains("eldest-index"));
        assert_eq!(answer.header("vary"), "origin");
    }
}

#[tokio::test]
async fn a_page_that_a_member_serves_may_call_the_other_members() {
    let node = node().await;
    let page = node.call("GET /", &[("accept", "text/html")], "").await;
    assert_eq!(
        (page.header("etag"), page.header("cache-control")),
        ("", "no-store"),
        "its policy may change"
    );
    let policy = page.header("content-security-policy");
    let (_, callable) = policy.split_once("connect-src 'self' ").expect("the members");
    let members: Vec<&str> = callable.split(' ').collect();
    assert_eq!(members.len(), 3, "{policy}");
    let bearer = format!("Bearer {TOKEN}");
    for member in members {
        let headers = [("origin", member), ("sec-fetch-site", "cross-site"), ("authorization", &bearer)];
        let answer = node.call("GET /v1/docs", &headers, "").await;
        assert_eq!((answer.status.as_u16(), answer.header("access-control-allow-origin")), (200, member));
        // The same machine, but another port or scheme.
        for other in [format!("{member}0"), member.replace("http:", "https:")] {
            let answer = node.call("GET /v1/docs", &[("origin", &other)], "").await;
            assert_eq!(answer.problem(), (403, "forbidden".to_string()), "{other}");
        }
    }
}

#[tokio::test]
async fn a_node_answers_to_its_own_names_alone() {
    let node = node().await;
    let call = async |hosts: &[&str], headers: &[(&str, &str)]| {
        let mut request = request("GET /v1/docs", headers, "");
        request.headers_mut().remove("host");
        for host in hosts {
            request.headers_mut().append("host", host.parse().expect("it is a header"));
        }
        node.send(request).await
    };
    for good in ["x", "localhost:9000", "127.0.0.1", "[::1]:80", "node-2", "NODE-3:9000"] {
        assert_eq!(call(&[good], &[]).await.status, 200, "{good}");
    }
    for wrong in ["evil.example", "127.0.0.1.evil.example:9000", ""] {
        let answer = call(&[wrong], &[]).await;
        assert_eq!(answer.problem(), (403, "forbidden".to_string()), "{wrong}");
        assert_eq!(
            (&answer.json()["field"], &answer.json()["setting"]),
            (&"Host".into(), &"allowed_hosts".into())
        );
        let bearer = format!("Bearer {TOKEN}");
        assert_eq!(
            call(&[wrong], &[("authorization", &bearer)]).await.status,
            200,
            "{wrong}, with the token"
        );
        let answer = call(&[wrong], &[("authorization", "Bearer another one altogether")]).await;
        assert_eq!(answer.status, 403, "{wrong}, with another token");
    }
    for hosts in [&[][..], &["x", "x"]] {
        assert_eq!(call(hosts, &[]).await.problem(), (400, "bad_field".to_string()), "{hosts:?}");
    }
    let proxied = node.send(request("GET http://x/v1/docs", &[], "")).await;
    assert_eq!(proxied.problem(), (400, "bad_field".to_string()));
    // Without a secret, a page whose domain name points here could act as a node.
    let envelope = [("eldest-message", "resigned"), ("host", "evil.example")];
    let mut peer = request("POST /heartbeat", &envelope[..1], "");
    peer.headers_mut().insert("host", envelope[1].1.parse().expect("it is a header"));
    assert_eq!(node.send(peer).await.problem(), (403, "forbidden".to_string()));
}
