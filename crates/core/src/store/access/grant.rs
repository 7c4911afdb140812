//! One right: its verbs, its area, and the prefix that names in the area must have.
//!
//! ```text
//! read docs                 every document may be read
//! read,write docs/app/      documents whose keys begin with app/
//! read,write,watch *        all of this in every area
//! order                     orders may be given
//! ```
//!
//! No verb implies another: the right to write does not include the right to read.

use std::fmt;
use std::str::FromStr;

use crate::store::encoding::{KEY_MOST, NAME_MOST, Problem, check_text};
use crate::types::Text;

/// The verbs, in the order in which they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    Read,
    Write,
    Watch,
    /// The right of an operator to give orders. It belongs to no area.
    Order,
}

/// The kind of thing that a grant's names refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Area {
    Docs,
    Roles,
    Processes,
    Channels,
    Users,
    Elections,
    /// The status of the cluster and its nodes. This area has no names.
    Status,
    /// Every area above.
    All,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    verbs: Verbs,
    /// Orders have no area.
    area: Option<Area>,
    prefix: Text,
}

/// The reason why a text is not a valid grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadGrant {
    UnknownVerb,
    RepeatedVerb,
    /// The area is missing, or there is no blank before it.
    NoArea,
    UnknownArea,
    /// `order` stands with another verb, or with an area.
    OrderStandsAlone,
    /// `*` and `status` take no prefix.
    NoPrefixHere,
    PrefixTooLong,
    HasControls,
}

/// A set of verbs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Verbs(u8);

impl Grant {
    pub fn parse(text: &str) -> Result<Grant, BadGrant> {
        let (verbs, place) = match text.split_once(' ') {
            Some((verbs, place)) => (Verbs::parse(verbs)?, Some(place)),
            None => (Verbs::parse(text)?, None),
        };
        if verbs.has(Verb::Order) {
            let alone = verbs == Verbs::of(Verb::Order) && place.is_none();
            return if alone { Ok(Grant::order()) } else { Err(BadGrant::OrderStandsAlone) };
        }
        let place = place.ok_or(BadGrant::NoArea)?;
        let (area, prefix) = place.split_once('/').map_or((place, None), |(area, rest)| (area, Some(rest)));
        let area = Area::named(area).ok_or(BadGrant::UnknownArea)?;
        match (area, prefix) {
            (Area::All | Area::Status, Some(_)) => Err(BadGrant::NoPrefixHere),
            (_, prefix) => {
                let prefix = prefix.unwrap_or_default();
                check_prefix(area, prefix)?;
                Ok(Grant { verbs, area: Some(area), prefix: prefix.into() })
            }
        }
    }

    /// The right to give orders.
    pub fn order() -> Grant {
        Grant { verbs: Verbs::of(Verb::Order), area: None, prefix: Text::from("") }
    }

    pub fn has(&self, verb: Verb) -> bool {
        self.verbs.has(verb)
    }

    /// Orders have no area.
    pub fn area(&self) -> Option<Area> {
        self.area
    }

    /// The prefix of the names that the grant covers. An empty prefix covers all names.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Orders have neither area nor name, so both arguments are ignored for them.
    /// A prefix is a beginning of a name, not a folder: `docs/app` covers `app/x`, and also `apple`. A slash at the end
    /// (`docs/app/`) keeps the grant within the folder.
    pub fn covers(&self, verb: Verb, area: Area, name: &str) -> bool {
        self.verbs.has(verb)
            && (verb == Verb::Order || (self.is_about(area) && name.starts_with(&*self.prefix)))
    }

    fn is_about(&self, area: Area) -> bool {
        self.area == Some(Area::All) || self.area == Some(area)
    }
}

fn check_prefix(area: Area, prefix: &str) -> Result<(), BadGrant> {
    match check_text(prefix, area.name_most()).map_err(|error| error.problem) {
        Ok(()) | Err(Problem::Empty) => Ok(()),
        Err(Problem::TooLong { .. }) => Err(BadGrant::PrefixTooLong),
        Err(_) => Err(BadGrant::HasControls),
    }
}

impl Verb {
    pub const ALL: [Verb; 4] = [Verb::Read, Verb::Write, Verb::Watch, Verb::Order];

    pub fn name(self) -> &'static str {
        match self {
            Verb::Read => "read",
            Verb::Write => "write",
            Verb::Watch => "watch",
            Verb::Order => "order",
        }
    }
}

impl Area {
    pub const ALL: [Area; 8] = [
        Area::Docs,
        Area::Roles,
        Area::Processes,
        Area::Channels,
        Area::Users,
        Area::Elections,
        Area::Status,
        Area::All,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Area::Docs => "docs",
            Area::Roles => "roles",
            Area::Processes => "processes",
            Area::Channels => "channels",
            Area::Users => "users",
            Area::Elections => "elections",
            Area::Status => "status",
            Area::All => "*",
        }
    }

    fn named(name: &str) -> Option<Area> {
        Area::ALL.into_iter().find(|area| area.name() == name)
    }

    /// The length limit for names of this area, in bytes.
    fn name_most(self) -> usize {
        if self == Area::Docs { KEY_MOST } else { NAME_MOST }
    }
}

impl Verbs {
    fn of(verb: Verb) -> Verbs {
        Verbs(1 << verb as u8)
    }

    fn has(self, verb: Verb) -> bool {
        self.0 & Verbs::of(verb).0 != 0
    }

