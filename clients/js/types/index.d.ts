// The types of the library; README.md explains them.

declare global {
  // This is for compilers whose library does not have it yet; the declaration is the same as theirs.
  interface SymbolConstructor {
    readonly asyncDispose: unique symbol;
  }
}

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Level = 'linear' | 'leader' | 'local';

export interface ClientOptions {
  /** The admin token, for `elect` and for clusters that ask for one. */
  token?: string;
  /**
   * The secret that this client shows for its leases, 1 to 256 ASCII characters; each client draws its own by default.
   */
  secret?: string;
  /** Under Node, for nodes that speak TLS: the trusted CA, and the certificate and key to show; each a text in PEM. */
  tls?: { ca: string; cert?: string; key?: string };
  /** The time of one call with all its attempts: 10 000. */
  deadlineMs?: number;
  /** The time of one attempt: 3 000. */
  attemptTimeoutMs?: number;
  fetch?: typeof fetch;
  clock?: Clock;
}

/** Time, for tests that bring their own clock. */
export interface Clock {
  now(): number;
  after(ms: number, fn: () => void, options?: { background?: boolean }): () => void;
}

export interface CallOptions {
  deadlineMs?: number;
  signal?: AbortSignal;
}

export interface WriteOptions extends CallOptions {
  /** Random by default: the same key again is the same call again. */
  idempotencyKey?: string;
}

export interface Page<Item> {
  items: Item[];
  next: string | null;
}

export interface PageOptions {
  prefix?: string;
  limit?: number;
  after?: string;
  level?: Level;
}

export interface Command {
  storage_cmd: string;
  payload: Json | string;
}

export interface Applied {
  index: number;
  epoch: string;
}

/** For a batch there is `results` in the place of `result`. */
export type BulkApplied = Applied & { result?: any; results?: any[] };

export declare class Client {
  constructor(nodes: string | Iterable<string>, options?: ClientOptions);
  readonly nodes: string[];
  readonly node: string;
  readonly docs: Docs;
  readonly users: Reading;
  readonly elections: Reading;
  readonly conflicts: Conflicts;
  readonly roles: Roles;
  readonly processes: Processes;
  readonly channels: Channels;
  readonly backend: Backend;
  command(storageCmd: string, payload: Json | string, options?: WriteOptions): Promise<Applied & { result: any }>;
  batch(commands: Command[], options?: WriteOptions): Promise<Applied & { results: any[] }>;
  bulk(commands: Command[], options?: { deadlineMs?: number; signal?: AbortSignal }): Promise<(BulkApplied | Error)[]>;
  status(): Promise<any>;
  feed(options?: FeedOptions): Feed;
  election(role: string, options?: ElectionOptions): Election;
  withElection<T>(role: string, fn: (election: Election) => T | Promise<T>, options?: OnceOptions): Promise<T>;
  leaderOnly<A extends any[], T>(role: string, fn: (...values: A) => T, options?: ElectionOptions): Guarded<A, T>;
  lock(role: string, options?: LockOptions): Promise<LockGuard>;
  registry(options?: RegistryOptions): Registry;
  broker(options?: BrokerOptions): Broker;
  stateDoc<T = Json>(key: string, options?: StateDocOptions<T>): StateDoc<T>;
}

export interface Doc<T = Json> {
  key: string;
  value: T;
  rev: string;
}

export interface Written {
  key: string;
  rev: string;
  created: boolean;
}

/** When a document ends by itself. */
export interface Ending {
  ttlMs?: number;
  /** `secret`: that of a lease that another client was granted; for its own leases this client shows its own. */
  with?: { role: string; token: number; secret?: string } | { process: string; secret?: string };
}

/** A grant of a role: a lock, an election and a broker are one. Without a token the grant is over. */
export interface Holder {
  readonly role: string;
  readonly token: number | null;
}

export interface DocWriteOptions extends WriteOptions {
  ifRev?: string;
  /** Write only while the role is held under that token; otherwise `RoleNotHeld`. */
  ifRole?: Holder;
}

