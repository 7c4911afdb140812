import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Broker, EldestError, Indeterminate, PreconditionFailed, RoleNotHeld } from '../src/index.js';
import { rest } from '../src/clock.js';
import { ManualClock, MemoryBackend } from '../src/memory.js';
import { event, fake, recorded } from './help.js';

function two() {
  const clock = new ManualClock();
  const backend = new MemoryBackend({ clock });
  const broker = (address) => new Broker(backend, { address, instanceId: address });
  return { clock, backend, a: broker('0.0.0.0:8080'), b: broker('0.0.0.0:8081') };
}

test('tryElect: elected, already_leader, other_leader', async () => {
  const { a, b } = two();
  assert.deepEqual(await a.tryElect(), { status: 'elected' });
  assert.deepEqual(await a.tryElect(), { status: 'already_leader' });
  assert.deepEqual(await b.tryElect(), { status: 'other_leader', leader: '0.0.0.0:8080' });
  assert.deepEqual([a.isLeader, b.isLeader, a.token, b.token], [true, false, 1, null]);
  await a.stop();
  assert.deepEqual(await b.tryElect(), { status: 'elected' });
  await b.stop();
});

test('tryElect: conflict, where another was quicker', async (t) => {
  const { cluster, client } = await fake(t);
  const leader = { instance_id: 'z', address: null, metadata: null };
  cluster.fault = () => ({ status: 409, body: { code: 'role_held', outcome: 'conflict', role: 'broker', leader, token: 9, expires_in_ms: 1 } });
  assert.deepEqual(await client.broker().tryElect(), { status: 'conflict' });
});

test('heartbeats keep it; a broker that is silent for 10 s is followed by another', async () => {
  const { clock, backend, a, b } = two();
  await a.tryElect();
  for (let n = 0; n < 10; n += 1) await clock.advance(3_000);
  assert.equal(await a.checkLeadership(), true);
  backend.renew = async () => {
    throw new Indeterminate('cut off');
  };
  const lost = event(a, 'leader_lost');
  await clock.advance(10_000);
  await lost;
  assert.deepEqual(await b.tryElect(), { status: 'elected' });
  assert.equal(await a.checkLeadership(), false);
  await b.stop();
});

test('tryElect: a broker whose own heartbeat is stale is elected anew', async () => {
  const { clock, backend, a, b } = two();
  await a.tryElect();
  const { renew } = backend;
  backend.renew = async () => {
    throw new Indeterminate('cut off');
  };
  const lost = event(a, 'leader_lost');
  await clock.advance(10_000);
  await lost;
  backend.renew = renew;
  assert.deepEqual(await a.tryElect(), { status: 'elected' });
  assert.equal(a.token, 2);
  assert.deepEqual(await b.tryElect(), { status: 'other_leader', leader: '0.0.0.0:8080' });
  await a.stop();
});

test('tryElect: a broker that is back at its own address hears already_leader, once its earlier life has let go', async () => {
  const { clock, backend, a } = two();
  // The lease is all that its earlier life has left; the cluster ends it a second after the connection.
  await backend.acquire('broker', { instanceId: 'before', address: a.address, ttlMs: 10_000 });
  const asking = a.tryElect();
  await clock.advance(900);
  assert.equal(a.isLeader, false);
  backend.expire('broker');
  await clock.advance(300);
  assert.deepEqual(await asking, { status: 'already_leader' });
  assert.deepEqual([a.isLeader, a.token], [true, 2]);
  await a.stop();
});

test('tryElect: who lives at the same address keeps the role', async () => {
  const { clock, backend, a } = two();
  await backend.acquire('broker', { instanceId: 'twin', address: a.address, ttlMs: 10_000 });
  const asking = a.tryElect();
  await clock.advance(3_000);
  assert.deepEqual(await asking, { status: 'other_leader', leader: a.address });
  assert.deepEqual([a.isLeader, a.token], [false, null]);
});

test('stop ends a tryElect, and leaves nothing held', async () => {
  const { backend, a } = two();
  await backend.acquire('broker', { instanceId: 'twin', address: a.address, ttlMs: 10_000 });
  const asking = a.tryElect();
  await a.stop();
  backend.expire('broker');
  await assert.rejects(asking);
  assert.deepEqual([a.isLeader, (await backend.get('broker')).leader], [false, null]);
});

test('stop gives back what was never answered', async () => {
  const { backend, a } = two();
  const { acquire } = backend;
  backend.acquire = async (...asked) => {
    await acquire.apply(backend, asked);
    throw new Indeterminate('no answer');
  };
  await assert.rejects(a.tryElect(), Indeterminate);
  assert.equal((await backend.get('broker')).leader.instance_id, a.id);
  await a.stop();
  assert.equal((await backend.get('broker')).leader, null);
});

test('stop gives back what is granted after it was called', async () => {
  const { clock, backend, a } = two();
  const { acquire } = backend;
  // A node goes on with a call whose connection is closed.
  backend.acquire = (role, { signal, ...wanted }) => {
    const granted = rest(clock, 100).then(() => acquire.call(backend, role, wanted));
    return Promise.race([granted, new Promise((_, fail) => signal.addEventListener('abort', () => fail(signal.reason)))]);
  };
  const asking = assert.rejects(a.tryElect(), /stopped/);
  const stopped = a.stop();
  await clock.advance(100);
  await Promise.all([asking, stopped]);
  assert.equal((await backend.get('broker')).leader, null);
});

