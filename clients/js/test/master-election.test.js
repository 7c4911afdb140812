import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getMasterElection, initialize, MasterElection, shutdown } from '../src/master-election.js';
import { ManualClock, MemoryBackend } from '../src/memory.js';
import { removeProcess } from './fake.js';
import { event, fake, recorded, until } from './help.js';

const EVENTS = ['master-acquired', 'master-lost', 'election-started', 'election-completed', 'slave-registered', 'slave-removed'];

async function pair(t) {
  const { cluster, client, ends } = await fake(t);
  const [first, second] = [new MasterElection(client), new MasterElection(client)];
  ends(first, second);
  return { cluster, client, first, second };
}

test('start, events in order, getIsMaster, waitForElectionComplete', async (t) => {
  const { first, second } = await pair(t);
  const heard = recorded(first, EVENTS);
  await first.start();
  await second.start();
  assert.equal(await first.waitForElectionComplete(), true);
  assert.equal(await second.waitForElectionComplete(), false);
  assert.deepEqual([first.getIsMaster(), second.getIsMaster()], [true, false]);
  assert.deepEqual(heard.slice(0, 3), [['election-started'], ['master-acquired'], ['election-completed', true]]);
  assert.ok(first.getToken() >= 1);
});

test('stop: the slave becomes master, in the registry too', async (t) => {
  const { client, first, second } = await pair(t);
  await first.start();
  await second.start();
  await until(async () => (await client.roles.get('master-election')).waiting === 1, 'a waiter');
  const lost = event(first, 'master-lost');
  const over = event(second, 'master-acquired');
  await first.stop();
  await lost;
  await over;
  await until(async () => (await second.getProcessesByRole('master')).length === 1, 'the registry');
  assert.equal((await second.getMasterProcess()).processId, second.getNodeId());
  assert.equal((await second.getAllProcesses()).length, 1);
});

test('getNodeId, getIdentifier, setMetadata, getMetadata', async (t) => {
  const { first, second } = await pair(t);
  assert.match(first.getNodeId(), /^[0-9a-f-]{36}$/);
  assert.equal(first.getIdentifier(), 'cms-backend');
  await first.start();
  await second.start();
  second.setMetadata({ zone: 2 });
  assert.deepEqual(second.getMetadata(), { zone: 2 });
  await until(async () => (await first.getSlave(second.getNodeId()))?.metadata.zone === 2, 'the metadata');
});

test('registerProcess, getAllProcesses, getProcessChannel, updateProcessHeartbeat, unregisterProcess', async (t) => {
  const { first } = await pair(t);
  await first.start();
  const capabilities = { canProcessDetections: true, maxSubscriptions: 100, preferredWorkload: 80 };
  const mine = { processId: first.getNodeId(), nodeId: first.getNodeId(), role: 'master', lastSeen: '', capabilities };
  await first.registerProcess(mine);
  await first.registerProcess({ ...mine, processId: 'p', nodeId: 'p', role: 'slave' });
  const all = await first.getAllProcesses();
  assert.deepEqual(new Set(all.map((one) => one.processId)), new Set([first.getNodeId(), 'p']));
  assert.deepEqual((await first.getMasterProcess()).capabilities, capabilities);
  assert.equal(await first.getProcessChannel('p'), 'worker:slave:p');
  assert.equal(await first.getProcessChannel('nobody'), null);
  await first.updateProcessHeartbeat('p');
  await first.unregisterProcess('p');
  assert.equal((await first.getAllProcesses()).length, 1);
});

