/** What a jest suite imports from `countersign/testing`. */
export {
  ports,
  startCoordinator,
  type Port,
  type StartOptions,
  type TestCoordinator,
  type TestUser,
} from './start-coordinator.js';
export { ApiError, send, StampingClient, submitPath, type ApiAnswer } from '../client/stamping-client.js';
export { ManualClock, SeededRandomness } from './deterministic.js';
export { stampBody, generateApiKeyPair, apiKeyPairFromPrivate, type ApiKeyPair } from '../stamps/sign.js';
