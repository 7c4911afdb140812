//! What the replica says to the feed and to people, with where each node is to be found.

use super::engine::Engine;
use super::feed::{Draft, Fact, Kind, quoted};
use crate::replica::FeedEvent;

impl Engine {
    pub fn tell_feed(&mut self, event: FeedEvent) {
        match event {
            FeedEvent::Record { at, history, stamp, drafts } => {
                if drafts.iter().any(|draft| draft.kind == Kind::NewState) {
                    tracing::warn!(index = at.index, "all data has been replaced by a restore");
                }
                self.chronicle.drafts(at, stamp.wall, &drafts);
                let drafts = drafts.into_iter().map(|draft| self.located(draft)).collect();
                self.feed.record(at, history, drafts);
                self.fed = true;
            }
            FeedEvent::Replaced { at, history, changes, last } => {
                let conflicts = changes.iter().filter(|draft| draft.kind == Kind::Conflict).count();
                tracing::warn!(%at, changed = changes.len(), conflicts, "the state is replaced by another");
                self.feed.replaced(at, history, changes, last);
            }
            FeedEvent::Passing(draft) => {
                let draft = self.located(draft);
                self.feed.passing(draft);
            }
        }
    }

    /// The replica knows nodes by their numbers, and readers want to call them.
    fn located(&self, draft: Draft) -> Draft {
        let Fact::Leader { epoch } = draft.fact else {
            return draft;
        };
        let url = self.setup.member(epoch.leader).map(|member| self.setup.url(&member)).unwrap_or_default();
        let (leader, url) = (epoch.leader.0, quoted(&url));
        let json = format!(",\"epoch\":\"{epoch}\",\"leader\":{{\"id\":{leader},\"url\":{url}}}");
        Draft { fact: Fact::Members { name: None, json }, ..draft }
    }
}
