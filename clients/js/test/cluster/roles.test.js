import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, LeaseLost, RoleHeld, RoleNotHeld } from '../../src/index.js';
import { ELECTION_EVENTS, event, recorded, until } from '../help.js';
import { client, nodes, unique, Way } from './stage.js';

/** Elections of one role, each by its own client at another node; they end with the test. */
function stand(t, role, count, options = {}) {
  const elections = Array.from({ length: count }, (_, n) => client(n).election(role, options));
  t.after(() => Promise.all(elections.map((election) => election.stop())));
  return elections;
}

const waiting = (role, count) => until(async () => (await client().roles.get(role)).waiting === count, `${count} waiting`);

test('uncontested: the role, a token, the events', async (t) => {
  const role = unique('uncontested');
  const [election] = stand(t, role, 1, { address: '10.0.0.1:80', metadata: { zone: 1 } });
  const heard = recorded(election, ELECTION_EVENTS);
  await election.start();
  assert.equal(await election.waitForElection(), true);
  assert.deepEqual(heard, [
    ['election_started'],
    ['leader_acquired', election.token],
    ['new_state', 'leader'],
    ['new_leader', election.id],
    ['election_completed', true],
  ]);
  const held = await client(1).roles.get(role);
  assert.deepEqual(held.leader, { instance_id: election.id, address: '10.0.0.1:80', metadata: { zone: 1 } });
  assert.deepEqual([held.token, held.ttl_ms], [election.token, 30_000]);
  const { token } = election;
  assert.equal((await client(2).roles.check(role, token)).valid, true);
  await election.stop();
  assert.equal((await client(2).roles.check(role, token)).valid, false);
  assert.equal((await client(1).roles.get(role)).leader, null);
});

test('contention: one leads at a time, and stop hands over at once', async (t) => {
  const role = unique('contention');
  // Within this test no lease and no connection ends by itself: only the release hands over.
  const elections = stand(t, role, 5, { ttlMs: 3_600_000, heldBy: 'lease' });
  const tokens = [];
  let leading = 0;
  for (const election of elections) {
    election.on('leader_acquired', (token) => {
      tokens.push(token);
      leading += 1;
      assert.equal(leading, 1);
    });
    election.on('leader_lost', () => (leading -= 1));
  }
  await Promise.all(elections.map((election) => election.start()));
  await until(() => elections.some((election) => election.isLeader), 'a leader');
  const left = new Set(elections);
  for (let round = 1; round < elections.length; round += 1) {
    const leader = [...left].find((election) => election.isLeader);
    left.delete(leader);
    await waiting(role, left.size);
    const over = Promise.race([...left].map((election) => event(election, 'leader_acquired')));
    await leader.stop();
    await over;
    assert.equal(elections.filter((election) => election.isLeader).length, 1);
  }
  assert.deepEqual(tokens, [...tokens].sort((a, b) => a - b));
  assert.equal(new Set(tokens).size, elections.length);
});

test('a follower that stops while it waits is granted nothing', async (t) => {
  const role = unique('gone');
  const [first, second] = stand(t, role, 2);
  await first.start();
  await second.start();
  await waiting(role, 1);
  await second.stop();
  await waiting(role, 0);
  await first.stop();
  assert.equal((await client(2).roles.get(role)).leader, null);
});

test('the higher priority is next', async (t) => {
  const role = unique('priority');
  const [first] = stand(t, role, 1);
  // Neither leaves the waiter queue to ask again within this test.
  const [low] = stand(t, role, 1, { priority: 0, checkEveryMs: 60_000 });
  const [high] = stand(t, role, 1, { priority: 7, checkEveryMs: 60_000 });
  await first.start();
  await low.start();
  await waiting(role, 1);
  await high.start();
  await waiting(role, 2);
  const over = event(high, 'leader_acquired');
  await first.stop();
  await over;
  assert.equal(low.isLeader, false);
});

test('a follower hears who leads', async (t) => {
  const role = unique('hears');
  const [first, second] = stand(t, role, 2);
  await first.start();
  const subscribed = event(second, 'subscribe_started');
  await second.start();
  await subscribed;
  assert.equal(second.leader, first.id);
  await waiting(role, 1);
  const [lost, over] = [event(first, 'leader_lost'), event(second, 'new_state')];
  await first.stop();
  await lost;
  assert.equal(await over, 'leader');
});

test('elect: another one, named by an operator', async (t) => {
  const role = unique('elect');
  const [first, second] = stand(t, role, 2);
  await first.start();
  await second.start();
  await waiting(role, 1);
  const [lost, over] = [event(first, 'leader_lost'), event(second, 'leader_acquired')];
  await first.elect(second.id);
  await Promise.all([lost, over]);
  assert.deepEqual([first.isLeader, second.isLeader], [false, true]);
  await first.elect();
  assert.equal(first.isLeader, true);
  await until(() => !second.isLeader, 'the other one to hear of it');
});

test('who is replaced without hearing of it learns by its renewal', async (t) => {
  const role = unique('replaced');
  const [election] = stand(t, role, 1, { ttlMs: 3_600_000, renewEveryMs: 100, watch: false, heldBy: 'lease' });
  await election.start();
  const lost = event(election, 'leader_lost');
  await client(1).roles.elect(role, { instanceId: 'somebody', ttlMs: 60_000 });
  await lost;
  await until(() => election.leader === 'somebody', 'the other one');
});

