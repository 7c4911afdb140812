// A document with many writers. It is changed only by compare-and-swap, so no change is lost.

import { Backoff, rest, systemClock } from './clock.js';
import { NotFound, PreconditionFailed, RoleNotHeld } from './errors.js';

/** Each failed try means that another writer succeeded: so many in a row is a crowd that needs another design. */
const TRIES_MOST = 16;

export class StateDoc {
  #client;
  #broker;

  /**
   * With a `broker`, every write is made in its name: a broker that was replaced, and does not know it yet, changes
   * nothing.
   */
  constructor(client, key, { initial = null, triesMost = TRIES_MOST, broker } = {}) {
    this.#client = client;
    this.#broker = broker;
    this.key = key;
    this.initial = initial;
    this.triesMost = triesMost;
  }

  /** `{value, rev}`; the initial value and a `rev` of null if the document does not exist yet. */
  async read() {
    try {
      const { value, rev } = await this.#client.docs.get(this.key);
      return { value, rev };
    } catch (error) {
      if (error instanceof NotFound) return { value: structuredClone(this.initial), rev: null };
      throw error;
    }
  }

  /** Writes the document only if it does not exist; `PreconditionFailed` otherwise. */
  async create(value = this.initial) {
    return this.#write(value, { ifAbsent: true });
  }

  /** Writes only if the document still has the revision that was read or, with null, only if it does not exist. */
  async swap(value, rev) {
    return this.#write(value, rev === null ? { ifAbsent: true } : { ifRev: rev });
  }

  async #write(value, condition) {
    const broker = this.#broker;
    const ifRole = broker && { role: broker.role, token: broker.token };
    try {
      const { rev } = await this.#client.docs.put(this.key, value, { ...condition, ifRole });
      return { value, rev };
    } catch (error) {
      if (ifRole && error instanceof RoleNotHeld) broker.refused(ifRole.token, error);
      throw error;
    }
  }

  /**
   * Writes the value that `fn(value)` returns. If another writer came first, it reads and calls `fn` again. Nothing is
   * written if `fn` returns undefined. After an `Indeterminate` the change may or may not be there: read before you
   * repeat it.
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
