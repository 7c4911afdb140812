// A cluster in this process: several HTTP servers over one state, and faults on demand.

import { once } from 'node:events';
import { createServer } from 'node:http';
import { MemoryBackend } from '../src/memory.js';

const problem = (status, code, members = {}) => ({ status, body: { status, code, detail: code, retryable: status >= 500, ...members } });

/** The state that all nodes serve. */
class State {
  docs = new Map();
  processes = new Map();
  remembered = new Map();
  listeners = new Map();
  roles = new MemoryBackend();
  events = [];
  readers = new Set();
  index = 0;
  /** Ids up to this one are no longer kept. */
  compacted = 0;

  tell(event) {
    this.index += 1;
    const whole = { id: String(this.index), ...event };
    this.events.push(whole);
    for (const reader of this.readers) reader(whole);
    return String(this.index);
  }
}

export class FakeCluster {
  /** The requests: `{node, method, path, key, headers, body}` each. */
  calls = [];
  state = new State();
  servers = [];
  sockets = new Set();

  /** A fault is a function of the call; it returns nothing, `cut`, `apply-cut`, `silent` or `{status, body}`. */
  fault = () => undefined;

  static async start(nodes = 1) {
    const cluster = new FakeCluster();
    for (let node = 0; node < nodes; node += 1) await cluster.#listen(node);
    cluster.watching = new AbortController();
    cluster.#follow();
    return cluster;
  }

  async #listen(node) {
    const server = createServer((request, response) => this.#serve(node, request, response));
    server.on('connection', (socket) => {
      const entry = { node, socket };
      this.sockets.add(entry);
      socket.on('close', () => this.sockets.delete(entry));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    this.servers[node] = { server, url: `http://127.0.0.1:${server.address().port}` };
  }

  /** Grants and losses of the roles become events of the feed. */
  #follow() {
    const { roles } = this.state;
    const acquire = roles.acquire.bind(roles);
    const seen = new Set();
    const watch = async (role) => {
      for await (const event of roles.watch(role, { signal: this.watching.signal })) this.state.tell(event);
    };
    roles.acquire = (role, options) => {
      if (!seen.has(role)) watch(role);
      seen.add(role);
      return acquire(role, options);
    };
  }

  get urls() {
    return this.servers.map(({ url }) => url);
  }

  /** From now on the node refuses connections, and its open ones are closed. */
  kill(node) {
    this.servers[node].server.close();
    this.cut(node);
  }

  cut(node) {
    for (const entry of this.sockets) if (entry.node === node) entry.socket.destroy();
  }

  async stop() {
    this.watching.abort();
    this.servers.forEach((_, node) => this.kill(node));
  }

  async #serve(node, request, response) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const url = new URL(request.url, 'http://fake');
    const call = {
      node,
      method: request.method,
      path: url.pathname,
      query: url.searchParams,
      key: request.headers['idempotency-key'] ?? null,
      headers: request.headers,
      body: parsed(text, request.headers['content-type']),
    };
    this.calls.push(call);
    const fault = await this.fault(call);
    if (fault === 'cut') return request.socket.destroy();
    if (fault === 'silent') return;
    if (fault?.status) return answer(response, fault);
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const reply = await this.#reply(call, response, gone.signal);
    if (fault === 'apply-cut') return request.socket.destroy();
    if (reply) answer(response, reply);
  }

  /** Repeats the answer to a write with a known key; calls of roles get the present state. */
  async #reply(call, response, signal) {
    const known = call.key && this.state.remembered.get(call.key);
    if (known && !call.path.startsWith('/v1/roles')) return { ...known, headers: { ...known.headers, 'idempotency-replayed': 'true' } };
    const [, , table, raw, verb] = call.path.split('/');
    const name = raw === undefined ? null : decodeURIComponent(raw);
    const route = ROUTES[table];
    if (!route) return problem(404, 'not_found');
    const reply = await route({ ...call, name, verb, state: this.state, response, signal }).catch((error) => {
      if (error.status) return { status: error.status, body: error.members };
      if (signal.aborted) return null;
      throw error;
    });
    if (call.key && reply && reply.status < 300) this.state.remembered.set(call.key, reply);
    return reply;
  }
}

const LINES = 'application/x-ndjson';

function parsed(text, type) {
  if (type === LINES) return text.split('\n').filter(Boolean).map((line) => JSON.parse(line));
  return text === '' ? null : JSON.parse(text);
}

