import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Indeterminate, PreconditionFailed, RoleHeld, RoleNotHeld, LeaseLost, Unavailable } from '../src/index.js';
import { systemClock } from '../src/clock.js';
import { fake, until } from './help.js';

test('documents: put, get, compare and swap, delete', async (t) => {
  const { client } = await fake(t);
  const { rev } = await client.docs.put('app/a b', { n: 1 }, { ifAbsent: true });
  assert.deepEqual(await client.docs.get('app/a b'), { key: 'app/a b', value: { n: 1 }, rev });
  const next = await client.docs.put('app/a b', { n: 2 }, { ifRev: rev });
  const late = await client.docs.put('app/a b', { n: 3 }, { ifRev: rev }).catch((error) => error);
  assert.ok(late instanceof PreconditionFailed);
  assert.equal(late.currentRev, next.rev);
  await client.docs.delete('app/a b', { ifRev: next.rev });
  assert.deepEqual((await client.docs.list({ prefix: 'app/' })).items, []);
});

test('documents: null is a value; a condition on nothing is refused', async (t) => {
  const { client } = await fake(t);
  await client.docs.put('n', null);
  assert.equal((await client.docs.get('n')).value, null);
  assert.throws(() => client.docs.put('n', 1, { ifRev: null }), TypeError);
  assert.throws(() => client.docs.put('n', undefined), TypeError);
  await assert.rejects(async () => client.docs.put('..', 1), TypeError);
});

test('documents: written and deleted in the name of a role', async (t) => {
  const { cluster, client } = await fake(t);
  const lock = await client.lock('jobs/é; 1');
  await client.docs.put('k', 1, { ifRole: lock });
  assert.equal(cluster.calls.at(-1).headers['if-role'], `jobs%2F%C3%A9%3B%201; token=${lock.token}`);
  const former = { role: lock.role, token: lock.token - 1 };
  await assert.rejects(client.docs.put('k', 2, { ifRole: former }), RoleNotHeld);
  await assert.rejects(client.docs.delete('k', { ifRole: former }), RoleNotHeld);
  assert.equal((await client.docs.get('k')).value, 1);
  await client.docs.delete('k', { ifRole: lock });
  const asked = cluster.calls.length;
  // A holder that has lost its role has no token, and a write that names no holder would be a plain write.
  await assert.rejects(client.docs.put('k', 1, { ifRole: { role: 'r', token: null } }), RoleNotHeld);
  for (const ifRole of [{ role: 'r' }, { role: 'r', token: '7' }, { token: 7 }]) {
    await assert.rejects(client.docs.put('k', 1, { ifRole }), TypeError);
  }
  assert.equal(cluster.calls.length, asked);
  await lock.release();
});

test('documents: one that ends with a lease shows the secret of that lease', async (t) => {
  const { cluster, client } = await fake(t);
  const shown = () => cluster.calls.at(-1).headers['eldest-secret'];
  const { token } = await client.roles.acquire('r', { instanceId: 'a' });
  const own = shown();
  await client.docs.put('k', 1, { with: { role: 'r', token } });
  assert.deepEqual([shown(), typeof own], [own, 'string']);
  await client.registry().register();
  await client.docs.put('k', 1, { with: { process: 'p' } });
  assert.equal(shown(), own);
  await client.docs.put('k', 1, { with: { process: 'p', secret: 'its own' } });
  assert.equal(shown(), 'its own');
  await client.docs.put('k', 1);
  assert.equal(shown(), undefined);
});

test('documents: all of a prefix, over pages', async (t) => {
  const { cluster, client } = await fake(t);
  for (let n = 100; n < 350; n += 1) cluster.state.docs.set(`k${n}`, { value: n, rev: '1' });
  const found = [];
  for await (const doc of client.docs.all({ prefix: 'k' })) found.push(doc.value);
  assert.equal(found.length, 250);
  assert.equal(found.at(-1), 349);
});

test('users and elections: a list of those whose names begin so', async (t) => {
  const { cluster, client } = await fake(t);
  const asked = [];
  cluster.fault = ({ path, query }) => {
    asked.push(`${path}?${query}`);
    return { status: 200, body: { items: [], next: null } };
  };
  assert.deepEqual(await client.users.list({ prefix: 'a&b', limit: 2, after: 'a' }), { items: [], next: null });
  await client.elections.list({ prefix: 'board' });
  assert.deepEqual(asked, ['/v1/users?prefix=a%26b&limit=2&after=a', '/v1/elections?prefix=board']);
});

test('commands: one, and a batch', async (t) => {
  const { cluster, client } = await fake(t);
  const { result } = await client.command('CreateUser', { name: 'ann' });
  assert.deepEqual(result, { name: 'ann' });
  const { results } = await client.batch([{ storage_cmd: 'CreateUser', payload: { name: 'bob' } }]);
  assert.deepEqual(results, [{ name: 'bob' }]);
  assert.deepEqual(cluster.calls[0].body, { storage_cmd: 'CreateUser', payload: { name: 'ann' } });
});

