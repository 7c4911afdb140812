//! A state that several processes share: one document, changed by compare-and-swap alone.

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::sleep;

use super::documents::{Document, Holder, If, Level, When};
use super::error::Error;
use super::http::Client;
use super::pauses::Pauses;

/// Somebody else has written each time: with a single writer at a time this does not happen, and with many it is time
/// to share less.
const TRIES_MAX: u32 = 16;

#[derive(Clone, Debug)]
pub struct StateDoc<T> {
    client: Client,
    key: String,
    holds: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned> StateDoc<T> {
    pub fn new(client: Client, key: impl Into<String>) -> StateDoc<T> {
        StateDoc { client, key: key.into(), holds: PhantomData }
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    /// None if it was never written.
    pub async fn read(&self) -> Result<Option<T>, Error> {
        Ok(self.client.get_doc(&self.key, Level::Linear).await?.map(|document| document.value))
    }

    /// Applies `change` to what is there, none if nothing is, and writes what it returns; None leaves it as it is.
    ///
    /// Reads again and applies again if others were faster, so `change` may run several times. Returns what is there
    /// then.
    pub async fn update(&self, change: impl FnMut(Option<T>) -> Option<T>) -> Result<Option<T>, Error> {
        self.changed(None, change).await
    }

    /// The same in the name of a role, where there is a holder.
    pub(super) async fn changed(
        &self,
        holder: Option<Holder<'_>>,
        mut change: impl FnMut(Option<T>) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let mut pauses = Pauses::new();
        for _ in 0..TRIES_MAX {
            let document: Option<Document<T>> = self.client.get_doc(&self.key, Level::Linear).await?;
            let (value, rev) = match document {
                Some(Document { value, rev }) => (Some(value), Some(rev)),
                None => (None, None),
            };
            let Some(changed) = change(value) else {
                return self.read().await;
            };
            let when = When { condition: rev.as_deref().map_or(If::Absent, If::Rev), holder };
            match self.client.put_doc(&self.key, &changed, when).await {
                Ok(_) => return Ok(Some(changed)),
                Err(Error::PreconditionFailed { .. }) => sleep(pauses.next()).await,
                Err(error) => return Err(error),
            }
        }
        Err(Error::Contended { key: self.key.clone(), tries: TRIES_MAX })
    }
}
