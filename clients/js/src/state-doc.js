// A document that many may write: changed by compare-and-swap alone, so that no change is lost.

import { Backoff, rest, systemClock } from './clock.js';
import { NotFound, PreconditionFailed, RoleNotHeld } from './errors.js';

/** Each try that fails means that another writer's went through: so many in a row is a crowd that needs another design. */
const TRIES_MOST = 16;

export class StateDoc {
  #client;
  #broker;

  /** With a `broker`, every write is made in its name: one that was replaced, and does not know it yet, changes nothing. */
  constructor(client, key, { initial = null, triesMost = TRIES_MOST, broker } = {}) {
    this.#client = client;
    this.#broker = broker;
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
    return this.#write(value, { ifAbsent: true });
  }

  /** Writes over the revision that was read; over null, only if there is none. */
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
