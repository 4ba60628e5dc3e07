/** What `import 'countersign'` gives: a client that stamps. It starts nothing; `npx countersign start` does. */
export {
  ActivityClient,
  type ListedEvent,
  type ParametersOf,
  type QueryName,
  type RequestOf,
  type ResponseOf,
  type ResultOf,
} from './client/activity-client.js';
export { ApiError, send, StampingClient, submitPath, type ApiAnswer } from './client/stamping-client.js';
export type { AnyEvent, EventData, EventDataByType, EventType } from './client/recorded-events.js';
export { apiKeyPairFromPrivate, generateApiKeyPair, stampBody, type ApiKeyPair } from './stamps/sign.js';
