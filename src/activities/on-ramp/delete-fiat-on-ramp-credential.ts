import { existingOnRampCredential } from '../../domain/organization/on-ramp-credentials.js';
import { Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class DeleteFiatOnRampCredentialIntent {
  // The clients use this spelling here, and another one in the result.
  @Uuid({ about: 'The account to delete.' })
  fiatOnrampCredentialId!: string;
}

class DeleteFiatOnRampCredentialResult {
  @Uuid()
  fiatOnRampCredentialId!: string;
}

/** Deletes an account at a fiat on-ramp; its keys are shredded. */
export const deleteFiatOnRampCredential = defineActivity({
  type: 'ACTIVITY_TYPE_DELETE_FIAT_ON_RAMP_CREDENTIAL',
  summary: 'Deletes a fiat on-ramp account and its keys.',
  intent: DeleteFiatOnRampCredentialIntent,
  result: DeleteFiatOnRampCredentialResult,
  policy: { resource: 'ON_RAMP_CREDENTIALS', action: 'DELETE' },

  decide({ fiatOnrampCredentialId: fiatOnRampCredentialId }, { organization }) {
    const { vaultId } = existingOnRampCredential(organization, fiatOnRampCredentialId);
    return {
      events: [{ type: 'FiatOnRampCredentialDeleted', data: { fiatOnRampCredentialId, vaultId } }],
      result: { fiatOnRampCredentialId },
    };
  },
});