test('commands: many at once', async (t) => {
  const { cluster, client } = await fake(t);
  const names = Array.from({ length: 2400 }, (_, n) => ['Put', 'Fly', 'Busy', 'Lost'][n % 4]);
  const told = await client.bulk(names.map((storage_cmd, n) => ({ storage_cmd, payload: { n } })));
  for (const [n, said] of told.entries()) {
    if (names[n] === 'Fly') assert.equal(said.code, 'unknown_command');
    else assert.deepEqual(said.result, { n });
  }
  // Three chunks, the last one shorter, and each again for the refused commands.
  assert.equal(cluster.calls.length, 6);
  assert.deepEqual(await client.bulk([]), []);
});

test('commands: what is left of many when the time is over', async (t) => {
  const { cluster, client } = await fake(t);
  cluster.fault = () => 'cut';
  const commands = Array.from({ length: 1025 }, () => ({ storage_cmd: 'Put', payload: {} }));
  const told = await client.bulk(commands, { deadlineMs: 500 });
  assert.ok(told[0] instanceof Indeterminate);
  assert.ok(told[1024] instanceof Unavailable);
});

test('commands: a refusal of the whole request removes no doubt', async (t) => {
  const { cluster, client } = await fake(t);
  const revoked = { status: 401, body: { status: 401, code: 'unauthorized', detail: 'revoked', retryable: false } };
  cluster.fault = () => (cluster.calls.length > 1 ? revoked : undefined);
  const told = await client.bulk(['Lost', 'Busy'].map((storage_cmd) => ({ storage_cmd, payload: {} })));
  assert.ok(told[0] instanceof Indeterminate, told[0]);
  assert.equal(told[1].code, 'unauthorized');
});

test('roles: the calls as they are', async (t) => {
  const { client } = await fake(t);
  const grant = await client.roles.acquire('r', { instanceId: 'a', address: 'here:1', metadata: { zone: 1 } });
  assert.equal(grant.outcome, 'elected');
  assert.deepEqual(grant.leader, { instance_id: 'a', address: 'here:1', metadata: { zone: 1 } });
  const held = await client.roles.acquire('r', { instanceId: 'b' }).catch((error) => error);
  assert.ok(held instanceof RoleHeld);
  assert.deepEqual([held.outcome, held.leader.instance_id, held.token], ['other_leader', 'a', grant.token]);
  assert.deepEqual(await client.roles.check('r', grant.token), { valid: true, token: grant.token });
  await client.roles.release('r', { instanceId: 'a', token: grant.token });
  await assert.rejects(client.roles.renew('r', { instanceId: 'a', token: grant.token }), LeaseLost);
  assert.equal((await client.roles.get('r')).leader, null);
});

test('roles: an acquire counts from its first attempt, a renewal from the one that was answered', async (t) => {
  const { cluster, client } = await fake(t);
  let arrived = [];
  cluster.fault = () => (arrived.push(systemClock.now()) === 1 ? 'apply-cut' : undefined);
  const { token, sentAt } = await client.roles.acquire('r', { instanceId: 'a' });
  assert.ok(arrived.length === 2 && sentAt <= arrived[0]);
  arrived = [];
  const renewal = await client.roles.renew('r', { instanceId: 'a', token });
  assert.ok(arrived.length === 2 && renewal.sentAt > arrived[0] && renewal.sentAt <= arrived[1]);
});

test('roles: a release that is lost on its way back has released', async (t) => {
  const { cluster, client } = await fake(t);
  const { token } = await client.roles.acquire('r', { instanceId: 'a' });
  let n = 0;
  cluster.fault = () => (n++ === 0 ? 'apply-cut' : undefined);
  await client.roles.release('r', { instanceId: 'a', token });
  assert.equal(n, 2);
  await assert.rejects(client.roles.release('r', { instanceId: 'a', token }), LeaseLost);
});

test('channels: a message reaches who listens, at another node too', async (t) => {
  const { cluster, client } = await fake(t, 2);
  const listener = client.channels.listen('worker:slave:7');
  const first = listener.next();
  await until(() => cluster.state.listeners.get('worker:slave:7')?.size === 1, 'a listener');
  assert.equal(await client.channels.publish('worker:slave:7', { job: 17 }), 1);
  assert.deepEqual((await first).value, { job: 17 });
  const second = listener.next();
  cluster.kill(0);
  await until(() => cluster.calls.some((call) => call.method === 'GET' && call.node === 1), 'the other node');
  await until(async () => (await client.channels.publish('worker:slave:7', { job: 18 })) > 0, 'a listener there');
  assert.deepEqual((await second).value, { job: 18 });
  await listener.close();
});

test('channels: a message whose outcome is unknown is not sent again', async (t) => {
  const { cluster, client } = await fake(t, 2);
  cluster.fault = () => 'apply-cut';
  await assert.rejects(client.channels.publish('c', 1), Indeterminate);
  assert.equal(cluster.calls.length, 1);
});