export interface Docs {
  get<T = Json>(key: string, options?: { level?: Level; signal?: AbortSignal }): Promise<Doc<T>>;
  put(key: string, value: unknown, options?: DocWriteOptions & Ending & { ifAbsent?: boolean }): Promise<Written>;
  renew(key: string, options?: CallOptions & { ifRev?: string }): Promise<number>;
  delete(key: string, options?: DocWriteOptions): Promise<{ key: string }>;
  list<T = Json>(options?: PageOptions & { signal?: AbortSignal }): Promise<Page<Doc<T>>>;
  all<T = Json>(options?: { prefix?: string; level?: Level; signal?: AbortSignal }): AsyncIterableIterator<Doc<T>>;
}

export interface Reading {
  get(name: string, options?: { level?: Level }): Promise<any>;
  list(options?: PageOptions): Promise<Page<any>>;
}

export interface Conflicts {
  list(options?: PageOptions & { kind?: 'doc' | 'user' | 'election' | 'vote' }): Promise<Page<any>>;
  get(id: string, options?: { level?: Level }): Promise<any>;
  apply(id: string, options?: { idempotencyKey?: string }): Promise<any>;
  drop(id: string, options?: { idempotencyKey?: string }): Promise<any>;
}

export interface Channels {
  publish(name: string, message: unknown, options?: CallOptions): Promise<number>;
  listen<T = Json>(name: string, options?: StreamOptions): Stream<T>;
}

// Roles.

export interface Leader {
  instance_id: string;
  address: string | null;
  metadata: Json;
}

export interface RoleInfo {
  role: string;
  leader: Leader | null;
  token: number | null;
  ttl_ms: number | null;
  acquired_at: string | null;
  expires_in_ms: number | null;
  waiting: number | null;
}

export interface Grant {
  outcome: 'elected' | 'already_leader';
  role: string;
  leader: Leader | null;
  token: number;
  expiresInMs: number;
  /** The time on the backend's clock from which the span counts. */
  sentAt: number;
  /** The grant may be as old as the wait: renew before you believe in it. */
  waited: boolean;
}

export interface Refusal {
  outcome: 'other_leader' | 'conflict';
  role: string;
  leader: Leader | null;
  token: number | null;
  expiresInMs: number | null;
}

export interface AcquireOptions extends CallOptions {
  instanceId: string;
  ttlMs?: number;
  address?: string | null;
  metadata?: Json;
  priority?: number;
  waitMs?: number;
  attemptTimeoutMs?: number;
}

export interface RenewOptions extends CallOptions {
  instanceId: string;
  token: number;
  ttlMs?: number;
  /** The number of the connection that the lease has to end with; the numbers rise. */
  tie?: number;
  attemptTimeoutMs?: number;
}

export interface ReleaseOptions extends CallOptions {
  instanceId: string;
  token: number;
}

export interface TieOptions {
  instanceId: string;
  token: number;
  ttlMs?: number;
  tie: number;
  graceMs?: number;
  signal?: AbortSignal;
}

export interface Tie {
  /** First `tied`, with a renewal; `renew` if the lease has to be renewed at once, `stopping` when the node lets go. */
  events: AsyncIterable<{ kind: string; renewal?: Renewal }>;
  close(): void;
}

/** A connection and a lease, or the lease alone. */
export type HeldBy = 'connection' | 'lease';

export interface Renewal {
  expiresInMs: number;
  sentAt: number;
}

export interface Roles {
  acquire(role: string, options: AcquireOptions): Promise<Grant>;
  renew(role: string, options: RenewOptions): Promise<Renewal>;
  tie(role: string, options: TieOptions): Promise<Tie>;
  release(role: string, options: ReleaseOptions): Promise<void>;
  elect(role: string, options: AcquireOptions): Promise<Grant>;
  get(role: string, options?: CallOptions & { level?: Level }): Promise<RoleInfo>;
  list(options?: PageOptions): Promise<Page<RoleInfo>>;
  check(role: string, token: number, options?: { level?: Level }): Promise<{ valid: boolean; token: number | null }>;
  hold(role: string, options: AcquireOptions): AsyncIterableIterator<{ kind: 'held' | 'lost'; role: string; token: number }>;
}

export interface WatchOptions {
  signal?: AbortSignal;
  onOpen?: () => void;
  onError?: (error: Error) => void;
}

