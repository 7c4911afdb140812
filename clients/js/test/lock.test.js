import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LockGuard, RoleHeld } from '../src/index.js';
import { ManualClock, MemoryBackend } from '../src/memory.js';
import { fake, until } from './help.js';

test('a lock has a token, and is another\'s after release', async (t) => {
  const { client } = await fake(t);
  const guard = await client.lock('job');
  assert.deepEqual([guard.held, guard.role], [true, 'job']);
  await assert.rejects(client.lock('job'), RoleHeld);
  await guard.release();
  assert.deepEqual([guard.held, guard.lost.aborted], [false, true]);
  const next = await client.lock('job');
  assert.ok(next.token > guard.token);
  await next[Symbol.asyncDispose]();
  assert.equal((await client.roles.get('job')).leader, null);
});

test('waits for the lock, and has it when the other lets go', async (t) => {
  const { cluster, client } = await fake(t);
  const first = await client.lock('job');
  const waiting = client.lock('job', { waitMs: 30_000 });
  await until(async () => (await client.roles.get('job')).waiting === 1, 'a waiter');
  await first.release();
  const second = await waiting;
  assert.equal(second.held, true);
  // The lock was waited for, so it was renewed before it was believed.
  assert.ok(cluster.calls.some((call) => call.path === '/v1/roles/job/renew'));
  await second.release();
});

test('lost: the signal aborts, and a release after it is no error', async () => {
  const clock = new ManualClock();
  const backend = new MemoryBackend({ clock });
  const guard = await LockGuard.acquire(backend, 'job', { ttlMs: 9_000 });
  backend.expire('job');
  await clock.advance(3_000);
  assert.deepEqual([guard.held, guard.lost.aborted], [false, true]);
  await guard.release();
});

test('renewed in the background', async () => {
  const clock = new ManualClock();
  const backend = new MemoryBackend({ clock });
  const guard = await LockGuard.acquire(backend, 'job', { ttlMs: 9_000 });
  for (let n = 0; n < 10; n += 1) await clock.advance(3_000);
  assert.equal(guard.held, true);
  await guard.release();
});
