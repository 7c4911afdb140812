import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from '../src/index.js';
import { ManualClock } from '../src/memory.js';
import { removeProcess, tellReaders } from './fake.js';
import { event, fake, recorded, until } from './help.js';

test('register, all, byRole, byCapability, slaves, slave, slaveCount, unregister', async (t) => {
  const { client } = await fake(t);
  const one = client.registry({ id: 'p1', identifier: 'backend', capabilities: { gpu: true }, metadata: { zone: 1 } });
  const two = client.registry({ id: 'p2', role: 'master', capabilities: ['scan'] });
  const entry = await one.register();
  await two.register();
  assert.deepEqual([entry.identifier, entry.channel, entry.ttl_ms], ['backend', 'worker:slave:p1', 45_000]);
  assert.equal(one.channel, entry.channel);
  const ids = async (list) => (await list).map((process) => process.id);
  assert.deepEqual(await ids(one.all()), ['p1', 'p2']);
  assert.deepEqual(await ids(one.byRole('master')), ['p2']);
  assert.deepEqual(await ids(one.byCapability('gpu')), ['p1']);
  assert.deepEqual(await ids(one.byCapability('scan')), ['p2']);
  assert.deepEqual(await ids(one.byIdentifier('backend')), ['p1']);
  assert.deepEqual(await ids(one.slaves()), ['p1']);
  assert.equal((await one.slave('p1')).metadata.zone, 1);
  assert.equal(await one.slave('p2'), null);
  assert.equal(await one.slave('nobody'), null);
  assert.equal(await one.slaveCount(), 1);
  assert.equal((await one.master()).id, 'p2');
  await one.unregister();
  await one.unregister();
  assert.deepEqual(await ids(two.all()), ['p2']);
  await two.stop();
  assert.equal((await client.processes.list()).items.length, 0);
});

test('heartbeats go on, and register anew after a 404', async (t) => {
  const { cluster, client } = await fake(t);
  const registry = client.registry({ id: 'p', heartbeatEveryMs: 5 });
  await registry.register({ capabilities: ['x'] });
  const beats = () => cluster.calls.filter((call) => call.path === '/v1/processes/p/heartbeat').length;
  await until(() => beats() > 2, 'heartbeats');
  removeProcess(cluster.state, 'p');
  await until(() => cluster.state.processes.has('p'), 'the new registration');
  assert.deepEqual(cluster.state.processes.get('p').capabilities, ['x']);
  await registry.unregister();
  const made = beats();
  await client.docs.put('something', 1);
  assert.equal(beats(), made);
});

test('the defaults: an entry lives for 45 s, and a heartbeat is sent every 10 s', async () => {
  const clock = new ManualClock();
  const sent = [];
  const processes = {
    clock,
    put: async (id, { role, ttlMs }) => sent.push(['put', role, ttlMs]),
    heartbeat: async () => sent.push(['heartbeat', clock.now()]),
    delete: async () => {},
  };
  const registry = new Registry({ processes });
  await registry.register();
  await clock.advance(9_999);
  assert.deepEqual(sent, [['put', 'slave', 45_000]]);
  await clock.advance(20_001);
  assert.deepEqual(sent.slice(1), [10_000, 20_000, 30_000].map((at) => ['heartbeat', at]));
  await registry.stop();
});

test('a heartbeat that fails is told of, and the next one follows', async (t) => {
  const { cluster, client } = await fake(t);
  const registry = client.registry({ id: 'p', heartbeatEveryMs: 5 });
  await registry.register();
  cluster.fault = () => ({ status: 403, body: { code: 'forbidden' } });
  assert.equal((await event(registry, 'heartbeat_error')).code, 'forbidden');
  cluster.fault = () => undefined;
  const asked = cluster.calls.length;
  await until(() => cluster.calls.length > asked, 'another heartbeat');
  await registry.stop();
});

test('slave_registered and slave_removed, once each, over a change of nodes', async (t) => {
  const { cluster, client } = await fake(t, 2);
  const registry = client.registry();
  const heard = recorded(registry, ['slave_registered', 'slave_removed']);
  const told = () => heard.map(([name, value]) => [name, value.id ?? value]);
  await client.processes.put('before', { role: 'slave' });
  await registry.watch();
  await client.processes.put('s1', { role: 'slave' });
  await client.processes.put('m', { role: 'master' });
  await until(() => heard.length === 1, 'the first');
  cluster.kill(0);
  await client.processes.put('s2', { role: 'slave' });
  removeProcess(cluster.state, 's1');
  await until(() => heard.length === 3, 'the others');
  assert.deepEqual(told(), [['slave_registered', 's1'], ['slave_registered', 's2'], ['slave_removed', 's1']]);
  await registry.stop();
});

