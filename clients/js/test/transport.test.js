import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BadAnswer, Client, Indeterminate, NotFound, Problem, Unavailable } from '../src/index.js';
import { fake } from './help.js';

const refused = (code, status = 503, members = {}) => ({ status, body: { code, retryable: true, ...members } });
const nth = (faults) => (call) => faults[call.n];

/** Faults by the number of the call, counted from 0. */
function faults(cluster, list) {
  let n = 0;
  cluster.fault = () => nth(list)({ n: n++ });
}

test('a node that is down is passed over, and the one that answered is asked first', async (t) => {
  const { cluster, client } = await fake(t, 3);
  cluster.kill(0);
  assert.equal((await client.docs.put('a', 1)).created, true);
  assert.deepEqual(cluster.calls.map((call) => call.node), [1]);
  await client.docs.get('a');
  assert.deepEqual(cluster.calls.map((call) => call.node), [1, 1]);
  assert.equal(client.node, cluster.urls[1]);
});

test('a write whose connection is lost is sent again with the same Idempotency-Key, and happens once', async (t) => {
  const { cluster, client } = await fake(t, 2);
  faults(cluster, ['apply-cut']);
  const written = await client.docs.put('once', 1, { ifAbsent: true });
  assert.equal(written.created, true);
  const [first, second] = cluster.calls;
  assert.ok(first.key);
  assert.equal(first.key, second.key);
  assert.equal(cluster.state.index, 1);
});

test('two calls have two keys', async (t) => {
  const { cluster, client } = await fake(t);
  await client.docs.put('a', 1);
  await client.docs.put('a', 1);
  assert.notEqual(cluster.calls[0].key, cluster.calls[1].key);
});

test('504 is an unknown outcome: again with the same key', async (t) => {
  const { cluster, client } = await fake(t, 2);
  faults(cluster, [refused('outcome_unknown', 504)]);
  await client.docs.put('a', 1);
  assert.equal(cluster.calls[0].key, cluster.calls[1].key);
});

test('a slow node is given up after the time of an attempt', async (t) => {
  const { cluster, client } = await fake(t, 2, { attemptTimeoutMs: 500 });
  cluster.fault = (call) => (call.node === 0 ? 'silent' : undefined);
  await client.docs.put('a', 1);
  // On a busy machine an attempt can be over before its node has read the call, so there can be more attempts, or fewer
  // calls.
  assert.equal(new Set(cluster.calls.map((call) => call.key)).size, 1);
  assert.equal(client.node, cluster.urls[1]);
});

test('a redirection is not followed: what is secret goes to nobody who was not named', async (t) => {
  const [{ cluster, client }, elsewhere] = [await fake(t), await fake(t)];
  for (const status of [301, 302, 303, 307, 308]) {
    const headers = (call) => ({ location: elsewhere.cluster.urls[0] + call.path, 'content-type': 'text/html' });
    cluster.fault = (call) => ({ status, headers: headers(call), text: '<html>moved' });
    await assert.rejects(client.docs.put('a', 1), BadAnswer);
    await assert.rejects(client.docs.get('a'), BadAnswer);
  }
  assert.deepEqual(elsewhere.cluster.calls, []);
});

const ofDocs = (cluster) => cluster.calls.filter((call) => call.path.startsWith('/v1/docs'));

test('a node that does not even say that it lives is given up, within the only attempt', async (t) => {
  const { cluster, client } = await fake(t, 2, { attemptTimeoutMs: 60_000, deadlineMs: 60_000 });
  cluster.fault = (call) => (call.node === 0 ? 'silent' : undefined);
  await client.docs.put('a', 1);
  assert.deepEqual(ofDocs(cluster).map((call) => call.node), [0, 1]);
  assert.equal(new Set(ofDocs(cluster).map((call) => call.key)).size, 1);
});

test('a node that lives is waited for', async (t) => {
  const { cluster, client } = await fake(t, 2);
  const lives = later();
  let signs = 0;
  cluster.fault = async (call) => {
    if (call.path !== '/livez') return lives.promise;
    signs += 1;
    if (signs === 2) lives.resolve();
    return { status: 200, body: {} };
  };
  await client.docs.put('a', 1);
  assert.deepEqual(ofDocs(cluster).map((call) => call.node), [0]);
});

function later() {
  const made = {};
  made.promise = new Promise((resolve) => (made.resolve = resolve));
  return made;
}

test('Indeterminate: an attempt was lost, and the deadline passed', async (t) => {
  const { cluster, client } = await fake(t, 1, { deadlineMs: 2_000 });
  faults(cluster, ['cut', ...Array(100).fill(refused('no_leader'))]);
  const error = await client.docs.put('a', 1).catch((thrown) => thrown);
  assert.ok(error instanceof Indeterminate);
  assert.equal(error.idempotencyKey, cluster.calls[0].key);
  assert.equal(error.cause.code, 'no_leader');
});

