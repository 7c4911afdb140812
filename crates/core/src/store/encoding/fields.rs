//! Reads the members of a JSON object, one by one, so that an error can name the wrong member.
//!
//! A reader only knows paths below its object; its caller prepends the outer step (`BadField::within`).

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::limits::{NAME_MOST, TOKENS_END};
use crate::types::Text;

/// An error and its path: `payload.choices[1]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadField {
    pub path: String,
    pub problem: Problem,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    Missing,
    Unknown,
    NotJson,
    NotAnObject,
    NotAnArray,
    NotText,
    NotABool,
    NotADate,
    /// An integer is out of its range.
    NotBetween {
        least: i64,
        most: i64,
    },
    NotAToken,
    /// The text is not the id of a client's token.
    NotATokenId,
    /// The text is not a grant, for this reason.
    NotAGrant(&'static str),
    Empty,
    /// The name has no visible character.
    Blank,
    HasControls,
    Repeated,
    /// Answers use this name themselves.
    Reserved,
    /// The field contradicts another field.
    Contradicts,
    /// A batch cannot contain batches.
    Nested,
    NoSuchChoice,
    /// The text does not name a lease that a document can end with.
    NoLease,
    TooLong {
        most: usize,
    },
    TooMany {
        most: usize,
    },
    TooDeep {
        most: usize,
    },
    TooLarge {
        most: usize,
    },
    /// A number somewhere in the value is too long.
    NumberTooLong {
        most: usize,
    },
    NumberTooLarge,
    LoneSurrogate,
    /// Readers that are built on serde_json fail on this name.
    NameOfReader,
}

/// The members of an object in the order written. No name occurs twice.
#[derive(Debug)]
pub struct Fields<'a> {
    pub members: Vec<(Cow<'a, str>, &'a RawValue)>,
}

/// Text that borrows from the input unless it has escapes.
#[derive(Deserialize)]
struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);

impl BadField {
    pub fn is_too_large(&self) -> bool {
        matches!(self.problem, Problem::TooLarge { .. })
    }

    pub fn new(path: impl Into<String>, problem: Problem) -> BadField {
        BadField { path: path.into(), problem }
    }

    /// The same error, with a step of the outer path in front.
    pub fn within(mut self, step: &str) -> BadField {
        let dot =
            if self.path.is_empty() || self.path.starts_with('[') || step.is_empty() { "" } else { "." };
        self.path = format!("{step}{dot}{}", self.path);
        self
    }

    pub fn at(self, number: usize) -> BadField {
        self.within(&format!("[{number}]"))
    }
}

impl<'a> Fields<'a> {
    pub fn read(object: &'a RawValue) -> Result<Fields<'a>, BadField> {
        let fields: Fields<'a> = serde_json::from_str(object.get())
            .map_err(|_| BadField::new("", unread(object, '{', Problem::NotAnObject)))?;
        fields.with_each_name_once()
    }

    /// Reads an object. A text that is not one is parsed a second time, only to name the error.
    pub fn of_text(text: &'a str) -> Result<Fields<'a>, BadField> {
        match serde_json::from_str::<Fields<'a>>(text) {
            Ok(fields) => fields.with_each_name_once(),
            Err(_) => {
                let object = serde_json::from_str(text).map_err(|_| BadField::new("", Problem::NotJson))?;
                Fields::read(object)
            }
        }
    }

    fn with_each_name_once(self) -> Result<Fields<'a>, BadField> {
        // JSON readers differ in which of two equal names they take: one would see a condition that another overlooks.
        let mut names: Vec<&str> = self.members.iter().map(|(name, _)| name.as_ref()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(BadField::new(printable(pair[0]), Problem::Repeated)),
            None => Ok(self),
        }
    }