function answer(response, { status, body, text, headers = {} }) {
  const type = status >= 400 ? 'application/problem+json' : 'application/json';
  response.writeHead(status, { 'content-type': type, ...headers });
  if (text !== undefined) return response.end(text);
  if (headers['content-type'] === LINES) return response.end(body.map((line) => `${JSON.stringify(line)}\n`).join(''));
  response.end(body === undefined ? '' : JSON.stringify(body));
}

const ROUTES = { docs, roles, processes, feed, channels, commands, status };

async function docs({ state, method, name, headers, body, query }) {
  const found = state.docs.get(name);
  if (method === 'GET' && name === null) return page([...state.docs].map(([key, doc]) => ({ key, ...doc })), 'key', query);
  if (method === 'GET') {
    return found ? { status: 200, body: found.value, headers: { etag: `"${found.rev}"` } } : problem(404, 'not_found');
  }
  const former = await formerHolder(state.roles, headers['if-role']);
  if (former) return problem(412, 'role_not_held', { role: former });
  const current_rev = found?.rev ?? null;
  if (headers['if-none-match'] && found) return problem(412, 'precondition_failed', { current_rev });
  if (headers['if-match'] && headers['if-match'] !== `"${current_rev}"`) return problem(412, 'precondition_failed', { current_rev });
  if (method === 'DELETE' && !found) return problem(404, 'not_found');
  const op = method === 'PUT' ? 'put' : 'delete';
  const rev = state.tell({ kind: 'change', table: 'doc', key: name, op, value: body });
  if (method === 'PUT') state.docs.set(name, { value: body, rev });
  else state.docs.delete(name);
  return { status: found ? 200 : 201, body: { key: name, rev, created: !found } };
}

/** The role that a write names under a token that is not, or no longer, the role's. */
async function formerHolder(roles, line) {
  if (line === undefined) return null;
  const [, name, token] = /^(.*); token=(\d+)$/.exec(line);
  const role = decodeURIComponent(name);
  return (await roles.get(role)).token === Number(token) ? null : role;
}

function page(all, by, query) {
  const limit = Number(query.get('limit') ?? 100);
  const after = query.get('after');
  const matching = all
    .filter((item) => item[by].startsWith(query.get('prefix') ?? '') && (after === null || item[by] > after))
    .sort((a, b) => (a[by] < b[by] ? -1 : 1));
  const items = matching.slice(0, limit);
  return { status: 200, body: { items, next: matching.length > limit ? items.at(-1)[by] : null } };
}

const grantBody = ({ outcome, role, leader, token, expiresInMs }) => ({ outcome, role, leader, token, expires_in_ms: expiresInMs });

async function roles({ state, name, verb, method, body, query, signal, response }) {
  const { roles: backend } = state;
  if (method === 'GET') return roleRead(backend, name, verb, query);
  if (verb === 'tie') return tie(backend, name, query, response);
  const { instance_id: instanceId, ttl_ms: ttlMs = 30_000, wait_ms: waitMs, ...rest } = body;
  const options = { instanceId, ttlMs, waitMs, signal, ...rest };
  if (verb === 'acquire') {
    const grant = await backend.acquire(name, options);
    if (grant.outcome === 'other_leader' || grant.outcome === 'conflict') return problem(409, 'role_held', grantBody(grant));
    return { status: 200, body: grantBody(grant) };
  }
  if (verb === 'elect') return { status: 200, body: grantBody(await backend.elect(name, options)) };
  if (verb === 'renew') {
    const { expiresInMs } = await backend.renew(name, options);
    return { status: 200, body: { role: name, token: body.token, expires_in_ms: expiresInMs } };
  }
  await backend.release(name, options);
  return { status: 200, body: { role: name, token: body.token, released: true } };
}

/** Stays open until the test ends it: only real nodes act on its end. */
async function tie(backend, name, query, response) {
  const token = Number(query.get('token'));
  const { expiresInMs } = await backend.renew(name, { instanceId: query.get('instance_id'), token });
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  send(response, 'tied', { kind: 'tied', role: name, token, expires_in_ms: expiresInMs });
  return null;
}

async function roleRead(backend, name, verb, query) {
  const info = await backend.get(name);
  if (verb !== 'check') return { status: 200, body: info };
  return { status: 200, body: { valid: info.token === Number(query.get('token')), token: info.token } };
}