test('a lease that is not renewed lapses, and a waiting one is next', async (t) => {
  const role = unique('lapse');
  const gone = await client().roles.acquire(role, { instanceId: 'gone', ttlMs: 5_000 });
  const [election] = stand(t, role, 1);
  await election.start();
  assert.equal(election.isLeader, false);
  assert.equal(await election.waitForLeadership(), true);
  assert.ok(election.token > gone.token);
  await assert.rejects(client(1).roles.renew(role, { instanceId: 'gone', token: gone.token }), LeaseLost);
});

test('a lock: held, waited for, released', async () => {
  const role = unique('lock');
  const first = await client().lock(role);
  const refused = await client(1).lock(role).catch((error) => error);
  assert.ok(refused instanceof RoleHeld);
  assert.equal(refused.token, first.token);
  const second = client(2).lock(role, { waitMs: 60_000 });
  await waiting(role, 1);
  await first.release();
  const guard = await second;
  assert.ok(guard.held && guard.token > first.token);
  await guard.release();
});

test('hold: the server renews while the stream is open', async () => {
  const role = unique('hold');
  const seen = [];
  for await (const said of client().roles.hold(role, { instanceId: 'holder', ttlMs: 30_000 })) {
    seen.push(said.kind);
    assert.equal((await client(1).roles.check(role, said.token)).valid, true);
    break;
  }
  assert.deepEqual(seen, ['held']);
  await until(async () => (await client(1).roles.get(role)).leader === null, 'the release');
});

test('withElection and leaderOnly', async () => {
  const role = unique('scope');
  const inner = await client().withElection(role, async (election) => {
    const other = await client(1).withElection(role, (second) => second.isLeader);
    return [election.isLeader, other];
  });
  assert.deepEqual(inner, [true, false]);
  const guarded = client(2).leaderOnly(role, (x) => x * 2);
  assert.equal(await guarded(21), 42);
  const skipped = client(1).leaderOnly(role, () => assert.fail('it ran'));
  assert.equal(await skipped(), undefined);
  await skipped.stop();
  await guarded.stop();
});

test('two brokers: elected, other_leader, taken over', async () => {
  const role = unique('broker');
  const broker = (n) => client(n).broker({ role, address: `0.0.0.0:808${n}` });
  const [a, b] = [broker(0), broker(1)];
  assert.deepEqual(await a.tryElect(), { status: 'elected' });
  assert.deepEqual(await a.tryElect(), { status: 'already_leader' });
  assert.deepEqual(await b.tryElect(), { status: 'other_leader', leader: '0.0.0.0:8080' });
  assert.equal(await a.checkLeadership(), true);
  await client(2).roles.elect(role, { instanceId: b.id, ttlMs: 60_000, address: b.address });
  assert.equal(await a.checkLeadership(), false);
  assert.deepEqual(await b.tryElect(), { status: 'already_leader' });
  await b.stop();
  assert.deepEqual(await a.tryElect(), { status: 'elected' });
  await a.stop();
});

test('a broker that was replaced, and believes that it leads, changes no state', async (t) => {
  const [role, key] = [unique('broker'), unique('state')];
  // It renews once in half an hour, like a process that stands still.
  const still = { role, ttlMs: 3_600_000, heartbeatEveryMs: 1_700_000 };
  const [a, b] = [client(0).broker({ ...still, address: 'a:1' }), client(1).broker({ ...still, address: 'b:1' })];
  t.after(() => Promise.all([a.stop(), b.stop()]));
  await a.tryElect();
  const mine = client(0).stateDoc(key, { initial: [], broker: a });
  const known = await mine.update((jobs) => [...jobs, 1]);
  await client(2).roles.elect(role, { instanceId: b.id, ttlMs: 3_600_000, address: b.address });
  assert.equal(a.isLeader, true);
  const lost = event(a, 'leader_lost');
  await assert.rejects(mine.swap([1, 'late'], known.rev), RoleNotHeld);
  await lost;
  assert.deepEqual([a.isLeader, (await mine.read()).value], [false, [1]]);
  await b.tryElect();
  const theirs = client(1).stateDoc(key, { broker: b });
  assert.deepEqual((await theirs.update((jobs) => [...jobs, 2])).value, [1, 2]);
});

test('the way to a node is cut: the leader goes on leading by another one', async (t) => {
  const role = unique('cut');
  const way = await Way.to(nodes[0], t);
  const election = new Client([way.url, ...nodes.slice(1)]).election(role, { ttlMs: 60_000, renewEveryMs: 100 });
  const lost = recorded(election, ['leader_lost']);
  await election.start();
  const { token } = election;
  way.close();
  const before = (await client(1).roles.get(role)).expires_in_ms;
  await until(async () => (await client(1).roles.get(role)).expires_in_ms > before, 'a renewal');
  assert.deepEqual([election.isLeader, election.token, lost], [true, token, []]);
  await election.stop();
});

test('an acquire whose answer is lost is made once', async (t) => {
  const role = unique('lost');
  const way = await Way.to(nodes[0], t);
  way.swallow = true;
  const through = new Client([way.url, ...nodes.slice(1)]);
  const grant = await through.roles.acquire(role, { instanceId: 'a' });
  assert.equal((await client(1).roles.get(role)).token, grant.token);
  await through.roles.release(role, { instanceId: 'a', token: grant.token });
});
