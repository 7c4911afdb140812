import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getMasterElection, initialize, MasterElection, shutdown } from '../src/master-election.js';
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

test('a master that turns slave is told to the next master as slave-registered, which is itself a slave no more', async (t) => {
  const all = await pair(t);
  const { first, second } = all;
  await first.start();
  await second.start();
  const heard = recorded(second, ['slave-registered', 'slave-removed']);
  await replaced(all, event(second, 'master-acquired'));
  // What it hears late of its own registration as a slave is over then, too.
  const told = (name, id) => heard.some(([is, value]) => is === name && (value.nodeId ?? value) === id);
  await until(() => told('slave-registered', first.getNodeId()) && told('slave-removed', second.getNodeId()), 'both');
  assert.equal(await second.getSlaveCount(), 1);
});

test('a master that turns slave before the next one knows that it is master is told to it all the same', async (t) => {
  const all = await pair(t);
  const { cluster, client, first, second } = all;
  await first.start();
  await second.start();
  const order = recorded(second, ['master-acquired', 'slave-registered']);
  // Somebody who is not there is named: for as long as it holds the lock nobody is master.
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
