// A lease that ends with a connection: in addition to the renewals, a stream to one node is kept open, and if this
// process dies, that node frees the role. While the process is alive, only renewals decide: one that names a greater
// number makes an older stream worth nothing.

import { Backoff, rest } from './clock.js';
import { Problem } from './errors.js';

/**
 * The node waits this long after the connection has closed. A holder that is alive and has lost it believes for half of
 * that.
 */
const GRACE_MOST_MS = 1000;
const GRACE_PART = 1 / 2;

/** The means by which a role is held: a connection and a lease, or the lease alone. */
const KINDS = ['connection', 'lease'];

export function heldBy(kind = 'connection') {
  if (!KINDS.includes(kind)) throw new TypeError(`heldBy is ${KINDS.join(' or ')}, not ${kind}`);
  return kind;
}

export function graceMs(ttlMs) {
  return Math.min(GRACE_MOST_MS, Math.floor(ttlMs * GRACE_PART));
}

/**
 * Above the numbers of earlier processes under the same name, provided that the wall clock goes forward; below 2^53,
 * with room to count.
 */
const rising = () => Date.now() * 1024 + Math.floor(Math.random() * 1024);

/** Errors that another attempt would meet again: there is no such route, or the lease is not ours. */
const final = (error) => error instanceof Problem && !error.retryable && error.status < 500 && error.status !== 421;

/** The ties of one grant, one after the other, until `signal` aborts. */
export class Ties {
  #backend;
  #lease;
  #told;
  #proved = () => {};

  /** `lease`: `{role, instanceId, token, ttlMs}`. `told`: `proof(renewal)`, `renew()` and `broken()`. */
  constructor(backend, lease, told) {
    this.#backend = backend;
    this.#lease = lease;
    this.#told = told;
    this.number = rising();
  }

  /** A renewal under this number has succeeded. */
  proved(number) {
    if (number === this.number) this.#proved();
  }

  async run(signal) {
    const { clock } = this.#backend;
    const backoff = new Backoff();
    while (!signal.aborted) {
      try {
        await this.#once(signal, backoff);
      } catch (error) {
        if (signal.aborted || final(error)) return;
        if (!error.neverOpen) await this.#goOn(signal, this.#told.broken);
      }
      await rest(clock, backoff.next(), signal, { background: true });
    }
  }

  /** One stream, until it is over and the lease is proved to go on without it. Only then is it closed on this side. */
  async #once(signal, backoff) {
    const { role, instanceId, token, ttlMs } = this.#lease;
    const options = { instanceId, token, ttlMs, tie: this.number, graceMs: graceMs(ttlMs), signal };
    const { events, close } = await this.#backend.tie(role, options);
    try {
      let then = this.#told.broken;
      try {
        for await (const event of events) {
          if (event.kind === 'tied') {
            backoff.reset();
            this.#told.proof(event.renewal);
          } else if (event.kind === 'renew') this.#told.renew();
          // The node lets go: that frees nothing.
          else if (event.kind === 'stopping') then = this.#told.renew;
        }
      } catch {
        // In every case the node may take this process for dead.
      }
      if (!signal.aborted) await this.#goOn(signal, then);
    } finally {
      close();
    }
  }

  /** Takes the next number; resolves when a renewal has named it. */
  async #goOn(signal, tell) {
    this.number += 1;
    const proved = new Promise((resolve) => {
      this.#proved = resolve;
      signal.addEventListener('abort', resolve, { once: true });
    });
    tell();
    await proved;
    this.#proved = () => {};
  }
}