test('Unavailable: surely not applied, because it was refused', async (t) => {
  const { cluster, client } = await fake(t, 2, { deadlineMs: 2_000 });
  cluster.fault = () => refused('no_quorum');
  const error = await client.docs.put('a', 1).catch((thrown) => thrown);
  assert.ok(error instanceof Unavailable);
  assert.equal(error.cause.code, 'no_quorum');
});

test('Unavailable: surely not applied, because no node was reached', async (t) => {
  const { cluster, client } = await fake(t, 2, { deadlineMs: 2_000 });
  cluster.kill(0);
  cluster.kill(1);
  await assert.rejects(client.docs.put('a', 1), Unavailable);
});

test('a read that is lost is Unavailable at the deadline: it changed nothing', async (t) => {
  const { cluster, client } = await fake(t, 1, { deadlineMs: 500 });
  cluster.fault = () => 'cut';
  await assert.rejects(client.docs.get('a'), Unavailable);
});

test('429 and 503 are tried again', async (t) => {
  const { cluster, client } = await fake(t);
  faults(cluster, [refused('too_many_requests', 429), refused('catching_up')]);
  assert.equal((await client.docs.put('a', 1)).created, true);
  assert.equal(cluster.calls.length, 3);
});

/** Every node but this one answers 421. */
function onlyLeads(cluster, leader, leader_node) {
  cluster.fault = (call) => (call.node === leader ? undefined : refused('not_leader', 421, { leader_node }));
}

/** The nodes in the order in which they were asked; `fetch` itself asks a node once more after a 421. */
function asked(cluster) {
  return cluster.calls.map((call) => call.node).filter((node, at, all) => node !== all[at - 1]);
}

test('421 goes to the leader that it names, if that is one of the nodes', async (t) => {
  const { cluster, client } = await fake(t, 3);
  const leader_node = { id: 3, url: cluster.urls[2] };
  onlyLeads(cluster, 2, leader_node);
  await client.docs.put('a', 1);
  assert.deepEqual(asked(cluster), [0, 2]);
});

test('421 that names an address which was not given goes to the next node', async (t) => {
  const { cluster, client } = await fake(t, 3);
  const leader_node = { id: 3, url: 'http://elsewhere.example:9000' };
  onlyLeads(cluster, 1, leader_node);
  await client.docs.put('a', 1);
  assert.deepEqual(asked(cluster), [0, 1]);
});

test('a 503 that no node gave says nothing about a write', async (t) => {
  const { cluster, client } = await fake(t, 1, { deadlineMs: 500 });
  cluster.fault = () => ({ status: 503, body: { message: 'gateway' } });
  await assert.rejects(client.docs.put('a', 1), Indeterminate);
});

test('a refusal that stands is thrown at once, with its members', async (t) => {
  const { cluster, client } = await fake(t);
  faults(cluster, [{ status: 400, body: { code: 'bad_field', detail: 'no', field: 'key', request_id: 'r1' } }]);
  const error = await client.docs.put('a', 1).catch((thrown) => thrown);
  assert.ok(error instanceof Problem);
  assert.deepEqual([error.code, error.members.field, error.requestId, error.retryable], ['bad_field', 'key', 'r1', false]);
  await assert.rejects(client.docs.get('b'), NotFound);
});

test('answers of the wrong shape are errors, not crashes', async (t) => {
  const { cluster, client } = await fake(t);
  for (const body of [null, [], 7, {}, { items: {} }]) {
    faults(cluster, [{ status: 200, body }]);
    await assert.rejects(client.docs.list(), BadAnswer);
    faults(cluster, [{ status: 200, body }]);
    await assert.rejects(client.roles.acquire('r', { instanceId: 'a' }), BadAnswer);
  }
  for (const token of ['7', 1.5, 2 ** 53, null]) {
    faults(cluster, [{ status: 200, body: { outcome: 'elected', token, expires_in_ms: 10 } }]);
    await assert.rejects(client.roles.acquire('r', { instanceId: 'a' }), BadAnswer);
  }
});

test('an aborted call ends with the reason of its signal', async (t) => {
  const { cluster, client } = await fake(t);
  const abort = new AbortController();
  cluster.fault = () => (abort.abort(new Error('enough')), 'silent');
  await assert.rejects(client.docs.get('a', { signal: abort.signal }), /enough/);
});

test('the token goes along as a bearer', async (t) => {
  const { cluster } = await fake(t);
  const client = new Client(cluster.urls.join(','), { token: 'secret' });
  await client.docs.put('a', 1);
  assert.equal(cluster.calls[0].headers.authorization, 'Bearer secret');
});

test('a client without nodes, or of none that is a URL, is refused', () => {
  assert.throws(() => new Client([]), TypeError);
  assert.throws(() => new Client(['127.0.0.1:9000']), TypeError);
});
