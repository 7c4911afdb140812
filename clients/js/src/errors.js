// What can go wrong, as classes: one a case that a program decides upon.

/** The base of every error of this library. */
export class EldestError extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** Surely not applied: no node took the call before its deadline. The last reason is the `cause`. */
export class Unavailable extends EldestError {}

/** Perhaps applied: an attempt was lost on its way, and nothing more was heard before the deadline. */
export class Indeterminate extends EldestError {
  constructor(message, options) {
    super(message, options);
    /** Make the same call with this key to learn what became of it; null where a call has none. */
    this.idempotencyKey = options?.idempotencyKey ?? null;
  }
}

/** An answer that no Eldest node gives: something else listens there. */
export class BadAnswer extends EldestError {}

/** A problem document that a node answered with; its own class where programs tell the case apart. */
export class Problem extends EldestError {
  constructor(status, members) {
    super(String(members.detail ?? members.title ?? members.code ?? `status ${status}`));
    this.status = status;
    this.code = typeof members.code === 'string' ? members.code : 'unknown';
    this.retryable = members.retryable === true;
    this.leaderNode = members.leader_node ?? null;
    this.requestId = members.request_id ?? null;
    /** Every member of the document, those of the case included. */
    this.members = members;
  }
}

export class NotFound extends Problem {}

export class PreconditionFailed extends Problem {
  /** The revision that is there; null where there is no document. */
  get currentRev() {
    return this.members.current_rev ?? null;
  }
}

/** A write was to be made in the name of a role, and its token is not, or no longer, the role's: nothing was written, and nothing will be. */
export class RoleNotHeld extends Problem {
  get role() {
    return this.members.role ?? null;
  }
}

export class FeedCompacted extends Problem {
  /** The oldest id that this node can go on from. */
  get oldest() {
    return this.members.oldest ?? null;
  }
}

export class LeaseLost extends Problem {
  /** Who holds the role now, if anybody. */
  get leader() {
    return this.members.leader ?? null;
  }

  get token() {
    return this.members.token ?? null;
  }
}

export class RoleHeld extends Problem {
  /** `other_leader`, or `conflict`: free when the call arrived, granted to another before it was applied. */
  get outcome() {
    return this.members.outcome === 'conflict' ? 'conflict' : 'other_leader';
  }

  get leader() {
    return this.members.leader ?? null;
  }

  get token() {
    return this.members.token ?? null;
  }

  get expiresInMs() {
    return this.members.expires_in_ms ?? null;
  }
}

const CLASSES = {
  not_found: NotFound,
  precondition_failed: PreconditionFailed,
  role_not_held: RoleNotHeld,
  feed_compacted: FeedCompacted,
  lease_lost: LeaseLost,
  role_held: RoleHeld,
};

/** The problem of an answer. */
export function problem(status, members) {
  const Class = Object.hasOwn(CLASSES, members.code) ? CLASSES[members.code] : Problem;
  return new Class(status, members);
}
