//! Known bugs put back, each in the case that shows it: the exploration must find a path to it.

use eldest::protocol::mutant::Mutant;

use crate::cases::{
    ABSENT_ELDER, Case, DEPOSED, HAND_OVER, RIVALS, RIVALS_CRASH, RIVALS_LATE, TWO_SUFFIXES,
};
use crate::model::Cases;
use crate::{explore, told};

#[test]
fn survey() {
    use Mutant::*;
    let only = std::env::var("ONLY").unwrap_or_default();
    for case in [
        HAND_OVER,
        DEPOSED,
        TWO_SUFFIXES,
        ABSENT_ELDER,
        RIVALS,
        RIVALS_CRASH,
        RIVALS_LATE,
    ] {
        for mutant in [
            AppendKeepsPromise,
            ApproveBeforeStore,
            AckBeforeSync,
            SameEpochTwice,
            AcceptBelowPromise,
            ServeAfterHandOver,
            OldCertificate,
            RefuseInFlight,
            LeadWithoutPull,
            LeadAfterHalfPull,
            AckLogEnd,
            NoPrevCheck,
            TruncateAlways,
            CommitUnmatched,
            CommitOldEpoch,
            CommitBelowMajority,
            ApproveWithoutSuspicion,
            IgnoreGreaterPromise,
        ] {
            if !format!("{mutant:?}").contains(&only) {
                continue;
            }
            let (failed, _) = explore(&Cases {
                case,
                mutant: Some(mutant),
            });
            for (name, path) in failed {
                eprintln!(
                    "FOUND {mutant:?} in {}: {name} {}",
                    case.name,
                    path.clone().into_actions().len()
                );
                if !only.is_empty() {
                    eprintln!("{}", told(path));
                }
            }
        }
    }
}