/** Everything that `Election` and `LockGuard` need: a cluster's backend, or `MemoryBackend`. */
export interface Backend {
  readonly clock: Clock;
  acquire(role: string, options: AcquireOptions): Promise<Grant | Refusal>;
  renew(role: string, options: RenewOptions): Promise<Renewal>;
  /**
   * If it is missing, roles are held by leases alone. An error with `neverOpen` says that there surely is no
   * connection.
   */
  tie?(role: string, options: TieOptions): Promise<Tie>;
  release(role: string, options: ReleaseOptions): Promise<void>;
  elect(role: string, options: AcquireOptions): Promise<Grant>;
  get(role: string, options?: CallOptions): Promise<RoleInfo>;
  watch(role: string, options?: WatchOptions): AsyncIterable<FeedEvent>;
  changes?(prefix: string, options?: WatchOptions): AsyncIterable<FeedEvent>;
}

export type Store = Client | Backend;

// Events.

type Listeners<Events extends { [name: string]: any[] }> = { [Name in keyof Events]: (...values: Events[Name]) => void };

export declare class Emitter<Events extends { [name: string]: any[] }> {
  on<Name extends keyof Events>(event: Name, listener: Listeners<Events>[Name]): this;
  once<Name extends keyof Events>(event: Name, listener: Listeners<Events>[Name]): this;
  off<Name extends keyof Events>(event: Name, listener: Listeners<Events>[Name]): this;
  emit<Name extends keyof Events>(event: Name, ...values: Events[Name]): boolean;
}

// A type, because an interface has no index signature.
export type ElectionEvents = {
  leader_acquired: [token: number];
  leader_lost: [];
  election_started: [];
  election_completed: [isLeader: boolean];
  new_leader: [id: string];
  new_state: [state: 'leader' | 'follower'];
  change: [event: FeedEvent];
  subscribe_started: [];
  subscribe_error: [error: Error];
  heartbeat_error: [error: Error];
  error: [error: Error];
};

export interface ElectionOptions {
  /** One life of a process; random by default. */
  instanceId?: string;
  /** A name for people; the instance's id by default. */
  identifier?: string;
  /** 30 000. */
  ttlMs?: number;
  /** `connection`: the role is free about a second after this process was killed. `lease`: when its ttl is over. */
  heldBy?: HeldBy;
  /** 10 000, or a third of a shorter ttl. */
  renewEveryMs?: number;
  /** A follower's call waits for the role this long before it is repeated: 5 000. */
  checkEveryMs?: number;
  /** `start` may take this long before it goes on in the background: the client's `deadlineMs`, 5 000 at most. */
  startDeadlineMs?: number;
  /** Higher first: 0. */
  priority?: number;
  metadata?: Json;
  address?: string | null;
  /** Whether the election reads the feed too: true. */
  watch?: boolean;
  /** Emits changes of documents whose keys begin with this as `change`; null, for none. */
  changes?: string | null;
  attemptTimeoutMs?: number;
}

export interface OnceOptions extends ElectionOptions {
  waitMs?: number;
}

export type Status = 'stopped' | 'starting' | 'started' | 'stopping';