test('slaves: registered and removed are told to the master', async (t) => {
  const { cluster, first, second } = await pair(t);
  await first.start();
  const [came, went] = [event(first, 'slave-registered'), event(first, 'slave-removed')];
  const unheard = recorded(second, ['slave-registered']);
  await second.start();
  const slave = await came;
  assert.deepEqual([slave.nodeId, slave.identifier], [second.getNodeId(), 'cms-backend']);
  assert.equal(await first.getSlaveCount(), 1);
  assert.equal((await first.getSlaves())[0].nodeId, second.getNodeId());
  assert.equal(await first.getSlave('nobody'), null);
  await second.updateSlaveHeartbeat();
  removeProcess(cluster.state, second.getNodeId());
  assert.equal(await went, second.getNodeId());
  await second.registerAsSlave();
  await second.unregisterFromSlaves();
  assert.equal(await first.getSlaveCount(), 0);
  assert.deepEqual(unheard, []);
});

/** `second` is named in place of `first`, whose next entry in the registry is written once `when` resolves. */
async function replaced({ cluster, client, first, second }, when) {
  const entry = `/v1/processes/${first.getNodeId()}`;
  cluster.fault = async (call) => {
    if (call.method === 'PUT' && call.path === entry) await when;
  };
  const lost = event(first, 'master-lost');
  await client.roles.elect('master-election', { instanceId: second.getNodeId() });
  await lost;
}

test('a master that turns slave is told to the next master as slave-registered, which hears nothing of itself', async (t) => {
  const all = await pair(t);
  const { first, second } = all;
  await first.start();
  await second.start();
  const heard = recorded(second, ['slave-registered', 'slave-removed']);
  await replaced(all, event(second, 'master-acquired'));
  await until(() => heard.length > 0, 'the slave');
  await until(async () => (await second.getProcessesByRole('master')).length === 1, 'the registry');
  assert.deepEqual(heard.map(([name, slave]) => [name, slave.nodeId]), [['slave-registered', first.getNodeId()]]);
  assert.equal(await second.getSlaveCount(), 1);
});

test('a master that turns slave before the next one knows that it is master is told to it all the same', async (t) => {
  const all = await pair(t);
  const { cluster, client, first, second } = all;
  await first.start();
  await second.start();
  const order = recorded(second, ['master-acquired', 'slave-registered']);
  // The named instance does not exist: while it holds the lock there is no master.
  const lost = event(first, 'master-lost');
  await client.roles.elect('master-election', { instanceId: 'nobody', ttlMs: 3_600_000 });
  await lost;
  await until(async () => (await second.getSlaves()).some((slave) => slave.nodeId === first.getNodeId()), 'the registry');
  const read = (call) => call.method === 'GET' && call.path === `/v1/processes/${first.getNodeId()}`;
  await until(() => cluster.calls.some(read), 'the second one to have heard of it');
  assert.deepEqual(order, []);
  await client.roles.elect('master-election', { instanceId: second.getNodeId() });
  await until(() => order.length === 2, 'both');
  assert.deepEqual([order[0], order[1][1].nodeId], [['master-acquired'], first.getNodeId()]);
});

test('a master is told nothing of itself: neither after a time as a slave, nor is it among its slaves', async (t) => {
  const { cluster, client, first } = await pair(t);
  await first.start();
  const heard = recorded(first, ['slave-registered', 'slave-removed']);
  const lost = event(first, 'master-lost');
  await client.roles.elect('master-election', { instanceId: 'nobody', ttlMs: 3_600_000 });
  await lost;
  const asked = `/v1/processes/${first.getNodeId()}`;
  await until(() => cluster.calls.some((call) => call.method === 'GET' && call.path === asked), 'it to have heard of itself as a slave');
  assert.equal(await first.getSlaveCount(), 1);
  const again = event(first, 'master-acquired');
  await client.roles.elect('master-election', { instanceId: first.getNodeId() });
  await again;
  assert.deepEqual([await first.getSlaveCount(), await first.getSlave(first.getNodeId())], [0, null]);
  await until(async () => (await first.getProcessesByRole('master')).length === 1, 'the registry');
  // Another process comes and goes afterwards: by then events about `first` itself would have been heard.
  await first.registerProcess({ processId: 'p', nodeId: 'p', role: 'slave', lastSeen: '', capabilities: {} });
  await until(() => heard.some(([, slave]) => slave.nodeId === 'p'), 'the other one');
  assert.deepEqual(heard.map(([name, slave]) => [name, slave.nodeId ?? 'itself']), [['slave-registered', 'p']]);
});

