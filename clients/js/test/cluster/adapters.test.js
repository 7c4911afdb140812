import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LeaderFeed } from '../../src/leader-feed.js';
import { MasterElection } from '../../src/master-election.js';
import { event, until } from '../help.js';
import { client, unique } from './stage.js';

test('MasterElection: master and slave, and the slave takes over', async () => {
  const lockName = unique('cms');
  const [first, second] = [0, 1].map((n) => new MasterElection(client(n), lockName));
  await first.start();
  const came = event(first, 'slave-registered');
  await second.start();
  assert.equal((await came).nodeId, second.getNodeId());
  assert.deepEqual([first.getIsMaster(), second.getIsMaster()], [true, false]);
  assert.equal((await second.getMasterProcess()).processId, first.getNodeId());
  assert.equal(await first.getSlaveCount(), 1);
  await until(async () => (await client().roles.get(lockName)).waiting === 1, 'a waiter');
  const over = event(second, 'master-acquired');
  await first.stop();
  await over;
  await until(async () => (await second.getProcessesByRole('master')).length === 1, 'the registry');
  assert.equal((await second.getAllProcesses()).length, 1);
  await second.stop();
});

test('LeaderFeed: two feeds of a table', async () => {
  const table = unique('table');
  const [feedA, feedB] = [0, 1].map((n) => new LeaderFeed(client(n)));
  const subscribed = event(feedB, 'subscribe started');
  await feedA.start({ table });
  await feedB.start({ table });
  await subscribed;
  assert.deepEqual([feedA.isLeader, feedB.isLeader], [true, false]);
  // The write is repeated until it is seen, so it does not matter when a subscription begins.
  let changed = null;
  feedB.on('change', (change) => (changed = change.value));
  await until(async () => (await client(2).docs.put(`${table}/1`, 'x'), changed === 'x'), 'a change');
  await until(async () => (await client().roles.get(table)).waiting === 1, 'a waiter');
  const over = event(feedB, 'new state');
  await feedA.stop();
  assert.equal(await over, 'leader');
  await feedB.stop();
});
