// A lock: a role that is held during a piece of work.

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
    // The caller never learns of this lease, so it must not stay held.
    await lease.release().catch(() => {});
    options.signal?.throwIfAborted();
    throw lease.lost.reason;
  }

  get role() {
    return this.#lease.role;
  }

  /** Rises with every grant: pass it to the resource that the lock protects, so that it can refuse a late writer. */
  get token() {
    return this.#lease.token;
  }

  /** Reads a monotonic clock at every call. */
  get held() {
    return this.#lease.held;
  }

  /** An `AbortSignal` that aborts when the lock is over: pass it to work that must not outlive the lock. */
  get lost() {
    return this.#lease.lost;
  }

  /** Gives the lock to the next at once. A lock that was lost meanwhile is no error. */
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
