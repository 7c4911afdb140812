//! All data as one JSON document: the answer of `/catch_up` when the logs are gone, and the source of a restore.
//!
//! `{"users": […], "elections": [{…, "votes": [{"voter_name", "choice"}]}], "docs": [{"key", "rev", "value", "ttl_ms"?, "with"?, "token"?}]}`
//!
//! When the document is restored, everything counts as written by the record that restores it. All revisions are new, so an
//! ETag from before the restore matches nothing. The document does not contain remembered calls, because the effects of those
//! calls may be missing from it, too.

use std::fmt::{self, Write};
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::store::command::{Ending, NewElection, new_election, new_user, value_text, value_text_of};
use crate::store::data::DocItem;
use crate::store::encoding::{
    BadField, Fields, Json, KEY_MOST, Problem, fields, open, write_list, write_text,
};
use crate::store::state::Store;
use crate::store::tables::{CastVote, Doc, Election, Lifetime, User, ballot_parts};
use crate::types::{Position, Stamp, Text};

/// An error in a document and its path: `elections[2].votes[0].choice`.
pub type BadDocument = BadField;

impl Store {
    pub fn to_document(&self, out: &mut impl Write) -> fmt::Result {
        let out: &mut dyn Write = out;
        out.write_str("{\"users\":")?;
        write_list(out, self.users.iter(), |out, (_, user)| out.write_str(&user.new.text))?;
        out.write_str(",\"elections\":")?;
        write_list(out, self.elections.iter(), |out, (name, election)| {
            out.write_str(open(&election.new.text))?;
            out.write_str(",\"votes\":")?;
            write_list(out, self.votes.of(name), |out, (ballot, vote)| write_vote(out, ballot, vote))?;
            out.write_char('}')
        })?;
        out.write_str(",\"docs\":")?;
        write_list(out, self.docs.table().iter(), |out, (key, doc)| {
            DocItem::new(key.clone(), self.doc_view(doc)).write_json(out)
        })?;
        out.write_char('}')
    }

    /// The state that the record at `at` restores. A part that is left out is empty.
    pub fn from_document(text: &str, at: Position, stamp: Stamp) -> Result<Store, BadDocument> {
        let document: &RawValue =
            serde_json::from_str(text).map_err(|_| BadField::new("", Problem::NotJson))?;
        let fields = Fields::read(document)?;
        fields.only(&["users", "elections", "docs"])?;
        let mut store = Store { applied: at, stamp, ..Store::default() };
        each(&fields, "users", |user| store.restore_user(user))?;
        each(&fields, "elections", |election| store.restore_election(election))?;
        each(&fields, "docs", |doc| store.restore_doc(doc))?;
        Ok(store)
    }

    /// A key that occurs twice is refused: the second item would silently replace the first.
    fn restore_user(&mut self, value: &RawValue) -> Result<(), BadField> {
        let new = new_user(value, &Fields::read(value)?)?;
        let user = User { at: self.applied, new: new.into() };
        let before = self.users.insert(user.new.name.clone(), user);
        once(before.is_none(), "name")
    }

    fn restore_election(&mut self, value: &RawValue) -> Result<(), BadField> {
        let mut fields = Fields::read(value)?;
        fields.without(&["tally"])?;
        let votes = fields.given("votes");
        fields.members.retain(|(name, _)| name != "votes");
        let new = new_election(object(&fields)?, &fields)?;
        self.votes.open(&new);
        let votes = votes.map(fields::array).transpose().map_err(|error| error.within("votes"))?;
        for (number, vote) in votes.unwrap_or_default().into_iter().enumerate() {
            self.restore_vote(&new, vote).map_err(|error| error.at(number).within("votes"))?;
        }
        let election = Election { at: self.applied, new: new.into() };
        let before = self.elections.insert(election.new.name.clone(), election);
        once(before.is_none(), "name")
    }

    /// The voter may have been removed from the users.
    fn restore_vote(&mut self, election: &NewElection, value: &RawValue) -> Result<(), BadField> {
        let fields = Fields::read(value)?;
        let (voter, choice) = (fields.name("voter_name")?, fields.name("choice")?);
        if !election.choices.contains(&choice) {
            return Err(BadField::new("choice", Problem::NoSuchChoice));
        }
        let cast = self.votes.cast(&election.name, &voter, CastVote::new(self.applied, choice));
        once(cast.is_some(), "voter_name")
    }

    fn restore_doc(&mut self, value: &RawValue) -> Result<(), BadField> {
        let fields = Fields::read(value)?;
        fields.only(&[&["key", "rev", "value"][..], &Ending::MEMBERS].concat())?;
        let key = fields::text_of(fields.needed("key")?, KEY_MOST).map_err(|error| error.within("key"))?;
        let value = value_text(fields.needed("value")?)?;
        let lifetime = Lifetime::read(&fields)?.map(Arc::new);
        let before = self.docs.insert(key, Doc { at: self.applied, value, lifetime });
        once(before.is_none(), "key")
    }
}

fn once(first: bool, field: &str) -> Result<(), BadField> {
    if first { Ok(()) } else { Err(BadField::new(field, Problem::Repeated)) }
}

/// Reads each item of a list that may be left out.
fn each(
    fields: &Fields,
    list: &str,
    mut read: impl FnMut(&RawValue) -> Result<(), BadField>,
) -> Result<(), BadField> {
    let items = fields.given(list).map(fields::array).transpose().map_err(|error| error.within(list))?;
    for (number, item) in items.unwrap_or_default().into_iter().enumerate() {
        read(item).map_err(|error| error.at(number).within(list))?;
    }
    Ok(())
}

/// An object of these members, compact, within the same bounds as an object in a command.
fn object(fields: &Fields) -> Result<Text, BadField> {
    let mut text = String::from("{");
    for (number, (name, value)) in fields.members.iter().enumerate() {
        text.push_str(if number > 0 { "," } else { "" });
        write_text(&mut text, name).expect("writing to a String cannot fail");
        text.push(':');
        text.push_str(value.get());
    }
    text.push('}');
    let object = serde_json::from_str(&text).map_err(|_| BadField::new("", Problem::NotJson))?;
    value_text_of(object)
}

fn write_vote(out: &mut dyn Write, ballot: &str, vote: &CastVote) -> fmt::Result {
    let (_, voter) = ballot_parts(ballot).unwrap_or_default();
    out.write_str("{\"voter_name\":")?;
    write_text(out, &voter)?;
    out.write_str(",\"choice\":")?;
    write_text(out, &vote.choice)?;
    out.write_char('}')
}
