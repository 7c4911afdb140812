// The client: all calls to a cluster, at any of its nodes.

import { Broker } from './broker.js';
import { bulk } from './bulk.js';
import { BadAnswer, RoleNotHeld } from './errors.js';
import { Election } from './election.js';
import { Feed, Listener } from './feed.js';
import { LockGuard } from './lock.js';
import { Processes, Registry } from './registry.js';
import { HttpBackend, Roles } from './roles.js';
import { leaderOnly, withElection } from './scope.js';
import { items, object, segment, span } from './shape.js';
import { StateDoc } from './state-doc.js';
import { Transport } from './transport.js';

export class Client {
  #transport;

  /** `nodes`: the URLs of all nodes, as a list or with commas between them. */
  constructor(nodes, options = {}) {
    const transport = new Transport(nodes, options);
    this.#transport = transport;
    this.docs = new Docs(transport);
    this.users = new Reading(transport, '/v1/users', 'user');
    this.elections = new Reading(transport, '/v1/elections', 'election');
    this.conflicts = new Conflicts(transport);
    this.roles = new Roles(transport);
    this.processes = new Processes(transport);
    this.channels = new Channels(transport);
    this.backend = new HttpBackend(this.roles, (wanted) => this.feed(wanted), transport);
  }

  get nodes() {
    return this.#transport.nodes;
  }

  /** The node that the next call tries first. */
  get node() {
    return this.#transport.node;
  }

  /** One command: `{index, epoch, result}`. */
  command(storageCmd, payload, options = {}) {
    return this.#commands({ storage_cmd: storageCmd, payload }, options);
  }

  /** A list of `{storage_cmd, payload}`; all apply or none: `{index, epoch, results}`. */
  batch(commands, options = {}) {
    return this.#commands(commands, options);
  }

