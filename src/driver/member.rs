//! A node of the cluster, and where to call it.

use reqwest::Url;

use crate::types::NodeId;

#[derive(Clone, Debug)]
pub struct Member {
    pub id: NodeId,
    pub name: String,
    pub host: String,
    pub port: u16,
    /// One that has been added learns before it votes.
    pub votes: bool,
}

impl Member {
    /// `host:port`, brackets around an IPv6 address.
    pub fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// At `host:port`, brackets around an IPv6 address. It may have come from another node: what is no address is none.
    pub fn at(id: NodeId, name: &str, address: &str) -> Option<Member> {
        let (host, port) = address.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_string();
        let member = Member { id, name: name.to_string(), host, port: port.parse().ok()?, votes: true };
        let url = Url::parse(&format!("http://{}", member.authority())).ok()?;
        let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        (bare && url.username().is_empty() && url.has_host()).then_some(member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_address_is_none() {
        let at = |address: &str| Member::at(NodeId(4), "n4", address).map(|member| member.authority());
        assert_eq!(at("10.0.0.4:9000").as_deref(), Some("10.0.0.4:9000"));
        assert_eq!(at("[::1]:9000").as_deref(), Some("[::1]:9000"));
        assert_eq!(at("n4.example:80").as_deref(), Some("n4.example:80"));
        for wrong in [
            "", "n4", ":9000", "n4:", "n4:99999", "a b:1", "a|b:1", "a/b:1", "a?b:1", "a#b:1", "u@n4:1",
            "<>:1", "[::g]:1",
        ] {
            assert_eq!(at(wrong), None, "{wrong:?}");
        }
    }
}
