//! Available mode, where no majority is needed: `gathering` elects without one, `membership` says who belongs to which side,
//! `merging` makes two sides one, and `settled` forgets what only sides need.

mod gathering;
mod membership;
mod merging;
mod settled;
