// Processes: which are there, and what they can do. An entry lapses by itself when its process is silent.

import { Backoff, rest, systemClock } from './clock.js';
import { Emitter } from './emitter.js';
import { NotFound, Problem } from './errors.js';
import { items, object, segment } from './shape.js';
import { asyncDispose, randomId } from './signals.js';

const TTL_MS = 45_000;
const HEARTBEAT_EVERY_MS = 10_000;
/** A heartbeat that takes longer makes room for the next one. */
const BEAT_MOST_MS = 10_000;

/** `stop` does not hang if the cluster is away: the entry lapses by its ttl then. */
export const UNREGISTER_MS = 1_000;

/** The feed's events about processes. */
const FEED_KINDS = ['process_registered', 'process_changed', 'process_removed'];

/** Everything in an entry except its role, for a comparison. */
const saying = ({ identifier, capabilities, metadata }) => JSON.stringify([identifier, capabilities, metadata]);

const path = (id, verb) => `/v1/processes/${segment(id, 'process')}${verb ? `/${verb}` : ''}`;

/** The bare calls; `Registry` is made of them. */
export class Processes {
  #transport;

  constructor(transport) {
    this.#transport = transport;
  }

  get clock() {
    return this.#transport.clock;
  }

  /**
   * `guarded`: only a client that shows this client's secret may speak for the process from now on; the default if the
   * client was given a secret.
   */
  async put(id, { identifier, role, capabilities, metadata, ttlMs, signal, deadlineMs, idempotencyKey, guarded } = {}) {
    const body = { identifier: identifier ?? id, role, capabilities, metadata, ttl_ms: ttlMs };
    const shown = guarded ?? this.#transport.secretIsNamed;
    const spec = { method: 'PUT', path: path(id), body, keyed: true, idempotencyKey, shown, signal, deadlineMs };
    return object((await this.#transport.call(spec)).body, 'process');
  }

  /** `NotFound` if it is not registered, or no longer. */
  async heartbeat(id, { signal, deadlineMs, guarded } = {}) {
    const shown = guarded ?? this.#transport.secretIsNamed;
    const spec = { method: 'POST', path: path(id, 'heartbeat'), body: {}, shown, signal, deadlineMs };
    return object((await this.#transport.call(spec)).body, 'heartbeat');
  }

  async get(id, { level, signal } = {}) {
    return object((await this.#transport.call({ path: path(id), query: { level }, signal })).body, 'process');
  }

  /** A page: `{items, next}`. */
  async list({ role, capability, identifier, limit, after, level, signal } = {}) {
    const query = { role, capability, identifier, limit, after, level };
    return items((await this.#transport.call({ path: '/v1/processes', query, signal })).body, 'processes');
  }

  async *all(wanted = {}) {
    for (let after; after !== null; ) {
      const page = await this.list({ ...wanted, after });
      yield* page.items;
      after = page.next ?? null;
    }
  }

  /** `NotFound` if there is none. After an attempt of unknown outcome it counts as deleted: that attempt did it. */
  async delete(id, { signal, deadlineMs, guarded } = {}) {
    let lost = false;
    const onLost = () => (lost = true);
    try {
      const shown = guarded ?? this.#transport.secretIsNamed;
      await this.#transport.call({ method: 'DELETE', path: path(id), keyed: true, shown, signal, deadlineMs, onLost });
    } catch (error) {
      if (!lost || !(error instanceof NotFound)) throw error;
    }
  }
}

export class Registry extends Emitter {
  #processes;
  #guarded;
  #feed;
  #clock;
  #client;
  #entry;
  #options;
  #stop = new AbortController();
  #heart = null;
  #pulse = null;
  #eyes = null;
  #known = new Map();

  constructor(client, options = {}) {
    super();
    this.#client = client;
    this.#processes = client.processes;
    this.#clock = client.processes.clock ?? systemClock;
    this.#feed = (wanted) => client.feed(wanted);
    this.id = options.id ?? randomId();
    // No process comes back under a random id, so no other client needs to speak for it.
    this.#guarded = options.id === undefined ? true : undefined;
    this.#entry = {
      identifier: options.identifier ?? this.id,
      role: options.role ?? 'slave',
      capabilities: options.capabilities,
      metadata: options.metadata,
      ttlMs: options.ttlMs ?? TTL_MS,
    };
    this.#options = {
      heartbeatEveryMs: options.heartbeatEveryMs ?? HEARTBEAT_EVERY_MS,
      masterRole: options.masterRole ?? 'master',
      slaveRole: options.slaveRole ?? 'slave',
      leaderOf: options.leaderOf ?? null,
      filter: options.filter ?? (() => true),
    };
  }

  /** The registered entry of this process. */
  get entry() {
    return { id: this.id, ...this.#entry };
  }

  /** The channel for messages to this process: `client.channels.listen(registry.channel)`. */
  get channel() {
    return `worker:slave:${this.id}`;
  }

  /** Registers this process, with changes of its entry, and sends heartbeats until `unregister` or `stop`. */
  async register(changes = {}, { signal } = {}) {
    this.#entry = { ...this.#entry, ...changes };
    const entry = await this.#processes.put(this.id, { ...this.#entry, guarded: this.#guarded, signal });
    if (this.#stop.signal.aborted) this.#stop = new AbortController();
    this.#heart ??= this.#beat();
    return entry;
  }

  /** One heartbeat of this process, or of another one. */
  heartbeat(id = this.id) {
    return this.#processes.heartbeat(id, id === this.id ? { guarded: this.#guarded } : {});
  }

  /** Every process that is there now. */
  all() {
    return this.#list({});
  }

  byRole(role) {
    return this.#list({ role });
  }

  byCapability(capability) {
    return this.#list({ capability });
  }

  byIdentifier(identifier) {
    return this.#list({ identifier });
  }

  /**
   * The process that holds the role `leaderOf`; if none was named, the one that calls itself master. Null if there is
   * none.
   */
  async master() {
    const { leaderOf, masterRole } = this.#options;
    if (leaderOf === null) {
      const masters = await this.byRole(masterRole);
      // A predecessor's entry may not have lapsed yet: the newer sign of life is the master's.
      return masters.reduce((best, one) => (!best || String(one.last_seen) > String(best.last_seen) ? one : best), null);
    }
    const { leader } = await this.#client.roles.get(leaderOf);
    return leader ? this.process(leader.instance_id) : null;
  }

  slaves() {
    return this.byRole(this.#options.slaveRole);
  }

  /** One slave, or null. */
  async slave(id) {
    const found = await this.process(id);
    return found?.role === this.#options.slaveRole ? found : null;
  }

  async slaveCount() {
    return (await this.slaves()).length;
  }

  /** One process, or null. */
  async process(id) {
    try {
      const found = await this.#processes.get(id);
      return this.#options.filter(found) ? found : null;
    } catch (error) {
      if (error instanceof NotFound) return null;
      throw error;
    }
  }

  /** Removes this process, or another one, from the registry at once. If it was not there, that is no error. */
  async unregister(id = this.id, options = {}) {
    if (id === this.id) await this.#quiet();
    try {
      await this.#processes.delete(id, id === this.id ? { guarded: this.#guarded, ...options } : options);
    } catch (error) {
      if (!(error instanceof NotFound)) throw error;
    }
  }

  /**
   * Begins to emit `slave_registered`, `slave_changed` and `slave_removed`. Resolves when the present slaves are known,
   * or when the first attempt to learn them has failed: a slave that comes later is reported. Goes on by itself at
   * another node, until `stop`.
   */
  async watch() {
    if (this.#stop.signal.aborted) this.#stop = new AbortController();
    if (!this.#eyes) {
      const opened = new Promise((resolve) => {
        this.#eyes = this.#look(resolve);
      });
      await opened;
    }
    return this;
  }

  /**
   * Unregisters, if it was registered, and ends everything within a second. If that fails, `error` is emitted and the
   * entry lapses.
   */
  async stop() {
    const registered = this.#heart !== null;
    this.#stop.abort();
    await Promise.all([this.#heart, this.#eyes]);
    this.#heart = null;
    this.#eyes = null;
    this.#known.clear();
    if (!registered) return;
    try {
      await this.unregister(this.id, { deadlineMs: UNREGISTER_MS });
    } catch (error) {
      this.emit('error', error);
    }
  }

  [asyncDispose]() {
    return this.stop();
  }

  async #list(wanted) {
    const found = [];
    for await (const process of this.#processes.all(wanted)) {
      if (this.#options.filter(process)) found.push(process);
    }
    return found;
  }

  // Heartbeats.

  async #quiet() {
    this.#pulse?.abort();
    await this.#heart;
    this.#heart = null;
  }

  async #beat() {
    const pulse = (this.#pulse = new AbortController());
    const end = () => pulse.abort();
    const outer = this.#stop.signal;
    outer.addEventListener('abort', end);
    const { signal } = pulse;
    while (!signal.aborted) {
      await rest(this.#clock, this.#options.heartbeatEveryMs, signal, { background: true });
      if (!signal.aborted) await this.#beatOnce(signal);
    }
    outer.removeEventListener('abort', end);
  }

  async #beatOnce(signal) {
    const deadlineMs = Math.min(BEAT_MOST_MS, this.#entry.ttlMs / 2);
    try {
      await this.#processes.heartbeat(this.id, { signal, deadlineMs, guarded: this.#guarded });
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof NotFound)) return void this.emit('heartbeat_error', error);
      await this.#registerAnew(signal);
    }
  }

  async #registerAnew(signal) {
    try {
      await this.#processes.put(this.id, { ...this.#entry, signal, guarded: this.#guarded });
    } catch (error) {
      if (!signal.aborted) this.emit('heartbeat_error', error);
    }
  }

  // Events.

  async #look(opened) {
    const { signal } = this.#stop;
    const backoff = new Backoff();
    for (let first = true; !signal.aborted; ) {
      try {
        for await (const event of this.#events(signal, opened)) {
          if (event.kind === 'process_registered') await this.#came(event);
          else if (event.kind === 'process_changed') await this.#changed(event);
          else if (event.kind === 'process_removed') this.#went(event.process);
          else await this.#compare(first);
          first &&= event.kind !== 'bookmark';
          backoff.reset();
          opened();
        }
      } catch (error) {
        if (signal.aborted) break;
        this.emit('error', error);
        opened();
        if (error instanceof Problem && error.status < 500 && error.status !== 410 && error.status !== 429) break;
        await rest(this.#clock, backoff.next(), signal);
      }
    }
    opened();
  }

  /**
   * The first bookmark of a feed says that nothing after it is missed. All slaves are read then, and when the state was
   * replaced.
   */
  async *#events(signal, failed) {
    let begun = false;
    const onError = (error) => {
      this.emit('error', error);
      failed();
    };
    for await (const event of this.#feed({ kinds: FEED_KINDS, bookmarks: true, signal, onError })) {
      if (event.kind !== 'bookmark' || !begun) yield event;
      begun = true;
    }
  }

  async #came({ process: id, role, previous_role: before = null }) {
    if (role !== this.#options.slaveRole || this.#known.has(id)) return;
    const found = await this.slave(id);
    if (found) this.#tellCame(found, before);
  }

  /** A process that is no longer a slave, or that the filter no longer passes, has left the slaves. */
  async #changed(event) {
    if (!this.#known.has(event.process)) return this.#came(event);
    const found = event.role === this.#options.slaveRole ? await this.slave(event.process) : null;
    if (found) this.#tellChanged(found);
    else this.#went(event.process);
  }

  /** `before` is the role that the process had, if it was there in another one. */
  #tellCame(process, before) {
    this.#known.set(process.id, process);
    this.emit('slave_registered', process, before);
  }

  #tellChanged(process) {
    const before = this.#known.get(process.id);
    this.#known.set(process.id, process);
    if (saying(before) !== saying(process)) this.emit('slave_changed', process);
  }

  #went(id) {
    if (this.#known.delete(id)) this.emit('slave_removed', id);
  }

  async #compare(silently) {
    const now = new Map((await this.slaves()).map((process) => [process.id, process]));
    if (silently) {
      this.#known = now;
      return;
    }
    for (const id of [...this.#known.keys()]) if (!now.has(id)) this.#went(id);
    for (const [id, process] of now) {
      if (this.#known.has(id)) this.#tellChanged(process);
      else this.#tellCame(process, null);
    }
  }
}
