//! State transfer: a peer streams its state, whole or in part. It is read and checked as it arrives, before the loop receives the message.
//!
//! A snapshot is written to disk as it arrives. A difference is read into memory line by line, because it is merged with a state that is
//! in memory as well. So its size is bounded, and only one is read at a time.
//!
//! ```text
//!   body ─► verify: all but the last 32 bytes ─► 4 pieces ─► a thread: to disk, or into memory
//!               └ at the end: do these 32 bytes prove the others? ── yes ─► finish ─► loop
//!                                                                └─ no ──► what has arrived is removed
//! ```
//!
//! A stream has no effect before its end is proved: one that breaks off, or was changed on the way, leaves
//! the node as it was.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use tokio::sync::mpsc;
use tokio::time::{Duration, timeout};

use crate::http::answer::{Code, Problem};
use crate::protocol::Mode;
use crate::storage::node::{self, LoadError, Receiving, SentDifference};
use crate::storage::snapshot::{Importer, Incoming, SnapshotError};
use crate::store::Store;

/// The number of pieces that wait for the disk; the network waits in turn.
const AHEAD: usize = 4;
/// A sender that is silent for this long is treated as dead.
/// It is a limit for each piece and not for the whole: a large state may take long, as long as it moves.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(10);
/// The length of the proof at the end of a stream.
const TAG_BYTES: usize = 32;

pub async fn snapshot(
    importer: Importer,
    body: Body,
    mac: Option<blake3::Hasher>,
    mode: Mode,
) -> Result<(Incoming, Store), Problem> {
    let (pieces, written) = mpsc::channel::<Bytes>(AHEAD);
    let writing = tokio::task::spawn_blocking(move || write(importer, written));
    let arrived = verify(body, mac, pieces).await;
    // The writer ends when the pieces end, and removes an incomplete snapshot.
    let written = writing.await.map_err(|_| broken("it could not be written"))?;
    // The proof is judged before the snapshot is finished: an unproved one must not be installed, even if its
    // text is sound.
    arrived?;
    let importer = written.map_err(|error| problem(&error))?;
    let finishing = tokio::task::spawn_blocking(move || {
        let incoming = importer.finish().map_err(|error| problem(&error))?;
        let store = node::load(&incoming, mode).map_err(|error| unreadable(&error))?;
        Ok((incoming, store))
    });
    finishing.await.map_err(|_| broken("it could not be read"))?
}

pub async fn difference(
    body: Body,
    mac: Option<blake3::Hasher>,
    most: u64,
) -> Result<SentDifference, Problem> {
    let (pieces, arriving) = mpsc::channel::<Bytes>(AHEAD);
    let reading = tokio::task::spawn_blocking(move || read(arriving, most));
    let arrived = verify(body, mac, pieces).await;
    // The reader ends when the pieces end, complete or not.
    let read = reading.await.map_err(|_| broken("it could not be read"))?;
    arrived?;
    read?.finish().map_err(|error| broken(&error.to_string()))
}

