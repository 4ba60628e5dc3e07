import { existingOnRampCredential } from '../../domain/organization/on-ramp-credentials.js';
import { Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { checkOnRampParams, keepOnRampKeys, OnRampCredentialParams, onRampFacts } from './on-ramp-params.js';

class UpdateFiatOnRampCredentialIntent extends OnRampCredentialParams {
  // The clients use this spelling here, and another one in the result.
  @Uuid({ about: 'The account to change.' })
  fiatOnrampCredentialId!: string;
}

class UpdateFiatOnRampCredentialResult {
  @Uuid()
  fiatOnRampCredentialId!: string;
}

/** Replaces everything about an account at a fiat on-ramp except its mode; its old keys are shredded. */
export const updateFiatOnRampCredential = defineActivity({
  type: 'ACTIVITY_TYPE_UPDATE_FIAT_ON_RAMP_CREDENTIAL',
  summary: 'Replaces the provider, project and keys of a fiat on-ramp account; sandbox mode stays the same.',
  intent: UpdateFiatOnRampCredentialIntent,
  result: UpdateFiatOnRampCredentialResult,
  policy: { resource: 'ON_RAMP_CREDENTIALS', action: 'UPDATE' },

  check(intent, organization) {
    existingOnRampCredential(organization, intent.fiatOnrampCredentialId);
    checkOnRampParams(intent);
  },

  prepare: (intent, ports, { organization }) => keepOnRampKeys(intent, ports, organization.organizationId),

  recall: (_intent, recorded) => recorded.first('FiatOnRampCredentialUpdated').vaultId,

  decide(intent, { organization }, vaultId) {
    const { fiatOnRampCredentialId, vaultId: replacedVaultId } = existingOnRampCredential(
      organization,
      intent.fiatOnrampCredentialId,
    );
    const data = { fiatOnRampCredentialId, ...onRampFacts(intent), vaultId, replacedVaultId };
    return { events: [{ type: 'FiatOnRampCredentialUpdated', data }], result: { fiatOnRampCredentialId } };
  },
});
