// A document that many may write: changed by compare-and-swap alone, so that no change is lost.

import { Backoff, rest, systemClock } from './clock.js';
import { NotFound, PreconditionFailed } from './errors.js';

/** Each try that fails means that another writer's went through: so many in a row is a crowd that needs another design. */
const TRIES_MOST = 16;

export class StateDoc {
  #client;

  constructor(client, key, { initial = null, triesMost = TRIES_MOST } = {}) {
    this.#client = client;
    this.key = key;
    this.initial = initial;
    this.triesMost = triesMost;
  }

  /** `{value, rev}`; the initial value and a `rev` of null where there is no document yet. */
  async read() {
    try {
      const { value, rev } = await this.#client.docs.get(this.key);
      return { value, rev };
    } catch (error) {
      if (error instanceof NotFound) return { value: structuredClone(this.initial), rev: null };
      throw error;
    }
  }

  /** Writes it only if there is none; `PreconditionFailed` otherwise. */
  async create(value = this.initial) {
    const { rev } = await this.#client.docs.put(this.key, value, { ifAbsent: true });
    return { value, rev };
  }

  /** Writes over the revision that was read; over null, only if there is none. */
  async swap(value, rev) {
    const condition = rev === null ? { ifAbsent: true } : { ifRev: rev };
    const written = await this.#client.docs.put(this.key, value, condition);
    return { value, rev: written.rev };
  }

  /**
   * Writes what `fn(value)` returns, and reads and calls it again where another writer came first. Nothing is written if it
   * returns undefined. After an `Indeterminate` the change is there or not: read before you make it once more.
   */
  async update(fn) {
    const backoff = new Backoff(5, 200);
    for (let tries = 1; ; tries += 1) {
      const { value, rev } = await this.read();
      const next = await fn(structuredClone(value));
      if (next === undefined) return { value, rev };
      try {
        return await this.swap(next, rev);
      } catch (error) {
        if (!(error instanceof PreconditionFailed) || tries >= this.triesMost) throw error;
      }
      await rest(systemClock, backoff.next());
    }
  }
}
