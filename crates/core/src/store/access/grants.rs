//! All grants of one token.

use std::sync::Arc;

use super::grant::{Area, Grant, Verb};
use crate::store::encoding::{Hash, Mix};

/// A token has a right if at least one of its grants covers it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants(Arc<[Grant]>);

impl Grants {
    pub fn iter(&self) -> impl Iterator<Item = &Grant> {
        self.0.iter()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the token allows this verb on this name. Orders ignore the area and the name.
    pub fn covers(&self, verb: Verb, area: Area, name: &str) -> bool {
        self.iter().any(|grant| grant.covers(verb, area, name))
    }

    /// Whether the token allows this verb on every name that begins with `prefix`, existing or not. Lists need this right. One
    /// single grant must cover all of these names.
    pub fn covers_all_below(&self, verb: Verb, area: Area, prefix: &str) -> bool {
        // A grant whose prefix starts `prefix` also covers every longer name.
        self.covers(verb, area, prefix)
    }

    pub fn may_order(&self) -> bool {
        self.covers(Verb::Order, Area::All, "")
    }
}

impl FromIterator<Grant> for Grants {
    fn from_iter<T: IntoIterator<Item = Grant>>(grants: T) -> Grants {
        Grants(grants.into_iter().collect())
    }
}

impl Mix for Grants {
    fn mix(&self, hash: &mut Hash) {
        hash.word(self.len() as u64);
        self.iter().for_each(|grant| grant.to_string().as_str().mix(hash));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(texts: &[&str]) -> Grants {
        texts.iter().map(|text| Grant::parse(text).expect("a grant")).collect()
    }

    #[test]
    fn one_of_them_is_enough() {
        let grants = grants(&["read docs", "write docs/app/", "watch roles/web"]);
        assert!(
            grants.covers(Verb::Read, Area::Docs, "x") && grants.covers(Verb::Write, Area::Docs, "app/x")
        );
        assert!(
            grants.covers(Verb::Watch, Area::Roles, "web-1")
                && !grants.covers(Verb::Watch, Area::Roles, "we")
        );
        assert!(!grants.covers(Verb::Write, Area::Docs, "x") && !grants.may_order());
        assert!(!Grants::default().covers(Verb::Read, Area::Status, ""));
    }

    #[test]
    fn a_list_is_covered_by_one_grant_that_reaches_as_far() {
        let narrow = grants(&["read docs/app/", "read docs/b"]);
        assert!(narrow.covers_all_below(Verb::Read, Area::Docs, "app/"));
        assert!(narrow.covers_all_below(Verb::Read, Area::Docs, "app/x"));
        assert!(narrow.covers_all_below(Verb::Read, Area::Docs, "bc"));
        for wider in ["", "a", "app", "c"] {
            assert!(!narrow.covers_all_below(Verb::Read, Area::Docs, wider), "{wider:?}");
        }
        assert!(grants(&["read docs"]).covers_all_below(Verb::Read, Area::Docs, ""));
        assert!(grants(&["read *"]).covers_all_below(Verb::Read, Area::Elections, ""));
    }

    /// Random grants of every kind: each is written, read back unchanged, and covers what it should.
    #[test]
    fn what_is_written_is_read_back() {
        let mut seed = 7_u64;
        let mut draw = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..2000 {
            let verbs: Vec<_> =
                Verb::ALL[..3].iter().filter(|_| draw(2) == 0).map(|verb| verb.name()).collect();
            let area = Area::ALL[draw(8) as usize];
            let prefix: String =
                (0..draw(6)).map(|_| ['/', 'a', ' ', 'é', ',', '*'][draw(6) as usize]).collect();
            let named = !matches!(area, Area::All | Area::Status);
            let slash = if named && !prefix.is_empty() { "/" } else { "" };
            let text =
                format!("{} {}{slash}{}", verbs.join(","), area.name(), if named { &prefix } else { "" });
            let Ok(grant) = Grant::parse(&text) else {
                assert!(verbs.is_empty(), "{text:?}");
                continue;
            };
            assert_eq!(grant.to_string(), text);
            assert_eq!(Grant::parse(&grant.to_string()), Ok(grant.clone()));
            let grants: Grants = [grant.clone()].into_iter().collect();
            for verb in Verb::ALL {
                let name = format!("{}x", grant.prefix());
                assert_eq!(grants.covers(verb, area, &name), verbs.contains(&verb.name()), "{text:?}");
            }
        }
    }
}
