// A program that uses everything: it has to compile, and the marked lines have to be refused.

import { Broker, Client, Election, FeedCompacted, Indeterminate, leaderOnly, LockGuard, RoleHeld, RoleNotHeld, withElection } from 'eldest-client';
import { LeaderFeed } from 'eldest-client/leader-feed';
import { LeaderFeedBase } from 'eldest-client/leader-feed/base';
import { initialize, MasterElection, type ProcessCapabilities } from 'eldest-client/master-election';
import { ManualClock, MemoryBackend } from 'eldest-client/memory';

const client = new Client(['http://127.0.0.1:9000'], { token: 'secret', deadlineMs: 5_000 });

export async function elections(): Promise<void> {
  const election = new Election(client, 'cleanup', { ttlMs: 30_000, priority: 1, metadata: { zone: 1 } });
  election.on('leader_acquired', (token) => token.toFixed());
  election.once('new_state', (state) => state === 'leader');
  election.off('heartbeat_error', (error) => error.message);
  // @ts-expect-error: there is no such event
  election.on('leader_aquired', () => {});
  // @ts-expect-error: whether this process leads is not for a program to say
  election.isLeader = true;
  await election.start();
  const led: boolean = await election.waitForElection(1_000);
  const token: number | null = election.token;
  await election.elect('other');
  await election[Symbol.asyncDispose]();
  const report: string = await withElection(client, 'report', async (one) => (one.isLeader ? 'made' : 'not mine'), { waitMs: 0 });
  const guarded = leaderOnly(client, 'aggregation', async (n: number) => n * 2);
  const twice: number | undefined = await guarded(2);
  await guarded.stop();
  void [led, token, report, twice];
}

export async function others(): Promise<void> {
  const clock = new ManualClock();
  const guard: LockGuard = await LockGuard.acquire(new MemoryBackend({ clock }), 'job', { waitMs: 1_000 });
  if (!guard.lost.aborted) await guard.release();
  const broker = new Broker(client, { address: '0.0.0.0:8080' });
  const result = await broker.tryElect();
  if (result.status === 'other_leader') result.leader?.toUpperCase();
  const registry = client.registry({ identifier: 'backend', capabilities: ['scan'] });
  registry.on('slave_registered', (process, before) => process.channel.length + (before?.length ?? 0));
  registry.on('slave_changed', (process) => process.channel.length);
  const count: number = await registry.slaveCount();
  const doc = client.stateDoc<{ jobs: number[] }>('queue', { initial: { jobs: [] } });
  await doc.update((state) => ({ jobs: [...state.jobs, count] }));
  await doc.update(() => undefined);
  await client.stateDoc('queue', { broker }).update(() => count);
  await client.docs.delete('queue', { ifRole: guard });
  // @ts-expect-error: not a state
  await doc.update(() => 'text');
}

export async function data(): Promise<string | null> {
  const { rev } = await client.docs.put('a', { n: 1 }, { ifAbsent: true });
  const { value } = await client.docs.get<{ n: number }>('a');
  await client.docs.put('a', { n: value.n + 1 }, { ifRev: rev });
  await client.docs.put('a', 1, { ttlMs: 5_000, with: { role: 'leader', token: 7 } });
  const left: number = await client.docs.renew('a', { ifRev: rev });
  await client.docs.put('a', 1, { with: { process: 'p', secret: 's' }, ifRole: { role: 'leader', token: 7 } });
  // @ts-expect-error: a role's lease is one grant of it
  await client.docs.put('a', left, { with: { role: 'leader' } });
  const feed = client.feed({ kinds: ['change'], prefix: 'a' });
  try {
    for await (const event of feed) if (event.kind === 'change') break;
  } catch (error) {
    if (error instanceof FeedCompacted) return error.oldest;
    if (error instanceof Indeterminate) return error.idempotencyKey;
    if (error instanceof RoleNotHeld) return error.role;
    if (error instanceof RoleHeld) return error.leader?.instance_id ?? null;
  }
  // @ts-expect-error: no such kind
  client.feed({ kinds: ['changes'] });
  return feed.lastId;
}

class Mine extends LeaderFeedBase {
  _subscribe(done: (error?: Error | null) => void): void {
    this.emit('heartbeat', 'somebody');
    done();
  }

  async _heartbeat(): Promise<void> {}
}

export async function adapters(): Promise<void> {
  const election: MasterElection = await initialize(client, 'cms', 30_000, 10_000, 5_000, 'cms-backend');
  await initialize('cms', 30_000);
  election.on('slave-registered', (slave) => slave.nodeId.length);
  const capabilities: ProcessCapabilities = { canProcessDetections: true, maxSubscriptions: 100, preferredWorkload: 80 };
  await election.registerProcess({ processId: 'p', nodeId: 'p', role: 'slave', lastSeen: '', capabilities });
  const master: boolean = election.getIsMaster();
  const feed = new LeaderFeed(client, { heartbeatIntervalMs: 1_000 });
  feed.on('new state', (state) => state.length);
  await feed.start({ table: 't' }, (error, started) => error ?? started?.isLeader);
  await new Mine({ createIfMissing: master }).start({ table: 't' });
}
