import type { AcquireOptions, Backend, CallOptions, Clock, FeedEvent, Grant, Refusal, ReleaseOptions, Renewal, RenewOptions, RoleInfo, WatchOptions } from './index.js';

export declare class MemoryBackend implements Backend {
  constructor(options?: { clock?: Clock });
  readonly clock: Clock;
  acquire(role: string, options: AcquireOptions): Promise<Grant | Refusal>;
  renew(role: string, options: RenewOptions): Promise<Renewal>;
  release(role: string, options: ReleaseOptions): Promise<void>;
  elect(role: string, options: AcquireOptions): Promise<Grant>;
  get(role: string, options?: CallOptions): Promise<RoleInfo>;
  watch(role: string, options?: WatchOptions): AsyncIterable<FeedEvent>;
  /** Acts as if the holder's lease had run out. */
  expire(role: string): void;
}

/** A clock that stands still until it is moved. */
export declare class ManualClock implements Clock {
  now(): number;
  after(ms: number, fn: () => void): () => void;
  /** Lets time pass: due timers fire in order. */
  advance(ms: number): Promise<void>;
  /** Time passes, but no timer fires. */
  skip(ms: number): void;
}
