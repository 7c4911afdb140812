// One call over many nodes: attempts, pauses, a deadline, and what is known when it ends.

import { Backoff, rest, systemClock } from './clock.js';
import { BadAnswer, Indeterminate, Unavailable, problem } from './errors.js';
import { openLine } from './line.js';
import { fetchOverTls } from './node-fetch.js';
import { encoded } from './shape.js';
import { linked, randomId } from './signals.js';

/** The time of one call, with all its attempts and pauses; the wait of a call that waits is added. */
const DEADLINE_MS = 10_000;
/**
 * The time of one attempt at one node. A dead machine does not refuse, it stays silent: the other nodes must have their
 * turn.
 */
const ATTEMPT_MS = 3_000;
/**
 * If a node owes an answer for this long, it is asked whether it is alive. If it does not say so within the same time
 * again, the attempt ends.
 */
const SIGN_OF_LIFE_MS = 500;
/** No attempt begins so near the deadline that it would be cut off: that would only make its outcome unknown. */
const LAST_ATTEMPT_MS = 250;
const LAST_ATTEMPT_PART = 0.2;
/** The time for the head of a stream: a node that is behind answers once it has caught up, or with 503 after 10 s. */
const STREAM_HEAD_MS = 12_000;
/** The biggest answer is a page of 4 MiB; a multiple of it, in case that limit rises. */
const ANSWER_BYTES_MOST = 32 << 20;

/** Each line is one JSON text. */
const LINES = 'application/x-ndjson';

/** Errors that mean that no byte of the request has left: its connection was never made. */
const CONNECTING = new Set(['connect', 'getaddrinfo']);

/** The same for certificates that are not trusted: the handshake comes before every request. */
const NOT_BELIEVED = /^(CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|ERR_TLS_CERT_)/;

function neverSent(error) {
  const cause = error?.cause ?? error;
  if (Array.isArray(cause?.errors)) return cause.errors.length > 0 && cause.errors.every(neverSent);
  return CONNECTING.has(cause?.syscall) || cause?.code === 'UND_ERR_CONNECT_TIMEOUT' || NOT_BELIEVED.test(cause?.code);
}

class TimedOut extends Error {}

export class Transport {
  #bases;
  #at = 0;
  #beside = 0;
  #ownFetch;
  #tls;
  #headers;
  #secret;
  #fetch;