test('elections of other names are apart', async (t) => {
  const { client, first } = await pair(t);
  const other = new MasterElection(client, 'other');
  await first.start();
  await other.start();
  assert.deepEqual([first.getIsMaster(), other.getIsMaster()], [true, true]);
  assert.equal((await other.getAllProcesses()).length, 1);
  await other.stop();
});

test('error: what goes wrong is told, and it goes on', async (t) => {
  const { cluster, first } = await pair(t);
  await first.start();
  cluster.fault = () => ({ status: 403, body: { code: 'forbidden' } });
  const told = event(first, 'error');
  first.setMetadata({ n: 1 });
  assert.equal((await told).code, 'forbidden');
  cluster.fault = () => undefined;
});

test('initialize and getMasterElection: one for the process', async (t) => {
  const { client } = await fake(t);
  assert.throws(() => getMasterElection());
  const election = await initialize(client, 'cms-cluster', 30_000, 10_000, 5_000, 'cms-backend-prod');
  assert.equal(getMasterElection(), election);
  assert.equal(election.getIdentifier(), 'cms-backend-prod');
  assert.equal((await client.roles.get('cms-cluster')).ttl_ms, 30_000);
  await assert.rejects(initialize(client));
  await shutdown();
});

test('stop during start leaves no leader behind', async (t) => {
  const { client, first } = await pair(t);
  const heard = recorded(first, ['master-acquired']);
  const starting = first.start();
  await first.stop();
  await starting;
  assert.equal(first.getIsMaster(), false);
  assert.equal((await client.roles.get('master-election')).leader, null);
  assert.equal((await first.getAllProcesses()).length, 0);
  // It can be started again, and then stands.
  await first.start();
  assert.equal(first.getIsMaster(), true);
  assert.ok(heard.length >= 1);
});

test('the defaults: lockName, lockTtl, checkInterval, identifier', async (t) => {
  const { cluster, first, second } = await pair(t);
  await first.start();
  await second.start();
  const asked = () => cluster.calls.filter((call) => call.path === '/v1/roles/master-election/acquire').map((call) => call.body);
  await until(() => asked().length === 3, 'the wait of the second');
  assert.deepEqual(asked().map((body) => [body.ttl_ms, body.wait_ms ?? 0]), [[30_000, 0], [30_000, 0], [30_000, 5_000]]);
  assert.equal(second.getIdentifier(), 'cms-backend');
});

test('waitForElectionComplete waits for a start that nobody awaited', async (t) => {
  const { first } = await pair(t);
  const starting = first.start();
  assert.equal(await first.waitForElectionComplete(), true);
  await starting;
});

test('start: without a node it goes on in the background, and tells why', async (t) => {
  const { cluster, client, ends } = await fake(t, 1, { deadlineMs: 200 });
  const first = new MasterElection(client);
  ends(first);
  cluster.fault = () => ({ status: 503, body: { code: 'no_leader', retryable: true } });
  const told = event(first, 'error');
  await first.start();
  await told;
  assert.equal(first.getIsMaster(), false);
  const won = event(first, 'master-acquired');
  cluster.fault = () => undefined;
  await won;
});

test('start: without a node it is over after startDeadlineMs, or 5 s, and the registry follows when there is one', async (t) => {
  const { cluster, client, ends } = await fake(t, 2);
  const first = new MasterElection(client);
  ends(first);
  cluster.fault = () => 'silent';
  const began = performance.now();
  await first.start();
  assert.ok(performance.now() - began < 8_000, 'it took too long');
  cluster.fault = () => undefined;
  cluster.cut(0);
  cluster.cut(1);
  await until(async () => (await first.getProcessesByRole('master')).length === 1, 'the registry');
});

