import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EldestError, Election, Problem, Unavailable } from '../src/index.js';
import { rest } from '../src/clock.js';
import { ManualClock, MemoryBackend } from '../src/memory.js';
import { ELECTION_EVENTS, event, fake, recorded, until } from './help.js';

/** A store in memory whose clock is moved by hand, and elections of one role that end with the test. */
function stage(t) {
  const clock = new ManualClock();
  const backend = new MemoryBackend({ clock });
  const made = [];
  t.after(() => Promise.all(made.map((election) => election.stop())));
  const stand = (id, options = {}) => {
    const election = new Election(backend, 'r', { instanceId: id, ...options });
    made.push(election);
    return election;
  };
  return { clock, backend, stand };
}

test('start: uncontested, it leads at once, with a token', async (t) => {
  const { stand } = stage(t);
  const election = stand('a');
  const heard = recorded(election, ELECTION_EVENTS);
  assert.equal(election.status, 'stopped');
  await election.start();
  assert.deepEqual([election.status, election.isLeader, election.token, election.leader], ['started', true, 1, 'a']);
  assert.deepEqual(heard, [
    ['election_started'],
    ['leader_acquired', 1],
    ['new_state', 'leader'],
    ['new_leader', 'a'],
    ['election_completed', true],
  ]);
});

test('start: contested, it follows, and knows whom', async (t) => {
  const { stand } = stage(t);
  await stand('a').start();
  const follower = stand('b');
  const heard = recorded(follower, ELECTION_EVENTS);
  await follower.start();
  assert.deepEqual([follower.isLeader, follower.token, follower.leader], [false, null, 'a']);
  assert.deepEqual(heard, [['election_started'], ['new_leader', 'a'], ['election_completed', false]]);
});

test('checkEveryMs: so long a follower waits at the cluster before it asks again; 5 s unless told', async (t) => {
  for (const [options, every] of [[{}, 5_000], [{ checkEveryMs: 700 }, 700]]) {
    const { clock, backend, stand } = stage(t);
    await stand('a', { ttlMs: 60_000 }).start();
    const asked = [];
    const { acquire } = backend;
    backend.acquire = (role, wanted) => {
      asked.push([wanted.waitMs, clock.now()]);
      return acquire.call(backend, role, wanted);
    };
    await stand('b', options).start();
    await clock.advance(2 * every);
    assert.deepEqual(asked, [[0, 0], [every, 0], [every, every], [every, 2 * every]]);
  }
});

test('stop hands over at once to who waits, with a higher token', async (t) => {
  const { clock, stand } = stage(t);
  const [first, second] = [stand('a'), stand('b')];
  await first.start();
  const { token } = first;
  await second.start();
  await clock.advance(10);
  const heard = recorded(first, ELECTION_EVENTS);
  const over = event(second, 'leader_acquired');
  await first.stop();
  assert.ok((await over) > token);
  assert.deepEqual([first.isLeader, first.status, second.isLeader], [false, 'stopped', true]);
  assert.deepEqual(heard, [['leader_lost'], ['new_state', 'follower']]);
});

test('never two at once, over many hand-overs', async (t) => {
  const { clock, stand } = stage(t);
  const all = ['a', 'b', 'c', 'd'].map((id) => stand(id));
  const tokens = [];
  let leading = 0;
  for (const election of all) {
    election.on('leader_acquired', (token) => {
      tokens.push(token);
      leading += 1;
      assert.equal(leading, 1);
      assert.equal(all.filter((one) => one.isLeader).length, 1);
    });
    election.on('leader_lost', () => (leading -= 1));
    await election.start();
  }
  for (let round = 0; round < 12; round += 1) {
    await clock.advance(100);
    const leader = all.find((one) => one.isLeader);
    await leader.stop();
    await clock.advance(100);
    await leader.start();
  }
  assert.deepEqual(tokens, [...tokens].sort((x, y) => x - y));
  assert.equal(new Set(tokens).size, 13);
});

test('the higher priority is next', async (t) => {
  const { clock, stand } = stage(t);
  const [first, low, high] = [stand('a'), stand('low'), stand('high', { priority: 5 })];
  for (const election of [first, low, high]) await election.start();
  await clock.advance(10);
  await first.stop();
  await clock.advance(10);
  assert.deepEqual([low.isLeader, high.isLeader], [false, true]);
});

