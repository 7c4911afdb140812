//! The part of the URL after the `?`. Whatever is not known is refused: a misspelt parameter that is passed over
//! silently reads the wrong thing.

use std::borrow::Cow;

use super::path::decode;
use super::problem::Problem;
use crate::driver::api::Level;

/// Items in a page when the caller does not say.
const LIMIT_DEFAULT: usize = 100;

/// More than this in one answer holds up everybody else's.
const LIMIT_MOST: usize = 1000;

/// What a query may say, over all routes.
#[derive(Debug, Default)]
pub struct Query<'a> {
    pub level: Option<Level>,
    /// `forward=no`: the caller wants to be told rather than served.
    pub stay: bool,
    pub limit: Option<usize>,
    pub after: Option<Cow<'a, str>>,
    pub prefix: Option<Cow<'a, str>>,
    pub kind: Option<Cow<'a, str>>,
    pub kinds: Option<Cow<'a, str>>,
    pub since: Option<Cow<'a, str>>,
    pub format: Option<Cow<'a, str>>,
    /// What belongs to one route only.
    more: Vec<(String, Cow<'a, str>)>,
}

impl<'a> Query<'a> {
    /// `known` are the names that this route takes.
    pub fn parse(text: Option<&'a str>, known: &[&str]) -> Result<Query<'a>, Problem> {
        let mut query = Query::default();
        let mut seen = Vec::new();
        for pair in text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let Some(name) = known.iter().find(|known| **known == name) else {
                let detail = match known {
                    [] => "this route takes no query parameters".to_string(),
                    known => format!("unknown query parameter; this route takes {}", known.join(", ")),
                };
                return Err(Problem::field(name, detail));
            };
            if seen.contains(name) {
                return Err(Problem::field(name, "the query parameter is given twice"));
            }
            seen.push(name);
            query.set(name, decode_plus(name, value)?)?;
        }
        Ok(query)
    }

    fn set(&mut self, name: &str, value: Cow<'a, str>) -> Result<(), Problem> {
        match name {
            "level" => self.level = Some(level(&value)?),
            "forward" => self.stay = !forward(&value)?,
            "limit" => self.limit = Some(limit(&value)?),
            "after" => self.after = Some(value),
            "prefix" => self.prefix = Some(value),
            "kind" => self.kind = Some(value),
            "kinds" => self.kinds = Some(value),
            "since" => self.since = Some(value),
            "format" => self.format = Some(value),
            name => self.more.push((name.to_string(), value)),
        }
        Ok(())
    }

    pub fn more(&self, name: &str) -> Option<&str> {
        self.more.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_ref())
    }

    pub fn level(&self) -> Level {
        self.level.unwrap_or(Level::Linear)
    }

    pub fn limit(&self) -> usize {
        self.limit.unwrap_or(LIMIT_DEFAULT)
    }
}

fn decode_plus<'a>(name: &str, value: &'a str) -> Result<Cow<'a, str>, Problem> {
    let wrong = || Problem::field(name, "the value is not UTF-8 in percent encoding");
    match value.contains('+') {
        false => decode(value).ok_or_else(wrong),
        true => {
            decode(&value.replace('+', " ")).map(|value| Cow::Owned(value.into_owned())).ok_or_else(wrong)
        }
    }
}

fn level(value: &str) -> Result<Level, Problem> {
    match value {
        "linear" => Ok(Level::Linear),
        "leader" => Ok(Level::Leader),
        "local" => Ok(Level::Local),
        _ => Err(Problem::field("level", "level is linear, leader or local")),
    }
}

fn forward(value: &str) -> Result<bool, Problem> {
    match value {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(Problem::field("forward", "forward is yes or no")),
    }
}

fn limit(value: &str) -> Result<usize, Problem> {
    let limit = value.parse().ok().filter(|limit| (1..=LIMIT_MOST).contains(limit));
    limit.ok_or_else(|| Problem::field("limit", format!("limit is a number from 1 to {LIMIT_MOST}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_read() {
        let known = ["level", "limit", "after", "prefix", "forward"];
        let query = Query::parse(Some("level=local&&limit=7&after=a%2Fb+c&prefix=&forward=no"), &known);
        let query = query.expect("all of it is known");
        assert_eq!((query.level(), query.limit(), query.stay), (Level::Local, 7, true));
        assert_eq!((query.after.as_deref(), query.prefix.as_deref()), (Some("a/b c"), Some("")));
        let none = Query::parse(None, &[]).expect("nothing is nothing wrong");
        assert_eq!((none.level(), none.limit(), none.stay), (Level::Linear, LIMIT_DEFAULT, false));
    }

    #[test]
    fn what_is_not_is_refused() {
        let known = ["level", "limit", "after"];
        for text in
            ["levle=local", "prefix=a", "level=", "level", "limit=0", "limit=1001", "limit=x", "limit=-1"]
        {
            assert!(Query::parse(Some(text), &known).is_err(), "{text}");
        }
        for text in ["level=local&level=local", "after=%ff", "after=%2", "=", "%6cevel=local"] {
            assert!(Query::parse(Some(text), &known).is_err(), "{text}");
        }
    }
}
