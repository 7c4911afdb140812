import { Clock, Emitter, Status } from './index.js';

export type Callback<T = void> = (error?: Error | null, value?: T) => void;
export type Done = (error?: Error | null) => void;

export interface LeaderFeedTimings {
  /** 1 000. */
  heartbeatIntervalMs?: number;
  /** Twice `heartbeatIntervalMs`. */
  electionTimeoutMinMs?: number;
  /** Twice `electionTimeoutMinMs`. */
  electionTimeoutMaxMs?: number;
  /** true. */
  createIfMissing?: boolean;
  id?: string;
}

export type LeaderFeedEvents = {
  change: [change: any];
  'new state': [state: 'leader' | 'follower'];
  'new leader': [id: string];
  'subscribe started': [];
  'subscribe error': [error: Error];
  'heartbeat error': [error: Error];
};

export declare class LeaderFeedBase extends Emitter<LeaderFeedEvents & { heartbeat: [leaderId: string] }> {
  constructor(options?: LeaderFeedTimings & { clock?: Clock });
  readonly id: string;
  readonly status: Status;
  readonly isLeader: boolean;
  start(options?: any, callback?: Callback<this>): Promise<this>;
  stop(callback?: Callback): Promise<void>;
  elect(id?: string, callback?: Callback): Promise<void>;
  elect(callback: Callback): Promise<void>;
  _start(options: any, done: Done): void | Promise<void>;
  _create(done: Done): void | Promise<void>;
  _subscribe(done: Done): void | Promise<void>;
  _unsubscribe(done: Done): void | Promise<void>;
  _heartbeat(done: Done): void | Promise<void>;
  _elect(id: string, done: Done): void | Promise<void>;
}
