//! When a document ends by itself: what its row says.

use std::fmt::{self, Write};

use crate::store::command::{Ending, Tether, lease_path};
use crate::store::encoding::{BadField, Fields, Hash, Mix, Problem};
use crate::types::{LeaseName, Span};

/// At least one of the two is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifetime {
    pub ttl: Option<Span>,
    pub with: Option<Bond>,
}

/// The lease that it ends with: this one grant of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bond {
    pub lease: LeaseName,
    pub token: u64,
}

impl Lifetime {
    /// The members of an object that may have others; none if it says nothing of an end.
    pub fn read(fields: &Fields) -> Result<Option<Lifetime>, BadField> {
        let Ending { ttl, with } = Ending::read(fields)?;
        let bond = |Tether { lease, token, .. }| match token {
            Some(token) => Ok(Bond { lease, token }),
            None => Err(BadField::new("token", Problem::Missing)),
        };
        let with = with.map(bond).transpose()?;
        Ok((ttl.is_some() || with.is_some()).then_some(Lifetime { ttl, with }))
    }

    /// Its members, each with its comma before it.
    pub fn write(&self, out: &mut dyn Write) -> fmt::Result {
        let tether =
            |bond: &Bond| Tether { lease: bond.lease.clone(), token: Some(bond.token), secret: None };
        Ending { ttl: self.ttl, with: self.with.as_ref().map(tether) }.write(out)
    }
}

impl Mix for Lifetime {
    fn mix(&self, hash: &mut Hash) {
        hash.word(self.ttl.map_or(0, |ttl| ttl.0));
        if let Some(Bond { lease, token }) = &self.with {
            lease_path(lease).as_str().mix(hash);
            hash.word(*token);
        }
    }
}
