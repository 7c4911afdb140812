//! A state that several processes share: one document, changed by compare-and-swap only.

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::sleep;

use super::documents::{Document, Holder, If, Level, When};
use super::error::Error;
use super::http::Client;
use super::pauses::Pauses;

/// The number of tries before an update gives up because other writers were faster each time. With a single writer
/// at a time this does not happen. With many writers, reaching it means that they share too much in one document.
const TRIES_MAX: u32 = 16;

/// A state of type `T` that is stored in one document.
#[derive(Clone, Debug)]
pub struct StateDoc<T> {
    client: Client,
    key: String,
    holds: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned> StateDoc<T> {
    /// The state that is stored under this key. Makes no call.
    pub fn new(client: Client, key: impl Into<String>) -> StateDoc<T> {
        StateDoc { client, key: key.into(), holds: PhantomData }
    }

    /// The key of the document.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Reads the state. Returns `None` if it was never written.
    pub async fn read(&self) -> Result<Option<T>, Error> {
        Ok(self.client.get_doc(&self.key, Level::Linear).await?.map(|document| document.value))
    }

    /// Applies `change` to the current state, which is `None` if there is no document, and writes what `change`
    /// returns. If `change` returns `None`, the document stays as it is.
    ///
    /// If another writer was faster, the document is read and changed again, so `change` may run several times.
    /// Returns the state after the update. Fails with [`Error::Contended`] if other writers were faster each time.
    pub async fn update(&self, change: impl FnMut(Option<T>) -> Option<T>) -> Result<Option<T>, Error> {
        self.changed(None, change).await
    }

    /// The same update, in the name of a role if `holder` is given.
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
