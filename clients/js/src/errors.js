// The errors of this library: one class for each case that a program decides upon.

/** The base of every error of this library. */
export class EldestError extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** Surely not applied: no node accepted the call before its deadline. The last reason is the `cause`. */
export class Unavailable extends EldestError {}

/** Perhaps applied: an attempt was lost, and no answer came after it before the deadline. */
export class Indeterminate extends EldestError {
  constructor(message, options) {
    super(message, options);
    /** Make the same call with this key to learn its outcome; null for a call without a key. */
    this.idempotencyKey = options?.idempotencyKey ?? null;
  }
}

/** An answer that no Eldest node gives: another program listens there. */
export class BadAnswer extends EldestError {}

/** A problem document from a node; there is a subclass for each code that programs handle differently. */
export class Problem extends EldestError {
  constructor(status, members) {
    super(String(members.detail ?? members.title ?? members.code ?? `status ${status}`));
    this.status = status;
    this.code = typeof members.code === 'string' ? members.code : 'unknown';
    this.retryable = members.retryable === true;
    this.leaderNode = members.leader_node ?? null;
    this.requestId = members.request_id ?? null;
    /** Every member of the document, including those of this code. */
    this.members = members;
  }
}

export class NotFound extends Problem {}

export class PreconditionFailed extends Problem {
  /** The document's revision; null if the document does not exist. */
  get currentRev() {
    return this.members.current_rev ?? null;
  }
}

/**
 * The write was in the name of a role, and its token is not, or no longer, the role's: nothing was written, and nothing
 * will be.
 */
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
  /** The holder of the role now; null if there is none. */
  get leader() {
    return this.members.leader ?? null;
  }

  get token() {
    return this.members.token ?? null;
  }
}

export class RoleHeld extends Problem {
  /**
   * `other_leader`, or `conflict`: the role was free when the call arrived, and was granted to another before it was
   * applied.
   */
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
