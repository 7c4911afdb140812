import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LeaderFeed } from '../src/leader-feed.js';
import { event, fake, recorded, until } from './help.js';

async function feeds(t, nodes = 1) {
  const { cluster, client, ends } = await fake(t, nodes);
  const [feedA, feedB] = [new LeaderFeed(client), new LeaderFeed(client)];
  ends(feedA, feedB);
  return { cluster, client, feedA, feedB };
}

test('start, status, isLeader, id, new state, new leader', async (t) => {
  const { feedA, feedB } = await feeds(t);
  const heard = recorded(feedA, ['new state', 'new leader']);
  assert.equal(feedA.status, 'stopped');
  assert.equal(await feedA.start({ table: 'mytable' }), feedA);
  await feedB.start({ table: 'mytable' });
  assert.deepEqual([feedA.status, feedA.isLeader, feedB.isLeader, feedA.table], ['started', true, false, 'mytable']);
  assert.deepEqual(heard, [['new state', 'leader'], ['new leader', feedA.id]]);
  assert.ok(feedA.token >= 1);
});

test('status: starting, started, stopping, stopped', async (t) => {
  const { feedA } = await feeds(t);
  const seen = [feedA.status];
  const starting = feedA.start({ table: 't' });
  seen.push(feedA.status);
  await starting;
  seen.push(feedA.status);
  const stopping = feedA.stop();
  seen.push(feedA.status);
  await stopping;
  assert.deepEqual([...seen, feedA.status], ['stopped', 'starting', 'started', 'stopping', 'stopped']);
});

test('start and stop take callbacks', async (t) => {
  const { feedA } = await feeds(t);
  const started = await new Promise((resolve, reject) => {
    feedA.start({ collection: 'c' }, (error, feed) => (error ? reject(error) : resolve(feed)));
  });
  assert.equal(started, feedA);
  assert.equal(feedA.collection, 'c');
  await new Promise((resolve) => feedA.stop(resolve));
  assert.equal(feedA.status, 'stopped');
  const error = await new Promise((resolve) => feedA.start({}, resolve).catch(() => {}));
  assert.ok(error instanceof TypeError);
});

test('stop: the other one leads', async (t) => {
  const { client, feedA, feedB } = await feeds(t);
  await feedA.start({ channel: 'c' });
  await feedB.start({ channel: 'c' });
  await until(async () => (await client.roles.get('c')).waiting === 1, 'a waiter');
  const over = event(feedB, 'new state');
  await feedA.stop();
  assert.equal(await over, 'leader');
});

test('elect: an id, or oneself', async (t) => {
  const { feedA, feedB } = await feeds(t);
  await feedA.start({ table: 't' });
  await feedB.start({ table: 't' });
  const over = event(feedB, 'new state');
  await feedA.elect(feedB.id);
  assert.equal(await over, 'leader');
  assert.equal(feedA.isLeader, false);
  await new Promise((resolve, reject) => feedA.elect((error) => (error ? reject(error) : resolve())));
  assert.equal(feedA.isLeader, true);
});

test('subscribe started, change, subscribe error', async (t) => {
  const { cluster, client, feedA } = await feeds(t, 2);
  const subscribed = event(feedA, 'subscribe started');
  const changed = event(feedA, 'change');
  const broken = event(feedA, 'subscribe error');
  await feedA.start({ table: 't' });
  await subscribed;
  await until(() => cluster.state.readers.size === 2, 'both subscriptions');
  await client.docs.put('t/1', { a: 1 });
  assert.deepEqual((await changed).value, { a: 1 });
  cluster.kill(0);
  await broken;
});

test('heartbeat error', async (t) => {
  const { cluster, feedA } = await feeds(t);
  await feedA.start({ table: 't' });
  cluster.fault = (call) => (call.path.endsWith('/renew') ? { status: 403, body: { code: 'forbidden' } } : undefined);
  assert.equal((await event(feedA, 'heartbeat error')).code, 'forbidden');
});

test('heartbeat error: a lease that is lost for want of an answer is told as one, before it is a follower', async (t) => {
  const { cluster, client, ends } = await fake(t);
  const feed = new LeaderFeed(client, { heartbeatIntervalMs: 300, electionTimeoutMinMs: 600, electionTimeoutMaxMs: 1_000, heldBy: 'lease' });
  ends(feed);
  await feed.start({ table: 't' });
  const heard = recorded(feed, ['heartbeat error', 'new state']);
  cluster.fault = (call) => (call.path.endsWith('/renew') ? 'silent' : undefined);
  await until(() => heard.some(([name]) => name === 'new state'), 'the follower');
  assert.deepEqual([heard[0][0], heard.at(-1)], ['heartbeat error', ['new state', 'follower']]);
  cluster.fault = () => undefined;
});

test('the timings: heartbeatIntervalMs, electionTimeoutMinMs, electionTimeoutMaxMs', async (t) => {
  const { cluster, client, feedA } = await feeds(t);
  await feedA.start({ table: 't' });
  assert.equal((await client.roles.get('t')).ttl_ms, 4_000);
  const own = new LeaderFeed(client, { heartbeatIntervalMs: 2_000, electionTimeoutMinMs: 5_000, electionTimeoutMaxMs: 7_000 });
  await own.start({ table: 'u' });
  assert.equal((await client.roles.get('u')).ttl_ms, 7_000);
  await own.stop();
  assert.throws(() => new LeaderFeed(client, { electionTimeoutMinMs: 1_500 }), RangeError);
  assert.ok(cluster.calls.length > 0);
});