    /// A member in its written form, including `null`.
    pub fn member(&self, name: &str) -> Option<&'a RawValue> {
        self.members.iter().find(|(other, _)| other == name).map(|(_, value)| *value)
    }

    pub fn needed(&self, name: &str) -> Result<&'a RawValue, BadField> {
        self.member(name).ok_or_else(|| BadField::new(name, Problem::Missing))
    }

    /// An optional member: `null` counts as absent.
    pub fn given(&self, name: &str) -> Option<&'a RawValue> {
        self.member(name).filter(|value| value.get() != "null")
    }

    pub fn name(&self, field: &str) -> Result<Text, BadField> {
        name_in(self.needed(field)?).map_err(|error| error.within(field))
    }

    pub fn name_if_given(&self, field: &str) -> Result<Option<Text>, BadField> {
        let name = self.given(field).map(name_in).transpose();
        name.map_err(|error| error.within(field))
    }

    /// A list of at least one name, all different.
    pub fn names(&self, field: &str, most: usize) -> Result<Vec<Text>, BadField> {
        names_in(self.needed(field)?, most).map_err(|error| error.within(field))
    }

    pub fn flag(&self, field: &str) -> Result<bool, BadField> {
        match self.given(field).map(RawValue::get) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(BadField::new(field, Problem::NotABool)),
        }
    }

    /// An integer within bounds.
    /// Only plain digits are taken, with a minus sign at most: `1.0` and `1e3` are refused.
    pub fn number<T: Bounded>(&self, field: &str, least: T, most: T) -> Result<Option<T>, BadField> {
        let Some(value) = self.given(field) else { return Ok(None) };
        let number = value.get().parse().ok().filter(|number| (least..=most).contains(number));
        let wrong = Problem::NotBetween { least: least.into_i64(), most: most.into_i64() };
        number.map(Some).ok_or_else(|| BadField::new(field, wrong))
    }

    pub fn token(&self, field: &str) -> Result<u64, BadField> {
        token_of(self.needed(field)?).map_err(|error| error.within(field))
    }

    /// For objects of which only the known members are kept: a misspelt condition must not count as no condition.
    pub fn only(&self, known: &[&str]) -> Result<(), BadField> {
        match self.members.iter().find(|(name, _)| !known.contains(&name.as_ref())) {
            Some((name, _)) => Err(BadField::new(printable(name), Problem::Unknown)),
            None => Ok(()),
        }
    }

    pub fn without(&self, reserved: &[&str]) -> Result<(), BadField> {
        match reserved.iter().find(|name| self.member(name).is_some()) {
            Some(name) => Err(BadField::new(*name, Problem::Reserved)),
            None => Ok(()),
        }
    }
}

/// Integers that `Fields::number` can read.
pub trait Bounded: Copy + PartialOrd + std::str::FromStr {
    fn into_i64(self) -> i64;
}

impl Bounded for i64 {
    fn into_i64(self) -> i64 {
        self
    }
}

impl Bounded for u64 {
    fn into_i64(self) -> i64 {
        i64::try_from(self).unwrap_or(i64::MAX)
    }
}

/// A fencing token: an integer that every JSON reader keeps exact.
pub fn token_of(value: &RawValue) -> Result<u64, BadField> {
    let number = value.get().parse().ok().filter(|number| *number < TOKENS_END);
    number.ok_or_else(|| BadField::new("", Problem::NotAToken))
}

pub fn array(value: &RawValue) -> Result<Vec<&RawValue>, BadField> {
    serde_json::from_str(value.get()).map_err(|_| BadField::new("", Problem::NotAnArray))
}

pub fn text(value: &RawValue) -> Result<Cow<'_, str>, BadField> {
    let text = serde_json::from_str(value.get()).map(|Borrowed(text)| text);
    text.map_err(|_| BadField::new("", unread(value, '"', Problem::NotText)))
}

/// The reason why JSON that should begin with `first` cannot be read. Its grammar has already been checked: if it begins with
/// `first`, some string in it is not valid Unicode.
fn unread(json: &RawValue, first: char, otherwise: Problem) -> Problem {
    if json.get().starts_with(first) { Problem::LoneSurrogate } else { otherwise }
}

/// The text must not be empty or too long, and must not contain characters that could break a line or a terminal.
pub fn check_text(text: &str, most: usize) -> Result<(), BadField> {
    match () {
        () if text.is_empty() => Err(BadField::new("", Problem::Empty)),
        () if text.len() > most => Err(BadField::new("", Problem::TooLong { most })),
        () if text.contains(char::is_control) => Err(BadField::new("", Problem::HasControls)),
        () => Ok(()),
    }
}

