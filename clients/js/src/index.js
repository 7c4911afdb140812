// Everything that programs import.

export { Broker } from './broker.js';
export { Client } from './client.js';
export { Election } from './election.js';
export {
  BadAnswer,
  EldestError,
  FeedCompacted,
  Indeterminate,
  LeaseLost,
  NotFound,
  PreconditionFailed,
  Problem,
  RoleHeld,
  RoleNotHeld,
  Unavailable,
} from './errors.js';
export { LockGuard } from './lock.js';
export { Registry } from './registry.js';
export { leaderOnly, withElection } from './scope.js';
export { StateDoc } from './state-doc.js';