async function processes({ state, name, verb, method, body, query }) {
  const all = state.processes;
  if (method === 'GET' && name === null) {
    const role = query.get('role');
    const [capability, identifier] = [query.get('capability'), query.get('identifier')];
    const fits = (one) =>
      (role === null || one.role === role) &&
      (identifier === null || one.identifier === identifier) &&
      (capability === null || [one.capabilities].flat().includes(capability) || Boolean(one.capabilities?.[capability]));
    return page([...all.values()].filter(fits), 'id', query);
  }
  const found = all.get(name);
  if (method === 'PUT') return processPut(state, name, body, found);
  if (!found) return problem(404, 'not_found');
  if (method === 'DELETE') {
    removeProcess(state, name, 'removed');
    return { status: 200, body: { id: name } };
  }
  if (verb === 'heartbeat') found.last_seen = new Date().toISOString();
  return { status: 200, body: verb === 'heartbeat' ? { id: name, expires_in_ms: found.ttl_ms } : found };
}

function processPut(state, id, body, found) {
  const now = new Date().toISOString();
  const nothing = { role: null, capabilities: null, metadata: null, ttl_ms: 45_000 };
  const process = { ...nothing, ...body, id, channel: `worker:slave:${id}`, registered_at: found?.registered_at ?? now, last_seen: now };
  state.processes.set(id, { ...process, expires_in_ms: process.ttl_ms });
  const { identifier, role } = process;
  const said = (one) => JSON.stringify([one.identifier, one.role, one.capabilities, one.metadata]);
  if (!found) state.tell({ kind: 'process_registered', process: id, identifier, role });
  else if (said(found) !== said(process)) {
    state.tell({ kind: 'process_changed', process: id, identifier, role, previous_role: found.role });
  }
  return { status: found ? 200 : 201, body: state.processes.get(id) };
}

/** Removes the process as if it had lapsed. */
export function removeProcess(state, id, reason = 'expired') {
  const { identifier, role } = state.processes.get(id);
  state.processes.delete(id);
  state.tell({ kind: 'process_removed', process: id, identifier, role, reason });
}

const send = (response, event, value) => {
  const id = value?.id && event !== 'message' ? `id: ${value.id}\n` : '';
  response.write(`${id}event: ${event}\ndata: ${JSON.stringify(value)}\n\n`);
};

async function feed({ state, response, query, signal }) {
  const since = query.get('since');
  if (since !== null && Number(since) < state.compacted) return problem(410, 'feed_compacted', { oldest: String(state.compacted) });
  const kinds = query.get('kinds')?.split(',');
  const prefix = query.get('prefix') ?? '';
  const wanted = (event) => {
    if (event.kind === 'new_state') return true;
    return (!kinds || kinds.includes(event.kind)) && (event.key ?? event.role ?? event.process ?? '').startsWith(prefix);
  };
  const tell = (event) => wanted(event) && send(response, event.kind, event);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  if (since === null) send(response, 'bookmark', { id: String(state.index), kind: 'bookmark' });
  else state.events.filter((event) => Number(event.id) > Number(since)).forEach(tell);
  state.readers.add(tell);
  signal.addEventListener('abort', () => state.readers.delete(tell));
  response.write(':\n\n');
  return null;
}

/** A message for every stream of the feed, such as an `error`. */
export function tellReaders(cluster, event) {
  cluster.state.index += 1;
  const whole = { id: String(cluster.state.index), ...event };
  for (const reader of cluster.state.readers) reader(whole);
}

async function channels({ state, method, name, body, response, signal }) {
  const listening = state.listeners.get(name) ?? new Set();
  state.listeners.set(name, listening);
  if (method === 'POST') {
    for (const listener of listening) send(listener, 'message', body);
    return { status: 200, body: { delivered: listening.size } };
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(':\n\n');
  listening.add(response);
  signal.addEventListener('abort', () => listening.delete(response));
  return null;
}

/** `Fly` is no command, `Busy` is refused once and `Lost` is unknown once; all else is applied, once for each key. */
function line(state, { storage_cmd, payload, idempotency_key: key }) {
  if (storage_cmd === 'Fly') return problem(400, 'unknown_command').body;
  const known = state.remembered.get(key);
  if (known) return known;
  const said = { index: Number(state.tell({ kind: 'command' })), epoch: '1.1', result: payload };
  state.remembered.set(key, said);
  if (storage_cmd === 'Busy') return problem(503, 'no_leader').body;
  if (storage_cmd === 'Lost') return problem(504, 'outcome_unknown').body;
  return said;
}

async function commands({ state, body, headers }) {
  if (headers['content-type'] === LINES) {
    return { status: 200, body: body.map((command) => line(state, command)), headers: { 'content-type': LINES } };
  }
  const index = Number(state.tell({ kind: 'command' }));
  const result = (command) => ({ name: command.payload.name });
  return { status: 200, body: Array.isArray(body) ? { index, epoch: '1.1', results: body.map(result) } : { index, epoch: '1.1', result: result(body) } };
}

async function status() {
  return { status: 200, body: { cluster: 'fake', mode: 'safe' } };
}
