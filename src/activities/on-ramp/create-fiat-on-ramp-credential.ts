import { checkLimit } from '../../domain/organization/limits.js';
import { Flag, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { checkOnRampParams, keepOnRampKeys, OnRampCredentialParams, onRampFacts } from './on-ramp-params.js';

class CreateFiatOnRampCredentialIntent extends OnRampCredentialParams {
  @Flag({ optional: true, about: 'True for an account in the provider’s sandbox; default false.' })
  sandboxMode?: boolean;
}

class CreateFiatOnRampCredentialResult {
  @Uuid()
  fiatOnRampCredentialId!: string;
}

/** Stores a fiat on-ramp account; its secret keys are sealed in the vault. */
export const createFiatOnRampCredential = defineActivity({
  type: 'ACTIVITY_TYPE_CREATE_FIAT_ON_RAMP_CREDENTIAL',
  summary: 'Stores a fiat on-ramp account; its secret keys are sealed in the vault.',
  intent: CreateFiatOnRampCredentialIntent,
  result: CreateFiatOnRampCredentialResult,
  policy: { resource: 'ON_RAMP_CREDENTIALS', action: 'CREATE' },

  check(intent, organization, { limits }) {
    checkLimit(limits, 'fiatOnRampCredentials', organization.onRampCredentials.size, 1);
    checkOnRampParams(intent);
  },

  prepare: (intent, ports, { organization }) => keepOnRampKeys(intent, ports, organization.organizationId),

  recall: (_intent, recorded) => recorded.first('FiatOnRampCredentialCreated').vaultId,

  decide(intent, { newId }, vaultId) {
    const fiatOnRampCredentialId = newId();
    const sandboxMode = intent.sandboxMode ?? false;
    const data = { fiatOnRampCredentialId, ...onRampFacts(intent), vaultId, sandboxMode };
    return { events: [{ type: 'FiatOnRampCredentialCreated', data }], result: { fiatOnRampCredentialId } };
  },
});
