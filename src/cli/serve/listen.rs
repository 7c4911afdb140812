//! The port. It is bound at once, and answers only when the node runs.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket, lookup_host};

use super::error::ServeError;
use crate::config::{Address, Host};

/// Connections that wait to be accepted. The kernel reduces this to its own limit.
const BACKLOG: u32 = 1024;

/// A port that is bound and refuses calls.
#[derive(Debug)]
pub struct Bound {
    socket: TcpSocket,
    pub address: SocketAddr,
}

impl Bound {
    pub async fn take(address: &Address) -> Result<Bound, ServeError> {
        let failed = |error| ServeError::Bind { address: address.to_string(), error };
        let address = resolve(address).await.map_err(failed)?;
        bind(address).map_err(failed)
    }

    pub fn listen(self) -> Result<TcpListener, ServeError> {
        let address = self.address.to_string();
        self.socket.listen(BACKLOG).map_err(|error| ServeError::Bind { address, error })
    }
}

async fn resolve(address: &Address) -> io::Result<SocketAddr> {
    match &address.host {
        Host::Ip(ip) => Ok(SocketAddr::new(*ip, address.port)),
        Host::Name(name) => {
            let mut found = lookup_host((name.as_str(), address.port)).await?;
            found.next().ok_or_else(|| io::ErrorKind::NotFound.into())
        }
    }
}

fn bind(address: SocketAddr) -> io::Result<Bound> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Connections of the previous process may still be closing.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    let address = socket.local_addr()?;
    Ok(Bound { socket, address })
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;

    fn any_port() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 0))
    }

    #[tokio::test]
    async fn a_bound_port_refuses_until_it_listens() {
        let bound = bind(any_port()).expect("bound");
        let address = bound.address;
        let refused = TcpStream::connect(address).await.map(|_| ()).map_err(|error| error.kind());
        assert_eq!(refused, Err(io::ErrorKind::ConnectionRefused));
        let _listener = bound.listen().expect("listening");
        assert!(TcpStream::connect(address).await.is_ok());
    }

    #[tokio::test]
    async fn a_port_that_answers_cannot_be_taken() {
        let listener = bind(any_port()).and_then(|bound| bound.socket.listen(1)).expect("listening");
        let again =
            bind(listener.local_addr().expect("an address")).map(|_| ()).map_err(|error| error.kind());
        assert_eq!(again, Err(io::ErrorKind::AddrInUse));
    }
}
