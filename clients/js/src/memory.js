// Roles in this process's memory, for tests of programs that use `Election` or `LockGuard`; and a clock that is moved
// by hand.

import { systemClock } from './clock.js';
import { LeaseLost } from './errors.js';

/** A watcher that does not read is dropped after this many events. */
const QUEUE_MOST = 1024;

export class MemoryBackend {
  #roles = new Map();
  #watchers = new Set();
  #lastToken = 0;

  constructor({ clock = systemClock } = {}) {
    this.clock = clock;
  }

  /**
   * Like a cluster: the first waiter of the highest priority is next, and is granted the role the moment it is free.
   */
  async acquire(role, options) {
    options.signal?.throwIfAborted();
    const sentAt = this.clock.now();
    const waitMs = options.waitMs ?? 0;
    const state = this.#state(role);
    if (state.holder === null || state.holder.instanceId === options.instanceId) {
      return { ...this.#grant(state, options), sentAt, waited: waitMs > 0 };
    }
    if (waitMs === 0) return this.#refusal(state);
    return this.#wait(state, options, waitMs);
  }

  async renew(role, { instanceId, token, ttlMs, signal }) {
    signal?.throwIfAborted();
    const sentAt = this.clock.now();
    const state = this.#owned(role, instanceId, token);
    this.#extend(state, ttlMs);
    return { sentAt, expiresInMs: state.holder.ttlMs };
  }

  async release(role, { instanceId, token }) {
    this.#free(this.#owned(role, instanceId, token), 'released');
  }

  async elect(role, options) {
    const sentAt = this.clock.now();
    const state = this.#state(role);
    if (state.holder && state.holder.instanceId !== options.instanceId) this.#drop(state, 'replaced');
    const grant = this.#grant(state, options);
    const own = state.waiting.find((waiter) => waiter.options.instanceId === options.instanceId);
    own?.settle({ ...grant, outcome: 'already_leader', sentAt, waited: true });
    return { ...grant, sentAt, waited: false };
  }

  async get(role) {
    const { holder, waiting } = this.#state(role);
    const free = { role, leader: null, token: null, ttl_ms: null, acquired_at: null, expires_in_ms: null };
    if (holder === null) return { ...free, waiting: waiting.length };
    const { token, ttlMs, acquiredAt, until } = holder;
    const expires_in_ms = until - this.clock.now();
    return { role, leader: leader(holder), token, ttl_ms: ttlMs, acquired_at: acquiredAt, expires_in_ms, waiting: waiting.length };
  }

  /** Takes the role from its holder, as if its lease had run out: for tests of what happens then. */
  expire(role) {
    const state = this.#state(role);
    if (state.holder) this.#free(state, 'expired');
  }

  async *watch(role, { signal, onOpen } = {}) {
    const watcher = { role, events: [], wake: () => {} };
    const ended = () => watcher.wake();
    signal?.addEventListener('abort', ended);
    this.#watchers.add(watcher);
    try {
      onOpen?.();
      while (!signal?.aborted && this.#watchers.has(watcher)) {
        if (watcher.events.length > 0) yield watcher.events.shift();
        else await new Promise((resolve) => (watcher.wake = resolve));
      }
    } finally {
      this.#watchers.delete(watcher);
      signal?.removeEventListener('abort', ended);
    }
  }

  #state(role) {
    const state = this.#roles.get(role) ?? { role, holder: null, waiting: [] };
    this.#roles.set(role, state);
    if (state.holder && state.holder.until <= this.clock.now()) this.#free(state, 'expired');
    return state;
  }

