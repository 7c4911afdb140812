//! Clients' tokens (P56): the preconditions and effects of each operation on them, and the form that readers see.

use std::fmt::{self, Write};
use std::sync::Arc;

use crate::store::access::{Grants, TokenId};
use crate::store::command::{Command, NewToken, Operation, Reason, Rule, Thing, TokenOperation};
use crate::store::encoding::{Json, TOKENS_MOST, date, write_list, write_text};
use crate::store::state::Store;
use crate::store::tables::{Key, KeyChange, Page, Token, Version};
use crate::types::{Position, Text, WallTime};

/// An event of one token, for subscribers of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenEvent {
    Created { id: TokenId, token: Token },
    Revoked { id: TokenId, name: Text, why: Gone },
}

/// The reason why a token no longer exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// An operator revoked it.
    Revoked,
    /// It had expired, and was removed to make room.
    Ended,
    /// Another side revoked it, and a merge took that over.
    Merged,
}

/// A token as readers see it: `{"id","name","grants","made_at","ends_at"?}`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenView {
    pub id: TokenId,
    pub token: Token,
}

/// The destination of the changes to tokens.
pub struct TokenEffects<'a> {
    pub at: Position,
    pub wall: WallTime,
    pub changes: &'a mut Vec<Key>,
    pub events: &'a mut Vec<TokenEvent>,
}

impl Store {
    /// Also returns expired tokens. Use `Token::verifies` to decide about access.
    pub fn token(&self, id: TokenId) -> Option<&Token> {
        self.access.at(&id)
    }

    /// Tokens in the order of their ids, after the id `after`.
    pub fn tokens(&self, after: Option<TokenId>, limit: usize) -> Page<TokenView> {
        let mut rows = self.access.iter().filter(|(id, _)| after.is_none_or(|after| **id > after)).peekable();
        let view = |(id, token): (&TokenId, &Token)| TokenView { id: *id, token: token.clone() };
        let items: Vec<_> = rows.by_ref().take(limit.clamp(1, TOKENS_MOST)).map(view).collect();
        let next = items.last().filter(|_| rows.peek().is_some()).map(|last| last.id.to_string().into());
        Page { items, next }
    }

    /// Equal tables have equal digests, so the owner of a copy can detect that the table has changed.
    pub fn tokens_digest(&self) -> u64 {
        self.access.digest()
    }

    pub(in crate::store) fn check_token(
        &self,
        operation: &TokenOperation,
        wall: WallTime,
    ) -> Result<(), Reason> {
        let name = || operation.id().to_string().into();
        match operation {
            TokenOperation::Create(new) => match self.current(&Key::Access(new.id)) {
                Some(Version { value: Some(_), .. }) => {
                    Err(Reason::Exists { thing: Thing::Token, name: name() })
                }
                // In available mode the token may still exist on another side.
                Some(_) => Err(Reason::RuleViolated(Rule::TokenRevoked)),
                None if self.tokens_at(wall) >= TOKENS_MOST => Err(Reason::RuleViolated(Rule::TooManyTokens)),
                None => Ok(()),
            },
            TokenOperation::Revoke { id } => match self.token(*id) {
                Some(_) => Ok(()),
                None => Err(Reason::NotFound { thing: Thing::Token, name: name() }),
            },
        }
    }

    /// The position of the record that created this same token, if the command asks for it again.
    pub(in crate::store) fn made_before(&self, command: &Command) -> Option<Position> {
        let Command::Single(Operation::Token(TokenOperation::Create(new))) = command else { return None };
        self.token(new.id).filter(|token| token.new == *new).map(|token| token.at)
    }

    /// The number of tokens that have not expired.
    fn tokens_at(&self, wall: WallTime) -> usize {
        self.access.iter().filter(|(_, token)| !token.has_ended(wall)).count()
    }

    /// The caller must have called `check_token` first.
    pub(in crate::store) fn carry_out_token(
        &mut self,
        operation: &TokenOperation,
        effects: &mut TokenEffects,
    ) {
        match operation {
            TokenOperation::Create(new) => self.make_token(new, effects),
            TokenOperation::Revoke { id } => self.drop_token(*id, Gone::Revoked, effects),
        }
    }

