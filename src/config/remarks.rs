//! Remarks on settings that are allowed, but worth knowing.

use std::fmt;

use super::Address;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigRemark {
    /// A majority of an even number of nodes needs one node more than that of the odd number below it. Safe mode
    /// only.
    EvenCluster { nodes: usize },
    /// The address of a node among others is a loopback address, which means another machine on each machine.
    LoopbackAmongOthers { name: String, address: Address },
    /// Every caller that reaches the port is accepted as a peer.
    Insecure { listen: Address },
    /// No call is taken without a credential, and there is no credential with which to make a token.
    NobodyMayCall { listen: Address },
    /// A secret in a file of root that others may read. This may be intended in a container.
    OpenSecret { key: &'static str, file: String, mode: u32 },
    /// Certificates are configured, but not used.
    TlsIsOff,
    /// Variables that have the program's prefix but are not settings: orchestrators set some.
    IgnoredVariables { names: Vec<String> },
}

impl fmt::Display for ConfigRemark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigRemark::EvenCluster { nodes } => {
                let (bears, fewer) = ((nodes - 1) / 2, nodes - 1);
                write!(
                    f,
                    "a cluster of {nodes} tolerates no more failures than one of {fewer} ({bears}): use an odd \
                        number of nodes"
                )
            }
            ConfigRemark::LoopbackAmongOthers { name, address } => {
                write!(
                    f,
                    "{name} has the loopback address {address}: nodes on other machines cannot reach it"
                )
            }
            ConfigRemark::Insecure { listen } => {
                write!(f, "insecure: anyone who reaches {listen} can act as a node of the cluster")
            }
            ConfigRemark::NobodyMayCall { listen } => {
                write!(
                    f,
                    "clients are refused at {listen}: calls without a token are granted nothing (anonymous), \
                        and without an admin token no token can be created (admin_token_file)"
                )
            }
            ConfigRemark::OpenSecret { key, file, mode } => {
                write!(
                    f,
                    "{key}: other users can access {file} (mode {mode:04o}): unless this is a container, chmod \
                        600 {file}"
                )
            }
            ConfigRemark::TlsIsOff => {
                write!(f, "the certificates in [tls] are not used: tls.mode is \"off\"")
            }
            ConfigRemark::IgnoredVariables { names } => {
                write!(f, "not settings, ignored: {}", names.join(", "))
            }
        }
    }
}