  #owned(role, instanceId, token) {
    const state = this.#state(role);
    const { holder } = state;
    if (holder?.instanceId === instanceId && holder.token === token) return state;
    const now = holder ? { leader: leader(holder), token: holder.token } : { leader: null, token: null };
    throw new LeaseLost(410, { code: 'lease_lost', detail: `${instanceId} does not hold ${role}`, role, ...now });
  }

  #grant(state, options) {
    const again = state.holder !== null;
    if (!again) {
      this.#lastToken += 1;
      state.holder = { ...options, token: this.#lastToken, acquiredAt: new Date().toISOString(), cancel: () => {} };
    }
    this.#extend(state, options.ttlMs);
    const { holder } = state;
    if (!again) this.#tell({ kind: 'role_acquired', role: state.role, instance_id: holder.instanceId, token: holder.token });
    const outcome = again ? 'already_leader' : 'elected';
    return { outcome, role: state.role, leader: leader(holder), token: holder.token, expiresInMs: holder.ttlMs };
  }

  #extend(state, ttlMs) {
    const { holder } = state;
    holder.ttlMs = ttlMs ?? holder.ttlMs ?? 30_000;
    holder.until = this.clock.now() + holder.ttlMs;
    holder.cancel();
    const over = () => state.holder === holder && this.#free(state, 'expired');
    holder.cancel = this.clock.after(holder.ttlMs, over, { background: true });
  }

  #refusal(state) {
    const { holder, role } = state;
    const held = { leader: holder && leader(holder), token: holder?.token ?? null };
    return { outcome: 'other_leader', role, ...held, expiresInMs: holder ? holder.until - this.clock.now() : null };
  }

  #wait(state, options, waitMs) {
    return new Promise((resolve, reject) => {
      const { signal, priority = 0 } = options;
      const aborted = () => waiter.settle(null);
      const settle = (grant) => {
        state.waiting = state.waiting.filter((other) => other !== waiter);
        signal?.removeEventListener('abort', aborted);
        cancel();
        if (grant) resolve(grant);
        else reject(signal.reason);
      };
      const waiter = { options, priority, settle };
      const cancel = this.clock.after(waitMs, () => settle(this.#refusal(this.#state(state.role))));
      signal?.addEventListener('abort', aborted);
      const behind = state.waiting.findIndex((other) => other.priority < priority);
      state.waiting.splice(behind < 0 ? state.waiting.length : behind, 0, waiter);
    });
  }

  #drop(state, reason) {
    const { instanceId, token, cancel } = state.holder;
    cancel();
    state.holder = null;
    this.#tell({ kind: 'role_lost', role: state.role, instance_id: instanceId, token, reason });
  }

  #free(state, reason) {
    this.#drop(state, reason);
    const [next] = state.waiting;
    if (next) next.settle({ ...this.#grant(state, next.options), sentAt: this.clock.now(), waited: true });
  }

  #tell(event) {
    for (const watcher of this.#watchers) {
      if (watcher.role !== event.role) continue;
      watcher.events.push(event);
      if (watcher.events.length > QUEUE_MOST) this.#watchers.delete(watcher);
      watcher.wake();
    }
  }
}

function leader({ instanceId, address, metadata }) {
  return { instance_id: instanceId, address: address ?? null, metadata: metadata ?? null };
}

/** A clock that stands still until `advance`: give it to a `MemoryBackend`, and the elections on it use it. */
export class ManualClock {
  #now = 0;
  #timers = new Set();

  now() {
    return this.#now;
  }

  after(ms, fn) {
    const timer = { at: this.#now + Math.max(ms, 0), fn };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Lets `ms` pass: due timers fire in order, and code that waits for one runs before the next one fires. */
  async advance(ms) {
    const end = this.#now + ms;
    await settled();
    for (;;) {
      const due = [...this.#timers].filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at);
      if (due.length === 0) break;
      const [timer] = due;
      this.#timers.delete(timer);
      this.#now = Math.max(this.#now, timer.at);
      timer.fn();
      await settled();
    }
    this.#now = end;
  }

  /** Time passes, but no timer fires: like a process that was held up. */
  skip(ms) {
    this.#now += ms;
  }
}

/** Resolves when everything that is ready to run has run. */
function settled() {
  return new Promise((resolve) => setTimeout(resolve, 0));
}