    fn make_token(&mut self, new: &Arc<NewToken>, effects: &mut TokenEffects) {
        // No leader counts down the ttls of tokens: expired tokens stay until another token is created, so the bound applies
        // to those that are valid (P56). The time is the stamp's, so every node removes the same tokens.
        let ended = self.access.iter().filter(|(_, token)| token.has_ended(effects.wall)).map(|(id, _)| *id);
        for id in ended.collect::<Vec<_>>() {
            self.drop_token(id, Gone::Ended, effects);
        }
        let token = Token { at: effects.at, made_at: effects.wall, new: new.clone() };
        self.access.insert(new.id, token.clone());
        self.token_wrote(new.id, None, KeyChange::Row(effects.at), effects);
        effects.events.push(TokenEvent::Created { id: new.id, token });
    }

    fn drop_token(&mut self, id: TokenId, why: Gone, effects: &mut TokenEffects) {
        let Some(token) = self.access.take(&id) else { return };
        self.token_wrote(id, Some(token.at), KeyChange::deleted(effects.at), effects);
        effects.events.push(TokenEvent::Revoked { id, name: token.new.name.clone(), why });
    }

    fn token_wrote(
        &mut self,
        id: TokenId,
        before: Option<Position>,
        now: KeyChange,
        effects: &mut TokenEffects,
    ) {
        effects.changes.push(Key::Access(id));
        if let Some(merging) = self.merging_mut() {
            merging.wrote(&Key::Access(id), before, now, effects.changes);
        }
    }

    /// The token events of the step from another state to this one, which is a merge.
    pub fn token_events_since(&self, before: &Store, changed: &[Key]) -> Vec<TokenEvent> {
        let mut ids: Vec<_> = changed
            .iter()
            .filter_map(|key| if let Key::Access(id) = key { Some(*id) } else { None })
            .collect();
        ids.sort_unstable();
        ids.dedup();
        let event = |id: TokenId| match (before.token(id), self.token(id)) {
            (None, Some(token)) => Some(TokenEvent::Created { id, token: token.clone() }),
            (Some(token), None) => {
                Some(TokenEvent::Revoked { id, name: token.new.name.clone(), why: Gone::Merged })
            }
            _ => None,
        };
        ids.into_iter().filter_map(event).collect()
    }
}

impl TokenView {
    /// Writes the members without the id and, as everywhere, without the hash.
    fn write_members(token: &Token, out: &mut dyn Write) -> fmt::Result {
        out.write_str(",\"name\":")?;
        write_text(out, token.name())?;
        write_grants(token.grants(), out)?;
        write!(out, ",\"made_at\":\"{}\"", date::text(token.made_at))?;
        token.ends_at().iter().try_for_each(|end| write!(out, ",\"ends_at\":\"{}\"", date::text(*end)))
    }
}

fn write_grants(grants: &Grants, out: &mut dyn Write) -> fmt::Result {
    out.write_str(",\"grants\":")?;
    write_list(out, grants.iter(), |out, grant| write_text(out, &grant.to_string()))
}

impl Json for TokenView {
    fn write_json(&self, out: &mut dyn Write) -> fmt::Result {
        write!(out, "{{\"id\":\"{}\"", self.id)?;
        TokenView::write_members(&self.token, out)?;
        out.write_char('}')
    }
}

impl TokenEvent {
    pub fn id(&self) -> TokenId {
        match self {
            TokenEvent::Created { id, .. } | TokenEvent::Revoked { id, .. } => *id,
        }
    }

    /// The event as JSON members, each with a comma before it.
    pub fn members(&self) -> String {
        let mut out = format!(",\"token_id\":\"{}\"", self.id());
        let written = match self {
            TokenEvent::Created { token, .. } => TokenView::write_members(token, &mut out),
            TokenEvent::Revoked { name, why, .. } => out
                .write_str(",\"name\":")
                .and_then(|()| write_text(&mut out, name))
                .and_then(|()| write!(out, ",\"reason\":\"{}\"", why.name())),
        };
        written.expect("writing to a String cannot fail");
        out
    }
}

impl Gone {
    pub fn name(self) -> &'static str {
        match self {
            Gone::Revoked => "revoked",
            Gone::Ended => "ended",
            Gone::Merged => "merged",
        }
    }
}
