// Roles: leases with fencing tokens. These are the bare calls; `Election` and `LockGuard` are made of them.

import { LeaseLost, RoleHeld } from './errors.js';
import { frames, json } from './sse.js';
import { items, object, segment, span, token } from './shape.js';

const path = (role, verb) => `/v1/roles/${segment(role, 'role')}${verb ? `/${verb}` : ''}`;

function wanted(options) {
  return {
    instance_id: options.instanceId,
    ttl_ms: options.ttlMs,
    address: options.address ?? undefined,
    metadata: options.metadata ?? undefined,
  };
}

/** The grant in the answer to an acquire, with the time from which its span counts. */
function grant(answer, waitMs) {
  const body = object(answer.body, 'acquire');
  return {
    outcome: body.outcome === 'already_leader' ? 'already_leader' : 'elected',
    role: body.role,
    leader: body.leader ?? null,
    token: token(body.token, 'acquire'),
    expiresInMs: span(body.expires_in_ms, 'acquire'),
    // The answer to a call that waited, or that was sent twice, may report an older grant.
    sentAt: answer.firstSentAt,
    waited: waitMs > 0,
  };
}

export class Roles {
  #transport;

  constructor(transport) {
    this.#transport = transport;
  }

  /** Resolves with the grant; `RoleHeld` if another has the role, after `waitMs` if it is set. */
  async acquire(role, options) {
    const waitMs = options.waitMs ?? 0;
    const body = { ...wanted(options), priority: options.priority, wait_ms: waitMs || undefined };
    const { signal, deadlineMs, attemptTimeoutMs } = options;
    const spec = { method: 'POST', path: path(role, 'acquire'), body, keyed: true, shown: true, waitMs, signal, deadlineMs, attemptTimeoutMs };
    return grant(await this.#transport.call(spec), waitMs);
  }

  /** Renews, or throws `LeaseLost`. It has no idempotency key: an earlier renewal's answer would be of no use. */
  async renew(role, { instanceId, token: held, ttlMs, tie, signal, deadlineMs, attemptTimeoutMs }) {
    const body = { instance_id: instanceId, token: held, ttl_ms: ttlMs, tie };
    const spec = { method: 'POST', path: path(role, 'renew'), body, shown: true, signal, deadlineMs, attemptTimeoutMs };
    const answer = await this.#transport.call(spec);
    const { expires_in_ms } = object(answer.body, 'renew');
    return { expiresInMs: span(expires_in_ms, 'renew'), sentAt: answer.sentAt };
  }

  /**
   * Ties the lease to a connection to one node, under a number. If this process has closed it, and `graceMs` are over,
   * the node ends the lease, unless a renewal has named a greater number. Resolves with `{events, close}`: first
   * `tied`, with the renewal that this was; then `renew`, to renew at once for a new leader, and `stopping`, when the
   * node lets go.
   */
  async tie(role, { instanceId, token: held, ttlMs, tie, graceMs, signal }) {
    const query = { instance_id: instanceId, token: held, ttl_ms: ttlMs, tie, grace_ms: graceMs };
    const { clock } = this.#transport;
    const { body, sentAt, close } = await this.#transport.line({ method: 'POST', path: path(role, 'tie'), query, shown: true, signal });
    return { events: ties(body, clock, sentAt), close };
  }

  /**
   * Gives the role up, or throws `LeaseLost`. If the lease is lost after an attempt of unknown outcome, that attempt
   * released it.
   */
  async release(role, { instanceId, token: held, signal, deadlineMs }) {
    const body = { instance_id: instanceId, token: held };
    let lost = false;
    const onLost = () => (lost = true);
    try {
      await this.#transport.call({ method: 'POST', path: path(role, 'release'), body, shown: true, signal, deadlineMs, onLost });
    } catch (error) {
      if (!lost || !(error instanceof LeaseLost)) throw error;
    }
  }

  /** Names the holder. Needs the admin credential. */
  async elect(role, options) {
    const { signal, deadlineMs } = options;
    const spec = { method: 'POST', path: path(role, 'elect'), body: wanted(options), keyed: true, signal, deadlineMs };
    return grant(await this.#transport.call(spec), 0);
  }

  /** The holder, and since when; `leader: null` if there is none. */
  async get(role, { level, deadlineMs, signal } = {}) {
    return object((await this.#transport.call({ path: path(role), query: { level }, deadlineMs, signal })).body, 'role');
  }

  /** A page of the roles that are held. */
  async list({ prefix, limit, after, level } = {}) {
    const query = { prefix, limit, after, level };
    return items((await this.#transport.call({ path: '/v1/roles', query })).body, 'roles');
  }

  /**
   * Whether a token is the present holder's. A resource that the holder writes to can turn away former holders with it.
   */
  async check(role, held, { level } = {}) {
    const spec = { path: path(role, 'check'), query: { token: held, level } };
    return object((await this.#transport.call(spec)).body, 'check');
  }

  /**
   * The server renews for as long as this iteration lasts. First `{role, instance_id, token, ttl_ms}`; it ends when the
   * role is lost.
   */
  async *hold(role, options) {
    const query = {
      instance_id: options.instanceId,
      ttl_ms: options.ttlMs,
      wait_ms: options.waitMs,
      priority: options.priority,
      address: options.address,
    };
    const spec = { method: 'POST', path: path(role, 'hold'), query, shown: true, signal: options.signal, waitMs: options.waitMs };
    const { response, close } = await this.#transport.stream(spec);
    try {
      for await (const frame of frames(response.body, this.#transport.clock)) {
        if (frame.event === 'held' || frame.event === 'lost') yield { kind: frame.event, ...object(json(frame), 'hold') };
        if (frame.event === 'lost' || frame.event === 'error') return;
      }
    } finally {
      close();
    }
  }
}

async function* ties(body, clock, sentAt) {
  for await (const frame of frames(body, clock)) {
    const value = object(json(frame), 'tie');
    if (frame.event === 'tied') yield { kind: 'tied', renewal: { sentAt, expiresInMs: span(value.expires_in_ms, 'tie') } };
    else yield { kind: frame.event === 'error' ? value.code : frame.event };
    if (frame.event === 'error') return;
  }
}

/** The part of a store of roles that `Election` and `LockGuard` need; `MemoryBackend` is the other one. */
export class HttpBackend {
  #roles;
  #feed;

  constructor(roles, feed, { clock, deadlineMs }) {
    this.#roles = roles;
    this.#feed = feed;
    this.clock = clock;
    this.deadlineMs = deadlineMs;
  }

  async acquire(role, options) {
    try {
      return await this.#roles.acquire(role, options);
    } catch (error) {
      if (!(error instanceof RoleHeld)) throw error;
      const { outcome, leader, token: held, expiresInMs } = error;
      return { outcome, role, leader, token: held, expiresInMs };
    }
  }

  renew(role, options) {
    return this.#roles.renew(role, options);
  }

  tie(role, options) {
    return this.#roles.tie(role, options);
  }

  release(role, options) {
    return this.#roles.release(role, options);
  }

  elect(role, options) {
    return this.#roles.elect(role, options);
  }

  get(role, options) {
    return this.#roles.get(role, options);
  }

  /** Events of the role, and that the state was replaced by another one. */
  async *watch(role, options) {
    const feed = this.#feed({ ...options, kinds: ['role_acquired', 'role_lost'], prefix: role });
    for await (const event of feed) {
      if (event.role === role || event.kind === 'new_state') yield event;
    }
  }

  /** Changes of documents whose keys begin with `prefix`. */
  changes(prefix, options) {
    return this.#feed({ ...options, kinds: ['change'], prefix });
  }
}