  constructor(nodes, options = {}) {
    const list = typeof nodes === 'string' ? nodes.split(',') : [...(nodes ?? [])];
    this.#bases = list.map((node) => new URL(String(node).trim()).href.replace(/\/+$/, ''));
    if (this.#bases.length === 0) throw new TypeError('name at least one node, as http://host:9000');
    this.#headers = new Headers(options.token ? { authorization: `Bearer ${options.token}` } : {});
    // The secret for the leases of this client: the public part of a lease is not enough to speak for it.
    this.#secret = options.secret ?? randomId();
    /**
     * Whether another life of this process can know the secret too. If so, processes with chosen names are guarded by
     * it as well.
     */
    this.secretIsNamed = options.secret !== undefined;
    this.#ownFetch = options.fetch !== undefined;
    this.#tls = options.tls;
    this.#fetch = options.fetch ?? (options.tls ? fetchOverTls(options.tls) : (...request) => globalThis.fetch(...request));
    this.clock = options.clock ?? systemClock;
    this.deadlineMs = options.deadlineMs ?? DEADLINE_MS;
    this.attemptTimeoutMs = options.attemptTimeoutMs ?? ATTEMPT_MS;
  }

  get nodes() {
    return [...this.#bases];
  }

  /** The node that the next call tries first: the one that answered last. */
  get node() {
    return this.#bases[this.#at];
  }

  /**
   * Makes a call and returns `{status, headers, body, firstSentAt, sentAt, attempts}`: the times are when its first
   * attempt and the answered one were sent, on `clock`. A 421, 429 or 503 of a node means surely not applied, so the
   * call goes on at the next node. It also does after an unknown outcome, with the same key, unless the call may be
   * made only `once`; `onLost` hears of each such attempt.
   */
  async call(spec) {
    const request = this.#request(spec);
    const patience = (spec.deadlineMs ?? this.deadlineMs) + (spec.waitMs ?? 0);
    const deadline = this.clock.now() + patience;
    const lastStart = deadline - Math.min(LAST_ATTEMPT_MS, patience * LAST_ATTEMPT_PART);
    const backoff = new Backoff();
    let [at, firstSentAt, unknown, last] = [this.#at, null, false, null];
    for (let attempts = 1; this.clock.now() < lastStart; attempts += 1) {
      spec.signal?.throwIfAborted();
      const sentAt = this.clock.now();
      firstSentAt ??= sentAt;
      const most = (spec.attemptTimeoutMs ?? this.attemptTimeoutMs) + (spec.waitMs ?? 0);
      // A call that waits has time, and a call that is made once is not abandoned for another node.
      const watched = this.#bases.length > 1 && !spec.waitMs && !spec.once;
      last = await this.#attempt(at, request, Math.min(most, deadline - sentAt), spec.signal, watched);
      if (last.kind === 'answer') {
        this.#at = at;
        return { ...last, firstSentAt, sentAt, attempts };
      }
      if (request.write && last.kind === 'lost') {
        unknown = true;
        spec.onLost?.();
        if (spec.once) break;
      }
      at = this.#next(at, last.error);
      if (last.kind === 'unsent' && attempts < this.#bases.length) continue;
      await rest(this.clock, Math.min(backoff.next(), lastStart - this.clock.now()), spec.signal);
    }
    throw this.#given_up(request, unknown, last?.error);
  }

  /** One attempt at a stream, at the node that is tried first; the answer's body is still to be read. */
  async stream(spec) {
    const request = this.#request(spec);
    const at = this.#at;
    const link = linked(spec.signal);
    const cancel = this.clock.after(STREAM_HEAD_MS + (spec.waitMs ?? 0), () => link.controller.abort(new TimedOut('no answer')));
    try {
      const response = await this.#send(at, request, link.signal);
      if (!response.ok) {
        const outcome = await read(response, request);
        // A refusal that no node made may come from a gateway, and be gone a moment later.
        throw outcome.error?.status ? outcome.error : new Error(`status ${response.status}`, { cause: outcome.error });
      }
      if (!response.body) throw new BadAnswer('a stream without a body');
      return { response, close: () => (link.dispose(), link.controller.abort()) };
    } catch (error) {
      link.dispose();
      spec.signal?.throwIfAborted();
      throw error;
    } finally {
      cancel();
    }
  }

  /**
   * One attempt at a stream that has to outlive the node that answers calls: at another node, if there is one, each
   * time the next. An error that says that nothing was opened has `neverOpen`.
   */
  async line(spec) {
    const request = this.#request(spec);
    const count = this.#bases.length;
    this.#beside = (this.#beside + 1) % count;
    if (this.#beside === this.#at) this.#beside = (this.#beside + 1) % count;
    const link = linked(spec.signal);
    const cancel = this.clock.after(this.attemptTimeoutMs, () => link.controller.abort(new TimedOut('no answer')), { background: true });
    const close = () => (link.dispose(), link.controller.abort());
    try {
      const sentAt = this.clock.now();
      const { method, headers, target } = request;
      const url = this.#bases[this.#beside] + target;
      const answer = await openLine(this.#fetch, this.#ownFetch, url, { method, headers, signal: link.signal, tls: this.#tls });
      if (answer.status === 200) return { body: answer.body, sentAt, close };
      const refused = refusal(answer.status, JSON.parse(await bounded(answer)), request).error;
      throw Object.assign(refused, { neverOpen: true });
    } catch (error) {
      close();
      if (neverSent(error)) error.neverOpen = true;
      throw error;
    } finally {
      cancel();
    }
  }

  /** The next stream is tried elsewhere. */
  leave(error) {
    this.#at = this.#next(this.#at, error);
  }

  #request(spec) {
    const headers = new Headers(this.#headers);
    for (const [name, value] of Object.entries(spec.headers ?? {})) {
      if (value !== undefined && value !== null) headers.set(name, value);
    }
    const method = spec.method ?? 'GET';
    const write = method !== 'GET' && spec.write !== false;
    const key = spec.keyed ? (spec.idempotencyKey ?? randomId()) : null;
    if (key !== null) headers.set('idempotency-key', key);
    if (spec.shown) headers.set('eldest-secret', this.#secret);
    const body = spec.lines ?? (spec.body === undefined ? undefined : encoded(spec.body));
    if (body !== undefined) headers.set('content-type', spec.lines === undefined ? 'application/json' : LINES);
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(spec.query ?? {})) {
      if (value !== undefined && value !== null && value !== '') query.set(name, String(value));
    }
    const search = query.size > 0 ? `?${query}` : '';
    return { method, headers, body, key, write, target: spec.path + search };
  }

  #send(at, request, signal) {
    const { method, headers, body, target } = request;
    return this.#fetch(this.#bases[at] + target, { method, headers, body, signal, cache: 'no-store', redirect: 'manual' });
  }

  async #attempt(at, request, timeoutMs, outer, watched) {
    const link = linked(outer);
    const unwatch = watched ? this.#watch(at, link.controller) : () => {};
    const cancel = this.clock.after(timeoutMs, () => link.controller.abort(new TimedOut(`no answer in ${Math.ceil(timeoutMs)} ms`)));
    try {
      const outcome = await read(await this.#send(at, request, link.signal), request);
      if (outcome.kind === 'problem') throw outcome.error;
      return outcome;
    } catch (error) {
      if (error instanceof BadAnswer || error?.status) throw error;
      outer?.throwIfAborted();
      return { kind: neverSent(error) ? 'unsent' : 'lost', error };
    } finally {
      cancel();
      unwatch();
      link.dispose();
    }
  }

  /**
   * A machine that stands still accepts calls and answers none: the attempt there ends when the node does not answer /livez either.
   */
  #watch(at, attempt) {
    let stop = () => {};
    let over = false;
    const wait = () => {
      stop = this.clock.after(SIGN_OF_LIFE_MS, look, { background: true });
    };
    const look = async () => {
      const probe = new AbortController();
      const late = this.clock.after(SIGN_OF_LIFE_MS, () => probe.abort(), { background: true });
      stop = () => (late(), probe.abort());
      try {
        const { body } = await this.#fetch(`${this.#bases[at]}/livez`, { signal: probe.signal, cache: 'no-store', redirect: 'manual' });
        body?.cancel().catch(() => {});
        if (!over) wait();
      } catch {
        if (!over) attempt.abort(new TimedOut('it does not answer /livez'));
      } finally {
        late();
      }
    };
    wait();
    return () => ((over = true), stop());
  }

  /** The leader, if the error names it and it is one of the given nodes: a call never goes anywhere else. */
  #next(at, error) {
    const url = error?.status === 421 ? error.leaderNode?.url : null;
    const leader = typeof url === 'string' ? this.#bases.indexOf(url.replace(/\/+$/, '')) : -1;
    const next = leader >= 0 && leader !== at ? leader : (at + 1) % this.#bases.length;
    if (this.#at === at) this.#at = next;
    return next;
  }

  #given_up(request, unknown, cause) {
    const why = cause?.cause?.message ?? cause?.message ?? 'the deadline was over before the first attempt';
    if (unknown) {
      const text = `${request.method} ${request.target} may or may not have happened: ${why}`;
      return new Indeterminate(text, { cause, idempotencyKey: request.key });
    }
    return new Unavailable(`${request.method} ${request.target} did not happen: ${why}`, { cause });
  }
}

/**
 * A client that followed a redirect would take its token to a host that was never named. In a browser such an answer
 * has no status.
 */
const redirects = ({ type, status }) => type === 'opaqueredirect' || (status >= 300 && status < 400 && status !== 304);

/** Reads an answer. Its kind is `answer`, `problem` (final), `refused` (surely not applied) or `lost` (unknown). */
async function read(response, request) {
  if (redirects(response)) {
    response.body?.cancel().catch(() => {});
    throw new BadAnswer(`${request.method} ${request.target}: a redirection, which is not followed; name the nodes themselves`);
  }
  const text = await bounded(response);
  const { status, headers } = response;
  let body = null;
  try {
    const lines = headers.get('content-type') === LINES;
    if (lines) body = text.split('\n').filter(Boolean).map((line) => JSON.parse(line));
    else if (text !== '') body = JSON.parse(text);
  } catch (cause) {
    if (status < 400) {
      const error = new BadAnswer(`${request.method} ${request.target}: an answer that is not JSON`, { cause });
      return { kind: 'lost', error };
    }
  }
  if (response.ok || status === 304) return { kind: 'answer', status, headers, body };
  return refusal(status, body, request);
}

function refusal(status, body, request) {
  const ours = body !== null && typeof body === 'object' && typeof body.code === 'string';
  if (!ours) {
    const error = new BadAnswer(`${request.method} ${request.target}: status ${status} without a problem document`);
    if (status >= 500 || status === 429) return { kind: 'lost', error };
    throw error;
  }
  const error = problem(status, body);
  if (status === 421 || status === 429 || status === 503) return { kind: 'refused', error };
  if (status >= 500) return { kind: 'lost', error };
  return { kind: 'problem', error };
}

async function bounded(response) {
  if (!response.body) return '';
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let [text, bytes] = ['', 0];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.length;
    if (bytes > ANSWER_BYTES_MOST) {
      reader.cancel().catch(() => {});
      throw new BadAnswer(`an answer of more than ${ANSWER_BYTES_MOST} bytes`);
    }
    text += decoder.decode(value, { stream: true });
  }
}