export declare class Election extends Emitter<ElectionEvents> {
  constructor(store: Store, role: string, options?: ElectionOptions);
  readonly role: string;
  readonly id: string;
  readonly identifier: string;
  readonly status: Status;
  readonly isLeader: boolean;
  readonly token: number | null;
  readonly signal: AbortSignal | null;
  readonly leader: string | null;
  readonly lastError: Error | null;
  metadata: Json;
  start(): Promise<this>;
  tryOnce(options?: { waitMs?: number }): Promise<boolean>;
  stop(): Promise<void>;
  elect(id?: string): Promise<void>;
  waitForElection(timeoutMs?: number): Promise<boolean>;
  waitForLeadership(timeoutMs?: number): Promise<boolean>;
  leaderOnly<A extends any[], T>(fn: (...values: A) => T): (...values: A) => T | undefined;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface Guarded<A extends any[], T> {
  (...values: A): Promise<Awaited<T> | undefined>;
  readonly election: Election;
  stop(): Promise<void>;
}

export declare function withElection<T>(
  store: Store,
  role: string,
  fn: (election: Election) => T | Promise<T>,
  options?: OnceOptions,
): Promise<T>;

export declare function leaderOnly<A extends any[], T>(
  store: Store,
  role: string,
  fn: (...values: A) => T,
  options?: ElectionOptions,
): Guarded<A, T>;

export interface LockOptions {
  instanceId?: string;
  ttlMs?: number;
  renewEveryMs?: number;
  heldBy?: HeldBy;
  waitMs?: number;
  priority?: number;
  address?: string | null;
  metadata?: Json;
  signal?: AbortSignal;
}

export declare class LockGuard {
  static acquire(store: Store, role: string, options?: LockOptions): Promise<LockGuard>;
  private constructor();
  readonly role: string;
  readonly token: number;
  readonly held: boolean;
  readonly lost: AbortSignal;
  release(options?: { deadlineMs?: number }): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

// The registry.

export interface ProcessEntry {
  id: string;
  identifier: string;
  role: string | null;
  capabilities: any;
  metadata: any;
  channel: string;
  ttl_ms: number;
  registered_at: string;
  last_seen: string | null;
  expires_in_ms: number | null;
}

export interface ProcessOptions extends WriteOptions {
  identifier?: string;
  role?: string;
  capabilities?: Json;
  metadata?: Json;
  ttlMs?: number;
}

export interface ProcessFilter {
  role?: string;
  capability?: string;
  identifier?: string;
  level?: Level;
  signal?: AbortSignal;
}

export interface Processes {
  put(id: string, options?: ProcessOptions): Promise<ProcessEntry>;
  heartbeat(id: string, options?: CallOptions): Promise<{ id: string; expires_in_ms: number }>;
  get(id: string, options?: { level?: Level; signal?: AbortSignal }): Promise<ProcessEntry>;
  list(options?: ProcessFilter & { limit?: number; after?: string }): Promise<Page<ProcessEntry>>;
  all(options?: ProcessFilter): AsyncIterableIterator<ProcessEntry>;
  delete(id: string, options?: CallOptions): Promise<void>;
}

export type RegistryEvents = {
  /** The process has come, or was there in the role `before`. */
  slave_registered: [process: ProcessEntry, before: string | null];
  /** The process's metadata, capabilities or identifier have changed. */
  slave_changed: [process: ProcessEntry];
  /** The process has gone, or has another role now. */
  slave_removed: [id: string];
  heartbeat_error: [error: Error];
  error: [error: Error];
};

export interface RegistryEntry {
  identifier?: string;
  /** `slave`. */
  role?: string;
  capabilities?: Json;
  metadata?: Json;
  /** 45 000. */
  ttlMs?: number;
}

export interface RegistryOptions extends RegistryEntry {
  id?: string;
  /** 10 000. */
  heartbeatEveryMs?: number;
  /** The role whose holder is the master; null: the process that calls itself `masterRole`. */
  leaderOf?: string | null;
  masterRole?: string;
  slaveRole?: string;
  /** Other processes are ignored. */
  filter?: (process: ProcessEntry) => boolean;
}

export declare class Registry extends Emitter<RegistryEvents> {
  constructor(client: Client, options?: RegistryOptions);
  readonly id: string;
  readonly entry: RegistryEntry & { id: string };
  readonly channel: string;
  register(changes?: RegistryEntry, options?: { signal?: AbortSignal }): Promise<ProcessEntry>;
  heartbeat(id?: string): Promise<{ id: string; expires_in_ms: number }>;
  all(): Promise<ProcessEntry[]>;
  byRole(role: string): Promise<ProcessEntry[]>;
  byCapability(capability: string): Promise<ProcessEntry[]>;
  byIdentifier(identifier: string): Promise<ProcessEntry[]>;
  master(): Promise<ProcessEntry | null>;
  slaves(): Promise<ProcessEntry[]>;
  slave(id: string): Promise<ProcessEntry | null>;
  slaveCount(): Promise<number>;
  process(id: string): Promise<ProcessEntry | null>;
  unregister(id?: string, options?: { deadlineMs?: number }): Promise<void>;
  watch(): Promise<this>;
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

// Brokers.

export type ElectionResult =
  | { status: 'elected' }
  | { status: 'already_leader' }
  | { status: 'other_leader'; leader: string | null }
  | { status: 'conflict' };

export interface BrokerOptions {
  /** `broker`. */
  role?: string;
  /** The address that others see. A leader with this address is taken for an earlier life of this broker. */
  address?: string | null;
  instanceId?: string;
  metadata?: Json;
  /** 3 000. */
  heartbeatEveryMs?: number;
  /** 10 000. */
  ttlMs?: number;
}

export type BrokerEvents = {
  leader_lost: [];
  heartbeat_error: [error: Error];
};

export declare class Broker extends Emitter<BrokerEvents> {
  constructor(store: Store, options?: BrokerOptions);
  readonly role: string;
  readonly id: string;
  readonly address: string | null;
  readonly isLeader: boolean;
  readonly token: number | null;
  tryElect(): Promise<ElectionResult>;
  checkLeadership(): Promise<boolean>;
  /** For writes that a program makes in this broker's name: the token that was refused. */
  refused(token: number | null, error: Error): void;
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface StateDocOptions<T> {
  initial?: T;
  /** 16. */
  triesMost?: number;
  /** Every write is made in its name; if one is refused, it has lost the lead. */
  broker?: Broker;
}

export interface State<T> {
  value: T;
  rev: string | null;
}

export declare class StateDoc<T = Json> {
  constructor(client: Client, key: string, options?: StateDocOptions<T>);
  readonly key: string;
  read(): Promise<State<T>>;
  create(value?: T): Promise<State<T>>;
  swap(value: T, rev: string | null): Promise<State<T>>;
  update(fn: (value: T) => T | undefined | Promise<T | undefined>): Promise<State<T>>;
}

// The feed.

export type FeedKind =
  | 'change'
  | 'new_leader'
  | 'new_state'
  | 'election_started'
  | 'election_completed'
  | 'role_acquired'
  | 'role_lost'
  | 'process_registered'
  | 'process_changed'
  | 'process_removed'
  | 'conflict'
  | 'service_down'
  | 'service_up'
  | 'members_changed'
  | 'merge_called_off'
  | 'token_created'
  | 'token_revoked';

/** Members other than `id` and `kind` belong to the kind. */
export interface FeedEvent {
  id?: string;
  kind: FeedKind | 'bookmark';
  [member: string]: any;
}

export interface StreamOptions extends WatchOptions {
  /** A node that is silent for this long is left: 15 000. */
  silenceMs?: number;
}

export interface FeedOptions extends StreamOptions {
  kinds?: FeedKind[];
  prefix?: string;
  /** Begin after this event; from now on by default. */
  since?: string | null;
  /** Whether bookmarks are delivered too: false. */
  bookmarks?: boolean;
}

export interface Stream<T> extends AsyncIterableIterator<T> {
  close(): Promise<void>;
}

export interface Feed extends Stream<FeedEvent> {
  readonly lastId: string | null;
}

// Errors.

export declare class EldestError extends Error {}
export declare class Unavailable extends EldestError {}
export declare class BadAnswer extends EldestError {}

export declare class Indeterminate extends EldestError {
  readonly idempotencyKey: string | null;
}

export declare class Problem extends EldestError {
  readonly status: number;
  readonly code: string;
  readonly retryable: boolean;
  readonly leaderNode: { id: number; url: string } | null;
  readonly requestId: string | null;
  readonly members: { [name: string]: any };
}

export declare class NotFound extends Problem {}

export declare class PreconditionFailed extends Problem {
  get currentRev(): string | null;
}

export declare class RoleNotHeld extends Problem {
  get role(): string | null;
}

export declare class FeedCompacted extends Problem {
  get oldest(): string | null;
}

export declare class LeaseLost extends Problem {
  get leader(): Leader | null;
  get token(): number | null;
}

export declare class RoleHeld extends Problem {
  get outcome(): 'other_leader' | 'conflict';
  get leader(): Leader | null;
  get token(): number | null;
  get expiresInMs(): number | null;
}
