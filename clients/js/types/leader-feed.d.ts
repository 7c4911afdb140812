import { Client, Emitter, HeldBy, Status } from './index.js';
import { Callback, LeaderFeedEvents, LeaderFeedTimings } from './leader-feed-base.js';

export interface LeaderFeedStart {
  table?: string;
  collection?: string;
  channel?: string;
}

export declare class LeaderFeed extends Emitter<LeaderFeedEvents> {
  constructor(client: Client, options?: LeaderFeedTimings & { heldBy?: HeldBy });
  readonly id: string;
  readonly status: Status;
  readonly isLeader: boolean;
  readonly token: number | null;
  readonly client: Client;
  readonly table: string | null;
  readonly collection: string | null;
  start(options: LeaderFeedStart, callback?: Callback<this>): Promise<this>;
  stop(callback?: Callback): Promise<void>;
  elect(id?: string, callback?: Callback): Promise<void>;
  elect(callback: Callback): Promise<void>;
}
