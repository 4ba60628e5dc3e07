/**
 * What `countersign-analyze` uses of the product, from `countersign/internal`. For the packages of this repository only: it changes
 * without notice.
 */
export { activities } from './activities/index.js';
export { createCoordinator } from './app/create-coordinator.js';
export { install, type RootCredentials } from './app/installation.js';
export { systemRandomness } from './app/world.js';
export type { AnalyzeOptions } from './cli/analysis-package.js';
export { BadUsage } from './cli/bad-usage.js';
export type { Outcome } from './cli/command.js';
export { exitCodes } from './cli/exit-codes.js';
export { unreadable as unreadableFile } from './cli/input-files.js';
export { printable, table } from './cli/layout.js';
export { mistakesShown, textIn } from './cli/policy-folder.js';
export type { Terminal } from './cli/terminal.js';
export { ActivityClient, type ParametersOf } from './client/activity-client.js';
export { ApiError, send, submitPath } from './client/stamping-client.js';
export { readConfig } from './config/config.js';
export { readsResources } from './decide/authorization-request.js';
export { foundOrganization } from './decide/found-organization.js';
export { buildRegistry, type Registry } from './decide/registry.js';
export { stampsOf, submittersOf } from './decide/submitters.js';
export type { AcceptedMessage, Carrier } from './delivery/delivery.js';
export { RetryingDelivery } from './delivery/retrying.js';
export { errorMessage } from './domain/errors.js';
export { otpLengths } from './domain/organization/otps.js';
export { authorize, eligibleApprovers } from './domain/policy/authorize.js';
export { analyse } from './domain/policy/consensus-analysis.js';
export { evaluate, type Scope } from './domain/policy/evaluate.js';
export type { Meaning } from './domain/policy/functions/function.js';
export { approvalNamespaces, type PolicyEnvironment } from './domain/policy/namespaces.js';
export { PolicyError, integerRange, type CheckedExpression, type Equality } from './domain/policy/syntax.js';
export {
  AmbiguousText,
  Doubt,
  Unreadable,
  notApplicable,
  type Approval,
  type AuthorizationRequest,
  type Clause,
  type Policy,
  type PolicyCredential,
  type PolicyType,
  type PolicyUser,
  type PolicyValue,
  unreadable,
} from './domain/policy/types.js';
export { createLogger } from './logging/logger.js';
export { sealMessage, sealTextBundle } from './keyring/hpke.js';
export { sealEnvelope } from './keyring/secret-envelope.js';
export { compiled, type LintRules } from './audit/lint/lint-subject.js';
export {
  readPolicyFile,
  recordAt,
  textsAt,
  type NamedKind,
  type PolicyFile,
  valueWithIds,
} from './audit/policies/policy-files.js';
export { readUsers } from './audit/policies/policy-tests.js';
export { shownValue } from './audit/explain/shown-value.js';
export { YamlFile, type Mistake } from './audit/policies/yaml-file.js';
export type { EventStore } from './ledger/event-store.js';
export { openEventStore } from './ledger/stores/open-event-store.js';
export type { Clock } from './ports/clock.js';
export { projectInMemory } from './read-models/projecting.js';
export { apiKeyPairFromPrivate, generateApiKeyPair, stampBody, type ApiKeyPair } from './stamps/sign.js';
export { outputAddress, scriptOf } from './transactions/bitcoin-addresses.js';
export { tronPermissionTypes, tronResources } from './transactions/tron.js';
export { type UnsignedEthereum, unsignedEthereum } from './transactions/unsigned-ethereum.js';
export { CannotBeWritten, byLibrary, hexBytes, unsigned } from './transactions/unsigned-refusals.js';
export {
  solanaAccounts,
  solanaLookedUp,
  type SolanaAccountUse,
  type SolanaInstructionToSend,
  type SolanaTable,
  unsignedSolana,
} from './transactions/unsigned-solana.js';
export { LocalKeyEncryption } from './vault/key-encryption.js';
export type { ActivityEnvelope } from './wire/envelope.js';
export { isEmail, isPhone } from './wire/fields.js';
