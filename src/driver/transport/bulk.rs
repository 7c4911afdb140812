//! A snapshot on its way to one peer: its files, one after the other, as they lie on disk.

use std::io::{self, Read};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use reqwest::Body;
use tokio::sync::mpsc;

use super::post::{Fault, Poster};
use crate::storage::snapshot::Export;
use crate::wire::{Parcel, body_mac};

const CHUNK: usize = 256 << 10;
/// Chunks read ahead of the network.
const AHEAD: usize = 4;
/// What a transfer may take besides a second for each of these many bytes.
const PATIENCE: Duration = Duration::from_secs(30);
const BYTES_PER_SECOND_LEAST: u64 = 1 << 20;

pub async fn send(poster: &Poster, parcel: &Parcel, export: Export) -> Result<(), Fault> {
    let most = PATIENCE + Duration::from_secs(export.length() / BYTES_PER_SECOND_LEAST);
    let key = poster.session().map(|session| *session.key());
    let (chunks, ready) = mpsc::channel(AHEAD);
    let reading = tokio::task::spawn_blocking(move || read(export, key, &chunks));
    let body = stream::unfold(ready, |mut ready| async move { Some((ready.recv().await?, ready)) });
    let sent = poster.stream(parcel, Body::wrap_stream(body), most).await;
    // The reader ends by itself: its channel is closed, or everything has been read.
    let _ = reading.await;
    sent
}

fn read(mut export: Export, key: Option<[u8; 32]>, chunks: &mpsc::Sender<io::Result<Bytes>>) {
    let mut mac = key.map(|key| body_mac(&key));
    loop {
        let mut chunk = vec![0; CHUNK];
        let chunk = export.read(&mut chunk).map(|count| {
            chunk.truncate(count);
            Bytes::from(chunk)
        });
        if chunk.as_ref().is_ok_and(Bytes::is_empty) {
            break;
        }
        if let (Some(mac), Ok(chunk)) = (&mut mac, &chunk) {
            mac.update(chunk);
        }
        let failed = chunk.is_err();
        if chunks.blocking_send(chunk).is_err() || failed {
            return;
        }
    }
    if let Some(mac) = mac {
        let _ = chunks.blocking_send(Ok(Bytes::copy_from_slice(mac.finalize().as_bytes())));
    }
}