test('stop ends a tryElect that is being confirmed, and gives back what it was granted', async () => {
  const { clock, backend, a } = two();
  const { acquire } = backend;
  // The answer has taken most of the lease.
  backend.acquire = async (...asked) => {
    const grant = await acquire.apply(backend, asked);
    await clock.advance(7_000);
    return grant;
  };
  backend.renew = (_role, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  const asking = a.tryElect();
  await new Promise(setImmediate);
  await a.stop();
  await assert.rejects(asking);
  assert.deepEqual([a.isLeader, (await backend.get('broker')).leader], [false, null]);
});

test('stop: while the cluster is away it takes a second, and says that the role was not released', async (t) => {
  const { cluster, client } = await fake(t, 2);
  const broker = client.broker();
  await broker.tryElect();
  cluster.fault = () => 'silent';
  const began = performance.now();
  await assert.rejects(broker.stop(), EldestError);
  assert.ok(performance.now() - began < 2_500, 'it took too long');
});

test('checkLeadership asks the cluster: who was replaced learns of it', async () => {
  const { backend, a } = two();
  await a.tryElect();
  await backend.elect('broker', { instanceId: 'z', ttlMs: 10_000 });
  assert.equal(await a.checkLeadership(), false);
  assert.equal(a.isLeader, false);
});

test('StateDoc: changes of many writers are all there', async (t) => {
  const { client } = await fake(t);
  const doc = client.stateDoc('queue', { initial: { jobs: [] } });
  assert.deepEqual(await doc.read(), { value: { jobs: [] }, rev: null });
  await Promise.all([1, 2, 3, 4, 5].map((job) => doc.update((state) => ({ jobs: [...state.jobs, job] }))));
  assert.deepEqual((await doc.read()).value.jobs.sort(), [1, 2, 3, 4, 5]);
});

test('StateDoc: create only where there is none', async (t) => {
  const { client } = await fake(t);
  const doc = client.stateDoc('queue');
  await doc.create({ n: 1 });
  await assert.rejects(doc.create({ n: 2 }), PreconditionFailed);
});

test('StateDoc: nothing is written where the change is undefined; tries are bounded', async (t) => {
  const { cluster, client } = await fake(t);
  const doc = client.stateDoc('queue', { triesMost: 3 });
  await doc.update(() => undefined);
  assert.equal(cluster.state.index, 0);
  await doc.create(0);
  let calls = 0;
  const meddled = doc.update(async () => {
    calls += 1;
    await client.docs.put('queue', calls);
    return -1;
  });
  await assert.rejects(meddled, PreconditionFailed);
  assert.equal(calls, 3);
});

/** Two brokers and their state. The first was stopped while the second was elected, and has heard nothing of it. */
async function replaced(t) {
  const { cluster, client } = await fake(t);
  const [a, b] = ['a:1', 'b:1'].map((address) => client.broker({ role: 'jobs/é', address, heartbeatEveryMs: 3_000, ttlMs: 10_000 }));
  t.after(() => Promise.all([a.stop(), b.stop()].map((stopping) => stopping.catch(() => {}))));
  const [first, second] = [a, b].map((broker) => client.stateDoc('queue', { initial: [], broker }));
  await a.tryElect();
  const known = await first.update((jobs) => [...jobs, 1]);
  cluster.state.roles.expire(a.role);
  await b.tryElect();
  assert.deepEqual([a.isLeader, b.isLeader], [true, true]);
  return { cluster, a, b, first, second, known };
}

test('StateDoc: a broker that was replaced changes nothing, hears that it has lost, and writes no more', async (t) => {
  const { cluster, a, b, first, second, known } = await replaced(t);
  const heard = recorded(a, ['leader_lost']);
  const refused = await first.swap([1, 2], known.rev).catch((error) => error);
  assert.ok(refused instanceof RoleNotHeld);
  assert.deepEqual([refused.role, refused.retryable, heard, a.isLeader, a.token], ['jobs/é', false, [['leader_lost']], false, null]);
  const puts = () => cluster.calls.filter(({ method }) => method === 'PUT').length;
  assert.equal(puts(), 2, 'one of them was refused, and not made again');
  for (const write of [() => first.update((jobs) => [...jobs, 3]), () => first.swap([], known.rev), () => first.create([])]) {
    await assert.rejects(write, RoleNotHeld);
  }
  assert.equal(puts(), 2);
  assert.deepEqual((await second.update((jobs) => [...jobs, 4])).value, [1, 4]);
  assert.deepEqual([(await first.read()).value, b.isLeader], [[1, 4], true]);
});

test('StateDoc: a broker that leads anew meanwhile keeps that lead', async (t) => {
  const { cluster, a, b, first, known } = await replaced(t);
  cluster.fault = async ({ method }) => {
    if (method !== 'PUT') return;
    cluster.fault = () => undefined;
    await a.checkLeadership();
    await b.stop();
    await a.tryElect();
  };
  await assert.rejects(first.swap([1, 2], known.rev), RoleNotHeld);
  assert.equal(a.isLeader, true);
  assert.deepEqual((await first.swap([1, 2], known.rev)).value, [1, 2]);
});
