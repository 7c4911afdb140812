// `LeaderFeed`: an election and the changes of one table, under leaderfeed's names, on an Eldest cluster.

import { Election } from './election.js';
import { Emitter } from './emitter.js';
import { answered, timings } from './leader-feed-base.js';
import { randomId } from './signals.js';

const EVENTS = {
  change: 'change',
  new_state: 'new state',
  new_leader: 'new leader',
  subscribe_started: 'subscribe started',
  subscribe_error: 'subscribe error',
  heartbeat_error: 'heartbeat error',
};

export class LeaderFeed extends Emitter {
  #client;
  #options;
  #election = null;
  #table = null;

  /** `options`: `heartbeatIntervalMs`, `electionTimeoutMinMs`, `electionTimeoutMaxMs`, `createIfMissing`, `id`, `heldBy`. */
  constructor(client, options = {}) {
    super();
    this.#client = client;
    this.#options = { ...timings(options), heldBy: options.heldBy };
    this.id = options.id ?? randomId();
  }

  /**
   * `table`, `collection` or `channel` names the role; the documents below `{table}/` are its data, and emit `change`.
   */
  start(options = {}, callback) {
    return answered(this.#start(options), callback);
  }

  async #start({ table, collection, channel }) {
    if (this.status !== 'stopped') throw new Error(`the leaderfeed is ${this.status}`);
    const name = table ?? collection ?? channel;
    if (!name) throw new TypeError('name a table, a collection or a channel');
    this.#table = name;
    const { heartbeatIntervalMs, electionTimeoutMinMs, electionTimeoutMaxMs, heldBy } = this.#options;
    // A silent leader is replaced within the longest election timeout; a lease lasts 1 s at least.
    const ttlMs = Math.max(electionTimeoutMaxMs, 1000);
    this.#election = new Election(this.#client, name, {
      instanceId: this.id,
      ttlMs,
      renewEveryMs: Math.min(heartbeatIntervalMs, ttlMs / 2),
      checkEveryMs: Math.max(electionTimeoutMinMs, 1000),
      heldBy,
      changes: channel === undefined ? `${name}/` : null,
    });
    for (const [from, to] of Object.entries(EVENTS)) this.#election.on(from, (value) => this.emit(to, value));
    this.#election.on('error', (error) => this.emit('heartbeat error', error));
    await this.#election.start();
    return this;
  }

  stop(callback) {
    return answered(this.#election?.stop() ?? Promise.resolve(), callback);
  }

  /** Names the leader: another instance, or this one. Needs the admin credential. */
  elect(id, callback) {
    if (typeof id === 'function') return this.elect(undefined, id);
    if (!this.#election) return answered(Promise.reject(new Error('the leaderfeed is stopped')), callback);
    return answered(this.#election.elect(id ?? this.id), callback);
  }

  get status() {
    return this.#election?.status ?? 'stopped';
  }

  get isLeader() {
    return this.#election?.isLeader ?? false;
  }

  /** The fencing token; null while another leads. */
  get token() {
    return this.#election?.token ?? null;
  }

  /** Issues commands; it takes the place of `r`, `db`, `pub` and `sub`. */
  get client() {
    return this.#client;
  }

  get table() {
    return this.#table;
  }

  get collection() {
    return this.#table;
  }
}
