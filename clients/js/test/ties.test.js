import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LeaseLost, NotFound, Unavailable } from '../src/index.js';
import { believable, Lease } from '../src/lease.js';
import { ManualClock } from '../src/memory.js';
import { graceMs, heldBy } from '../src/ties.js';
import { fake, until } from './help.js';

const TTL = 10_000;
const options = (more = {}) => ({ role: 'r', instanceId: 'a', ttlMs: TTL, renewEveryMs: 3_000, ...more });

/** A store of one lease; a test decides how each renewal and each tie ends. */
function store() {
  const clock = new ManualClock();
  const backend = { clock, renewed: [], ties: [], released: [] };
  backend.answer = async () => ({ sentAt: clock.now(), expiresInMs: TTL });
  backend.renew = (role, wanted) => {
    backend.renewed.push(wanted.tie);
    return backend.answer();
  };
  backend.open = () => {};
  backend.tie = async (role, wanted) => {
    backend.open();
    const tie = { number: wanted.tie, graceMs: wanted.graceMs, closed: false };
    const more = new Promise((resolve) => (tie.say = resolve));
    backend.ties.push(tie);
    async function* events() {
      yield { kind: 'tied', renewal: { sentAt: clock.now(), expiresInMs: TTL } };
      const last = await more;
      if (last) yield last;
    }
    return { events: events(), close: () => (tie.closed = true) };
  };
  backend.release = async (role, { token }) => void backend.released.push(token);
  return { clock, backend };
}

async function leased(t, more) {
  const { clock, backend } = store();
  const lease = new Lease(backend, options(more), 7);
  t.after(() => lease.end(new Error('the test is over')));
  await lease.begin({ token: 7, sentAt: clock.now(), expiresInMs: TTL, waited: false });
  await clock.advance(0);
  return { clock, backend, lease };
}

test('renewals name the connection that is open', async (t) => {
  const { clock, backend } = await leased(t);
  assert.equal(backend.ties.length, 1);
  assert.equal(backend.ties[0].graceMs, 1000);
  await clock.advance(3_000);
  assert.deepEqual(backend.renewed, [backend.ties[0].number]);
});

test('a connection that breaks: the next number is proved at once, then the next connection opened', async (t) => {
  const { clock, backend, lease } = await leased(t);
  const [first] = backend.ties;
  first.say(null);
  await clock.advance(0);
  assert.deepEqual(backend.renewed, [first.number + 1]);
  assert.equal(lease.held, true);
  assert.ok(lease.leftMs > believable(TTL, TTL) - 100);
  await clock.advance(100);
  assert.deepEqual(backend.ties.map((tie) => tie.number), [first.number, first.number + 1]);
  assert.equal(first.closed, true);
});

test('without a proof after a break, half of the grace is believed', async (t) => {
  const { clock, backend, lease } = await leased(t);
  backend.answer = async () => {
    throw new Unavailable('away');
  };
  backend.ties[0].say(null);
  await clock.advance(graceMs(TTL) / 2 - 1);
  assert.equal(lease.held, true);
  assert.equal(backend.ties[0].closed, false);
  await clock.advance(1);
  assert.equal(lease.held, false);
  assert.equal(backend.ties.length, 1);
});

test('a node that is about to end lets go: the whole lease is believed', async (t) => {
  const { clock, backend, lease } = await leased(t);
  backend.answer = async () => {
    throw new Unavailable('away');
  };
  backend.ties[0].say({ kind: 'stopping' });
  await clock.advance(graceMs(TTL) * 2);
  assert.equal(lease.held, true);
});

test('a new leader is told at once', async (t) => {
  const { clock, backend } = await leased(t);
  const [first] = backend.ties;
  first.say({ kind: 'renew' });
  await clock.advance(0);
  assert.equal(backend.renewed[0] >= first.number, true);
});

test('a node without such a route, or a lease that is lost: the lease alone counts', async (t) => {
  for (const error of [new NotFound(404, { code: 'not_found' }), new LeaseLost(410, { code: 'lease_lost' })]) {
    const { clock, backend } = store();
    let tried = 0;
    backend.open = () => {
      tried += 1;
      throw error;
    };
    const lease = new Lease(backend, options(), 7);
    await lease.begin({ token: 7, sentAt: clock.now(), expiresInMs: TTL, waited: false });
    await clock.advance(2_000);
    assert.equal(tried, 1);
    assert.equal(lease.held, true);
    lease.end(new Error('the test is over'));
  }
});

test('a connection that was surely not made leaves no doubt', async (t) => {
  const { clock, backend } = store();
  backend.open = () => {
    throw Object.assign(new Error('refused'), { neverOpen: true });
  };
  const lease = new Lease(backend, options(), 7);
  t.after(() => lease.end(new Error('the test is over')));
  await lease.begin({ token: 7, sentAt: clock.now(), expiresInMs: TTL, waited: false });
  await clock.advance(2_000);
  assert.deepEqual(backend.renewed, []);
  assert.equal(lease.held, true);
});

test('held by the lease alone: no connection', async (t) => {
  const { clock, backend } = await leased(t, { heldBy: 'lease' });
  await clock.advance(3_000);
  assert.deepEqual([backend.ties.length, backend.renewed], [0, [undefined]]);
  assert.throws(() => heldBy('hand'), TypeError);
});

test('over HTTP: opened beside the node that answers, and closed with the lease', async (t) => {
  const { cluster, client } = await fake(t, 2);
  const guard = await client.lock('job');
  const ties = () => cluster.calls.filter((call) => call.path.endsWith('/tie'));
  await until(() => ties().length === 1, 'a tie');
  const [asked] = ties();
  assert.equal(client.nodes[asked.node] !== client.node, true);
  assert.deepEqual([asked.query.get('token'), asked.query.get('grace_ms')], [String(guard.token), '1000']);
  await guard.release();
  assert.equal((await client.roles.get('job')).leader, null);
});
