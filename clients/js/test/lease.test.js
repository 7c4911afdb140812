import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LeaseLost, Unavailable } from '../src/index.js';
import { believable, Lease } from '../src/lease.js';
import { ManualClock } from '../src/memory.js';

const TTL = 10_000;
const BELIEVED = believable(TTL, TTL);

/** A store whose answers a test decides; it counts every renewal. */
function store(renew) {
  const clock = new ManualClock();
  const backend = { clock, renewals: 0, released: [] };
  backend.renew = (role, options) => {
    backend.renewals += 1;
    return renew(backend, options);
  };
  backend.release = async (role, options) => void backend.released.push(options.token);
  return { clock, backend };
}

const granted = async ({ clock }, { ttlMs }) => ({ sentAt: clock.now(), expiresInMs: ttlMs });
const away = async () => {
  throw new Unavailable('away');
};
const options = (more = {}) => ({ role: 'r', instanceId: 'a', ttlMs: TTL, renewEveryMs: 3_000, ...more });
const grant = (clock, more = {}) => ({ token: 7, sentAt: clock.now(), expiresInMs: TTL, waited: false, ...more });

test('what is believed is the shorter span, less a hundredth and 10 ms', () => {
  assert.equal(believable(30_000, 30_000), 29_690);
  assert.equal(believable(30_000, 20_000), 19_790);
  assert.equal(believable(1_000, 30_000), 980);
});

test('belief counts from when the request was sent, not from its answer', async () => {
  const { clock, backend } = store(away);
  const sentAt = clock.now();
  clock.skip(4_000);
  const lease = new Lease(backend, options(), 7);
  assert.equal(await lease.begin(grant(clock, { sentAt })), true);
  clock.skip(BELIEVED - 4_000 - 1);
  assert.equal(lease.held, true);
  clock.skip(1);
  assert.equal(lease.held, false);
});

test('a process that was held up does not believe, although no timer has fired', async () => {
  const { clock, backend } = store(granted);
  const lease = new Lease(backend, options(), 7);
  await lease.begin(grant(clock));
  clock.skip(TTL);
  assert.equal(lease.held, false);
  assert.equal(lease.lost.aborted, false);
  await clock.advance(0);
  assert.equal(lease.lost.aborted, true);
});

test('a shorter expiry than the ttl is what is believed', async () => {
  const { clock, backend } = store(away);
  const lease = new Lease(backend, options(), 7);
  await lease.begin(grant(clock, { expiresInMs: 6_000 }));
  clock.skip(believable(TTL, 6_000));
  assert.equal(lease.held, false);
});

test('a grant that was waited for is renewed before it is believed', async () => {
  const { clock, backend } = store(granted);
  const lease = new Lease(backend, options(), 7);
  assert.equal(await lease.begin(grant(clock, { waited: true })), true);
  assert.equal(backend.renewals, 1);
});

test('a grant that was waited for, and is another\'s by now, is never believed', async () => {
  const { clock, backend } = store(async () => {
    throw new LeaseLost(410, { code: 'lease_lost' });
  });
  const lease = new Lease(backend, options(), 7);
  assert.equal(await lease.begin(grant(clock, { waited: true })), false);
  assert.equal(lease.held, false);
});

test('a grant that is old on arrival is renewed first', async () => {
  const { clock, backend } = store(granted);
  const sentAt = clock.now();
  clock.skip(TTL - 500);
  const lease = new Lease(backend, options(), 7);
  assert.equal(await lease.begin(grant(clock, { sentAt })), true);
  assert.equal(backend.renewals, 1);
  clock.skip(BELIEVED - 1);
  assert.equal(lease.held, true);
});

test('renewals keep it for as long as they come through', async () => {
  const { clock, backend } = store(granted);
  const lease = new Lease(backend, options(), 7);
  await lease.begin(grant(clock));
  for (let n = 0; n < 20; n += 1) await clock.advance(3_000);
  assert.equal(lease.held, true);
  assert.equal(backend.renewals, 20);
  await lease.release();
});

test('a renewal that fails is tried again until belief ends, and not beyond', async () => {
  const { clock, backend } = store(away);
  const errors = [];
  const lease = new Lease(backend, options({ onHeartbeatError: (error) => errors.push(error) }), 7);
  await lease.begin(grant(clock));
  await clock.advance(BELIEVED - 1);
  assert.equal(lease.held, true);
  assert.ok(errors.length > 3 && errors.every((error) => error instanceof Unavailable));
  await clock.advance(1);
  assert.equal(lease.lost.aborted, true);
  const made = backend.renewals;
  await clock.advance(TTL);
  assert.equal(backend.renewals, made);
});

test('one that came through after failures is enough', async () => {
  const { clock, backend } = store((self, asked) => (self.renewals % 3 === 0 ? granted(self, asked) : away()));
  const lease = new Lease(backend, options(), 7);
  await lease.begin(grant(clock));
  for (let n = 0; n < 60; n += 1) await clock.advance(1_000);
  assert.equal(lease.held, true);
  await lease.release();
});

test('LeaseLost ends it at once', async () => {
  const { clock, backend } = store(async () => {
    throw new LeaseLost(410, { code: 'lease_lost', detail: 'b has it' });
  });
  const lease = new Lease(backend, options(), 7);
  await lease.begin(grant(clock));
  await clock.advance(3_000);
  assert.equal(lease.held, false);
  assert.ok(lease.lost.reason instanceof LeaseLost);
});

test('a renewal has the time that is left, and leaves some for a second node', async () => {
  const asked = [];
  const { clock, backend } = store((self, wanted) => (asked.push(wanted), granted(self, wanted)));
  const lease = new Lease(backend, options({ ttlMs: 1_500, renewEveryMs: 500 }), 7);
  await lease.begin(grant(clock, { expiresInMs: 1_500 }));
  await clock.advance(500);
  const [{ deadlineMs, attemptTimeoutMs }] = asked;
  assert.equal(deadlineMs, believable(1_500, 1_500) - 500);
  assert.ok(attemptTimeoutMs * 2 < deadlineMs);
  await lease.release();
});

test('nobody believes any more when the release is sent', async () => {
  const { clock, backend } = store(granted);
  const lease = new Lease(backend, options(), 7);
  await lease.begin(grant(clock));
  const believed = [];
  backend.release = async () => void believed.push(lease.held);
  await lease.release();
  assert.deepEqual(believed, [false]);
});
