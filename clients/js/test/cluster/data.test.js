import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, NotFound, PreconditionFailed } from '../../src/index.js';
import { event, recorded, until } from '../help.js';
import { client, nodes, unique, Way } from './stage.js';

test('documents: compare and swap, at any node', async () => {
  const key = `${unique('doc')}/ü b%`;
  const { rev, created } = await client().docs.put(key, { n: 1 }, { ifAbsent: true });
  assert.equal(created, true);
  assert.deepEqual(await client(1).docs.get(key), { key, value: { n: 1 }, rev });
  const next = await client(2).docs.put(key, { n: 2 }, { ifRev: rev });
  const late = await client().docs.put(key, { n: 3 }, { ifRev: rev }).catch((error) => error);
  assert.ok(late instanceof PreconditionFailed);
  assert.equal(late.currentRev, next.rev);
  await client(1).docs.delete(key, { ifRev: next.rev });
  await assert.rejects(client(2).docs.get(key), NotFound);
});

test('documents: some end by themselves', async () => {
  const prefix = unique('ends');
  const feed = client(1).feed({ kinds: ['change'], prefix });
  const told = [];
  const reading = (async () => {
    for await (const { key, value, reason } of feed) told.push([key, reason ?? value]);
  })();
  await until(() => feed.lastId !== null, 'the first bookmark');
  const gone = (key, reason) => told.some(([known, why]) => known === `${prefix}/${key}` && why === reason);
  await client().docs.put(`${prefix}/ttl`, 1, { ttlMs: 5_000 });
  assert.ok((await client(2).docs.renew(`${prefix}/ttl`)) > 0);
  await until(() => gone('ttl', 'expired'));
  await assert.rejects(client().docs.renew(`${prefix}/ttl`), NotFound);

  const [role, id] = [unique('role'), unique('process')];
  // Another client gives the role back with the same secret.
  const holder = client();
  const { token } = await holder.roles.acquire(role, { instanceId: 'a', ttlMs: 30_000 });
  const refused = await client(1).docs.put(`${prefix}/role`, 2, { with: { role, token } }).catch((error) => error);
  assert.equal(refused.code, 'forbidden');
  await client(1, { secret: 'other' }).processes.put(`${id}/guarded`, { guarded: true });
  await client().docs.put(`${prefix}/guarded`, 2, { with: { process: `${id}/guarded`, secret: 'other' } });
  await holder.docs.put(`${prefix}/role`, 2, { with: { role, token } });
  await holder.processes.put(id, { identifier: 'worker' });
  await client().docs.put(`${prefix}/process`, 3, { with: { process: id } });
  await holder.roles.release(role, { instanceId: 'a', token });
  await holder.processes.delete(id);
  await until(() => gone('role', 'lease_ended') && gone('process', 'lease_ended'));
  const late = await client().docs.put(`${prefix}/role`, 4, { with: { role, token } }).catch((error) => error);
  assert.equal(late.code, 'lease_not_held');
  await feed.close();
  await reading;
});

test('documents: all of a prefix', async () => {
  const prefix = `${unique('many')}/`;
  const put = (n) => ({ storage_cmd: 'PutDoc', payload: { key: `${prefix}${n}`, value: n } });
  await client().batch(Array.from({ length: 150 }, (_, n) => put(n)));
  let count = 0;
  for await (const doc of client(1).docs.all({ prefix })) count += doc.key.startsWith(prefix) ? 1 : 0;
  assert.equal(count, 150);
});

test('commands: users are read back', async () => {
  const name = unique('user');
  const { result } = await client().command('CreateUser', { name, group: 'staff' });
  assert.equal(result.name, name);
  assert.equal((await client(1).users.get(name)).group, 'staff');
  assert.deepEqual((await client(2).users.list({ prefix: name })).items.map((user) => user.name), [name]);
  assert.equal((await client().status()).cluster.length > 0, true);
});

test('a write whose answer is lost happens once', async (t) => {
  const key = unique('once');
  const way = await Way.to(nodes[0], t);
  way.swallow = true;
  const through = new Client([way.url, ...nodes.slice(1)]);
  // The second attempt gets the first one's result; otherwise it would find the document there.
  assert.equal((await through.docs.put(key, 1, { ifAbsent: true })).created, true);
});

test('StateDoc: changes of many writers are all there', async () => {
  const key = unique('state');
  const add = (n) => client(n).stateDoc(key, { initial: [] }).update((list) => [...list, n]);
  await Promise.all([0, 1, 2, 3].map(add));
  assert.deepEqual((await client().stateDoc(key).read()).value.sort(), [0, 1, 2, 3]);
});

