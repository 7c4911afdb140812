// One process's part in the election of a role: it waits for the role, keeps it, reports on it and gives it up.

import { Backoff, rest } from './clock.js';
import { Emitter } from './emitter.js';
import { FeedCompacted, Indeterminate, Problem } from './errors.js';
import { abandon, ANSWER_MOST_MS, Lease, RELEASE_MS, RENEW_EVERY_MS, TTL_MS } from './lease.js';
import { asyncDispose, lingering, linked, randomId } from './signals.js';
import { heldBy } from './ties.js';

const CHECK_EVERY_MS = 5_000;
/** Too many gateways cut off a call that waits longer than this. */
const WAIT_MOST_MS = 30_000;
/** The time in which a call that waits and was granted the role may say so, before it is repeated. */
const ANSWER_MS = 250;
/** `start` does not hang if the cluster is away: it goes on in the background after this time. */
const START_MOST_MS = 5_000;

/** Errors that the same call will meet again, until something is changed. */
const final = (error) => error instanceof Problem && !error.retryable && error.status < 500;

export class Election extends Emitter {
  #backend;
  #options;
  #metadata;
  #status = 'stopped';
  #lease = null;
  #leader = null;
  #electing = false;
  #perhapsHeld = false;
  #lastError = null;
  #stopped = Promise.resolve();
  #stop = new AbortController();
  #round = null;
  #tasks = [];