test('a leader that cannot renew stops believing before its ttl ends, and leads again when it can', async (t) => {
  const { clock, backend, stand } = stage(t);
  const election = stand('a');
  await election.start();
  const { renew, acquire } = backend;
  const away = async () => {
    throw new Unavailable('away');
  };
  const errors = recorded(election, ['heartbeat_error', 'error', 'leader_lost']);
  backend.renew = away;
  backend.acquire = away;
  await clock.advance(29_600);
  assert.equal(election.isLeader, true);
  await clock.advance(90);
  assert.equal(election.isLeader, false);
  assert.deepEqual(new Set(errors.map(([name]) => name)), new Set(['heartbeat_error', 'leader_lost', 'error']));
  backend.renew = renew;
  backend.acquire = acquire;
  await clock.advance(6_000);
  assert.equal(election.isLeader, true);
});

test('isLeader is false in time although nothing of this process ran', async (t) => {
  const { clock, stand } = stage(t);
  const election = stand('a');
  await election.start();
  clock.skip(29_690);
  assert.equal(election.isLeader, false);
  assert.equal(election.token, null);
});

test('the feed ends a belief at once, long before a renewal would', async (t) => {
  const { clock, backend, stand } = stage(t);
  const election = stand('a');
  await election.start();
  const { signal } = election;
  await backend.elect('r', { instanceId: 'z', ttlMs: 30_000 });
  await clock.advance(0);
  assert.deepEqual([election.isLeader, signal.aborted, election.leader], [false, true, 'z']);
});

test('without the feed, the next renewal does', async (t) => {
  const { clock, backend, stand } = stage(t);
  const election = stand('a', { watch: false });
  await election.start();
  await backend.elect('r', { instanceId: 'z', ttlMs: 30_000 });
  await clock.advance(10_000);
  assert.deepEqual([election.isLeader, election.leader], [false, 'z']);
});

test('elect: another, and oneself', async (t) => {
  const { clock, stand } = stage(t);
  const [first, second] = [stand('a'), stand('b')];
  await first.start();
  await second.start();
  await clock.advance(10);
  const over = event(second, 'leader_acquired');
  await first.elect('b');
  assert.equal(first.isLeader, false);
  await clock.advance(1_000);
  await over;
  assert.equal(second.isLeader, true);
  const back = first.elect();
  await clock.advance(1_000);
  await back;
  await clock.advance(10);
  assert.deepEqual([first.isLeader, second.isLeader], [true, false]);
});

test('waitForElection and waitForLeadership', async (t) => {
  const { clock, stand } = stage(t);
  const [first, second] = [stand('a'), stand('b')];
  const starting = first.start();
  assert.equal(await first.waitForElection(), true);
  await starting;
  await second.start();
  assert.equal(await second.waitForElection(), false);
  const waiting = second.waitForLeadership(60_000);
  await clock.advance(10);
  await first.stop();
  await clock.advance(10);
  assert.equal(await waiting, true);
  const never = first.waitForLeadership(1_000);
  await clock.advance(1_000);
  assert.equal(await never, false);
});

test('a grant that comes while it stops is given back', async (t) => {
  const { clock, backend, stand } = stage(t);
  const [first, second] = [stand('a'), stand('b')];
  await first.start();
  await second.start();
  await clock.advance(10);
  const heard = recorded(second, ['leader_acquired']);
  const { renew } = backend;
  backend.renew = async (...asked) => {
    backend.renew = renew;
    // It was granted and is about to confirm the grant: now it is stopped.
    const stopped = second.stop();
    const renewal = await renew.apply(backend, asked);
    clock.advance(10);
    await Promise.race([stopped, new Promise((resolve) => setTimeout(resolve, 5))]);
    return renewal;
  };
  await first.stop();
  await clock.advance(10);
  await until(() => second.status === 'stopped', 'the end');
  assert.deepEqual(heard, []);
  assert.equal((await backend.get('r')).leader, null);
});

test('a grant that comes after its caller has gone is given back', async (t) => {
  const { clock, backend, stand } = stage(t);
  const { acquire } = backend;
  const calls = [];
  // A node goes on with a call whose connection is closed.
  backend.acquire = (role, { signal, ...wanted }) => {
    const granted = rest(clock, 100).then(() => acquire.call(backend, role, wanted));
    calls.push(granted);
    return Promise.race([granted, new Promise((_, fail) => signal.addEventListener('abort', () => fail(signal.reason)))]);
  };
  const election = stand('a', { watch: false });
  const starting = election.start();
  await until(() => calls.length === 1, 'the call');
  const stopped = election.stop();
  await clock.advance(100);
  await Promise.all([stopped, starting, ...calls]);
  assert.equal((await backend.get('r')).leader, null);
});

