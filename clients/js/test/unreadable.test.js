// Values that a cluster accepted before it refused them: they stop no reader.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fake } from './help.js';

const DIGITS = '7'.repeat(5000);

/** Values that a cluster sends, and their values in JavaScript. */
const VALUES = [
  ['1e400', Infinity],
  ['[-1E400]', [-Infinity]],
  [DIGITS, Infinity],
  ['"\\ud800"', '\ud800'],
  ['{"$serde_json::private::RawValue": 1}', { '$serde_json::private::RawValue': 1 }],
];

/** The first stream has these events, and the later ones have none. */
function stream(cluster, path, events) {
  let told = false;
  cluster.fault = (call) => {
    if (call.path !== path) return undefined;
    const text = told ? ':\n\n' : events.join('');
    told = true;
    return { status: 200, text, headers: { 'content-type': 'text/event-stream' } };
  };
}

async function take(events, count) {
  const found = [];
  while (found.length < count) found.push((await events.next()).value);
  return found;
}

test('a document and a list are read on', async (t) => {
  const { cluster, client } = await fake(t);
  for (const [sent, value] of VALUES) {
    const row = (key, text) => `{"key":"${key}","rev":"1","value":${text}}`;
    const page = `{"items":[${row('a', '1')},${row('b', sent)},${row('c', '[3]')}],"next":null}`;
    cluster.fault = ({ path }) => ({ status: 200, text: path === '/v1/docs' ? page : sent, headers: { etag: '"1"' } });
    assert.deepEqual((await client.docs.get('b')).value, value);
    const all = [];
    for await (const doc of client.docs.all()) all.push(doc.value);
    assert.deepEqual(all, [1, value, [3]]);
  }
});

test('the feed is read on', async (t) => {
  const { cluster, client } = await fake(t);
  for (const [sent, value] of VALUES) {
    const event = (id, text) => `id: ${id}\nevent: change\ndata: {"id":"${id}","kind":"change","key":"k","value":${text}}\n\n`;
    stream(cluster, '/v1/feed', [event(4, '1'), event(5, sent), event(6, '[3]')]);
    const feed = client.feed({ kinds: ['change'] });
    assert.deepEqual((await take(feed, 3)).map((told) => told.value), [1, value, [3]]);
    assert.equal(feed.lastId, '6');
    await feed.close();
  }
});

test('a channel is read on', async (t) => {
  const { cluster, client } = await fake(t);
  stream(cluster, '/v1/channels/c', [...VALUES.map(([sent]) => sent), '1'].map((text) => `event: message\ndata: ${text}\n\n`));
  const listener = client.channels.listen('c');
  assert.deepEqual(await take(listener, VALUES.length + 1), [...VALUES.map(([, value]) => value), 1]);
  await listener.close();
});

test('what was read as infinite is not written as null', async (t) => {
  const { cluster, client } = await fake(t);
  await assert.rejects(async () => client.docs.put('k', { a: [1, Infinity] }), TypeError);
  await assert.rejects(async () => client.channels.publish('c', NaN), TypeError);
  await assert.rejects(async () => client.bulk([{ storage_cmd: 'PutDoc', payload: { key: 'k', value: -Infinity } }]), TypeError);
  assert.deepEqual(cluster.calls, []);
});
