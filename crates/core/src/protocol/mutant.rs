//! Known bugs. Each leaves out one rule on purpose. The tests switch one on and prove that a checker
//! catches it. Without the feature `mutants` every question below is a constant `false`.

/// Each variant names the rule that it leaves out; C is the counterexample that it replays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize)]
pub enum Mutant {
    /// P2, C1: a record of a later epoch is accepted without raising the promise.
    AppendKeepsPromise,
    /// P3: a leader that falters gets no more patience than one that never has.
    FaltersForgotten,
    /// P3: a node that has slept takes its own sleep for the silence of others.
    SleepIsSilence,
    /// P2: an approval leaves before the promise is on disk.
    ApproveBeforeStore,
    /// P29: an acknowledgement leaves before the records are on disk.
    AckBeforeSync,
    /// P29: the answer to a beat counts records that are not on disk.
    BeatsCountUnsynced,
    /// P29: the answer to a beat waits until the disk has all records.
    BeatsWaitForRecords,
    /// P2, C11: after a restart the old counter is claimed again.
    SameEpochTwice,
    /// P2: a message below the promise is accepted.
    AcceptBelowPromise,
    /// P10, C2: approvals and acknowledgements of any incarnation count.
    AnyIncarnationCounts,
    /// P10: a new disk takes the seat and the vote of the disk before it in one step.
    LetInWithItsVote,
    /// P10: a node counts itself whatever its log knows of its disk.
    CountsItselfAlways,
    /// P10: a disk that has been replaced is let in again.
    ReplacedIsLetIn,
    /// P9, C3: a majority of blank nodes forms a cluster.
    FormByMajority,
    /// P9: a blank node founds a cluster without listening for one that it may belong to already.
    FormDeaf,
    /// P9: a blank node that has heard of a cluster lets others found another one with it.
    FoundsWithOthers,
    /// P9: founders listen only if the topology file names no other node.
    FoundersDeaf,
    /// P9: a blank candidate whose topology file names two founders does not listen first.
    FoundWithoutListening,
    /// P9: a blank node agrees to a founding before it has listened.
    AgreeWithoutListening,
    /// P27, C4: a bad line is always taken for a torn write.
    CutDoubtfulTail,
    /// P27: a disk that ends below what it has acknowledged goes on as if it had forgotten nothing.
    ForgottenOverlooked,
    /// P11, C5: the leader counts its lease from the arrival of the answer, not from the sending of the beat.
    LeaseFromReceipt,
    /// P11, C5: a new leader does not wait for older leases.
    IgnoreLeaseLeft,
    /// P11, C5: a restarted node forgets what it granted.
    RestartForgetsGrants,
    /// P11: a follower grants no more than its own configuration says.
    GrantsByConfiguration,
    /// P11: a restarted node goes by its configuration, not by the leases that its disk has granted.
    LeaseByConfiguration,
    /// P11: a disk forgets a long lease as soon as a short one is asked for.
    LeaseFallsAtOnce,
    /// P11: a disk that has promised something, but stores less than the configured lease, goes on storing too little.
    LeaseUntold,
    /// P11: a candidate believes in no lease that is longer than its own.
    LeaseLeftCutShort,
    /// P11: a process on another disk is taken for the end of the process before it.
    GrantsEndWithNewDisk,
    /// P18, C6: the leader goes on serving after the certificate has left.
    ServeAfterHandOver,
    /// P18, C6: a certificate is honoured whatever the promise.
    OldCertificate,
    /// P15, C7: a write in flight is answered `refused` when the leader steps down.
    RefuseInFlight,
    /// P6, C9: a candidate opens its epoch with the log that it has.
    LeadWithoutPull,
    /// P6, C9: a candidate opens its epoch after the first part of a pull.
    LeadAfterHalfPull,
    /// P5, C10: a follower acknowledges the end of its log, not the last record that matches.
    AckLogEnd,
    /// P5: a follower does not check the position before a batch.
    NoPrevCheck,
    /// P5: a follower cuts the records after a batch even if they do not conflict.
    TruncateAlways,
    /// P5: a follower commits up to the leader's commit index, beyond the records that match.
    CommitUnmatched,
    /// P54: a document stays when the lease that it is bound to ends.
    BoundDocOutlivesLease,
    /// P59: a write in the name of a role goes through, whichever client holds the role.
    FormerHolderWrites,
    /// P54: a document stays although its lease has not survived a merge or a restore.
    LooseDocsStay,
    /// P54: a new leader does not count the documents that it finds.
    DocTtlForgotten,
    /// P55: a full state accepts every write.
    StateGrowsOn,
    /// P55: a full state accepts no write at all.
    FullStateTakesNothing,
    /// P56: a merge brings back a token that one of the sides has revoked.
    RevokedReturns,
    /// P56: a restore does not keep the tokens of clients.
    RestoreDropsTokens,
    /// P7: a record of an older epoch is committed by counting.
    CommitOldEpoch,
    /// P7: a record is committed with one acknowledgement less than a majority.
    CommitBelowMajority,
    /// P13, C13: a read joins the confirmation round in flight.
    ReadJoinsRound,
    /// P13: a read is answered before the leader's own first record is committed.
    ReadBeforeOpen,
    /// P13: a read is answered without a confirmation.
    ReadUnconfirmed,
    /// P13: a disk that has forgotten something confirms reads.
    AnyoneConfirms,
    /// P14, C8: a refusal leaves before the records that it was judged against are confirmed.
    RefusalUnconfirmed,
    /// P12, C12: an atomic batch is written as several records.
    SplitBatch,
    /// P16: a leader without a majority does not step down.
    NoStepDown,
    /// P16, C29: a leader that cannot commit stays.
    StuckLeaderStays,
    /// P4, C26: a candidate claims without a dry run.
    NoDryRun,
    /// P8: a node approves although it hears its leader.
    ApproveWithoutSuspicion,
    /// P4: no candidate waits for its elders.
    NoRankWait,
    /// P21, C27: an unready elder is ranked like a ready one.
    UnreadyFirst,
    /// P28: a leader that learns of a greater promise goes on as before.
    IgnoreGreaterPromise,
    /// P17, C17: cluster time starts again from zero with each leader.
    ClusterTimeRestarts,
    /// P17: wall time follows a clock that was set back.
    WallTimeGoesBack,
    /// P17: wall time follows a clock that leaps ahead.
    WallTimeLeaps,
    /// P50: an epoch is believed however far ahead it is.
    AnyEpochReaches,
    /// P51: an answer to a question that a node has not asked turns the node away.
    TurnedAwayUnasked,
    /// P43: a node ignores that members do not know it.
    OutsiderWaits,
    /// P20: an index that keeps dying is never held back.
    NoHold,
    /// P22: a hold of the service never lapses.
    HoldForEver,
    /// P23, C31: a new record type is written before all nodes can read it.
    NewFormatAtOnce,
    /// P24, C32: a node with a full disk acknowledges records that it could not write.
    AckWhenFull,
    /// P24, C32: a node with a full disk approves and answers only once there is room for the records before.
    FullWaitsForRoom,
    /// P24, C32: a node with a full disk counts records that wait for room when it approves.
    FullTellsAll,
    /// P24, C32: a promise waits behind records that find no room.
    PromiseWaitsForRoom,
    /// P25, C33: every node that differs from the leader is odd.
    LeaderIsNeverOdd,
    /// P25: with long beats the leader asks for a boundary whose digest the other nodes have dropped.
    DroppedDigestAsked,
    /// P25: digests are compared although two builds have computed them in different ways.
    DigestsOfAnyVersion,
    /// P51: if peers do not prove who they are, a leader that finds itself odd is only reported, and leads again.
    OddLeaderGoesOn,
    /// P51: if peers do not prove who they are, a follower that hears that it is odd does not ask its leader, and goes on voting.
    OddFollowerGoesOn,
    /// P51: a leader's beats are numbered from zero, so that any process can answer them.
    BeatsAreGuessed,
    /// P51: a node that asks to lead is asked in turn, or is sent a beat, although it is no member and names its address itself.
    StrangersAreAsked,
    /// P26: a snapshot is installed over newer committed state.
    SnapshotGoesBack,
    /// P26: a snapshot is taken while an older one waits to be installed, which then replaces it.
    SnapshotBeforeInstalled,
    /// P26: a snapshot is written before the promise of the epoch that its records are of.
    SnapshotBeforePromise,
    /// P26: idempotency keys are lost with a snapshot.
    KeysForgotten,
    /// I7, C16: a document replaces all data, and with it the memory of the calls that were carried out.
    RestoreForgetsKeys,
    /// P26: the contents of a snapshot that failed are missing in every later snapshot.
    FailedKeysForgotten,
    /// P30, C15: a token is only one more than the last.
    TokenByCounter,
    /// P32, C18: a node follows a leader whose log lacks some of that node's records.
    JoinUncovered,
    /// P33, C19: an override is accepted whatever it covers.
    OverrideUncovered,
    /// P34, C24: a merge takes the next index of the elder's side.
    MergeIndexLow,
    /// P34: a state that was asked for in an earlier epoch is merged, although the disk that it came from may be gone.
    MergeOfAnyEpoch,
    /// P34: a state that was asked for before the elder settled is merged.
    MergeOverSettled,
    /// P34: merges do not go on when their leader has to begin a greater epoch.
    MergesEndWithEpochs,
    /// P35, C20: histories are settled without asking every disk.
    SettleWithoutAll,
    /// P35: histories are settled although a node came back, perhaps with another disk, and another node has not followed since.
    SettleOverReplaced,
    /// P35: only a new incarnation counts as another disk; an older copy of a disk has no new incarnation.
    SettleOverCopies,
    /// P35: nothing is ever settled.
    NeverSettle,
    /// P36: a disk that may have forgotten its epochs counts on from the counters that it knows.
    LonelyCounterPlain,
    /// P36: a wiped disk that was let in claims the next counter, which may be one of its former life.
    AdmittedKnowsItsEpochs,
    /// P36: a disk with a new beginning claims the next counter above one of other nodes, in which its former life may have led.
    NextMayBeOwn,
    /// P37: a side's leader acknowledges a write that only its own disk has.
    AckAlone,
    /// P31: in available mode a log that conflicts with the leader's is cut.
    CutInAvailable,
    /// P39, C14: a renewal is answered from the leader's memory, without a round.
    RenewUnconfirmed,
    /// P39, C14: a renewal is answered while the record that ends its token is under way.
    RenewWhileEnding,
    /// P39: a renewal that asks for a shorter lease takes back the longer promise before it.
    PromiseTakenBack,
    /// P40, C14: a lease that is not renewed is never marked as old.
    LeaseNeverAges,
    /// P40: a lease that may be old by the log is promised in full.
    AgedPromisedInFull,
    /// P15: under `ack = all` a write is acknowledged once it is committed.
    AckAllByMajority,
    /// P7: a follower learns of a commit with the next append or beat only.
    CommitUntold,
    /// P15: under `ack = all` a leader acknowledges a write that its own disk lacks, once all others have it.
    AckAllBeforeOwnDisk,
    /// P15: under `ack = all` a deposed leader acknowledges what its successor commits.
    AckAllWhenDeposed,
    /// P40: a leader goes on with the lease times that it counted in an earlier epoch.
    LeasesCarriedOver,
    /// P15: a leader does not recognise its own record once that record is trimmed.
    TrimmedIsUnknown,
    /// P41: a grant to a caller that has hung up ends, although its holder has heard of the grant by another call.
    GiveUpWhatWasTold,
    /// P41: a grant to a caller that has hung up stands if another call was told of it, although the caller of that call had hung up, too.
    UnheardPromiseStands,
    /// P41: a role goes to a waiter whose caller has hung up, and stays there.
    GrantToTheGone,
    /// P41: a call that arrives together with the one that frees a role gets the role before those in the queue.
    LatecomersPass,
    /// P41: a role goes to a waiter whose token was revoked while it waited.
    GrantToTheRevoked,
    /// P45: a closed connection ends a lease whose holder has named another connection since.
    UntieAnyNumber,
    /// P45: a late renewal names an older connection again.
    TieTakenBack,
    /// P45: a late renewal names again a connection that its holder has gone on without.
    TieNamedAgain,
    /// P45: a holder that renews without a connection is still tied to the one that it named before.
    PlainRenewalStaysTied,
    /// P45: a closed connection ends a lease that an earlier leader promised, although the holder may have named a greater number to that
    /// leader.
    UntieAtOnce,
    /// P45: a client that acquires again is tied to the connection of the process before it.
    AcquireStaysTied,
    /// P45: the closed connection of an earlier process ends the lease of a client that has acquired again and renews without a connection.
    SuccessorIsUntied,
    /// P15: a leader that leads again before its hand-over is decided forgets the caller that asked for it.
    YieldedUnanswered,
    /// P15: under `ack = all` a follower on another disk counts as silent until it answers.
    ReplacedIsSilent,
    /// P11: a message of another process voids the leases granted to the process before it.
    NewProcessVoidsGrants,
    /// P15: a node whose port refused counts as dead until the process that was refused sends something, although beats are answered.
    RefusedUntilNamed,
    /// P43: the topology file decides whose votes count, whatever the log says.
    MembersByFile,
    /// P43: in available mode the log of a cluster that was formed in safe mode names the members.
    LogRulesSides,
    /// P43: an added node votes before it holds the record that let it in.
    VotesUnseated,
    /// P43: a candidate that turns out to be a learner by the log that it pulled leads all the same.
    LearnerLeads,
    /// P43: members change again before the previous change is committed.
    ChangesOverlap,
    /// P43: members change while an earlier leader may still be relied on.
    ChangeUnderOldLease,
    /// P43: an added node votes at once.
    VotesUntaught,
    /// P44: the disk of another cluster of the same name counts as one of this cluster.
    AnyClusterCounts,
    /// P15, P46: a restore goes on in a later epoch, in which its staged parts are gone, and its last step is acknowledged.
    RestoreGoesOn,
    /// P26: the staged parts of a restore stay if the record that gives the restore up was refused.
    StagedIsLeft,
    /// P46: the record that gives a restore up is refused like a client's write.
    GiveUpIsRefused,
    /// P46: a restore has no limit in time.
    RestoreNeverGivenUp,
    /// P57, I6: a backup is restored although the clock is behind those of the lost cluster and nothing shows which tokens were granted.
    RestoreTurnsTokensBack,
    /// P57, I6: a restore leaves the last token as it is, whatever its last record says about tokens.
    RestoreForgetsFloor,
    /// P60: a restore of another cluster's data goes on with the present history.
    HistoryGoesOn,
    /// P47: a reader that has nothing gets the lines after an override, and not the state that the override left.
    BlankReaderGetsLines,
    /// P15: a call whose earlier attempt may yet be applied is refused like any other.
    RetryIsRefused,
    /// P48: two sides hold the service for as long as they hear each other, although no state arrives from the other side.
    MeetsForEver,
    /// P48: readers of the feed do not hear that a merge was called off.
    CalledOffUntold,
    /// P60: a reader goes on at a place of another history.
    CursorOfAnyHistory,
    /// I7: a reader goes on at a place of another side.
    CursorOfAnyEpoch,
    /// I7: readers hear of a merge before the disk has the epoch of the merge.
    MergeToldAtOnce,
    /// I7: a reader that heard a part of a merge goes on from its place before the merge.
    PartHasNoId,
    /// I7: a reader goes on at a place that is no longer kept.
    CursorNotKept,
    /// I7: a reader that heard some of a record's events goes on behind all of them.
    CursorBehindRecord,
    /// P48: the journal of conflicts has no bound.
    JournalUnbounded,
    /// P49: a prepared merge is applied although the state has changed since.
    StalePreparation,
    /// P52: when too many keys are remembered the oldest are dropped, whichever caller they belong to.
    OldestKeysGo,
    /// P53: the public data of a lease is enough to renew it and to give it back.
    AnySecret,
    /// P33: a follower is sent again the state that it has been brought up to in this epoch.
    OverrideFromTheStart,
    /// P34: a leader waits for slow nodes under the hold of a merge that an earlier leader made.
    MergeHoldInherited,
    /// P37: the leader does not wait for a follower whose acknowledgement takes longer than an append's patience.
    SlowIsOutOfStep,
    /// P58: a node that gives up its leader does not say why.
    CauseUntold,
    /// P58: a leader that hands over does not say why.
    HandOverUntold,
    /// P58: a node that stood still does not say so.
    SleepUntold,
    /// P58: a node does not say that its wall clock was set.
    ClockUntold,
    /// P58: a node does not say that others come before a node that failed.
    HoldUntold,
}

#[cfg(feature = "mutants")]
mod switch {
    use super::Mutant;
    use std::cell::Cell;

    thread_local! {
        static ACTIVE: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    /// Switches one bug on for this thread, or all off.
    pub fn set(mutant: Option<Mutant>) {
        ACTIVE.with(|active| active.set(mutant));
    }

    /// The bug of this name.
    pub fn named(name: &str) -> Option<Mutant> {
        serde_json::from_value(name.into()).ok()
    }

    pub fn is_on(mutant: Mutant) -> bool {
        ACTIVE.with(|active| active.get() == Some(mutant))
    }
}

#[cfg(feature = "mutants")]
pub use switch::{is_on, named, set};

#[cfg(not(feature = "mutants"))]
pub const fn is_on(_: Mutant) -> bool {
    false
}