test('a listener may stop the election before it has asked', async (t) => {
  const { clock, backend, stand } = stage(t);
  const election = stand('a', { watch: false });
  let stopped;
  election.once('election_started', () => (stopped = election.stop()));
  await election.start();
  await stopped;
  await clock.advance(1_000);
  assert.deepEqual([election.status, election.isLeader, (await backend.get('r')).leader], ['stopped', false, null]);
});

test('stop does not wait for an answer that never comes', async (t) => {
  const { clock, backend, stand } = stage(t);
  const { acquire } = backend;
  backend.acquire = async (role, wanted) => {
    await acquire.call(backend, role, wanted);
    return new Promise((_, fail) => wanted.signal.addEventListener('abort', () => fail(wanted.signal.reason)));
  };
  const election = stand('a', { watch: false });
  const starting = election.start();
  const stopped = election.stop();
  await clock.advance(500);
  await Promise.all([stopped, starting]);
  assert.equal((await backend.get('r')).leader, null);
});

test('a listener may stop the election that it hears of', async (t) => {
  const { backend, stand } = stage(t);
  const election = stand('a');
  const heard = recorded(election, ['new_state', 'leader_lost']);
  election.once('leader_acquired', () => election.stop());
  await election.start();
  await until(() => election.status === 'stopped', 'the end');
  assert.deepEqual(heard, [['leader_lost'], ['new_state', 'follower']]);
  assert.equal((await backend.get('r')).leader, null);
});

test('metadata and address are seen by others', async (t) => {
  const { backend, stand } = stage(t);
  const election = stand('a', { metadata: { zone: 1 }, address: 'here:1' });
  assert.deepEqual(election.metadata, { zone: 1 });
  election.metadata = { zone: 2 };
  await election.start();
  const { leader } = await backend.get('r');
  assert.deepEqual(leader, { instance_id: 'a', address: 'here:1', metadata: { zone: 2 } });
});

test('the defaults', () => {
  const election = new Election(new MemoryBackend(), 'r');
  assert.match(election.id, /^[0-9a-f-]{36}$/);
  assert.equal(election.identifier, election.id);
  assert.throws(() => new Election(new MemoryBackend(), 'r', { ttlMs: 5_000, renewEveryMs: 5_000 }), RangeError);
});

test('withElection: one try, released when it is over', async (t) => {
  const { cluster, client } = await fake(t);
  const seen = await client.withElection('daily-report', async (election) => {
    const held = await client.roles.get('daily-report');
    const other = await client.withElection('daily-report', (second) => second.isLeader);
    return [election.isLeader, held.leader.instance_id === election.id, other];
  });
  assert.deepEqual(seen, [true, true, false]);
  assert.equal((await client.roles.get('daily-report')).leader, null);
  await assert.rejects(client.withElection('daily-report', () => Promise.reject(new Error('mine'))), /mine/);
  assert.equal((await cluster.state.roles.get('daily-report')).leader, null);
});

test('Symbol.asyncDispose stops it', async (t) => {
  const { backend, stand } = stage(t);
  const election = stand('a');
  await election.tryOnce();
  await election[Symbol.asyncDispose]();
  assert.equal((await backend.get('r')).leader, null);
});

test('leaderOnly: runs only while this process leads', async (t) => {
  const { clock, backend, stand } = stage(t);
  const election = stand('a');
  const guarded = election.leaderOnly((x) => x + 1);
  assert.equal(guarded(1), undefined);
  await election.start();
  assert.equal(guarded(1), 2);
  clock.skip(30_000);
  assert.equal(guarded(1), undefined);
  assert.equal((await backend.get('r')).leader, null);
});

test('leaderOnly: of a client, one election for all functions of a role', async (t) => {
  const { client } = await fake(t);
  const first = client.leaderOnly('aggregation', async (x) => x * 2);
  const second = client.leaderOnly('aggregation', () => 'second');
  assert.equal(await first(21), 42);
  assert.equal(await second(), 'second');
  assert.equal(first.election, second.election);
  await first.stop();
  assert.equal(await second(), undefined);
  assert.equal((await client.roles.get('aggregation')).leader, null);
});

test('leaderOnly: skipped where another process leads', async (t) => {
  const { cluster, client } = await fake(t);
  await cluster.state.roles.acquire('aggregation', { instanceId: 'other', ttlMs: 60_000 });
  const guarded = client.leaderOnly('aggregation', () => assert.fail('it ran'));
  assert.equal(await guarded(), undefined);
  await guarded.stop();
});

