//! Everything that goes to one peer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::Client;
use tokio::sync::mpsc;

use super::super::setup::{Member, Setup};
use super::Arrived;
use super::bulk;
use super::log::LogBox;
use super::outbox::Outbox;
use super::post::{Fault, Poster};
use super::watch::Watch;
use crate::storage::snapshot::Export;
use crate::wire::Parcel;

/// Small calls to one peer at a time: a second one, so that a beat does not wait for a lost one to time out.
const CONTROL_CALLS: usize = 2;
/// The longest that a dead peer's address is left alone before it is dialled again.
const REST_MOST: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct Link {
    pub control: Outbox,
    pub log: LogBox,
    pub watch: Watch,
    poster: Poster,
    bulk_busy: AtomicBool,
    trouble: Mutex<Option<String>>,
    tell: mpsc::Sender<Arrived>,
}

impl Link {
    pub fn start(
        setup: Arc<Setup>,
        member: Member,
        client: Client,
        tell: mpsc::Sender<Arrived>,
    ) -> Arc<Link> {
        let timing = &setup.settings.timing;
        let patience = Duration::from_micros(timing.fresh().0).min(REST_MOST);
        let link = Arc::new(Link {
            control: Outbox::default(),
            log: LogBox::new(setup.settings.limits.batch_bytes),
            watch: Watch::new(member.id, member.authority(), patience),
            poster: Poster::new(setup.clone(), &member, client),
            bulk_busy: AtomicBool::new(false),
            trouble: Mutex::default(),
            tell: tell.clone(),
        });
        for _ in 0..CONTROL_CALLS {
            tokio::spawn(link.clone().carry_control());
        }
        tokio::spawn(link.clone().carry_log());
        let watching = link.clone();
        tokio::spawn(async move { watching.watch.run(tell).await });
        link
    }

    async fn carry_control(self: Arc<Link>) {
        loop {
            let parcel = self.control.take().await;
            self.carry(&parcel).await;
        }
    }

    async fn carry_log(self: Arc<Link>) {
        loop {
            let parcel = self.log.take().await.into_parcel();
            self.carry(&parcel).await;
        }
    }

    async fn carry(&self, parcel: &Parcel) {
        match self.poster.post(parcel).await {
            Ok(answer) => {
                self.note(None);
                if let Some(call) = answer {
                    // A loop that has ended takes nothing more; its process is about to end.
                    let _ = self.tell.send(Arrived::Call(Box::new(call))).await;
                }
            }
            Err(fault) => self.failed(&fault),
        }
    }

    fn failed(&self, fault: &Fault) {
        match fault {
            Fault::Unreachable(error) => {
                tracing::debug!(peer = self.poster.peer().0, %error, "call failed");
                if error.is_connect() {
                    self.watch.probe();
                }
            }
            Fault::Refused(status, says) => self.note(Some(format!("{} {says}", status.as_u16()))),
            Fault::Unreadable(what) => self.note(Some(format!("unreadable: {what}"))),
        }
    }

    /// Remembers why the peer refuses, and tells people once each time that changes.
    fn note(&self, trouble: Option<String>) {
        let mut current = self.trouble.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if *current != trouble {
            match &trouble {
                Some(trouble) => tracing::warn!(peer = self.poster.peer().0, %trouble, "peer refuses us"),
                None => tracing::info!(peer = self.poster.peer().0, "peer takes our calls again"),
            }
            *current = trouble;
        }
    }

    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    pub fn is_sending_snapshot(&self) -> bool {
        self.bulk_busy.load(Ordering::Relaxed)
    }

    pub fn send_snapshot(self: &Arc<Link>, parcel: Parcel, export: Export) {
        if self.bulk_busy.swap(true, Ordering::Relaxed) {
            return;
        }
        let link = self.clone();
        tokio::spawn(async move {
            let bytes = export.length();
            tracing::info!(peer = link.poster.peer().0, bytes, "sending a snapshot");
            match bulk::send(&link.poster, &parcel, export).await {
                Ok(()) => tracing::info!(peer = link.poster.peer().0, bytes, "snapshot received there"),
                Err(fault) => link.failed(&fault),
            }
            link.bulk_busy.store(false, Ordering::Relaxed);
        });
    }
}