  /** `store`: a `Client`, or a backend such as `MemoryBackend`. */
  constructor(store, role, options = {}) {
    super();
    this.#backend = store.backend ?? store;
    this.role = role;
    this.id = options.instanceId ?? randomId();
    this.identifier = options.identifier ?? this.id;
    this.#metadata = options.metadata ?? null;
    this.#options = {
      role,
      instanceId: this.id,
      ttlMs: options.ttlMs ?? TTL_MS,
      renewEveryMs: options.renewEveryMs ?? Math.min(RENEW_EVERY_MS, (options.ttlMs ?? TTL_MS) / 3),
      checkEveryMs: options.checkEveryMs ?? CHECK_EVERY_MS,
      priority: options.priority ?? 0,
      address: options.address ?? null,
      watch: options.watch ?? true,
      changes: options.changes ?? null,
      attemptTimeoutMs: options.attemptTimeoutMs,
      startDeadlineMs: options.startDeadlineMs ?? Math.min(START_MOST_MS, this.#backend.deadlineMs ?? START_MOST_MS),
      heldBy: heldBy(options.heldBy),
      onHeartbeatError: (error) => this.emit('heartbeat_error', error),
    };
    if (this.#options.renewEveryMs >= this.#options.ttlMs) throw new RangeError('renewEveryMs must be less than ttlMs');
  }

  /** `stopped`, `starting`, `started` or `stopping`. */
  get status() {
    return this.#status;
  }

  /** Reads a monotonic clock at every call: false before the lease can have ended anywhere. */
  get isLeader() {
    return this.#lease?.held ?? false;
  }

  /** The fencing token of this process's grant; null while it does not lead. */
  get token() {
    return this.isLeader ? this.#lease.token : null;
  }

  /** Aborts when this process's leadership ends; null while it does not lead. */
  get signal() {
    return this.isLeader ? this.#lease.lost : null;
  }

  /** The instance that leads, as far as this one has heard. */
  get leader() {
    return this.isLeader ? this.id : this.#leader;
  }

  /** The error of the last `error` event. */
  get lastError() {
    return this.#lastError;
  }

  get metadata() {
    return this.#metadata;
  }

  /** Others see the new value from the next grant on. */
  set metadata(value) {
    this.#metadata = value;
  }

  /**
   * Stands for the role until `stop`. Resolves when the first attempt is over, won or not, after `startDeadlineMs` at
   * the latest; if the cluster is away, it goes on trying in the background. Throws only if trying again would not
   * help, such as with a name that is too long.
   */
  async start() {
    await this.#begin(0, this.#options.watch, this.#options.startDeadlineMs);
    if (this.#status === 'started') this.#tasks.push(this.#stand());
    return this;
  }

  /**
   * Tries once, as `withElection` does. A winner keeps the role until `stop`. Otherwise, or if the cluster cannot be
   * reached (then there is a `lastError`), it does not stand for the role any longer. Resolves with whether this
   * process leads.
   */
  async tryOnce({ waitMs = 0 } = {}) {
    await this.#begin(waitMs, false);
    if (this.#lease) this.#tasks.push(this.#reign());
    return this.isLeader;
  }

  async #begin(waitMs, watch, deadlineMs) {
    if (this.#status !== 'stopped') throw new Error(`the election is ${this.#status}`);
    this.#status = 'starting';
    this.#stop = new AbortController();
    this.#tasks = watch ? [this.#watch()] : [];
    if (watch && this.#options.changes !== null) this.#tasks.push(this.#watchChanges());
    this.#electionStarted();
    const first = this.#campaign(waitMs, deadlineMs);
    // `stop` waits for it too.
    this.#tasks.push(first.catch(() => {}));
    try {
      await first;
    } catch (error) {
      this.#failed(error);
      if (final(error)) {
        await this.stop();
        throw error;
      }
    }
    if (this.#status === 'starting') this.#status = 'started';
  }

  /**
   * Gives the role up, if this process has it, and ends everything within a second. A role that could not be released
   * lapses, and `error` is emitted.
   */
  async stop() {
    if (this.#status === 'stopped' || this.#status === 'stopping') return this.#stopped;
    this.#status = 'stopping';
    this.#stopped = this.#end();
    return this.#stopped;
  }

  async #end() {
    const { clock } = this.#backend;
    const end = clock.now() + RELEASE_MS;
    const lease = this.#lease;
    // The belief ends here. Only then do listeners hear of it, and only then may another process be granted the role.
    lease?.end(new Error('stopped'));
    this.#stop.abort();
    this.#lost();
    await Promise.all(this.#tasks);
    this.#tasks = [];
    const deadlineMs = end - clock.now();
    try {
      if (lease) await lease.release({ deadlineMs });
      else if (this.#perhapsHeld) await abandon(this.#backend, this.role, this.id, deadlineMs);
    } catch (error) {
      this.#failed(error);
    }
    this.#perhapsHeld = false;
    this.#electing = false;
    this.#leader = null;
    this.#status = 'stopped';
  }

  /**
   * Names the holder: another instance, or this one if none is named. Needs the admin credential. The previous holder
   * has lost the role. For this instance, resolves when it believes in its grant.
   */
  async elect(id = this.id) {
    const own = id === this.id;
    if (own && this.#status !== 'started') throw new Error(`the election is ${this.#status}`);
    const { ttlMs, address } = this.#options;
    const mine = own ? { address, metadata: this.#metadata } : {};
    const grant = await this.#backend.elect(this.role, { instanceId: id, ttlMs, ...mine });
    if (!own) {
      if (this.#lease && grant.token > this.#lease.token) this.#lease.end(new Error(`${id} was elected`));
      this.#see(id);
      return;
    }
    this.#round?.controller.abort();
    await this.waitForLeadership(ttlMs);
  }

  /** Resolves with whether this process leads once an election is over; after `timeoutMs` at the latest. */
  async waitForElection(timeoutMs = 30_000) {
    if (this.#electing || this.#status === 'starting') await this.#event('election_completed', timeoutMs);
    return this.isLeader;
  }

  /** Resolves with true once this process leads, or with false after `timeoutMs`. */
  async waitForLeadership(timeoutMs = 30_000) {
    if (!this.isLeader) await this.#event('leader_acquired', timeoutMs);
    return this.isLeader;
  }

  async #event(name, timeoutMs) {
    const heard = new AbortController();
    const listener = () => heard.abort();
    this.on(name, listener);
    await rest(this.#backend.clock, timeoutMs, heard.signal);
    this.off(name, listener);
  }

  /** Returns a function that calls `fn` only while this process leads, and otherwise returns undefined. */
  leaderOnly(fn) {
    const election = this;
    return function guarded(...values) {
      return election.isLeader ? fn.apply(this, values) : undefined;
    };
  }

  [asyncDispose]() {
    return this.stop();
  }

  // The loop of a candidate until it is stopped.

  async #stand() {
    const backoff = new Backoff(100, this.#options.checkEveryMs);
    // After a failed first attempt, the next call asks at once who leads; only later ones wait.
    let waitMs = this.#electing ? 0 : this.#waitMs;
    while (!this.#stop.signal.aborted) {
      if (this.#lease) {
        await this.#reign();
        if (this.#stop.signal.aborted) return;
        this.#electionStarted();
        // The first call asks at once who leads now; only later ones wait.
        waitMs = 0;
      }
      try {
        await this.#campaign(waitMs);
        waitMs = this.#waitMs;
        backoff.reset();
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        this.#failed(error);
        await rest(this.#backend.clock, backoff.next(), this.#stop.signal, { background: true });
      }
    }
  }

  /** Lasts until the lease is over. */
  async #reign() {
    const { lost } = this.#lease;
    if (!lost.aborted) await new Promise((resolve) => lost.addEventListener('abort', resolve));
    if (!this.#stop.signal.aborted) this.#lost();
  }

  get #waitMs() {
    return Math.min(Math.max(this.#options.checkEveryMs, 0), WAIT_MOST_MS);
  }

  #failed(error) {
    this.#lastError = error;
    this.emit('error', error);
  }

  /** One acquire, and its result. */
  async #campaign(waitMs, deadlineMs) {
    const { ttlMs, priority, address } = this.#options;
    const round = (this.#round = linked(this.#stop.signal));
    // A node may still work on a call whose connection is closed, and grant the role after `stop` has looked who holds
    // it, so the answer is awaited. A call that waits leaves the waiter queue when its connection closes.
    const call = waitMs > 0 ? round : lingering(this.#backend.clock, round.signal, ANSWER_MOST_MS);
    try {
      const options = { instanceId: this.id, ttlMs, priority, address, metadata: this.#metadata, waitMs, deadlineMs, signal: call.signal };
      const grant = await this.#backend.acquire(this.role, options);
      this.#perhapsHeld = false;
      if (grant.outcome === 'elected' || grant.outcome === 'already_leader') await this.#take(grant);
      else if (!this.#stop.signal.aborted) this.#follow(grant.leader?.instance_id ?? null);
    } catch (error) {
      this.#perhapsHeld ||= round.signal.aborted || error instanceof Indeterminate;
      if (!round.signal.aborted) throw error;
    } finally {
      call.dispose();
      round.dispose();
      this.#round = null;
    }
  }

  async #take(grant) {
    const lease = new Lease(this.#backend, this.#options, grant.token);
    const held = await lease.begin(grant, this.#stop.signal);
    if (this.#stop.signal.aborted) {
      // Stopped meanwhile: no listener has heard of this lease, and none may.
      lease.end(new Error('stopped'));
      this.#perhapsHeld = true;
      return;
    }
    this.#perhapsHeld = !held;
    if (!held) return;
    this.#lease = lease;
    // A listener may stop the election: events that are no longer true are not emitted.
    const tell = (...event) => this.#lease === lease && this.emit(...event);
    tell('leader_acquired', lease.token);
    tell('new_state', 'leader');
    if (this.#lease === lease) this.#see(this.id);
    this.#electionCompleted();
  }

  #follow(leader) {
    this.#see(leader);
    this.#electionCompleted();
  }

  #lost() {
    if (!this.#lease) return;
    this.#lease = null;
    this.emit('leader_lost');
    this.emit('new_state', 'follower');
  }

  #electionStarted() {
    if (this.#electing) return;
    this.#electing = true;
    this.emit('election_started');
  }

  #electionCompleted() {
    if (!this.#electing) return;
    this.#electing = false;
    this.emit('election_completed', this.isLeader);
  }

  #see(leader) {
    if (leader === null || leader === this.#leader) return;
    this.#leader = leader;
    this.emit('new_leader', leader);
  }

  // Events of the feed. They can only end a belief sooner, never create one.

  #watch() {
    const open = (options) => this.#backend.watch(this.role, options);
    return this.#subscribe(open, (event) => this.#heard(event), 'subscribe_started');
  }

  #watchChanges() {
    const open = (options) => this.#backend.changes(this.#options.changes, options);
    return this.#subscribe(open, (event) => this.emit('change', event), null);
  }

  async #subscribe(open, taken, started) {
    const { signal } = this.#stop;
    const onOpen = () => started && this.emit(started);
    const onError = (error) => this.emit('subscribe_error', error);
    const backoff = new Backoff();
    while (!signal.aborted) {
      try {
        for await (const event of open({ signal, onOpen, onError })) taken(event);
      } catch (error) {
        if (signal.aborted) return;
        onError(error);
        // Without the feed the election goes on, only less promptly.
        if (final(error) && !(error instanceof FeedCompacted)) return;
      }
      await rest(this.#backend.clock, backoff.next(), signal, { background: true });
    }
  }

  #heard(event) {
    const lease = this.#lease;
    if (event.kind === 'role_lost') {
      if (lease && event.token === lease.token) lease.end(new Error(`the role was lost: ${event.reason}`));
      if (!lease) this.#electionStarted();
    }
    if (event.kind === 'role_acquired') {
      if (lease && event.token > lease.token) lease.end(new Error(`${event.instance_id} has the role`));
      if (event.instance_id === this.id) this.#ask();
      else if (!this.isLeader) this.#see(event.instance_id);
    }
  }

  /**
   * This instance was granted the role. If the call that waits does not say so, the grant was for another call, and
   * this one asks again.
   */
  #ask() {
    const round = this.#round;
    if (!round) return;
    const again = () => this.#round === round && round.controller.abort();
    this.#backend.clock.after(ANSWER_MS, again, { background: true });
  }
}
