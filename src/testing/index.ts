/** What a jest suite imports from `countersign/testing`. */
export {
  ports,
  startCoordinator,
  type Port,
  type RecordedOrganizationEvent,
  type StartOptions,
  type TestCoordinator,
  type TestUser,
} from './start-coordinator.js';
export { matchers, type CountersignMatchers } from './matchers.js';
export {
  ActivityClient,
  type ParametersOf,
  type QueryName,
  type RequestOf,
  type ResponseOf,
  type ResultOf,
} from '../client/activity-client.js';
export { ethTransaction, solanaTransfer } from './transactions.js';
export type { DeliveredWebhook } from './webhook-sink.js';
export { ApiError, send, StampingClient, submitPath, type ApiAnswer } from '../client/stamping-client.js';
export { ManualClock, SeededRandomness } from './deterministic.js';
export { stampBody, generateApiKeyPair, apiKeyPairFromPrivate, type ApiKeyPair } from '../stamps/sign.js';
