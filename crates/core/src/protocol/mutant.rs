//! Known bugs, each a rule left out on purpose. The tests switch one on and prove that a checker
//! catches it. Without the feature `mutants` every question below is a constant `false`.

/// The rule that each one leaves out stands beside it; C is the counterexample that it replays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize)]
pub enum Mutant {
    /// P2, C1: a record of a later epoch is accepted without raising the promise.
    AppendKeepsPromise,
    /// P3: a leader that falters is waited for no longer than one that never has.
    FaltersForgotten,
    /// P3: a node that has slept takes that for the silence of others.
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
    /// P10: a new disk takes the seat and the vote of the one before in one step.
    LetInWithItsVote,
    /// P10: a node counts itself whatever its log knows of its disk.
    CountsItselfAlways,
    /// P10: a disk that has been replaced is let in again.
    ReplacedIsLetIn,
    /// P9, C3: a majority of blank nodes forms a cluster.
    FormByMajority,
    /// P9: a blank node founds a cluster without listening for one that has it already.
    FormDeaf,
    /// P9: a blank node that has heard of a cluster lets others found another one with it.
    FoundsWithOthers,
    /// P9: founders listen only where the topology file names nobody else.
    FoundersDeaf,
    /// P9: a blank candidate whose topology file names two founders does not listen first.
    FoundWithoutListening,
    /// P9: a blank node agrees to a founding before it has listened.
    AgreeWithoutListening,
    /// P27, C4: a bad line is always taken for a torn write.
    CutDoubtfulTail,
    /// P27: a disk that ends below what it has acknowledged goes on as if it had forgotten nothing.
    ForgottenOverlooked,
    /// P11, C5: the leader counts its lease from the answer instead of from the question.
    LeaseFromReceipt,
    /// P11, C5: a new leader does not wait for older leases.
    IgnoreLeaseLeft,
    /// P11, C5: a restarted node forgets what it granted.
    RestartForgetsGrants,
    /// P11: a follower grants no more than its own configuration says.
    GrantsByConfiguration,
    /// P11: a restarted node goes by its configuration, and not by what its disk has granted.
    LeaseByConfiguration,
    /// P11: a disk forgets a long lease as soon as a short one is asked for.
    LeaseFallsAtOnce,
    /// P11: a disk that says nothing of leases goes on saying nothing.
    LeaseUntold,
    /// P11: a candidate believes in no longer lease than its own.
    LeaseLeftCutShort,
    /// P11: a process on another disk is taken for the end of the one before.
    GrantsEndWithNewDisk,
    /// P18, C6: the leader goes on serving after the certificate has left.
    ServeAfterHandOver,
    /// P18, C6: a certificate is honoured whatever the promise.
    OldCertificate,
    /// P15, C7: a write in flight is answered `refused` when the leader steps down.
    RefuseInFlight,
    /// P6, C9: a candidate opens its epoch with what it has.
    LeadWithoutPull,
    /// P6, C9: a candidate opens its epoch after the first part of a pull.
    LeadAfterHalfPull,
    /// P5, C10: a follower acknowledges the end of its log, not what matches.
    AckLogEnd,
    /// P5: a follower does not check the position before a batch.
    NoPrevCheck,
    /// P5: a follower cuts what follows a batch even if it does not conflict.
    TruncateAlways,
    /// P5: a follower takes the leader's commit index beyond what matches.
    CommitUnmatched,
    /// P54: a document stays when the lease ends that it was to end with.
    BoundDocOutlivesLease,
    /// P59: a write in the name of a role goes through whoever holds it.
    FormerHolderWrites,
    /// P54: a document stays though its lease has not come through a merge or a restore.
    LooseDocsStay,
    /// P54: a new leader does not count the documents that it finds.
    DocTtlForgotten,
    /// P55: a full state takes whatever comes.
    StateGrowsOn,
    /// P55: a full state takes nothing at all.
    FullStateTakesNothing,
    /// P56: a merge brings back a token that one of the sides has revoked.
    RevokedReturns,
    /// P56: a restore leaves no token as it was.
    RestoreDropsTokens,
    /// P7: a record of an older epoch is committed by counting.
    CommitOldEpoch,
    /// P7: one acknowledgement less than a majority commits.
    CommitBelowMajority,
    /// P13, C13: a read joins the confirmation round in flight.
    ReadJoinsRound,
    /// P13: a read is answered before the leader's own first record is committed.
    ReadBeforeOpen,
    /// P13: a read is answered without a confirmation.
    ReadUnconfirmed,
    /// P13: a disk that has forgotten confirms reads.
    AnyoneConfirms,
    /// P14, C8: a refusal leaves without confirming what it was judged against.
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
    /// P4: nobody waits for its elders.
    NoRankWait,
    /// P21, C27: an unready elder is ranked like a ready one.
    UnreadyFirst,
    /// P28: a leader told of a greater promise goes on as before.
    IgnoreGreaterPromise,
    /// P17, C17: cluster time starts anew with each leader.
    ClusterTimeRestarts,
    /// P17: wall time follows a clock that was set back.
    WallTimeGoesBack,
    /// P17: wall time follows a clock that leaps ahead.
    WallTimeLeaps,
    /// P50: an epoch is believed however far ahead it is.
    AnyEpochReaches,
    /// P51: a node is turned away by an answer to what it has not asked.
    TurnedAwayUnasked,
    /// P20: an index that keeps dying is never held back.
    NoHold,
    /// P22: a hold of the service never lapses.
    HoldForEver,
    /// P23, C31: a new record type is written before all can read it.
    NewFormatAtOnce,
    /// P24, C32: a full disk acknowledges what it could not write.
    AckWhenFull,
    /// P24, C32: a full disk approves and answers only once there is room for the records before.
    FullWaitsForRoom,
    /// P24, C32: a full disk approves with records that wait for room.
    FullTellsAll,
    /// P24, C32: a promise waits behind records that find no room.
    PromiseWaitsForRoom,
    /// P25, C33: whoever differs from the leader is odd.
    LeaderIsNeverOdd,
    /// P25: digests that two builds have computed in two ways are compared.
    DigestsOfAnyVersion,
    /// P51: a leader that finds itself odd is only told of, where nobody proves who speaks, and leads again.
    OddLeaderGoesOn,
    /// P51: a follower that hears that it is odd asks nobody, where nobody proves who speaks, and votes on.
    OddFollowerGoesOn,
    /// P51: a leader's beats are numbered from zero, so that anybody can answer them.
    BeatsAreGuessed,
    /// P51: a node that asks to lead is asked in turn, or is sent a beat, though it is no member and names its address itself.
    StrangersAreAsked,
    /// P26: a snapshot is installed over newer committed state.
    SnapshotGoesBack,
    /// P26: a snapshot is taken while an older one waits to be installed, which then replaces it.
    SnapshotBeforeInstalled,
    /// P26: a snapshot is written before the promise of the epoch that its records are of.
    SnapshotBeforePromise,
    /// P16, C15: idempotency keys are lost with a snapshot.
    KeysForgotten,
    /// I7, C16: all data is replaced by a document, and with it the memory of the calls that were carried out.
    RestoreForgetsKeys,
    /// P26: what a snapshot that failed was to say is in no later one.
    FailedKeysForgotten,
    /// P30, C15: a token is only one more than the last.
    TokenByCounter,
    /// P32, C18: a node follows a leader whose log lacks some of its own.
    JoinUncovered,
    /// P33, C19: an override is taken whatever it covers.
    OverrideUncovered,
    /// P34, C24: a merge takes the next index of the elder's side.
    MergeIndexLow,
    /// P34: what was handed in to an earlier epoch is taken, though the disk that it came from may be gone.
    MergeOfAnyEpoch,
    /// P34: what was handed in before the elder settled is taken.
    MergeOverSettled,
    /// P34: merges do not go on when their leader has to begin a greater epoch.
    MergesEndWithEpochs,
    /// P35, C20: histories are settled without asking every disk.
    SettleWithoutAll,
    /// P35: histories are settled although a node came back, perhaps with another disk, and another has not followed since.
    SettleOverReplaced,
    /// P35: only a new incarnation counts as another disk, which an older copy of a disk has not.
    SettleOverCopies,
    /// P35: nothing is ever settled.
    NeverSettle,
    /// P36: a disk that may have forgotten its epochs counts on from what it knows.
    LonelyCounterPlain,
    /// P36: a wiped disk that was let in claims the next counter, which may be one of its former life.
    AdmittedKnowsItsEpochs,
    /// P36: a disk that has begun anew goes on from a counter that others came to, which its former life may have led in.
    NextMayBeOwn,
    /// P37: a side's leader acknowledges what only its own disk has.
    AckAlone,
    /// P31: nothing is cut, not even what conflicts.
    CutInAvailable,
    /// P39, C14: a renewal is answered from what the leader remembers, without a round.
    RenewUnconfirmed,
    /// P39, C14: a renewal is answered while the record that ends its token is under way.
    RenewWhileEnding,
    /// P39: a renewal that asks for less takes back what was promised before.
    PromiseTakenBack,
    /// P40, C14: a lease that nobody renews is never said to be old.
    LeaseNeverAges,
    /// P40: what may be old by the log is promised in full.
    AgedPromisedInFull,
    /// P15: under `ack = all` a write is acknowledged once it is committed.
    AckAllByMajority,
    /// P7: a follower hears of a commit with the next append or beat only.
    CommitUntold,
    /// P15: under `ack = all` a leader acknowledges what its own disk has not, once all others have it.
    AckAllBeforeOwnDisk,
    /// P15: under `ack = all` a leader that is deposed acknowledges what its successor commits.
    AckAllWhenDeposed,
    /// P40: a leader goes on with what it counted in an epoch before.
    LeasesCarriedOver,
    /// P15: a leader does not know its own record again once it is trimmed.
    TrimmedIsUnknown,
    /// P41: what was granted to a caller that has gone is over, even if its holder has heard of it by another call.
    GiveUpWhatWasTold,
    /// P41: what was granted to a caller that has gone stands, if it was told so by another call and had gone there, too.
    UnheardPromiseStands,
    /// P41: a role goes to a waiter whose caller has hung up, and stays there.
    GrantToTheGone,
    /// P41: a call that comes together with the one that frees a role is given it before those who stand in line.
    LatecomersPass,
    /// P41: a role goes to a waiter whose token has been revoked while it waited.
    GrantToTheRevoked,
    /// P45: a connection that has closed ends a lease whose holder has named another one since.
    UntieAnyNumber,
    /// P45: a renewal that comes late names an older connection again.
    TieTakenBack,
    /// P45: a renewal that comes late names a connection again that its holder has gone on without.
    TieNamedAgain,
    /// P45: who renews without a connection is still tied to the one that it named before.
    PlainRenewalStaysTied,
    /// P45: a connection that closes ends what a leader before has promised, to whom a greater number may have been named.
    UntieAtOnce,
    /// P45: who asks anew is tied to the connection of the process before it.
    AcquireStaysTied,
    /// P45: a connection of the process before it ends what was promised to whoever has asked anew and renews without one.
    SuccessorIsUntied,
    /// P15: a leader that leads again before its hand-over is decided forgets who asked for it.
    YieldedUnanswered,
    /// P15: under `ack = all` a follower on another disk counts as silent until it answers.
    ReplacedIsSilent,
    /// P11: a message of another process ends what was granted to the one before.
    NewProcessVoidsGrants,
    /// P15: who was refused counts as dead until the process that was refused says something, whoever answers beats.
    RefusedUntilNamed,
    /// P43: whose votes count is what the topology file says, whatever the log does.
    MembersByFile,
    /// P43: in available mode the log of a cluster that was formed in safe mode says who belongs together.
    LogRulesSides,
    /// P43: who is added votes before it holds the record that let it in.
    VotesUnseated,
    /// P43: who turns out to be a learner by what it pulled leads all the same.
    LearnerLeads,
    /// P43: members change again before the change before is committed.
    ChangesOverlap,
    /// P43: members change while a leader before may still be relied on.
    ChangeUnderOldLease,
    /// P43: who is added votes at once.
    VotesUntaught,
    /// P44: the disk of another cluster of the same name is one of this.
    AnyClusterCounts,
    /// P15, P46: a restore goes on in a later epoch, in which what it had staged is gone, and is acknowledged for its last step.
    RestoreGoesOn,
    /// P26: what a restore has staged stays where the record that gives it up was refused.
    StagedIsLeft,
    /// P46: what gives a restore up is refused like a client's write.
    GiveUpIsRefused,
    /// P46: a restore has all the time in the world.
    RestoreNeverGivenUp,
    /// P57, I6: a backup is restored where the clock is behind those of the lost cluster, and nothing says what was granted.
    RestoreTurnsTokensBack,
    /// P57, I6: a restore leaves the last token as it is, whatever it says of tokens.
    RestoreForgetsFloor,
    /// P60: a restore of another cluster's data goes on with the history that was there.
    HistoryGoesOn,
    /// P47: a blank reader is given the lines after an override, and not what it left.
    BlankReaderGetsLines,
    /// P15: a call whose earlier attempt may yet be applied is refused like any other.
    RetryIsRefused,
    /// P48: two sides of which nothing comes hold the service for as long as they hear each other.
    MeetsForEver,
    /// P48: readers of the feed do not hear that a merge is called off.
    CalledOffUntold,
    /// P60: a reader goes on at a place of another history.
    CursorOfAnyHistory,
    /// I7: a reader goes on at a place of another side.
    CursorOfAnyEpoch,
    /// I7: readers hear of a merge before the disk has its epoch.
    MergeToldAtOnce,
    /// I7: a reader that heard a part of a merge goes on from where it was before that.
    PartHasNoId,
    /// I7: a reader goes on at a place that is no longer kept.
    CursorNotKept,
    /// I7: a reader that heard some of a record's events goes on behind all of them.
    CursorBehindRecord,
    /// P48: the journal of conflicts has no bound.
    JournalUnbounded,
    /// P49: what was prepared is taken in although the state is another one by now.
    StalePreparation,
    /// P52: where too many keys are remembered the oldest go, whosever they are.
    OldestKeysGo,
    /// P53: what everybody can read of a lease is enough to renew it and to give it back.
    AnySecret,
    /// P33: a follower is sent anew what it has been brought up to in this epoch.
    OverrideFromTheStart,
    /// P34: a leader waits for slow nodes under the hold of a merge that a leader before it has made.
    MergeHoldInherited,
    /// P37: a follower whose acknowledgement takes longer than an append's patience is not waited for.
    SlowIsOutOfStep,
}

#[cfg(feature = "mutants")]
mod switch {
    use super::Mutant;
    use std::cell::Cell;

    thread_local! {
        static ACTIVE: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    /// Switches a bug on for this thread, or all off.
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
