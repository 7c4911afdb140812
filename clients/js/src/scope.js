// Work that only the leader does: in a scope, and in a function.

import { Election } from './election.js';

/** Tries once to win the role and calls `fn(election)` in both cases; gives the role up when `fn` is over. */
export async function withElection(store, role, fn, { waitMs = 0, ...options } = {}) {
  const election = new Election(store, role, options);
  try {
    await election.tryOnce({ waitMs });
    return await fn(election);
  } finally {
    await election.stop();
  }
}

/**
 * The elections that `leaderOnly` has begun: one for each store and role, for any number of functions that it guards.
 */
const shared = new WeakMap();

function sharedElection(store, role, options) {
  const roles = shared.get(store) ?? new Map();
  shared.set(store, roles);
  const entry = roles.get(role) ?? { election: new Election(store, role, options), started: null };
  roles.set(role, entry);
  entry.stop = () => {
    if (roles.get(role) === entry) roles.delete(role);
    entry.over = true;
    return entry.election.stop();
  };
  return entry;
}

/** Begins to stand for the role and waits until it is known who leads; after a failure the next call begins again. */
async function begun(entry) {
  entry.started ??= entry.election.start().then(() => entry.election.waitForElection());
  try {
    await entry.started;
  } catch (error) {
    entry.started = null;
    throw error;
  }
}

/**
 * Returns a function that runs `fn` only while this process leads, and otherwise resolves with undefined. Its first
 * call begins to stand for the role; its `stop` gives the role up, for every function that is guarded by the same role.
 */
export function leaderOnly(store, role, fn, options) {
  const entry = sharedElection(store, role, options);
  const { election, stop } = entry;
  const guarded = async function (...values) {
    if (entry.over) return undefined;
    await begun(entry);
    return election.isLeader ? fn.apply(this, values) : undefined;
  };
  return Object.assign(guarded, { election, stop });
}