/// The bound is checked while the pieces arrive, because the length that the sender states may be wrong.
fn read(mut pieces: mpsc::Receiver<Bytes>, most: u64) -> Result<Receiving, Problem> {
    let (mut receiving, mut bytes) = (Receiving::default(), 0);
    while let Some(piece) = pieces.blocking_recv() {
        bytes += piece.len() as u64;
        if bytes > most {
            let detail = format!("a state transfer has at most {most} bytes");
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

/// Passes on the body without the proof at its end, and checks the proof.
/// The last 32 bytes that have arrived are always kept back, since only the end of the body shows that they
/// are the proof.
async fn verify(
    mut body: Body,
    mut mac: Option<blake3::Hasher>,
    pieces: mpsc::Sender<Bytes>,
) -> Result<(), Problem> {
    let mut tail = BytesMut::new();
    loop {
        let frame = timeout(SILENCE_TIMEOUT, body.frame()).await;
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
                let ready = tail.len().saturating_sub(TAG_BYTES);
                let piece = tail.split_to(ready).freeze();
                mac.update(&piece);
                piece
            }
        };
        if !piece.is_empty() && pieces.send(piece).await.is_err() {
            // The receiver has failed, and reports the reason.
            return Ok(());
        }
    }
    match mac {
        Some(mac) if blake3::Hash::from_slice(&tail).is_ok_and(|given| given == mac.finalize()) => Ok(()),
        Some(_) => Err(Problem::new(Code::Unauthorized, "the stream does not prove that it is complete")),
        None => Ok(()),
    }
}

pub fn problem(error: &SnapshotError) -> Problem {
    match error.is_full() {
        true => Problem::new(Code::DiskFull, "this node has no space for the snapshot"),
        false => broken(&error.to_string()),
    }
}

fn unreadable(error: &LoadError) -> Problem {
    broken(&error.to_string())
}

fn broken(why: &str) -> Problem {
    Problem::field("body", format!("the state was rejected: {why}"))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::{StreamExt, stream};
    use http_body_util::StreamBody;
    use hyper::body::Frame;

    use super::*;
    use crate::types::Digest;

    fn mac(key: u8) -> blake3::Hasher {
        let mut mac = blake3::Hasher::new_keyed(&[key; 32]);
        mac.update(b"label");
        mac
    }

    fn proved(content: &[u8]) -> Vec<u8> {
        let tag = mac(5).update(content).finalize();
        [content, tag.as_bytes()].concat()
    }

    fn content(length: usize) -> Vec<u8> {
        (0..length).map(|at| at as u8).collect()
    }

    fn in_frames(bytes: &[u8], size: usize) -> Body {
        let frames: Vec<_> =
            bytes.chunks(size).map(|frame| Ok::<_, Infallible>(Bytes::copy_from_slice(frame))).collect();
        Body::from_stream(stream::iter(frames))
    }

    /// Returns the bytes that are passed on, and the error in the body.
    async fn verified(body: Body, given: Option<blake3::Hasher>) -> (Vec<u8>, Result<(), Code>) {
        let (pieces, mut arriving) = mpsc::channel(1000);
        let arrived = verify(body, given, pieces).await.map_err(|problem| problem.code());
        let mut all = Vec::new();
        while let Some(piece) = arriving.recv().await {
            assert!(!piece.is_empty(), "a piece says something");
            all.extend_from_slice(&piece);
        }
        (all, arrived)
    }

    #[tokio::test]
    async fn a_proved_stream_is_passed_on_without_its_proof_however_it_is_cut() {
        for length in [0, 1, 31, 32, 33, 64, 100] {
            let whole = proved(&content(length));
            for size in [1, 7, 31, 32, 33, 64, 65, whole.len()] {
                let (passed, arrived) = verified(in_frames(&whole, size), Some(mac(5))).await;
                assert_eq!((passed, arrived), (content(length), Ok(())), "{length} bytes by {size}");
            }
        }
    }

    #[tokio::test]
    async fn a_stream_that_ends_early_goes_on_or_is_another_proves_nothing() {
        let (text, whole) = (content(50), proved(&content(50)));
        let changed = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            bytes
        };
        let tagged = |tag: blake3::Hash| [&text[..], tag.as_bytes()].concat();
        let anothers = tagged(mac(6).update(&text).finalize());
        let unlabelled = tagged(blake3::keyed_hash(&[5; 32], &text));
        for (what, bytes) in [
            ("nothing", Vec::new()),
            ("less than a proof", whole[..31].to_vec()),
            ("no proof", text.clone()),
            ("a byte short", whole[..whole.len() - 1].to_vec()),
            ("a byte too many", [&whole[..], &[0]].concat()),
            ("its proof twice", [&whole[..], &whole[50..]].concat()),
            ("its first byte changed", changed(0)),
            ("its last byte changed", changed(49)),
            ("the first byte of the proof changed", changed(50)),
            ("the last byte of the proof changed", changed(81)),
            ("the proof of another session", anothers),
            ("a hash that is no body's proof", unlabelled),
        ] {
            for size in [1, 32, 200] {
                let (_, arrived) = verified(in_frames(&bytes, size), Some(mac(5))).await;
                assert_eq!(arrived, Err(Code::Unauthorized), "{what}, by {size}");
            }
        }
    }

    #[tokio::test]
    async fn without_a_secret_everything_is_passed_on() {
        let whole = proved(&content(50));
        assert_eq!(verified(in_frames(&whole, 9), None).await, (whole, Ok(())));
        assert_eq!(verified(Body::empty(), None).await, (Vec::new(), Ok(())));
    }

    #[tokio::test]
    async fn trailers_are_not_part_of_it() {
        let frames = [Frame::data(Bytes::from(proved(&content(3)))), Frame::trailers(Default::default())];
        let frames = frames.map(Ok::<_, Infallible>);
        let body = Body::new(StreamBody::new(stream::iter(frames)));
        assert_eq!(verified(body, Some(mac(5))).await, (content(3), Ok(())));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_breaks_off_or_falls_silent_is_refused() {
        let broken = stream::iter([Ok(Bytes::from(proved(b"x"))), Err(std::io::Error::other("gone"))]);
        let (_, arrived) = verified(Body::from_stream(broken), Some(mac(5))).await;
        assert_eq!(arrived, Err(Code::BadField));
        let first = stream::iter([Ok::<_, Infallible>(Bytes::from(proved(b"x")))]);
        let silent = Body::from_stream(first.chain(stream::pending()));
        let began = tokio::time::Instant::now();
        assert_eq!(verified(silent, Some(mac(5))).await.1, Err(Code::BadField));
        assert_eq!(began.elapsed().as_secs(), SILENCE_TIMEOUT.as_secs());
    }

    /// The time limit holds for each piece: a large state takes longer in all.
    #[tokio::test(start_paused = true)]
    async fn a_slow_stream_arrives() {
        let frames: Vec<Bytes> = proved(b"slow").chunks(6).map(Bytes::copy_from_slice).collect();
        let slow = stream::iter(frames).then(|frame| async {
            tokio::time::sleep(SILENCE_TIMEOUT - Duration::from_secs(1)).await;
            Ok::<_, Infallible>(frame)
        });
        assert_eq!(verified(Body::from_stream(slow), Some(mac(5))).await, (b"slow".to_vec(), Ok(())));
    }

    #[tokio::test]
    async fn whoever_stops_taking_says_why() {
        let (pieces, arriving) = mpsc::channel(1);
        drop(arriving);
        assert!(verify(in_frames(&content(100), 50), Some(mac(5)), pieces).await.is_ok());
    }

    #[test]
    fn a_difference_has_a_bound() {
        let mut text = Vec::new();
        let difference = Store::mergeable().whole();
        SentDifference { boundary: Default::default(), digest: Digest::new(1), difference }
            .write(&mut text)
            .expect("it is memory");
        let read = |most: usize| {
            let (pieces, arriving) = mpsc::channel(2);
            let (first, second) = text.split_at(text.len() / 2);
            for piece in [first, second] {
                pieces.try_send(Bytes::copy_from_slice(piece)).expect("there is room");
            }
            drop(pieces);
            read(arriving, most as u64).map(|_| ()).map_err(|problem| problem.code())
        };
        assert_eq!(read(text.len()), Ok(()));
        assert_eq!(read(text.len() - 1), Err(Code::BodyTooLarge));
    }
}
