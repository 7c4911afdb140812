// `MasterElection`: election, registry and slaves in one object, with the names that programs written for Redis use.

import { Client } from './client.js';
import { Election } from './election.js';
import { Emitter } from './emitter.js';
import { NotFound } from './errors.js';
import { Registry, UNREGISTER_MS } from './registry.js';
import { randomId } from './signals.js';

/** The events of `Election` and `Registry`, and their names here. */
const ELECTION_EVENTS = {
  leader_acquired: 'master-acquired',
  leader_lost: 'master-lost',
  election_started: 'election-started',
  error: 'error',
  heartbeat_error: 'error',
};

export class MasterElection extends Emitter {
  #client;
  #election;
  #registry;
  #nodeId = randomId();
  #lockName;
  #identifier;
  #metadata = {};
  #capabilities = {};
  #moves = Promise.resolve();
  #registered = false;
  /** A first election has been decided since `start`: until then no node could accept a registration. */
  #decided = false;
  /** `entered`: this process is in the registry. `perhapsEntered`: a registration was sent, so it may be. */
  #entered = false;
  #perhapsEntered = false;
  #stopping = new AbortController();
  #starting = null;
  /** A master that has become a slave before this process was master. */
  #predecessor = null;

  constructor(
    client,
    lockName = 'master-election',
    lockTtl = 30_000,
    heartbeatInterval = 10_000,
    checkInterval = 5_000,
    identifier = 'cms-backend',
    heldBy = 'connection',
    slaveTimeout = 15_000,
    slaveHeartbeat = 5_000,
  ) {
    super();
    if (slaveHeartbeat >= slaveTimeout) throw new RangeError('slaveHeartbeat must be less than slaveTimeout');
    this.#client = client;
    this.#lockName = lockName;
    this.#identifier = identifier;
    this.#election = new Election(client, lockName, {
      instanceId: this.#nodeId,
      identifier,
      ttlMs: lockTtl,
      renewEveryMs: heartbeatInterval,
      checkEveryMs: checkInterval,
      heldBy,
    });
    this.#registry = new Registry(client, {
      id: this.#nodeId,
      identifier,
      ttlMs: slaveTimeout,
      heartbeatEveryMs: slaveHeartbeat,
      leaderOf: lockName,
      filter: (process) => process.metadata?.lockName === lockName,
    });
    this.#forward();
  }

  #forward() {
    for (const [from, to] of Object.entries(ELECTION_EVENTS)) {
      this.#election.on(from, (...values) => this.emit(to, ...(from === 'leader_acquired' ? [] : values)));
    }
    for (const role of ['leader_acquired', 'leader_lost']) this.#election.on(role, () => this.#moved());
    this.#election.on('election_completed', (isMaster) => {
      this.#decided = true;
      this.emit('election-completed', isMaster);
      this.#moved({ onlyIfMissing: true });
    });
    const master = (event, value) => this.getIsMaster() && this.emit(event, value);
    this.#registry.on('slave_registered', (process, before) => {
      if (process.id === this.#nodeId) return;
      if (!this.getIsMaster() && before === 'master') this.#predecessor = process;
      master('slave-registered', slaveNode(process));
    });
    this.#registry.on('slave_removed', (id) => {
      if (id === this.#nodeId) return;
      if (this.#predecessor?.id === id) this.#predecessor = null;
      master('slave-removed', id);
    });
    this.#election.on('leader_acquired', () => this.#tellPredecessor());
    for (const event of ['error', 'heartbeat_error']) this.#registry.on(event, (error) => this.emit('error', error));
  }

  /** It may have become a slave before this process knew that it is master, and is reported all the same. */
  #tellPredecessor() {
    const predecessor = this.#predecessor;
    this.#predecessor = null;
    if (predecessor) this.emit('slave-registered', slaveNode(predecessor));
  }

  /**
   * Resolves when the first election is over, and this process is in the registry, as master or slave. If no node can
   * be reached for 5 s, it goes on trying in the background, and emits `error`.
   */
  start() {
    this.#starting = this.#start();
    return this.#starting;
  }

  async #start() {
    if (this.#stopping.signal.aborted) this.#stopping = new AbortController();
    const { signal } = this.#stopping;
    this.#decided = false;
    const watching = this.#registry.watch();
    await this.#election.start();
    if (this.#decided) await watching;
    if (signal.aborted || this.#election.status !== 'started') return;
    this.#registered = true;
    if (this.#decided) await this.#moved();
  }

  /**
   * Gives the lock to the next at once, and takes this process out of the registry, within a second. If either fails,
   * `error` is emitted, and the lock lapses with `lockTtl`, the entry with `slaveTimeout`.
   */
  async stop() {
    this.#registered = false;
    this.#stopping.abort(new Error('stopped'));
    const released = this.#election.stop();
    await this.#moves;
    await Promise.all([released, this.#leave()]);
    // A start that was cut short leaves nothing behind; its caller learns how it ended.
    await this.#starting?.catch(() => {});
  }

  async #leave() {
    const perhapsEntered = this.#perhapsEntered;
    this.#entered = this.#perhapsEntered = false;
    try {
      if (perhapsEntered) await this.#registry.unregister(this.#nodeId, { deadlineMs: UNREGISTER_MS });
    } catch (error) {
      this.emit('error', error);
    }
    await this.#registry.stop();
  }

  waitForElectionComplete(timeoutMs = 30_000) {
    return this.#election.waitForElection(timeoutMs);
  }

  getIsMaster() {
    return this.#election.isLeader;
  }

  getNodeId() {
    return this.#nodeId;
  }

  getIdentifier() {
    return this.#identifier;
  }

  /** The fencing token of this process's mastership; null while it is a slave. */
  getToken() {
    return this.#election.token;
  }

  getMetadata() {
    return this.#metadata;
  }

  /** Others see the new value in `getSlaves` a moment later. */
  setMetadata(metadata) {
    this.#metadata = metadata;
    this.#moved();
  }

  /** Registers this process's capabilities, or another process: then the caller sends its heartbeats too. */
  async registerProcess(info) {
    if (info.processId === this.#nodeId) {
      this.#capabilities = info.capabilities ?? {};
      this.#registered = true;
      return this.#moved();
    }
    const { role, capabilities } = info;
    const metadata = { lockName: this.#lockName };
    await this.#client.processes.put(info.processId, { identifier: info.processId, role, capabilities, metadata, ttlMs: 45_000 });
  }

  /**
   * A lapsed entry is written again if it is this process's, and otherwise left alone. Any other error is emitted as
   * `error`, because the loops that call this ignore rejections.
   */
  async updateProcessHeartbeat(processId) {
    try {
      await this.#client.processes.heartbeat(processId);
    } catch (error) {
      if (!(error instanceof NotFound)) this.emit('error', error);
      else if (processId === this.#nodeId) await this.#moved();
    }
  }

  async getAllProcesses() {
    return (await this.#registry.all()).map(processInfo);
  }

  async getMasterProcess() {
    const master = await this.#registry.master();
    return master && processInfo(master);
  }

  async getProcessesByRole(role) {
    return (await this.#registry.byRole(role)).map(processInfo);
  }

  async unregisterProcess(processId) {
    if (processId === this.#nodeId) this.#registered = this.#entered = false;
    await this.#registry.unregister(processId);
  }

  /** Derived from the id; null if there is no such process. */
  async getProcessChannel(processId) {
    return (await this.#registry.process(processId))?.channel ?? null;
  }

  registerAsSlave() {
    this.#registered = true;
    return this.#moved();
  }

  unregisterFromSlaves() {
    return this.unregisterProcess(this.#nodeId);
  }

  updateSlaveHeartbeat() {
    return this.updateProcessHeartbeat(this.#nodeId);
  }

  async getSlaves() {
    return (await this.#registry.slaves()).filter((slave) => !this.#isItself(slave.id)).map(slaveNode);
  }

  async getSlave(nodeId) {
    const slave = this.#isItself(nodeId) ? null : await this.#registry.slave(nodeId);
    return slave && slaveNode(slave);
  }

  async getSlaveCount() {
    return (await this.getSlaves()).length;
  }

  /** A master is not one of its slaves, although its entry may say so for a moment. */
  #isItself(nodeId) {
    return nodeId === this.#nodeId && this.getIsMaster();
  }

  /**
   * Writes the present role of this process into the registry; one write after the other, so that the last one stays.
   */
  #moved({ onlyIfMissing = false } = {}) {
    this.#moves = this.#moves.then(async () => {
      if (!this.#registered || (onlyIfMissing && this.#entered)) return;
      const { signal } = this.#stopping;
      const role = this.getIsMaster() ? 'master' : 'slave';
      const metadata = { lockName: this.#lockName, of: this.#metadata };
      try {
        this.#perhapsEntered = true;
        await this.#registry.register({ role, capabilities: this.#capabilities, metadata }, { signal });
        this.#entered = true;
      } catch (error) {
        if (!signal.aborted) this.emit('error', error);
      }
    });
    return this.#moves;
  }
}

function processInfo({ id, role, last_seen, capabilities, channel }) {
  return { processId: id, nodeId: id, role, lastSeen: last_seen, capabilities: capabilities ?? {}, channelName: channel };
}

function slaveNode({ id, identifier, registered_at, last_seen, metadata }) {
  return { nodeId: id, identifier, registeredAt: registered_at, lastSeen: last_seen, metadata: metadata?.of ?? {} };
}

let instance = null;

function nodesOfTheEnvironment() {
  return globalThis.process?.env?.ELDEST_URL ?? globalThis.process?.env?.ELDEST_NODES ?? 'http://127.0.0.1:9000';
}

/**
 * Makes the one `MasterElection` of this process and starts it. Without a client, the nodes are those of `ELDEST_URL`
 * or `ELDEST_NODES`, or the one at port 9000 of this machine.
 */
export async function initialize(...settings) {
  if (instance) throw new Error('the master election is initialized already');
  const given = settings[0] instanceof Client;
  instance = new MasterElection(...(given ? settings : [new Client(nodesOfTheEnvironment()), ...settings]));
  try {
    await instance.start();
  } catch (error) {
    instance = null;
    throw error;
  }
  return instance;
}

export function getMasterElection() {
  if (!instance) throw new Error('initialize the master election first');
  return instance;
}

/** Stops the election that `initialize` made; after that another one can be made. */
export async function shutdown() {
  const ending = instance;
  instance = null;
  await ending?.stop();
}
