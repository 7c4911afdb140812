//! One leader and its followers: `leading` and `following`, `replicate` and `catchup` for what a follower lacks, `propose` and
//! `reads` for clients, `handover` to an heir, `digest`, which notices states that differ, and `membership`, which says
//! who belongs here.

mod catchup;
mod digest;
mod following;
mod forgotten;
mod handover;
mod leading;
mod membership;
mod propose;
mod reads;
mod replicate;