test('a process that turns slave has come, one that turns from it has gone, and one that says something else has changed', async (t) => {
  const { client } = await fake(t);
  const registry = client.registry();
  const heard = recorded(registry, ['slave_registered', 'slave_changed', 'slave_removed']);
  await client.processes.put('p', { role: 'slave', metadata: 1 });
  await registry.watch();
  const steps = [
    [{ role: 'slave', metadata: 2 }, ['slave_changed', 'p']],
    [{ role: 'slave', metadata: 2 }, null],
    [{ role: 'master', metadata: 3 }, ['slave_removed', 'p']],
    [{ role: 'master', metadata: 4 }, null],
    [{ role: 'slave', metadata: 4 }, ['slave_registered', 'p', 'master']],
  ];
  const expected = [];
  for (const [entry, told] of steps) {
    await client.processes.put('p', entry);
    if (told) expected.push(told);
    await until(() => heard.length === expected.length, `${told}`);
  }
  assert.deepEqual(heard.map(([name, value, ...more]) => [name, value.id ?? value, ...more]), expected);
  await registry.stop();
});

test('a process that the filter lets pass no more has gone', async (t) => {
  const { client } = await fake(t);
  const registry = client.registry({ filter: (process) => process.metadata === 'mine' });
  const heard = recorded(registry, ['slave_registered', 'slave_removed']);
  await registry.watch();
  await client.processes.put('p', { role: 'slave', metadata: 'mine' });
  await until(() => heard.length === 1, 'slave_registered');
  await client.processes.put('p', { role: 'slave', metadata: 'another' });
  await until(() => heard.length === 2, 'slave_removed');
  assert.deepEqual(heard[1], ['slave_removed', 'p']);
  await registry.stop();
});

test('a state that has become another one is read anew', async (t) => {
  const { cluster, client } = await fake(t);
  const registry = client.registry();
  const heard = recorded(registry, ['slave_registered', 'slave_changed', 'slave_removed']);
  await client.processes.put('gone', { role: 'slave' });
  await client.processes.put('other', { role: 'slave' });
  await registry.watch();
  const { processes } = cluster.state;
  processes.set('other', { ...processes.get('other'), metadata: 2 });
  processes.set('new', { ...processes.get('gone'), id: 'new' });
  processes.delete('gone');
  tellReaders(cluster, { kind: 'new_state', reason: 'restored', changes_told: false });
  await until(() => heard.length === 3, 'all of them');
  const told = heard.map(([name, value]) => [name, value.id ?? value]);
  assert.deepEqual(told, [['slave_removed', 'gone'], ['slave_registered', 'new'], ['slave_changed', 'other']]);
  await registry.stop();
});

test('what is compacted meanwhile is read anew', async (t) => {
  const { cluster, client } = await fake(t);
  const registry = client.registry();
  const heard = recorded(registry, ['slave_registered', 'error']);
  await registry.watch();
  await until(() => cluster.state.readers.size === 1, 'the reader');
  cluster.fault = (call) => (call.path === '/v1/feed' ? { status: 503, body: { code: 'catching_up', retryable: true } } : undefined);
  cluster.cut(0);
  await client.processes.put('s', { role: 'slave' });
  cluster.state.compacted = 10;
  cluster.state.index = 10;
  cluster.fault = () => undefined;
  await until(() => heard.some(([name]) => name === 'slave_registered'), 'the slave');
  assert.ok(heard.some(([name, error]) => name === 'error' && error.code === 'feed_compacted'));
  await registry.stop();
});

test('master: the process that holds the role', async (t) => {
  const { client } = await fake(t);
  const registry = client.registry({ leaderOf: 'r' });
  assert.equal(await registry.master(), null);
  const election = client.election('r', { watch: false });
  await election.start();
  await client.processes.put(election.id, { role: 'slave' });
  assert.equal((await registry.master()).id, election.id);
  await election.stop();
});