    /// The verbs may stand in any order, each at most once.
    /// Equal sets are equal values and are written in one order, so a retry that lists its verbs in another order asks
    /// for the same token (`Store::made_before`).
    fn parse(text: &str) -> Result<Verbs, BadGrant> {
        let mut verbs = Verbs::default();
        for name in text.split(',') {
            let verb = Verb::ALL.into_iter().find(|verb| verb.name() == name);
            let verb = verb.ok_or(BadGrant::UnknownVerb)?;
            if verbs.has(verb) {
                return Err(BadGrant::RepeatedVerb);
            }
            verbs.0 |= Verbs::of(verb).0;
        }
        Ok(verbs)
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verbs = Verb::ALL.into_iter().filter(|verb| self.has(*verb));
        for (number, verb) in verbs.enumerate() {
            write!(f, "{}{}", if number > 0 { "," } else { "" }, verb.name())?;
        }
        self.area.iter().try_for_each(|area| write!(f, " {}", area.name()))?;
        if self.prefix.is_empty() { Ok(()) } else { write!(f, "/{}", self.prefix) }
    }
}

impl FromStr for Grant {
    type Err = BadGrant;

    fn from_str(text: &str) -> Result<Grant, BadGrant> {
        Grant::parse(text)
    }
}

impl BadGrant {
    /// The reason, worded to continue a sentence that starts with the field's name.
    pub fn why(self) -> &'static str {
        match self {
            BadGrant::UnknownVerb => "has an unknown verb: use read, write, watch or order",
            BadGrant::RepeatedVerb => "has the same verb twice",
            BadGrant::NoArea => "needs an area after its verbs, as in \"read docs\"",
            BadGrant::UnknownArea => {
                "has an unknown area: use docs, roles, processes, channels, users, elections, status or *"
            }
            BadGrant::OrderStandsAlone => {
                "has more than \"order\", which must be alone, without other verbs or an area"
            }
            BadGrant::NoPrefixHere => "has a prefix after * or status, which take none",
            BadGrant::PrefixTooLong => "has a prefix that is longer than any name of its area",
            BadGrant::HasControls => "has control characters",
        }
    }
}

impl fmt::Display for BadGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why())
    }
}

impl std::error::Error for BadGrant {}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(text: &str) -> Grant {
        Grant::parse(text).expect("a grant")
    }

    #[test]
    fn it_is_written_in_one_way() {
        for (text, written) in [
            ("read docs", "read docs"),
            ("watch,write,read *", "read,write,watch *"),
            ("write,read docs/app/", "read,write docs/app/"),
            ("read docs/", "read docs"),
            ("read docs//a b/", "read docs//a b/"),
            ("watch channels/é", "watch channels/é"),
            ("order", "order"),
            ("read status", "read status"),
        ] {
            assert_eq!(grant(text).to_string(), written);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let long = |area: &str, length: usize| format!("read {area}/{}", "p".repeat(length));
        for (text, wrong) in [
            ("", BadGrant::UnknownVerb),
            ("reed docs", BadGrant::UnknownVerb),
            ("Read docs", BadGrant::UnknownVerb),
            ("read, write docs", BadGrant::UnknownVerb),
            ("read,read docs", BadGrant::RepeatedVerb),
            ("read", BadGrant::NoArea),
            ("read ", BadGrant::UnknownArea),
            ("read  docs", BadGrant::UnknownArea),
            ("read doc/a", BadGrant::UnknownArea),
            ("read docs ", BadGrant::UnknownArea),
            ("order docs", BadGrant::OrderStandsAlone),
            ("order *", BadGrant::OrderStandsAlone),
            ("read,order docs", BadGrant::OrderStandsAlone),
            ("read,order", BadGrant::OrderStandsAlone),
            ("read */a", BadGrant::NoPrefixHere),
            ("read status/", BadGrant::NoPrefixHere),
            ("read docs/a\nb", BadGrant::HasControls),
            (&long("docs", KEY_MOST + 1), BadGrant::PrefixTooLong),
            (&long("roles", NAME_MOST + 1), BadGrant::PrefixTooLong),
        ] {
            assert_eq!(Grant::parse(text), Err(wrong), "{text:?}");
        }
        assert!(Grant::parse(&long("docs", KEY_MOST)).is_ok());
    }

    #[test]
    fn it_covers_what_it_says_and_nothing_else() {
        let docs = grant("read,watch docs/app/");
        assert!(docs.covers(Verb::Read, Area::Docs, "app/a") && docs.covers(Verb::Watch, Area::Docs, "app/"));
        assert!(!docs.covers(Verb::Write, Area::Docs, "app/a"), "no verb implies another");
        assert!(
            !docs.covers(Verb::Read, Area::Roles, "app/a") && !docs.covers(Verb::Order, Area::Docs, "app/a")
        );
        assert!(
            !docs.covers(Verb::Read, Area::Docs, "app") && !docs.covers(Verb::Read, Area::Docs, "other/app/")
        );
        let all = grant("write *");
        assert!(Area::ALL.into_iter().all(|area| all.covers(Verb::Write, area, "x")));
        assert!(!all.covers(Verb::Order, Area::All, ""));
        let order = Grant::order();
        assert!(order.covers(Verb::Order, Area::All, ""));
        assert!(!order.covers(Verb::Read, Area::Status, "") && !order.covers(Verb::Write, Area::All, ""));
        assert!(!grant("read docs").covers(Verb::Read, Area::All, ""), "one area is not all");
    }
}