pub fn text_of(value: &RawValue, most: usize) -> Result<Text, BadField> {
    let text = text(value)?;
    check_text(&text, most)?;
    Ok(text.into())
}

fn name_in(value: &RawValue) -> Result<Text, BadField> {
    text_of(value, NAME_MOST)
}

fn names_in(list: &RawValue, most: usize) -> Result<Vec<Text>, BadField> {
    let values = array(list)?;
    match values.len() {
        0 => return Err(BadField::new("", Problem::Empty)),
        count if count > most => return Err(BadField::new("", Problem::TooMany { most })),
        _ => {}
    }
    let named = |(number, value): (usize, &&RawValue)| name_in(value).map_err(|error| error.at(number));
    let names = values.iter().enumerate().map(named).collect::<Result<Vec<_>, _>>()?;
    let mut sorted: Vec<(&Text, usize)> = names.iter().zip(0..).collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(BadField::new("", Problem::Repeated).at(pair[1].1)),
        None => Ok(names),
    }
}

/// A member's name as it may stand in an error message. A client's input is never repeated at full length or raw.
pub fn printable(name: &str) -> String {
    const SHOWN: usize = 64;
    name.chars().take(SHOWN).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fields<'a>, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some((Borrowed(name), value)) = map.next_entry()? {
            members.push((name, value));
        }
        Ok(Fields { members })
    }
}

impl fmt::Display for BadField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => write!(f, "the value {}", self.problem),
            path => write!(f, "{path} {}", self.problem),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Missing => write!(f, "is missing"),
            Problem::Unknown => write!(f, "is an unknown field"),
            Problem::NotJson => write!(f, "must be valid JSON"),
            Problem::NotAnObject => write!(f, "must be an object"),
            Problem::NotAnArray => write!(f, "must be an array"),
            Problem::NotText => write!(f, "must be a string"),
            Problem::NotABool => write!(f, "must be true or false"),
            Problem::NotADate => write!(f, "must be a date and time of RFC 3339, like 2026-11-30T18:00:00Z"),
            Problem::NotBetween { least, most } => write!(f, "must be an integer from {least} to {most}"),
            Problem::NotAToken => write!(f, "must be a token: an integer below 2^53"),
            Problem::NotATokenId => write!(f, "must be the id of a token: 16 lower-case hexadecimal digits"),
            Problem::NotAGrant(why) => f.write_str(why),
            Problem::Empty => write!(f, "is empty"),
            Problem::Blank => write!(f, "has no visible character"),
            Problem::HasControls => write!(f, "has control characters"),
            Problem::Repeated => write!(f, "is given twice"),
            Problem::Reserved => write!(f, "is a name reserved for answers"),
            Problem::Contradicts => write!(f, "contradicts the other condition"),
            Problem::Nested => write!(f, "must not be a batch within a batch"),
            Problem::NoSuchChoice => write!(f, "is not one of the choices"),
            Problem::NoLease => write!(f, "must name a lease: role/NAME or process/ID"),
            Problem::TooLong { most } => write!(f, "has more than {most} bytes"),
            Problem::TooMany { most } => write!(f, "has more than {most} items"),
            Problem::TooDeep { most } => write!(f, "is nested deeper than {most} levels"),
            Problem::TooLarge { most } => write!(f, "is larger than {most} bytes"),
            Problem::NumberTooLong { most } => write!(f, "has a number of more than {most} bytes"),
            Problem::NumberTooLarge => {
                write!(f, "has a number beyond 1.797e308, such as 1e400, which JSON parsers cannot represent")
            }
            Problem::LoneSurrogate => {
                write!(f, "has half of a surrogate pair, such as \\ud800 alone, which is not a character")
            }
            Problem::NameOfReader => {
                write!(f, "has a name that begins with $serde_json::private::, which breaks parsers in Rust")
            }
        }
    }
}
