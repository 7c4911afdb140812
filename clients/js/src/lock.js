// A lock: a role that is held for as long as a piece of work takes.

import { RoleHeld } from './errors.js';
import { Lease, RENEW_EVERY_MS, TTL_MS } from './lease.js';
import { asyncDispose, randomId } from './signals.js';
import { heldBy } from './ties.js';

export class LockGuard {
  #lease;

  constructor(lease) {
    this.#lease = lease;
  }

  /** Waits for at most `waitMs`, then throws `RoleHeld`. Renewed in the background until `release`. */
  static async acquire(store, role, options = {}) {
    const backend = store.backend ?? store;
    const ttlMs = options.ttlMs ?? TTL_MS;
    const renewEveryMs = options.renewEveryMs ?? Math.min(RENEW_EVERY_MS, ttlMs / 3);
    const wanted = { ...options, heldBy: heldBy(options.heldBy), role, ttlMs, renewEveryMs, instanceId: options.instanceId ?? randomId() };
    const grant = await backend.acquire(role, wanted);
    if (grant.outcome === 'other_leader' || grant.outcome === 'conflict') throw held(role, grant);
    const lease = new Lease(backend, wanted, grant.token);
    if (await lease.begin(grant, options.signal)) return new LockGuard(lease);
    // What nobody knows of here must not stay held there.
    await lease.release().catch(() => {});
    options.signal?.throwIfAborted();
    throw lease.lost.reason;
  }

  get role() {
    return this.#lease.role;
  }

  /** Give it to whatever the lock protects: it rises with every grant, so that a late writer is told apart. */
  get token() {
    return this.#lease.token;
  }

  /** Read off a monotonic clock at every call. */
  get held() {
    return this.#lease.held;
  }

  /** An `AbortSignal` that aborts when the lock is over: pass it on to what must not outlive it. */
  get lost() {
    return this.#lease.lost;
  }

  /** Gives it to the next at once. One that was lost meanwhile is no error. */
  release(options) {
    return this.#lease.release(options);
  }

  [asyncDispose]() {
    return this.release();
  }
}

function held(role, { outcome, leader, token, expiresInMs }) {
  const detail = `${role} is held by ${leader?.instance_id ?? 'another'}`;
  return new RoleHeld(409, { code: 'role_held', retryable: true, detail, outcome, role, leader, token, expires_in_ms: expiresInMs });
}
