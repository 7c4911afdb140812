//! States that peers stream, whole or in part: read and checked as they come, before the loop hears of them.
//!
//! A snapshot is written down on the way. A difference is not: it is read into memory line by line, where it is to be merged
//! with a state that is in memory as well, so there is a bound to its bytes and one of them at a time.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use tokio::sync::mpsc;
use tokio::time::{Duration, timeout};

use super::problem::{Code, Problem};
use crate::driver::{self, DIFFERENCE_BYTES_MOST, Handed, LoadError, Receiving};
use crate::protocol::Mode;
use crate::storage::snapshot::{Importer, Incoming, SnapshotError};
use crate::store::Store;
use crate::wire::body_mac;

/// Pieces that wait for the disk: the network waits in turn.
const AHEAD: usize = 4;
/// A sender that is silent for this long has died.
const SILENCE_MOST: Duration = Duration::from_secs(10);
/// The length of the proof at the end of a stream.
const MAC: usize = 32;

pub async fn snapshot(
    importer: Importer,
    body: Body,
    key: Option<[u8; 32]>,
    mode: Mode,
) -> Result<(Incoming, Store), Problem> {
    let (pieces, written) = mpsc::channel::<Bytes>(AHEAD);
    let writing = tokio::task::spawn_blocking(move || write(importer, written));
    let arrived = pump(body, key, pieces).await;
    // The writer ends when the pieces do, and removes what is not whole.
    let written = writing.await.map_err(|_| broken("it could not be written"))?;
    arrived?;
    let importer = written.map_err(|error| problem(&error))?;
    let finishing = tokio::task::spawn_blocking(move || {
        let incoming = importer.finish().map_err(|error| problem(&error))?;
        let store = driver::load(&incoming, mode).map_err(|error| unreadable(&error))?;
        Ok((incoming, store))
    });
    finishing.await.map_err(|_| broken("it could not be read"))?
}

pub async fn difference(body: Body, key: Option<[u8; 32]>) -> Result<Handed, Problem> {
    let (pieces, arriving) = mpsc::channel::<Bytes>(AHEAD);
    let reading = tokio::task::spawn_blocking(move || read(arriving));
    let arrived = pump(body, key, pieces).await;
    // What was read ends with the pieces, whole or not.
    let read = reading.await.map_err(|_| broken("it could not be read"))?;
    arrived?;
    read?.finish().map_err(|error| broken(&error.to_string()))
}

fn read(mut pieces: mpsc::Receiver<Bytes>) -> Result<Receiving, Problem> {
    let (mut receiving, mut bytes) = (Receiving::default(), 0);
    while let Some(piece) = pieces.blocking_recv() {
        bytes += piece.len() as u64;
        if bytes > DIFFERENCE_BYTES_MOST {
            let detail = format!("a difference of states has at most {DIFFERENCE_BYTES_MOST} bytes");
            return Err(Problem::new(Code::BodyTooLarge, detail));
        }
        receiving.take(&piece).map_err(|error| broken(&error.to_string()))?;
    }
    Ok(receiving)
}

fn write(mut importer: Importer, mut pieces: mpsc::Receiver<Bytes>) -> Result<Importer, SnapshotError> {
    while let Some(piece) = pieces.blocking_recv() {
        importer.write(&piece)?;
    }
    Ok(importer)
}

/// Passes the body on, all but the proof at its end, which it checks.
async fn pump(mut body: Body, key: Option<[u8; 32]>, pieces: mpsc::Sender<Bytes>) -> Result<(), Problem> {
    let mut mac = key.map(|key| body_mac(&key));
    let mut tail = BytesMut::new();
    loop {
        let frame = timeout(SILENCE_MOST, body.frame()).await;
        let frame = frame.map_err(|_| broken("it broke off"))?;
        let Some(frame) = frame else {
            break;
        };
        let frame = frame.map_err(|_| broken("it broke off"))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let piece = match &mut mac {
            None => data,
            Some(mac) => {
                tail.extend_from_slice(&data);
                let ready = tail.len().saturating_sub(MAC);
                let piece = tail.split_to(ready).freeze();
                mac.update(&piece);
                piece
            }
        };
        if !piece.is_empty() && pieces.send(piece).await.is_err() {
            // Whoever takes them has failed, and says why.
            return Ok(());
        }
    }
    match mac {
        Some(mac) if blake3::Hash::from_slice(&tail).is_ok_and(|given| given == mac.finalize()) => Ok(()),
        Some(_) => Err(Problem::new(Code::Unauthorized, "the stream does not prove that it is whole")),
        None => Ok(()),
    }
}

pub fn problem(error: &SnapshotError) -> Problem {
    match error.is_full() {
        true => Problem::new(Code::DiskFull, "this node has no room for the snapshot"),
        false => broken(&error.to_string()),
    }
}

fn unreadable(error: &LoadError) -> Problem {
    broken(&error.to_string())
}

fn broken(why: &str) -> Problem {
    Problem::field("body", format!("the state cannot be taken: {why}"))
}
