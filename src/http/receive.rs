//! A snapshot that a peer streams: written down as it comes, checked, and read into a store, before the loop hears of it.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use tokio::sync::mpsc;
use tokio::time::{Duration, timeout};

use super::problem::{Code, Problem};
use crate::driver::{self, LoadError};
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
        let store = driver::load(&incoming).map_err(|error| unreadable(&error))?;
        Ok((incoming, store))
    });
    finishing.await.map_err(|_| broken("it could not be read"))?
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
            // The writer has failed, and says why.
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
    Problem::field("body", format!("the snapshot cannot be taken: {why}"))
}
