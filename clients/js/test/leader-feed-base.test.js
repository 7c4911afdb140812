import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LeaderFeedBase } from '../src/leader-feed-base.js';
import { ManualClock } from '../src/memory.js';
import { recorded } from './help.js';

/** A record in memory with subscribers: the smallest store that a program can bring. */
class Store {
  subscribers = new Set();
  created = 0;
  broken = null;

  publish(event, value) {
    for (const feed of this.subscribers) feed.emit(event, value);
  }
}

class MemoryFeed extends LeaderFeedBase {
  constructor(store, options) {
    super(options);
    this.store = store;
  }

  _start(options, done) {
    this.table = options.table;
    done();
  }

  _create(done) {
    this.store.created += 1;
    done();
  }

  async _subscribe() {
    this.store.subscribers.add(this);
  }

  _unsubscribe(done) {
    this.store.subscribers.delete(this);
    done();
  }

  _heartbeat(done) {
    if (this.store.broken) return done(this.store.broken);
    this.store.publish('heartbeat', this.id);
    done();
  }

  _elect(id, done) {
    this.store.publish('heartbeat', id);
    done();
  }
}

function stage(count, options = {}) {
  const clock = new ManualClock();
  const store = new Store();
  const feeds = Array.from({ length: count }, (_, n) => new MemoryFeed(store, { id: `f${n}`, clock, ...options }));
  return { clock, store, feeds };
}

const leaders = (feeds) => feeds.filter((feed) => feed.isLeader);

/** Heartbeats are seen one by one: time passes in steps that are shorter than their interval. */
async function pass(clock, ms) {
  for (let passed = 0; passed < ms; passed += 500) await clock.advance(500);
}

test('one of several elects itself after a silence, and stays', async () => {
  const { clock, feeds } = stage(3);
  for (const feed of feeds) await feed.start({ table: 't' });
  assert.equal(feeds[0].table, 't');
  assert.equal(leaders(feeds).length, 0);
  await pass(clock, 5_000);
  const [leader] = leaders(feeds);
  assert.ok(leader);
  await pass(clock, 20_000);
  assert.deepEqual(leaders(feeds), [leader]);
});

test('status: starting, started, stopping, stopped', async () => {
  const { feeds } = stage(1);
  const [feed] = feeds;
  const seen = [feed.status];
  const starting = feed.start();
  seen.push(feed.status);
  await starting;
  seen.push(feed.status);
  const stopping = feed.stop();
  seen.push(feed.status);
  await stopping;
  assert.deepEqual([...seen, feed.status], ['stopped', 'starting', 'started', 'stopping', 'stopped']);
});

test('stop during start leaves nothing behind', async () => {
  const { clock, store, feeds } = stage(1);
  const [feed] = feeds;
  const heard = recorded(feed, ['subscribe started', 'new state']);
  const starting = feed.start();
  await feed.stop();
  await starting;
  await pass(clock, 20_000);
  assert.deepEqual([feed.status, feed.isLeader, store.subscribers.size, heard], ['stopped', false, 0, []]);
  await feed.start();
  await feed.elect();
  assert.equal(feed.isLeader, true);
});

test('what _subscribe emits: a heartbeat of another, a change, an error', async () => {
  const { store, feeds } = stage(1);
  const [feed] = feeds;
  const heard = recorded(feed, ['change', 'new leader', 'new state', 'subscribe error']);
  await feed.start();
  await feed.elect();
  store.publish('change', { id: 7 });
  store.publish('heartbeat', 'another');
  assert.equal(feed.isLeader, false);
  await feed.elect();
  const gone = new Error('gone');
  store.publish('subscribe error', gone);
  assert.equal(feed.isLeader, false);
  const of = (names) => heard.filter(([name]) => names.includes(name));
  assert.deepEqual(of(['change']), [['change', { id: 7 }]]);
  assert.deepEqual(of(['new leader']), [['new leader', 'f0'], ['new leader', 'another'], ['new leader', 'f0']]);
  assert.deepEqual(of(['subscribe error']), [['subscribe error', gone]]);
  assert.deepEqual(of(['new state']).map(([, state]) => state), ['leader', 'follower', 'leader', 'follower']);
});

test('stop: another one leads; status on the way', async () => {
  const { clock, feeds } = stage(2);
  for (const feed of feeds) await feed.start();
  await pass(clock, 5_000);
  const [leader] = leaders(feeds);
  assert.equal(leader.status, 'started');
  await leader.stop();
  assert.equal(leader.status, 'stopped');
  await pass(clock, 5_000);
  assert.deepEqual(leaders(feeds), feeds.filter((feed) => feed !== leader));
});

test('elect: an id, new leader and new state', async () => {
  const { clock, feeds } = stage(2);
  for (const feed of feeds) await feed.start();
  const heard = recorded(feeds[1], ['new leader', 'new state']);
  await feeds[0].elect();
  await feeds[1].elect('f1');
  await clock.advance(0);
  assert.deepEqual(leaders(feeds), [feeds[1]]);
  assert.deepEqual(heard, [['new leader', 'f0'], ['new leader', 'f1'], ['new state', 'leader']]);
});

test('heartbeat error: the leader becomes a follower', async () => {
  const { clock, store, feeds } = stage(1);
  const [feed] = feeds;
  const heard = recorded(feed, ['heartbeat error', 'new state']);
  await feed.start();
  await feed.elect();
  store.broken = new Error('gone');
  await clock.advance(1_000);
  assert.equal(feed.isLeader, false);
  assert.deepEqual(new Set(heard.map(([, value]) => value.message ?? value)), new Set(['leader', 'follower', 'gone']));
});

test('subscribe error: the leader becomes a follower', async () => {
  const { feeds } = stage(1);
  const [feed] = feeds;
  await feed.start();
  await feed.elect();
  feed.emit('subscribe error', new Error('gone'));
  assert.equal(feed.isLeader, false);
});

test('createIfMissing: asked by default, and not if it is false', async () => {
  const first = stage(1);
  await first.feeds[0].start();
  assert.equal(first.store.created, 1);
  const second = stage(1, { createIfMissing: false });
  await second.feeds[0].start();
  assert.equal(second.store.created, 0);
});

test('a leader that was held up believes no longer than the shortest election timeout', async () => {
  const { clock, feeds } = stage(1);
  const [feed] = feeds;
  await feed.start();
  await feed.elect();
  clock.skip(2_000);
  assert.equal(feed.isLeader, false);
});

test('what is not written says so', async () => {
  const feed = new LeaderFeedBase();
  await assert.rejects(feed.start(), /_subscribe/);
  assert.equal(feed.status, 'stopped');
});
