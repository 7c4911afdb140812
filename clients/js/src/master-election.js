// `MasterElection`: election, registry and slaves in one object, under the names that programs written for Redis know.

import { Client } from './client.js';
import { Election } from './election.js';
import { Emitter } from './emitter.js';
import { NotFound } from './errors.js';
import { Registry } from './registry.js';
import { randomId } from './signals.js';

/** The events of `Election` and `Registry`, and what they are called here. */
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
  #starting = null;
  /** A master that has become a slave while this process was not master yet. */
  #predecessor = null;

  constructor(
    client,
    lockName = 'master-election',
    lockTtl = 30_000,
    heartbeatInterval = 10_000,
    checkInterval = 5_000,
    identifier = 'cms-backend',
    heldBy = 'connection',
  ) {
    super();
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
    this.#election.on('election_completed', (isMaster) => this.emit('election-completed', isMaster));
    const master = (event, value) => this.getIsMaster() && this.emit(event, value);
    this.#registry.on('slave_registered', (process, before) => {
      if (!this.getIsMaster() && before === 'master') this.#predecessor = process;
      master('slave-registered', slaveNode(process));
    });
    this.#registry.on('slave_removed', (id) => {
      if (this.#predecessor?.id === id) this.#predecessor = null;
      master('slave-removed', id);
    });
    this.#election.on('leader_acquired', () => this.#tellPredecessor());
    for (const event of ['error', 'heartbeat_error']) this.#registry.on(event, (error) => this.emit('error', error));
  }

  /** It may have become a slave before this process knew that it is master, and is told of all the same. */
  #tellPredecessor() {
    const predecessor = this.#predecessor;
    this.#predecessor = null;
    if (predecessor) this.emit('slave-registered', slaveNode(predecessor));
  }

  /**
   * Resolves when the first election is over, and this process is in the registry, as master or slave. While no node can be reached
   * it goes on trying in the background, and tells of it as `error`.
   */
  start() {
    this.#starting = this.#start();
    return this.#starting;
  }

  async #start() {
    const electing = this.#election.start();
    await Promise.all([electing, this.#registry.watch()]);
    if (this.#election.status !== 'started') return;
    this.#registered = true;
    await this.#moved();
  }

  /** Gives the lock to the next at once, and takes this process out of the registry. */
  async stop() {
    this.#registered = false;
    await this.#election.stop();
    await this.#registry.stop();
    // A start that this has cut short leaves nothing behind; whoever called it learns how it ended.
    await this.#starting?.catch(() => {});
    this.#registered = false;
    await this.#moves;
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

  /** Others see it in `getSlaves` a moment later. */
  setMetadata(metadata) {
    this.#metadata = metadata;
    this.#moved();
  }

  /** This process's capabilities, or another process altogether; whoever registers another one sends its heartbeats too. */
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
   * An entry that has lapsed is written anew if it is this process's, and else left alone. Whatever else goes wrong is told as
   * `error`: this is called from loops that nobody watches.
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
    if (processId === this.#nodeId) this.#registered = false;
    await this.#registry.unregister(processId);
  }

  /** Derived from the id; null where no such process is there. */
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
    return (await this.#registry.slaves()).map(slaveNode);
  }

  async getSlave(nodeId) {
    const slave = await this.#registry.slave(nodeId);
    return slave && slaveNode(slave);
  }

  getSlaveCount() {
    return this.#registry.slaveCount();
  }

  /** Writes what this process is now into the registry; one after the other, so that the last word stays. */
  #moved() {
    this.#moves = this.#moves.then(async () => {
      if (!this.#registered) return;
      const role = this.getIsMaster() ? 'master' : 'slave';
      const metadata = { lockName: this.#lockName, of: this.#metadata };
      try {
        await this.#registry.register({ role, capabilities: this.#capabilities, metadata });
      } catch (error) {
        this.emit('error', error);
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
 * Makes the one `MasterElection` of this process and starts it. The client may be left out: then the nodes are those of
 * `ELDEST_URL`, or the one at port 9000 of this machine.
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

/** Stops the one that `initialize` made; after that another one can be. */
export async function shutdown() {
  const ending = instance;
  instance = null;
  await ending?.stop();
}