test('feed: goes on at another node, nothing missed, nothing twice', async (t) => {
  const prefix = `${unique('feed')}/`;
  const way = await Way.to(nodes[0], t);
  const opened = [];
  const feed = new Client([way.url, ...nodes.slice(1)]).feed({ kinds: ['change'], prefix, onOpen: () => opened.push(1) });
  const told = [];
  const reading = (async () => {
    for await (const event of feed) {
      told.push(event.value);
      if (told.length === 40) return;
    }
  })();
  await until(() => feed.lastId !== null, 'the first bookmark');
  for (let n = 0; n < 40; n += 1) {
    if (n === 20) way.close();
    await client(n).docs.put(`${prefix}${n}`, n);
  }
  await reading;
  assert.deepEqual(told, Array.from({ length: 40 }, (_, n) => n));
  assert.ok(opened.length >= 2, 'it was opened again');
});

test('feed: an id of one node is good at another', async () => {
  const prefix = `${unique('resume')}/`;
  const feed = client(0).feed({ kinds: ['change'], prefix });
  const first = feed.next();
  await until(() => feed.lastId !== null, 'the first bookmark');
  await client().docs.put(`${prefix}a`, 'a');
  assert.equal((await first).value.value, 'a');
  await feed.close();
  await client().docs.put(`${prefix}b`, 'b');
  const other = client(1).feed({ kinds: ['change'], prefix, since: feed.lastId });
  assert.equal((await other.next()).value.value, 'b');
  await other.close();
});

test('channels: a message reaches a listener at another node', async () => {
  const name = unique('channel');
  const listener = client(1).channels.listen(name);
  const message = listener.next();
  await until(async () => (await client().channels.publish(name, { job: 17 })) > 0, 'a listener');
  assert.deepEqual((await message).value, { job: 17 });
  await listener.close();
});

test('registry: processes come, are found, and go', async () => {
  const identifier = unique('registry');
  const mine = (process) => process.identifier === identifier;
  const watching = client(1).registry({ filter: mine });
  const heard = recorded(watching, ['slave_registered', 'slave_removed']);
  await watching.watch();
  const slave = client().registry({ identifier, capabilities: { gpu: true }, metadata: { zone: 1 } });
  const entry = await slave.register();
  assert.deepEqual([entry.channel, entry.ttl_ms], [`worker:slave:${slave.id}`, 45_000]);
  await until(() => heard.length === 1, 'slave_registered');
  assert.deepEqual([heard[0][0], heard[0][1].metadata], ['slave_registered', { zone: 1 }]);
  const reader = client(2).registry({ filter: mine });
  assert.deepEqual((await reader.byIdentifier(identifier)).map((one) => one.id), [slave.id]);
  assert.equal(await reader.slaveCount(), 1);
  assert.equal((await reader.byCapability('gpu'))[0].id, slave.id);
  await slave.heartbeat();
  await slave.register({ role: 'master' });
  await until(() => heard.length === 2, 'slave_removed');
  await slave.register({ role: 'slave' });
  await until(() => heard.length === 3, 'slave_registered');
  assert.deepEqual([heard[1], heard[2][0], heard[2][2]], [['slave_removed', slave.id], 'slave_registered', 'master']);
  await slave.stop();
  await until(() => heard.length === 4, 'slave_removed');
  assert.deepEqual(heard[3], ['slave_removed', slave.id]);
  assert.equal(await reader.slave(slave.id), null);
  await watching.stop();
});

test('registry: one that is removed registers anew', async () => {
  // A process with a chosen name is guarded by no secret: others may remove it.
  const slave = client().registry({ id: unique('removed'), heartbeatEveryMs: 50, ttlMs: 60_000 });
  await slave.register({ role: 'slave' });
  await client(1).processes.delete(slave.id);
  await until(async () => (await client(1).registry().process(slave.id)) !== null, 'the new registration');
  await slave.stop();
});

test('registry: one that says nothing more is removed', async () => {
  const watching = client(1).registry();
  await watching.watch();
  const id = unique('silent');
  const gone = new Promise((resolve) => watching.on('slave_removed', (one) => one === id && resolve()));
  await client().processes.put(id, { role: 'slave', ttlMs: 1_000 });
  await gone;
  await watching.stop();
});

test('registry: the master is who holds the role', async () => {
  const role = unique('master');
  const election = client().election(role, { watch: false });
  const acquired = event(election, 'leader_acquired');
  await election.start();
  await acquired;
  await client().processes.put(election.id, { role: 'worker', ttlMs: 60_000 });
  assert.equal((await client(1).registry({ leaderOf: role }).master()).id, election.id);
  await client().processes.delete(election.id);
  await election.stop();
});
