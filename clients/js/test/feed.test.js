import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FeedCompacted, Problem } from '../src/index.js';
import { tellReaders } from './fake.js';
import { fake, until } from './help.js';

const readers = (cluster, count) => until(() => cluster.state.readers.size === count, `${count} readers`);

/** The next `count` keys. */
async function keys(feed, count) {
  const found = [];
  while (found.length < count) found.push((await feed.next()).value.key);
  return found;
}

test('goes on at another node where it was: nothing is missed, nothing comes twice', async (t) => {
  const { cluster, client } = await fake(t, 2);
  const feed = client.feed({ kinds: ['change'], prefix: 'k' });
  const first = keys(feed, 2);
  await readers(cluster, 1);
  await client.docs.put('k1', 1);
  await client.docs.put('other', 1);
  await client.docs.put('k2', 1);
  assert.deepEqual(await first, ['k1', 'k2']);
  const rest = keys(feed, 2);
  cluster.kill(0);
  await client.docs.put('k3', 1);
  await client.docs.put('k4', 1);
  assert.deepEqual(await rest, ['k3', 'k4']);
  const last = cluster.calls.findLast((call) => call.path === '/v1/feed');
  assert.deepEqual([last.node, last.query.get('since')], [1, '3']);
  await feed.close();
});

test('bookmarks count for going on, and are told only if asked for', async (t) => {
  const { cluster, client } = await fake(t, 1);
  await client.docs.put('before', 1);
  const broken = [];
  const feed = client.feed({ kinds: ['change'], onError: (error) => broken.push(error) });
  const next = keys(feed, 1);
  await readers(cluster, 1);
  await until(() => feed.lastId === '1', 'the bookmark');
  cluster.cut(0);
  await readers(cluster, 0);
  await client.docs.put('meanwhile', 1);
  assert.deepEqual(await next, ['meanwhile']);
  assert.equal(broken.length, 1);
  await feed.close();
  const marked = client.feed({ bookmarks: true });
  assert.equal((await marked.next()).value.kind, 'bookmark');
  await marked.close();
});

test('an error that ends the stream is no end of the iteration', async (t) => {
  const { cluster, client } = await fake(t, 2);
  const feed = client.feed();
  const next = keys(feed, 1);
  await readers(cluster, 1);
  for (const reader of cluster.state.readers) reader({ kind: 'error', code: 'stopping', detail: 'bye' });
  await until(() => cluster.calls.filter((call) => call.path === '/v1/feed').length === 2, 'another stream');
  await client.docs.put('k', 1);
  assert.deepEqual(await next, ['k']);
  await feed.close();
});

test('a node that has fallen silent is left', async (t) => {
  const { cluster, client } = await fake(t, 2);
  const feed = client.feed({ silenceMs: 50, onError: () => (feed.options.silenceMs = 15_000) });
  const next = keys(feed, 1);
  await until(() => cluster.calls.some((call) => call.node === 1), 'the other node');
  await client.docs.put('k', 1);
  assert.deepEqual(await next, ['k']);
  await feed.close();
});

test('FeedCompacted is the reader\'s to settle', async (t) => {
  const { cluster, client } = await fake(t);
  cluster.state.compacted = 10;
  const error = await client.feed({ since: '3' }).next().catch((thrown) => thrown);
  assert.ok(error instanceof FeedCompacted);
  assert.equal(error.oldest, '10');
});

test('a refusal that stands is thrown; 503 is not one', async (t) => {
  const { cluster, client } = await fake(t);
  const answers = [{ status: 503, body: { code: 'catching_up', retryable: true } }, { status: 400, body: { code: 'bad_field' } }];
  cluster.fault = () => answers.shift();
  await assert.rejects(client.feed({ kinds: ['nonsense'] }).next(), Problem);
  assert.equal(cluster.calls.length, 2);
});

test('closing ends a wait for the next event; so does the signal', async (t) => {
  const { cluster, client } = await fake(t);
  const feed = client.feed();
  const waiting = feed.next();
  await readers(cluster, 1);
  await feed.close();
  assert.equal((await waiting).done, true);
  await readers(cluster, 0);
  const abort = new AbortController();
  const other = client.feed({ signal: abort.signal }).next();
  await readers(cluster, 1);
  abort.abort();
  assert.equal((await other).done, true);
});

test('leaving the loop closes the connection', async (t) => {
  const { cluster, client } = await fake(t);
  client.docs.put('k', 1);
  for await (const event of client.feed({ since: '0' })) {
    assert.equal(event.key, 'k');
    break;
  }
  await readers(cluster, 0);
});

test('events in pieces, with comments between them, are whole', async (t) => {
  const { cluster, client } = await fake(t);
  const feed = client.feed({ since: '0' });
  const next = feed.next();
  await readers(cluster, 1);
  tellReaders(cluster, { kind: 'change', key: 'ü'.repeat(100_000) });
  assert.equal((await next).value.key.length, 100_000);
  await feed.close();
});
