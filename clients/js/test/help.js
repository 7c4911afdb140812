// Helpers of the tests.

import { Client } from '../src/index.js';
import { FakeCluster } from './fake.js';

/** A test that hangs is a failure; this time measures nothing. */
const PATIENCE_MS = 60_000;

/** A fake cluster that ends with the test, after everything in `ends`, and a client of it. */
export async function fake(t, nodes = 1, options = {}) {
  const cluster = await FakeCluster.start(nodes);
  const first = [];
  t.after(async () => {
    await Promise.all(first.map((one) => one.stop()));
    await cluster.stop();
  });
  const ends = (...more) => first.push(...more);
  return { cluster, client: new Client(cluster.urls, options), ends };
}

/** Resolves when `condition` holds. */
export async function until(condition, what = 'the condition') {
  const end = Date.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`${what} did not come to hold`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** Resolves with the first value of the event. */
export function event(emitter, name) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no ${name}`)), PATIENCE_MS);
    emitter.once(name, (value) => {
      clearTimeout(timer);
      resolve(value);
    });
  });
}

/** Every event of these names, as `[name, ...values]`, in order. */
export function recorded(emitter, names) {
  const heard = [];
  for (const name of names) emitter.on(name, (...values) => heard.push([name, ...values]));
  return heard;
}

export const ELECTION_EVENTS = [
  'leader_acquired',
  'leader_lost',
  'election_started',
  'election_completed',
  'new_leader',
  'new_state',
];
