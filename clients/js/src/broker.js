// One broker of several: it asks for the role, gets an answer, and decides itself when to ask again.

import { Emitter } from './emitter.js';
import { rest } from './clock.js';
import { Indeterminate, LeaseLost } from './errors.js';
import { abandon, ANSWER_MOST_MS, Lease, RELEASE_MS } from './lease.js';
import { asyncDispose, lingering, randomId } from './signals.js';

const HEARTBEAT_EVERY_MS = 3_000;
const TTL_MS = 10_000;
/** The cluster ends the lease of an earlier life a second after its connection; the rest is for the network. */
const EARLIER_LIFE_MS = 2_000;
const EARLIER_LIFE_PAUSE_MS = 200;

export class Broker extends Emitter {
  #backend;
  #options;
  #lease = null;
  #asking = null;
  #stop = new AbortController();
  /** An acquire was cut off, or its answer never came, or its grant could not be confirmed. */
  #perhapsHeld = false;

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
   * Asks once. Resolves with `{status: 'elected'}`, `{status: 'already_leader'}`, `{status: 'other_leader', leader}`
   * with the other's address, or its instance if it has none, or `{status: 'conflict'}`: the role was free and another
   * broker was quicker, or the grant could not be confirmed in time. An elected broker leads until `stop`, or until
   * `leader_lost` or `checkLeadership` say otherwise. If this broker's own address leads, that is its earlier life: it
   * waits for that lease to end, 2 s at most, and becomes the `already_leader` under its own token. Rejects if `stop`
   * is called before.
   */
  tryElect() {
    this.#asking ??= this.#ask().finally(() => (this.#asking = null));
    return this.#asking;
  }

  async #ask() {
    if (this.isLeader) return { status: 'already_leader' };
    if (this.#stop.signal.aborted) this.#stop = new AbortController();
    const first = await this.#acquire();
    const again = this.#isEarlierLife(first);
    const grant = again ? await this.#afterEarlierLife() : first;
    const { outcome, leader } = grant;
    if (outcome === 'other_leader' || outcome === 'conflict') this.#stop.signal.throwIfAborted();
    if (outcome === 'other_leader') return { status: outcome, leader: leader?.address ?? leader?.instance_id ?? null };
    if (outcome === 'conflict') return { status: outcome };
    const lease = new Lease(this.#backend, this.#options, grant.token);
    const { signal } = this.#stop;
    const held = await lease.begin(grant, signal);
    this.#perhapsHeld = !held || signal.aborted;
    if (signal.aborted) lease.end(signal.reason);
    signal.throwIfAborted();
    if (!held) return { status: 'conflict' };
    this.#lead(lease);
    return { status: again ? 'already_leader' : outcome };
  }

  async #acquire() {
    const { signal } = this.#stop;
    // A node may still work on a call whose connection is closed, and grant the role after `stop` has looked who holds
    // it.
    const call = lingering(this.#backend.clock, signal, ANSWER_MOST_MS);
    try {
      const grant = await this.#backend.acquire(this.role, { ...this.#options, signal: call.signal });
      this.#perhapsHeld = false;
      return grant;
    } catch (error) {
      this.#perhapsHeld ||= signal.aborted || error instanceof Indeterminate;
      throw error;
    } finally {
      call.dispose();
    }
  }

  #isEarlierLife({ outcome, leader }) {
    return outcome === 'other_leader' && this.address !== null && leader?.address === this.address;
  }

  /**
   * The answer once the other holder at this address is gone; or if it stays, because it shares the address and is
   * alive.
   */
  async #afterEarlierLife() {
    const { clock } = this.#backend;
    const end = clock.now() + EARLIER_LIFE_MS;
    for (;;) {
      await rest(clock, EARLIER_LIFE_PAUSE_MS, this.#stop.signal);
      this.#stop.signal.throwIfAborted();
      const grant = await this.#acquire();
      if (!this.#isEarlierLife(grant) || clock.now() >= end) return grant;
    }
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

  /**
   * A write in this broker's name was refused: the leader now has another token. A lease under a later token goes on.
   */
  refused(token, error) {
    if (this.#lease?.token === token) this.#lease.end(error);
  }

  /** Asks the cluster whether this broker still leads. False also if no node answers before the lease is over. */
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

  /** Gives the role to the next at once. Rejects if that failed for a second: then the role lapses by its ttl. */
  async stop() {
    const { clock } = this.#backend;
    const end = clock.now() + RELEASE_MS;
    this.#stop.abort(new Error('stopped'));
    await this.#asking?.catch(() => {});
    const lease = this.#lease;
    const perhapsHeld = this.#perhapsHeld;
    this.#perhapsHeld = false;
    const deadlineMs = end - clock.now();
    if (lease) await lease.release({ deadlineMs });
    else if (perhapsHeld) await abandon(this.#backend, this.role, this.id, deadlineMs);
  }

  [asyncDispose]() {
    return this.stop();
  }
}
