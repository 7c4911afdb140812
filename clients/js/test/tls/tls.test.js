// A cluster that speaks TLS. The environment names its nodes, its CA and, as ID=PID, its processes, of which the leader's is killed.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Client, Unavailable } from '../../src/index.js';

const nodes = process.env.ELDEST_NODES.split(',');
const pids = new Map(process.env.ELDEST_PIDS.split(',').map((pair) => pair.split('=')));
const tls = { ca: readFileSync(process.env.ELDEST_CA, 'utf8') };

test('a role and the feed survive the leader', async () => {
  const name = `js/tls/${globalThis.crypto.randomUUID()}`;
  const client = new Client(nodes, { tls });
  const guard = await client.lock(name, { ttlMs: 60_000 });
  const feed = client.feed({ kinds: ['change'], prefix: `${name}/` });
  const next = feed.next();
  while (feed.lastId === null) await new Promise((resolve) => setTimeout(resolve, 10));
  await client.docs.put(`${name}/1`, 1);
  assert.equal((await next).value.value, 1);
  const { leader } = await client.status();
  process.kill(Number(pids.get(String(leader.id))), 'SIGKILL');
  await client.docs.put(`${name}/2`, 2);
  assert.equal((await feed.next()).value.value, 2);
  await feed.return();
  assert.equal((await client.roles.check(name, guard.token)).valid, true);
  await guard.release();
});

test('nobody is believed without the CA', async () => {
  const client = new Client(nodes, { deadlineMs: 1_000 });
  await assert.rejects(client.docs.put('k', 1), Unavailable);
  const other = new Client(nodes, { deadlineMs: 1_000, tls: { ca: [] } });
  await assert.rejects(other.docs.put('k', 1), Unavailable);
});
