//! Bytes to a node and bytes back: for requests that no HTTP client would send.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use super::node::Node;
use super::wait::DEADLINE;

#[derive(Debug)]
pub struct Raw(TcpStream);

impl Raw {
    pub async fn connect(node: &Node) -> Raw {
        let stream = TcpStream::connect((node.ip, super::addresses::PORT)).await;
        Raw(stream.expect("a running node takes connections"))
    }

    /// Connects from this address of the machine.
    pub async fn connect_from(from: Ipv4Addr, node: &Node) -> Raw {
        Raw::open(from, (node.ip, super::addresses::PORT).into()).await
    }

    pub async fn open(from: Ipv4Addr, to: SocketAddr) -> Raw {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind((from, 0).into()).expect("the whole of 127.0.0.0/8 is this machine's");
        Raw(socket.connect(to).await.expect("somebody listens there"))
    }

    /// A node that closes early is within its rights.
    pub async fn send(&mut self, bytes: &[u8]) {
        let _ = self.0.write_all(bytes).await;
    }

    pub async fn finish_sending(&mut self) {
        let _ = self.0.shutdown().await;
    }

    /// The next line, without its end.
    pub async fn read_line(&mut self) -> String {
        let mut line = Vec::new();
        let reading = async {
            let mut byte = [0];
            while let Ok(1) = self.0.read(&mut byte).await {
                match byte[0] {
                    b'\n' => break,
                    byte => line.push(byte),
                }
            }
        };
        let _ = tokio::time::timeout(DEADLINE, reading).await;
        String::from_utf8_lossy(&line).trim_end().to_string()
    }

    /// Everything until the node closes; fails the test when it never does.
    pub async fn read_to_end(&mut self) -> Vec<u8> {
        let (bytes, ended) = self.read_for(DEADLINE).await;
        assert!(ended, "the node keeps the connection open; it said {:?}", String::from_utf8_lossy(&bytes));
        bytes
    }

    /// The bytes that arrive within this time, and whether the node has closed.
    pub async fn read_for(&mut self, time: Duration) -> (Vec<u8>, bool) {
        let mut bytes = Vec::new();
        let reading = async {
            let mut buffer = [0; 16 << 10];
            // A reset is an end as well.
            while let Ok(count @ 1..) = self.0.read(&mut buffer).await {
                bytes.extend_from_slice(&buffer[..count]);
            }
        };
        let ended = tokio::time::timeout(time, reading).await.is_ok();
        (bytes, ended)
    }
}