  /**
   * Takes a list of `{storage_cmd, payload}` and applies each by itself, in order. Resolves with a list of outcomes:
   * each is `{index, epoch, result}` or an error. A refused command does not stop those after it, and one that has to
   * be retried may come after some that follow it. They travel a thousand at a time, and each thousand has the time of
   * one call; once that has run out, nothing more is sent.
   */
  bulk(commands, options = {}) {
    return bulk(this.#transport, commands, options);
  }

  async #commands(body, { idempotencyKey, deadlineMs, signal } = {}) {
    const spec = { method: 'POST', path: '/v1/commands', body, keyed: true, idempotencyKey, deadlineMs, signal };
    return object((await this.#transport.call(spec)).body, 'commands');
  }

  /** One node's own view: the one that answered last. */
  async status() {
    return object((await this.#transport.call({ path: '/v1/status' })).body, 'status');
  }

  /** An endless iteration over events; it goes on by itself at another node after the last id. */
  feed(options = {}) {
    return new Feed(this.#transport, options);
  }

  election(role, options) {
    return new Election(this, role, options);
  }

  withElection(role, fn, options) {
    return withElection(this, role, fn, options);
  }

  leaderOnly(role, fn, options) {
    return leaderOnly(this, role, fn, options);
  }

  lock(role, options) {
    return LockGuard.acquire(this, role, options);
  }

  registry(options) {
    return new Registry(this, options);
  }

  broker(options) {
    return new Broker(this, options);
  }

  stateDoc(key, options) {
    return new StateDoc(this, key, options);
  }
}

const quoted = (rev) => (rev === undefined || rev === null ? undefined : `"${rev}"`);

/** A condition on a revision of null would be no condition at all. */
function known(rev) {
  if (rev === null) throw new TypeError('ifRev is null: there is no revision to depend on');
}

/**
 * The value of the header that names the role. A holder that has lost its role, such as an election, has no token any
 * more.
 */
function holder(ifRole) {
  if (ifRole === undefined) return undefined;
  const { role, token } = ifRole;
  const name = segment(role, 'role');
  if (token === null) throw new RoleNotHeld(412, { code: 'role_not_held', detail: `${role} is not held here any more`, role });
  if (!Number.isSafeInteger(token) || token < 0) throw new TypeError('a document is written in the name of a {role, token}');
  return `${name}; token=${token}`;
}

/** The query for the lease that a document ends with. */
function tether(lease) {
  if (lease === undefined) return {};
  if (lease.role !== undefined) return { with: `role/${lease.role}`, token: lease.token };
  if (lease.process !== undefined) return { with: `process/${lease.process}` };
  throw new TypeError('a document ends with the lease of a {role, token} or of a {process}');
}

/** Documents: any JSON up to 1 MiB under a key. `rev` is opaque. */
class Docs {
  #transport;

  constructor(transport) {
    this.#transport = transport;
  }

  /** `{key, value, rev}`, or `NotFound`. */
  async get(key, { level, signal } = {}) {
    const spec = { path: `/v1/docs/${segment(key, 'key')}`, query: { level }, signal };
    const { body, headers } = await this.#transport.call(spec);
    const etag = headers.get('etag');
    // A page of another origin sees the header only if the node allows it; without it no compare-and-swap is safe.
    if (etag === null) throw new BadAnswer(`${key}: a document without an ETag`);
    return { key, value: body, rev: etag.replace(/^(?:W\/)?"(.*)"$/, '$1') };
  }

  /**
   * Resolves with `{key, rev, created}`. `ifRev`: write only if the document has that revision; `ifAbsent`: only if it
   * does not exist; otherwise `PreconditionFailed`. The document stays until it is deleted, unless this write says when
   * it ends: when it has not been written or renewed for `ttlMs`, or `with` the lease of `{role, token}` or
   * `{process}`, with that lease's `secret` if it is another client's. Each write sets this again. `ifRole`: write only
   * while that `{role, token}` holds, otherwise `RoleNotHeld`; a lock, an election or a broker is one.
   */
  put(key, value, { ifRev, ifAbsent, ttlMs, with: lease, ...options } = {}) {
    if (value === undefined) throw new TypeError('undefined is no JSON; write null, or delete');
    known(ifRev);
    const headers = { 'if-match': quoted(ifRev), 'if-none-match': ifAbsent ? '*' : undefined, 'eldest-secret': lease?.secret };
    const query = { ttl_ms: ttlMs, ...tether(lease) };
    // For its own leases this client shows its own secret, which no other knows.
    const shown = lease !== undefined && lease.secret === undefined;
    return this.#write('PUT', key, { body: value, headers, query, shown }, options);
  }

  /** Renews a document with a ttl. Returns the time it has left, in milliseconds; `NotFound` if it has ended. */
  async renew(key, { ifRev, deadlineMs, signal } = {}) {
    known(ifRev);
    const spec = { method: 'POST', path: `/v1/docs/${segment(key, 'key')}`, query: { renew: true }, deadlineMs, signal };
    const answer = await this.#transport.call({ ...spec, headers: { 'if-match': quoted(ifRev) } });
    return span(object(answer.body, 'document').expires_in_ms, 'document');
  }

  delete(key, { ifRev, ...options } = {}) {
    known(ifRev);
    return this.#write('DELETE', key, { headers: { 'if-match': quoted(ifRev) } }, options);
  }

  async #write(method, key, spec, { ifRole, idempotencyKey, deadlineMs, signal }) {
    const headers = { ...spec.headers, 'if-role': holder(ifRole) };
    const whole = { ...spec, method, path: `/v1/docs/${segment(key, 'key')}`, headers, keyed: true, idempotencyKey, deadlineMs, signal };
    return object((await this.#transport.call(whole)).body, 'document');
  }

  /** A page: `{items: [{key, rev, value}], next}`. */
  async list({ prefix, limit, after, level, signal } = {}) {
    const query = { prefix, limit, after, level };
    return items((await this.#transport.call({ path: '/v1/docs', query, signal })).body, 'documents');
  }

  /** Every document whose key begins with `prefix`, page by page. */
  async *all({ prefix, level, signal } = {}) {
    for (let after; after !== null; ) {
      const page = await this.list({ prefix, after, level, signal });
      yield* page.items;
      after = page.next ?? null;
    }
  }
}

/** Users and elections are read here, and written by commands. */
class Reading {
  constructor(transport, path, what) {
    this.get = async (name, { level } = {}) => {
      const spec = { path: `${path}/${segment(name, what)}`, query: { level } };
      return object((await transport.call(spec)).body, what);
    };
    this.list = async ({ prefix, limit, after, level } = {}) => {
      return items((await transport.call({ path, query: { prefix, limit, after, level } })).body, what);
    };
  }
}

/** Values that a merge overrode; in available mode only. */
class Conflicts {
  #transport;

  constructor(transport) {
    this.#transport = transport;
  }

  async list({ kind, prefix, limit, after, level } = {}) {
    const query = { kind, prefix, limit, after, level };
    return items((await this.#transport.call({ path: '/v1/conflicts', query })).body, 'conflicts');
  }

  async get(id, { level } = {}) {
    const spec = { path: `/v1/conflicts/${segment(id, 'conflict')}`, query: { level } };
    return object((await this.#transport.call(spec)).body, 'conflict');
  }

  apply(id, options) {
    return this.#settle(id, 'apply', options);
  }

  drop(id, options) {
    return this.#settle(id, 'drop', options);
  }

  async #settle(id, verb, { idempotencyKey } = {}) {
    const path = `/v1/conflicts/${segment(id, 'conflict')}/${verb}`;
    return (await this.#transport.call({ method: 'POST', path, keyed: true, idempotencyKey })).body;
  }
}

/** Messages to those who listen now, at most once. */
class Channels {
  #transport;

  constructor(transport) {
    this.#transport = transport;
  }

  /** The number of listeners that got it. Never retried after an unknown outcome: it is `Indeterminate` at once. */
  async publish(name, message, { deadlineMs, signal } = {}) {
    if (message === undefined) throw new TypeError('undefined is no JSON');
    const path = `/v1/channels/${segment(name, 'channel')}`;
    const answer = await this.#transport.call({ method: 'POST', path, body: message, once: true, deadlineMs, signal });
    return Number(object(answer.body, 'channel').delivered ?? 0);
  }

  /** An endless iteration over the messages. */
  listen(name, options = {}) {
    return new Listener(this.#transport, { ...options, path: `/v1/channels/${segment(name, 'channel')}` });
  }
}
