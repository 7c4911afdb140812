import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LeaseLost } from '../src/index.js';
import { ManualClock, MemoryBackend } from '../src/memory.js';

const TTL = { ttlMs: 10_000 };

function store() {
  const clock = new ManualClock();
  return { clock, backend: new MemoryBackend({ clock }) };
}

test('a lease lapses after its ttl, and not before', async () => {
  const { clock, backend } = store();
  const { token } = await backend.acquire('r', { instanceId: 'a', ...TTL });
  await clock.advance(9_999);
  assert.equal((await backend.acquire('r', { instanceId: 'b', ...TTL })).outcome, 'other_leader');
  await clock.advance(1);
  const next = await backend.acquire('r', { instanceId: 'b', ...TTL });
  assert.equal(next.outcome, 'elected');
  assert.ok(next.token > token);
  await assert.rejects(backend.renew('r', { instanceId: 'a', token, ...TTL }), LeaseLost);
});

test('the same instance is already the leader, with the same token', async () => {
  const { backend } = store();
  const first = await backend.acquire('r', { instanceId: 'a', ...TTL });
  const again = await backend.acquire('r', { instanceId: 'a', ...TTL });
  assert.deepEqual([again.outcome, again.token], ['already_leader', first.token]);
});

test('who waits is granted the role in turn, the higher priority first', async () => {
  const { clock, backend } = store();
  const { token } = await backend.acquire('r', { instanceId: 'a', ...TTL });
  const order = [];
  const wait = (instanceId, priority) =>
    backend.acquire('r', { instanceId, priority, ...TTL, waitMs: 60_000 }).then((grant) => order.push([instanceId, grant.outcome, grant.waited]));
  const all = [wait('low', 0), wait('high', 1), wait('low2', 0)];
  await backend.release('r', { instanceId: 'a', token });
  await clock.advance(10_000);
  await clock.advance(10_000);
  await Promise.all(all);
  assert.deepEqual(order, [['high', 'elected', true], ['low', 'elected', true], ['low2', 'elected', true]]);
});

test('a wait ends with a refusal, or with its signal', async () => {
  const { clock, backend } = store();
  await backend.acquire('r', { instanceId: 'a', ttlMs: 60_000 });
  const waiting = backend.acquire('r', { instanceId: 'b', ...TTL, waitMs: 500 });
  await clock.advance(500);
  assert.equal((await waiting).outcome, 'other_leader');
  const abort = new AbortController();
  const aborted = backend.acquire('r', { instanceId: 'b', ...TTL, waitMs: 500, signal: abort.signal });
  abort.abort(new Error('enough'));
  await assert.rejects(aborted, /enough/);
  assert.equal((await backend.get('r')).waiting, 0);
});

test('watch tells of grants and losses', async () => {
  const { backend } = store();
  const abort = new AbortController();
  const heard = [];
  const watching = (async () => {
    for await (const event of backend.watch('r', { signal: abort.signal })) heard.push([event.kind, event.instance_id, event.reason]);
  })();
  await backend.acquire('r', { instanceId: 'a', ...TTL });
  await backend.elect('r', { instanceId: 'b', ...TTL });
  backend.expire('r');
  await new Promise((resolve) => setImmediate(resolve));
  abort.abort();
  await watching;
  assert.deepEqual(heard, [
    ['role_acquired', 'a', undefined],
    ['role_lost', 'a', 'replaced'],
    ['role_acquired', 'b', undefined],
    ['role_lost', 'b', 'expired'],
  ]);
});
