import { Client, Emitter, HeldBy, Json } from './index.js';

export interface ProcessCapabilities {
  canProcessDetections: boolean;
  maxSubscriptions: number;
  /** From 0 to 100. */
  preferredWorkload: number;
}

export interface ProcessInfo {
  processId: string;
  nodeId: string;
  role: 'master' | 'slave';
  lastSeen: string;
  capabilities: any;
  channelName?: string;
}

export interface SlaveNode {
  nodeId: string;
  identifier: string;
  registeredAt: string;
  lastSeen: string;
  metadata?: any;
}

export type MasterElectionEvents = {
  'master-acquired': [];
  'master-lost': [];
  'election-started': [];
  'election-completed': [isMaster: boolean];
  'slave-registered': [slave: SlaveNode];
  'slave-removed': [nodeId: string];
  error: [error: Error];
};

type Settings = [
  lockName?: string,
  lockTtl?: number,
  heartbeatInterval?: number,
  checkInterval?: number,
  identifier?: string,
  heldBy?: HeldBy,
  /** A slave that is not heard from for this long is removed: 15 000. */
  slaveTimeout?: number,
  /** The interval of the heartbeats of a process: 5 000. */
  slaveHeartbeat?: number,
];

export declare class MasterElection extends Emitter<MasterElectionEvents> {
  constructor(client: Client, ...settings: Settings);
  start(): Promise<void>;
  stop(): Promise<void>;
  waitForElectionComplete(timeoutMs?: number): Promise<boolean>;
  getIsMaster(): boolean;
  getNodeId(): string;
  getIdentifier(): string;
  getToken(): number | null;
  setMetadata(metadata: { [name: string]: Json }): void;
  getMetadata(): { [name: string]: Json };
  registerProcess(info: ProcessInfo): Promise<void>;
  updateProcessHeartbeat(processId: string): Promise<void>;
  getAllProcesses(): Promise<ProcessInfo[]>;
  getMasterProcess(): Promise<ProcessInfo | null>;
  getProcessesByRole(role: 'master' | 'slave'): Promise<ProcessInfo[]>;
  unregisterProcess(processId: string): Promise<void>;
  getProcessChannel(processId: string): Promise<string | null>;
  registerAsSlave(): Promise<void>;
  unregisterFromSlaves(): Promise<void>;
  updateSlaveHeartbeat(): Promise<void>;
  getSlaves(): Promise<SlaveNode[]>;
  getSlave(nodeId: string): Promise<SlaveNode | null>;
  getSlaveCount(): Promise<number>;
}

export declare function initialize(client: Client, ...settings: Settings): Promise<MasterElection>;
/** Without a client, the nodes are those of `ELDEST_URL` or `ELDEST_NODES`, or the one at port 9000 of this machine. */
export declare function initialize(...settings: Settings): Promise<MasterElection>;
export declare function getMasterElection(): MasterElection;
export declare function shutdown(): Promise<void>;
