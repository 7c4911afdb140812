// One broker of several: it asks, is answered, and decides itself when to ask again.

import { Emitter } from './emitter.js';
import { LeaseLost } from './errors.js';
import { Lease } from './lease.js';
import { asyncDispose, randomId } from './signals.js';

const HEARTBEAT_EVERY_MS = 3_000;
const TTL_MS = 10_000;

export class Broker extends Emitter {
  #backend;
  #options;
  #lease = null;
  #asking = null;

  constructor(store, options = {}) {
    super();
    this.#backend = store.backend ?? store;
    this.role = options.role ?? 'broker';
    this.id = options.instanceId ?? randomId();
    this.address = options.address ?? null;
    this.#options = {
      role: this.role,
      instanceId: this.id,
      address: this.address,
      metadata: options.metadata ?? null,
      ttlMs: options.ttlMs ?? TTL_MS,
      renewEveryMs: options.heartbeatEveryMs ?? HEARTBEAT_EVERY_MS,
      onHeartbeatError: (error) => this.emit('heartbeat_error', error),
    };
  }

  get isLeader() {
    return this.#lease?.held ?? false;
  }

  get token() {
    return this.isLeader ? this.#lease.token : null;
  }

  /**
   * Asks once. `{status: 'elected'}`, `{status: 'already_leader'}`, `{status: 'other_leader', leader}` with the other's address, or
   * its instance where it has none, or `{status: 'conflict'}`: it was free, and another was quicker. Who is elected is so until
   * `stop`, or until `leader_lost` or `checkLeadership` say otherwise.
   */
  tryElect() {
    this.#asking ??= this.#ask().finally(() => (this.#asking = null));
    return this.#asking;
  }

  async #ask() {
    if (this.isLeader) return { status: 'already_leader' };
    const grant = await this.#backend.acquire(this.role, this.#options);
    const { outcome, leader } = grant;
    if (outcome === 'other_leader') return { status: outcome, leader: leader?.address ?? leader?.instance_id ?? null };
    if (outcome === 'conflict') return { status: outcome };
    const lease = new Lease(this.#backend, this.#options, grant.token);
    if (!(await lease.begin(grant))) return { status: 'conflict' };
    this.#lead(lease);
    return { status: outcome };
  }

  #lead(lease) {
    this.#lease = lease;
    const over = () => {
      if (this.#lease !== lease) return;
      this.#lease = null;
      this.emit('leader_lost');
    };
    if (lease.lost.aborted) over();
    else lease.lost.addEventListener('abort', over, { once: true });
  }

  /** Asks the cluster whether this broker still leads. False, too, where no node answers before the lease is over. */
  async checkLeadership() {
    const lease = this.#lease;
    if (!lease?.held) return false;
    const { instanceId, ttlMs } = this.#options;
    try {
      await this.#backend.renew(this.role, { instanceId, token: lease.token, ttlMs, deadlineMs: lease.leftMs });
    } catch (error) {
      if (error instanceof LeaseLost) lease.end(error);
      else this.emit('heartbeat_error', error);
    }
    return lease.held;
  }

  /** Gives the role to the next at once. */
  async stop() {
    await this.#asking?.catch(() => {});
    const lease = this.#lease;
    if (lease) await lease.release();
  }

  [asyncDispose]() {
    return this.stop();
  }
}
