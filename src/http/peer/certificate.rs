//! Checks the sender of a peer's call against the certificate of its connection.

use eldest_tls::Caller;

use crate::http::answer::{Code, Problem};
use crate::types::NodeId;

/// With TLS a node's certificate identifies it. Without TLS the sender in the call counts, together with the cluster's secret.
pub fn check(caller: Option<Caller>, from: NodeId) -> Result<(), Problem> {
    let says = || format!("the call says that it comes from node {}", from.0);
    let detail = match caller {
        None => return Ok(()),
        Some(Caller { node: Some(node) }) if node == from.0 => return Ok(()),
        Some(Caller { node: Some(node) }) => {
            format!("{}, and its certificate is that of node {node}", says())
        }
        Some(Caller { node: None }) => {
            format!("{}, and it comes without a certificate of a node of this cluster", says())
        }
    };
    Err(Problem::new(Code::Forbidden, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_that_of_the_node_that_calls() {
        let taken = |caller: Option<Caller>| check(caller, NodeId(2)).is_ok();
        assert!(taken(None), "without TLS there is none");
        assert!(taken(Some(Caller { node: Some(2) })));
        assert!(!taken(Some(Caller { node: Some(3) })) && !taken(Some(Caller { node: None })));
    }
}
