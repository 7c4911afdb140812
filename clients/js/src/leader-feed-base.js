// The base of a leaderfeed on your own store: you write six methods, and the algorithm is here.
//
// A node that sees no heartbeat for a random time elects itself. That is as safe as the store below makes it: two nodes
// that elect themselves in the same moment both lead until the subscription tells them apart, and there are no tokens.
// On an Eldest cluster use `LeaderFeed`, where the leader holds a lease.

import { systemClock } from './clock.js';
import { Emitter } from './emitter.js';
import { randomId } from './signals.js';

/** Calls `method` with a callback `done`; the method may return a promise instead. */
function called(method, ...values) {
  return new Promise((resolve, reject) => {
    const done = (error, value) => (error ? reject(error) : resolve(value));
    const promise = method(...values, done);
    if (typeof promise?.then === 'function') promise.then(resolve, reject);
  });
}

/** Supports a promise and a callback. */
export function answered(promise, callback) {
  if (typeof callback === 'function') {
    promise.then((value) => callback(null, value), (error) => callback(error));
  }
  return promise;
}

/** The defaults of the timings, and the relations between them. */
export function timings(options = {}) {
  const heartbeatIntervalMs = options.heartbeatIntervalMs ?? 1000;
  const electionTimeoutMinMs = options.electionTimeoutMinMs ?? 2 * heartbeatIntervalMs;
  const electionTimeoutMaxMs = options.electionTimeoutMaxMs ?? 2 * electionTimeoutMinMs;
  if (electionTimeoutMinMs < 2 * heartbeatIntervalMs) throw new RangeError('electionTimeoutMinMs: at least 2 * heartbeatIntervalMs');
  if (electionTimeoutMaxMs < electionTimeoutMinMs) throw new RangeError('electionTimeoutMaxMs: at least electionTimeoutMinMs');
  return { heartbeatIntervalMs, electionTimeoutMinMs, electionTimeoutMaxMs, createIfMissing: options.createIfMissing ?? true };
}

export class LeaderFeedBase extends Emitter {
  #options;
  #clock;
  #status = 'stopped';
  #starting = Promise.resolve();
  #state = 'follower';
  #leader = null;
  #until = -Infinity;
  #cancelElection = () => {};
  #cancelHeartbeat = () => {};

  constructor(options = {}) {
    super();
    this.#options = timings(options);
    this.#clock = options.clock ?? systemClock;
    this.id = options.id ?? randomId();
    this.on('heartbeat', (leader) => this.#heard(leader));
    this.on('subscribe error', () => this.#become('follower'));
    this.on('heartbeat error', () => this.#become('follower'));
  }

  get status() {
    return this.#status;
  }

  /**
   * True only while no other node may have elected itself: the shortest election timeout after this node's last
   * heartbeat was sent.
   */
  get isLeader() {
    return this.#state === 'leader' && this.#clock.now() < this.#until;
  }

  start(options = {}, callback) {
    return answered(this.#start(options), callback);
  }

  async #start(options) {
    if (this.#status !== 'stopped') throw new Error(`the leaderfeed is ${this.#status}`);
    this.#status = 'starting';
    this.#starting = this.#prepare(options);
    await this.#starting;
    return this;
  }

  async #prepare(options) {
    try {
      await called((done) => this._start(options, done));
      if (this.#options.createIfMissing) await called((done) => this._create(done));
      await called((done) => this._subscribe(done));
    } catch (error) {
      this.#status = 'stopped';
      throw error;
    }
    // `stop` was called meanwhile: it ends the work that was begun.
    if (this.#status !== 'starting') return;
    this.#status = 'started';
    this.emit('subscribe started');
    this.#await();
  }

  stop(callback) {
    return answered(this.#stop(), callback);
  }

  async #stop() {
    if (this.#status !== 'started' && this.#status !== 'starting') return;
    this.#status = 'stopping';
    this.#become('follower');
    this.#cancelElection();
    try {
      await this.#starting;
    } catch {
      // The caller of `start` gets the error; there is nothing to end.
      return;
    }
    try {
      await called((done) => this._unsubscribe(done));
    } finally {
      this.#status = 'stopped';
    }
  }

  elect(id, callback) {
    if (typeof id === 'function') return this.elect(undefined, id);
    return answered(this.#elect(id ?? this.id), callback);
  }

  async #elect(id) {
    const sentAt = this.#clock.now();
    await called((done) => this._elect(id, done));
    if (this.#status !== 'started') return;
    if (id === this.id) this.#lead(sentAt);
    else this.#heard(id);
  }

  // The methods that your store fills in. Each calls `done(error?)`, or returns a promise.

  _start(options, done) {
    done();
  }

  _create(done) {
    done();
  }

  _subscribe(done) {
    done(new Error('_subscribe is to be written'));
  }

  _unsubscribe(done) {
    done();
  }

  _heartbeat(done) {
    done(new Error('_heartbeat is to be written'));
  }

  _elect(id, done) {
    done(new Error('_elect is to be written'));
  }

  /**
   * A heartbeat was seen: the election timeout of each node starts again, and a node that led before another does not
   * lead any more.
   */
  #heard(leader) {
    if (this.#status !== 'started') return;
    this.#await();
    if (leader !== this.id) this.#become('follower');
    this.#see(leader);
  }

  #see(leader) {
    if (leader === this.#leader) return;
    this.#leader = leader;
    this.emit('new leader', leader);
  }

  #await() {
    this.#cancelElection();
    const { electionTimeoutMinMs: least, electionTimeoutMaxMs: most } = this.#options;
    const electSelf = () => {
      this.#await();
      if (!this.isLeader) this.#elect(this.id).catch((error) => this.emit('heartbeat error', error));
    };
    this.#cancelElection = this.#clock.after(least + Math.random() * (most - least), electSelf);
  }

  #lead(sentAt) {
    this.#until = sentAt + this.#options.electionTimeoutMinMs;
    this.#become('leader');
    this.#see(this.id);
    this.#cancelHeartbeat();
    this.#cancelHeartbeat = this.#clock.after(0, () => this.#beat());
  }

  async #beat() {
    const sentAt = this.#clock.now();
    try {
      await called((done) => this._heartbeat(done));
    } catch (error) {
      if (this.#state === 'leader') this.emit('heartbeat error', error);
      return;
    }
    if (this.#state !== 'leader') return;
    this.#until = sentAt + this.#options.electionTimeoutMinMs;
    this.#cancelHeartbeat = this.#clock.after(this.#options.heartbeatIntervalMs, () => this.#beat());
  }

  #become(state) {
    if (state === this.#state) return;
    this.#state = state;
    if (state === 'follower') this.#cancelHeartbeat();
    this.emit('new state', state);
  }
}