test('over HTTP: start, hand-over, subscribe_started, new_leader', async (t) => {
  const { cluster, client } = await fake(t, 2);
  const [first, second] = [client.election('r'), client.election('r')];
  const subscribed = event(first, 'subscribe_started');
  await first.start();
  await subscribed;
  await second.start();
  assert.equal(second.leader, first.id);
  await until(async () => (await client.roles.get('r')).waiting === 1, 'a waiter');
  const over = event(second, 'leader_acquired');
  await first.stop();
  assert.ok((await over) > 1);
  await second.stop();
  assert.equal((await cluster.state.roles.get('r')).leader, null);
});

test('over HTTP: the node goes, the leader stays', async (t) => {
  const { cluster, client } = await fake(t, 2);
  const election = client.election('r', { ttlMs: 60_000, renewEveryMs: 100 });
  const broken = event(election, 'subscribe_error');
  await election.start();
  const lost = recorded(election, ['leader_lost']);
  cluster.kill(0);
  await broken;
  await until(() => cluster.calls.filter((call) => call.node === 1 && call.path.endsWith('/renew')).length > 2, 'renewals');
  assert.deepEqual([election.isLeader, lost], [true, []]);
  await election.stop();
});

test('over HTTP: an acquire whose answer was lost is not forgotten by stop', async (t) => {
  const { cluster, client } = await fake(t, 1, { deadlineMs: 2_000 });
  cluster.fault = (call) => (call.path.endsWith('/acquire') ? 'apply-cut' : undefined);
  const election = client.election('r', { watch: false });
  const errors = recorded(election, ['error']);
  assert.equal(await election.tryOnce(), false);
  assert.equal(errors.length, 1);
  assert.equal(election.lastError, errors[0][1]);
  assert.equal((await cluster.state.roles.get('r')).leader.instance_id, election.id);
  await election.stop();
  assert.equal((await cluster.state.roles.get('r')).leader, null);
});

test('start throws what trying again would not help, and is stopped then', async (t) => {
  const { cluster, client } = await fake(t);
  cluster.fault = () => ({ status: 400, body: { code: 'bad_field', field: 'role' } });
  const election = client.election('r', { watch: false });
  await assert.rejects(election.start(), Problem);
  assert.equal(election.status, 'stopped');
});

test('start resolves while the cluster is away, and it leads when the cluster is back', async (t) => {
  const { cluster, client } = await fake(t, 1, { deadlineMs: 100 });
  cluster.fault = () => ({ status: 503, body: { code: 'no_quorum', retryable: true } });
  const election = client.election('r');
  await election.start();
  assert.deepEqual([election.status, election.isLeader], ['started', false]);
  cluster.fault = () => undefined;
  assert.equal(await election.waitForElection(), true);
  await election.stop();
});

test('change: documents below the prefix', async (t) => {
  const { cluster, client } = await fake(t);
  const election = client.election('r', { changes: 'jobs/' });
  await election.start();
  await until(() => cluster.state.readers.size === 2, 'both subscriptions');
  const changed = event(election, 'change');
  await client.docs.put('other', 0);
  await client.docs.put('jobs/1', { n: 1 });
  const { key, value } = await changed;
  assert.deepEqual([key, value], ['jobs/1', { n: 1 }]);
  await election.stop();
});

test('stop: while the cluster is away it takes a second, and tells what was not done', async (t) => {
  const { cluster, client } = await fake(t, 2);
  const election = new Election(client, 'job');
  await election.start();
  cluster.fault = () => 'silent';
  const told = event(election, 'error');
  const began = performance.now();
  await election.stop();
  assert.ok(performance.now() - began < 2_500, 'it took too long');
  assert.ok((await told) instanceof EldestError);
  assert.equal(election.lastError, await told);
});

test('stop: what may have been granted is looked for within the same second', async (t) => {
  const { cluster, client } = await fake(t, 2, { deadlineMs: 200 });
  cluster.fault = (call) => (call.path.endsWith('/acquire') ? 'apply-cut' : undefined);
  const election = new Election(client, 'job', { watch: false });
  await election.tryOnce();
  cluster.fault = (call) => (call.method === 'GET' ? undefined : 'silent');
  const began = performance.now();
  await election.stop();
  assert.ok(performance.now() - began < 2_500, 'it took too long');
});

test('start: without a node it is over after startDeadlineMs', async (t) => {
  const { cluster, client } = await fake(t, 2);
  cluster.fault = () => 'silent';
  const election = new Election(client, 'job', { startDeadlineMs: 300 });
  const began = performance.now();
  await election.start();
  assert.ok(performance.now() - began < 3_000, 'it took too long');
  assert.ok(election.lastError instanceof EldestError);
  await election.stop();
});
