import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import { until } from '../help.js';
import { Client } from '../../src/index.js';
import { client, nodes, unique, Way } from './stage.js';

test('a holder that is killed: another one leads long before the ttl is over', async (t) => {
  const role = unique('killed');
  const child = spawn(process.execPath, [fileURLToPath(new URL('holder.js', import.meta.url)), role], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const [first] = await once(child.stdout, 'data');
  const next = client(1).election(role, { ttlMs: 3_600_000 });
  t.after(() => next.stop());
  await next.start();
  assert.equal(next.isLeader, false);
  child.kill('SIGKILL');
  // The ttl of the killed holder is an hour.
  await until(() => next.isLeader, 'the next one leads');
  assert.ok(next.token > Number(first));
});

test('a program that is done ends, though it holds a lock by a connection', async () => {
  const role = unique('done');
  const script = `import { client } from ${JSON.stringify(new URL('stage.js', import.meta.url).href)};
    const store = client(0);
    const tie = store.backend.tie.bind(store.backend);
    const tied = new Promise((resolve) => {
      store.backend.tie = async (...asked) => {
        const line = await tie(...asked);
        resolve();
        return line;
      };
    });
    await store.lock(${JSON.stringify(role)}, { ttlMs: 3_600_000 });
    const alive = setInterval(() => {}, 1000);
    await tied;
    clearInterval(alive);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'ignore', 'inherit'] });
  assert.deepEqual(await once(child, 'exit'), [0, null]);
  const taken = await client(1).lock(role, { waitMs: 60_000 });
  await taken.release();
});

test('the way to the node that it is tied to is cut: it holds on, under the same token', async (t) => {
  const role = unique('cut');
  const way = await Way.to(nodes[1], t);
  const holder = client(0);
  const tied = new Client([nodes[0], way.url], { token: process.env.ELDEST_TOKEN });
  const guard = await tied.lock(role, { ttlMs: 3_600_000 });
  await until(() => way.connections > 0, 'it is tied');
  way.close();
  // If the old number were still the newest, the node that served it would end the lease: the lock outlasts that time.
  await assert.rejects(holder.lock(role, { waitMs: 3_000 }), { code: 'role_held' });
  assert.equal(guard.held, true);
  assert.equal((await holder.roles.get(role)).token, guard.token);
  await guard.release();
});

test('cut off from all nodes: it has stopped believing when another one has the role', async (t) => {
  const role = unique('cut-off');
  const way = await Way.to(nodes[0], t);
  const store = new Client([way.url]);
  const tie = store.backend.tie.bind(store.backend);
  const tied = new Promise((resolve) => {
    store.backend.tie = async (...asked) => {
      const line = await tie(...asked);
      resolve();
      return line;
    };
  });
  const guard = await store.lock(role, { ttlMs: 3_600_000 });
  await tied;
  assert.equal(guard.held, true);
  way.close();
  const taken = await client(1).lock(role, { waitMs: 60_000 });
  assert.equal(guard.held, false);
  assert.ok(taken.token > guard.token);
  await taken.release();
});
