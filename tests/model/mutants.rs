//! Known bugs put back, each in the case that shows it: the exploration must find a path to it.

use eldest::protocol::mutant::Mutant;

use crate::cases::{ABSENT_ELDER, DEPOSED, HAND_OVER, RIVALS, RIVALS_CRASH, TWO_SUFFIXES};
use crate::model::Cases;
use crate::{explore, told};

#[test]
fn survey() {
    use Mutant::*;
    let pairs = [
        (
            TWO_SUFFIXES,
            vec![
                CommitOldEpoch,
                LeadWithoutPull,
                NoPrevCheck,
                AckLogEnd,
                TruncateAlways,
                CommitUnmatched,
                IgnoreGreaterPromise,
                CommitBelowMajority,
                AcceptBelowPromise,
                AppendKeepsPromise,
            ],
        ),
        (
            DEPOSED,
            vec![
                CommitBelowMajority,
                NoPrevCheck,
                AckLogEnd,
                AcceptBelowPromise,
                AppendKeepsPromise,
                CommitUnmatched,
                RefuseInFlight,
                SameEpochTwice,
                TruncateAlways,
                OldCertificate,
                ApproveWithoutSuspicion,
            ],
        ),
        (
            HAND_OVER,
            vec![
                CommitBelowMajority,
                ServeAfterHandOver,
                OldCertificate,
                AckLogEnd,
                NoPrevCheck,
                SameEpochTwice,
                RefuseInFlight,
            ],
        ),
        (
            ABSENT_ELDER,
            vec![
                LeadAfterHalfPull,
                LeadWithoutPull,
                AckBeforeSync,
                ApproveBeforeStore,
                SameEpochTwice,
                NoPrevCheck,
                AckLogEnd,
                CommitOldEpoch,
            ],
        ),
        (
            RIVALS,
            vec![
                CommitBelowMajority,
                AppendKeepsPromise,
                AcceptBelowPromise,
                LeadWithoutPull,
                NoPrevCheck,
                AckBeforeSync,
                ApproveBeforeStore,
            ],
        ),
        (RIVALS_CRASH, vec![SameEpochTwice]),
    ];
    for (case, mutants) in pairs {
        for mutant in mutants {
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
                if std::env::var("TELL").is_ok() {
                    eprintln!("{}", told(path));
                }
            }
        }
    }
}