test('start: a slave that began without a node is in the registry when there is one', async (t) => {
  const { cluster, client, ends } = await fake(t, 1, { deadlineMs: 200 });
  const [first, second] = [new MasterElection(client), new MasterElection(client)];
  ends(first, second);
  await first.start();
  cluster.fault = () => ({ status: 503, body: { code: 'no_leader', retryable: true } });
  await second.start();
  cluster.fault = () => undefined;
  await until(async () => (await first.getSlaves()).some((slave) => slave.nodeId === second.getNodeId()), 'the slave');
});

test('stop: while the cluster is away it takes a second, and tells what was not done', async (t) => {
  const { cluster, client } = await fake(t, 2);
  const first = new MasterElection(client);
  await first.start();
  // A registration is running too.
  cluster.fault = () => 'silent';
  first.setMetadata({ n: 1 });
  const told = recorded(first, ['error']);
  const began = performance.now();
  await first.stop();
  assert.ok(performance.now() - began < 2_500, 'it took too long');
  const what = told.map(([, error]) => error.message);
  assert.ok(what.some((message) => message.includes('/release ')), what.join('; '));
  assert.ok(what.some((message) => message.includes(`/v1/processes/${first.getNodeId()} `)), what.join('; '));
});

test('a slave says every 5 s that it is there, and is removed after 15 s; or as slaveTimeout and slaveHeartbeat say', async (t) => {
  const { cluster, client, ends } = await fake(t);
  const first = new MasterElection(client);
  const own = new MasterElection(client, 'own', 30_000, 10_000, 5_000, 'cms', 'connection', 40, 10);
  ends(first, own);
  await first.start();
  await own.start();
  assert.equal(cluster.state.processes.get(first.getNodeId()).ttl_ms, 15_000);
  assert.equal(cluster.state.processes.get(own.getNodeId()).ttl_ms, 40);
  const beat = `/v1/processes/${own.getNodeId()}/heartbeat`;
  await until(() => cluster.calls.filter((call) => call.path === beat).length > 2, 'its heartbeats');
  assert.throws(() => new MasterElection(client, 'own', 30_000, 10_000, 5_000, 'cms', 'connection', 5_000, 5_000), RangeError);
});

test('the heartbeat of 5 s', async () => {
  const clock = new ManualClock();
  const beats = [];
  const client = {
    backend: new MemoryBackend({ clock }),
    processes: { clock, all: async function* () {}, put: async () => ({}), delete: async () => {}, heartbeat: async () => beats.push(clock.now()) },
    feed: async function* ({ signal }) {
      yield { kind: 'bookmark' };
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    },
  };
  const first = new MasterElection(client);
  await first.start();
  await clock.advance(11_000);
  assert.deepEqual(beats, [5_000, 10_000]);
  await first.stop();
});

test('a heartbeat of a lapsed entry writes it anew, and never rejects', async (t) => {
  const { cluster, first } = await pair(t);
  await first.start();
  removeProcess(cluster.state, first.getNodeId());
  await first.updateProcessHeartbeat(first.getNodeId());
  assert.equal((await first.getAllProcesses()).length, 1);
  await first.updateProcessHeartbeat('nobody');
  assert.equal((await first.getAllProcesses()).length, 1);
  const told = event(first, 'error');
  cluster.fault = () => ({ status: 403, body: { code: 'forbidden' } });
  await first.updateSlaveHeartbeat();
  assert.equal((await told).code, 'forbidden');
  cluster.fault = () => undefined;
});

test('initialize without a client uses the nodes of the environment', async (t) => {
  const { cluster } = await fake(t);
  const before = process.env.ELDEST_URL;
  process.env.ELDEST_URL = cluster.urls.join(',');
  t.after(() => {
    if (before === undefined) delete process.env.ELDEST_URL;
    else process.env.ELDEST_URL = before;
  });
  const election = await initialize('cms-cluster', 30_000);
  assert.equal(election.getIsMaster(), true);
  await shutdown();
});
