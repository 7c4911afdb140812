// One grant of a role, kept: renewed in the background, and believed only as long as it certainly lasts.

import { EldestError, LeaseLost } from './errors.js';
import { rest } from './clock.js';
import { linked } from './signals.js';
import { graceMs, Ties } from './ties.js';

/** The largest difference in pace between two clocks, and the coarseness of a timer. */
const DRIFT = 0.01;
const MARGIN_MS = 10;
/** The pause after a failed renewal: a part of the time left, but at least this long. */
const RETRY_PART = 0.2;
const RETRY_LEAST_MS = 50;
/** The limit of one attempt of a renewal, so that a silent node leaves time for another one. */
const ATTEMPT_PART = 1 / 3;
const ATTEMPT_LEAST_MS = 100;

/** `stop` does not hang if the cluster is away: the lease lapses by its ttl then. */
export const RELEASE_MS = 1_000;
/** The part of that time in which a call that asks for the role may still be answered. */
export const ANSWER_MOST_MS = RELEASE_MS / 2;

export const TTL_MS = 30_000;
export const RENEW_EVERY_MS = 10_000;

/** The time for which a holder may believe, from the moment it sent the request. */
export function believable(ttlMs, expiresInMs) {
  const span = Math.min(ttlMs, expiresInMs);
  return span - span * DRIFT - MARGIN_MS;
}

/**
 * Gives the role back if it was granted to an acquire that was abandoned while it waited, or whose answer never came.
 */
export async function abandon(backend, role, instanceId, deadlineMs) {
  const end = backend.clock.now() + deadlineMs;
  const held = await backend.get(role, { deadlineMs });
  if (held.leader?.instance_id !== instanceId) return;
  await backend.release(role, { instanceId, token: held.token, deadlineMs: end - backend.clock.now() });
}

export class Lease {
  #backend;
  #until = -Infinity;
  /** Answers to requests that were sent before this time prove nothing. */
  #doubtedAt = -Infinity;
  #ties = null;
  #hurry = new AbortController();
  #ended = new AbortController();
  #attemptMs;
  #cancelExpiry = () => {};
  #work = Promise.resolve();

  constructor(backend, options, token) {
    this.#backend = backend;
    this.role = options.role;
    this.instanceId = options.instanceId;
    this.ttlMs = options.ttlMs;
    this.renewEveryMs = options.renewEveryMs;
    this.token = token;
    // A store of roles in memory has no connections.
    const tied = options.heldBy !== 'lease' && backend.tie !== undefined;
    if (tied) this.#ties = new Ties(backend, this, this.#told());
    this.#attemptMs = options.attemptTimeoutMs ?? 3000;
    this.onHeartbeatError = options.onHeartbeatError ?? (() => {});
  }

  /** Reads the clock at every call, and does not depend on a timer. */
  get held() {
    return !this.#ended.signal.aborted && this.#backend.clock.now() < this.#until;
  }

  /** Aborts when the lease is over, for any reason; that reason is the signal's reason. */
  get lost() {
    return this.#ended.signal;
  }

  /** The time for which the lease is still believed. */
  get leftMs() {
    return this.held ? this.#until - this.#backend.clock.now() : 0;
  }

  /**
   * Begins with the answer to the acquire. A grant that was waited for may be as old as the wait: it is renewed first,
   * and believed from the sending of that renewal. The same is done with a grant that is nearly over on arrival.
   * Returns whether the lease is held.
   */
  async begin(grant, signal) {
    if (!grant.waited) this.#believe(grant);
    if (this.leftMs < believable(this.ttlMs, this.ttlMs) / 2) await this.#confirm(signal);
    if (this.held) this.#work = Promise.all([this.#keep(), this.#ties?.run(this.lost)]);
    else this.end(new Error('the grant was over before it could be confirmed'));
    return this.held;
  }

  /** Ends all belief in the lease, and cancels calls that are running. */
  end(reason) {
    if (this.#ended.signal.aborted) return;
    this.#cancelExpiry();
    this.#ended.abort(reason);
  }

  /** Ends the lease, and gives the role to the next at once. Throws the error that prevented the release. */
  async release(options) {
    this.end(new Error('released'));
    await this.#work;
    const { role, instanceId, token } = this;
    try {
      await this.#backend.release(role, { instanceId, token, ...options });
    } catch (error) {
      if (!(error instanceof LeaseLost)) throw error;
    }
  }

  #told() {
    const hurry = () => this.#hurry.abort();
    const broken = () => {
      const { clock } = this.#backend;
      this.#doubtedAt = clock.now();
      // The node may take this process for dead, and end the lease once its grace is over.
      this.#expire(Math.min(this.#until, clock.now() + graceMs(this.ttlMs) / 2));
      hurry();
    };
    return { proof: (renewal) => this.#believe(renewal), renew: hurry, broken };
  }

  #believe({ sentAt, expiresInMs }) {
    if (sentAt < this.#doubtedAt || this.lost.aborted) return;
    this.#expire(sentAt + believable(this.ttlMs, expiresInMs));
  }

  #expire(until) {
    this.#until = until;
    this.#cancelExpiry();
    const { clock } = this.#backend;
    this.#cancelExpiry = clock.after(this.#until - clock.now(), () => this.#late(), { background: true });
  }

  /** A renewal that is still running cannot report this any more. */
  #late() {
    if (this.lost.aborted) return;
    const error = new EldestError('no renewal came through in time');
    this.onHeartbeatError(error);
    this.end(error);
  }

  async #confirm(signal) {
    const { clock } = this.#backend;
    const deadline = clock.now() + this.ttlMs;
    while (!this.lost.aborted && !signal?.aborted && clock.now() < deadline) {
      if ((await this.#renew(deadline - clock.now(), signal)) || this.lost.aborted) return;
      await rest(clock, RETRY_LEAST_MS, signal);
    }
  }

  async #keep() {
    const { clock } = this.#backend;
    for (let pause = this.renewEveryMs; this.held; ) {
      await this.#rest(Math.min(pause, this.leftMs));
      if (!this.held) break;
      const hurry = (this.#hurry = new AbortController());
      // A renewal that runs when a tie breaks is worth nothing: it names the old number.
      const renewed = await this.#renew(this.leftMs, hurry.signal);
      if (hurry.signal.aborted) pause = 0;
      else pause = renewed ? this.renewEveryMs : Math.max(RETRY_LEAST_MS, this.leftMs * RETRY_PART);
    }
    this.#late();
  }

  async #rest(ms) {
    const early = linked(this.lost, this.#hurry.signal);
    await rest(this.#backend.clock, ms, early.signal, { background: true });
    early.dispose();
  }

  /** Returns whether the lease was renewed. Any error but `LeaseLost` leaves the belief as it was. */
  async #renew(withinMs, outer) {
    const { role, instanceId, token, ttlMs } = this;
    const attemptTimeoutMs = Math.max(ATTEMPT_LEAST_MS, Math.min(this.#attemptMs, withinMs * ATTEMPT_PART));
    const link = linked(this.lost, outer);
    const tie = this.#ties?.number;
    try {
      const options = { instanceId, token, ttlMs, tie, signal: link.signal, deadlineMs: withinMs, attemptTimeoutMs };
      const renewal = await this.#backend.renew(role, options);
      this.#believe(renewal);
      this.#ties?.proved(tie);
      return true;
    } catch (error) {
      if (link.signal.aborted) return false;
      this.onHeartbeatError(error);
      if (error instanceof LeaseLost) this.end(error);
      return false;
    } finally {
      link.dispose();
    }
  }
}
