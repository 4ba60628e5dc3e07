import { existingUser } from '../../domain/organization/users.js';
import { Email, Text, Uuid } from '../../wire/fields.js';
import { changeProved, recalledContact, verifiedChange } from '../auth/verification.js';
import { defineActivity } from '../define-activity.js';

class UpdateUserEmailIntent {
  @Uuid({ about: 'The user whose address changes.' })
  userId!: string;

  @Email({ removable: true, about: 'The new e-mail address; empty to remove it.' })
  userEmail!: string;

  @Text({ optional: true, about: 'Verification token for the address, from verify_otp.' })
  verificationToken?: string;
}

class UpdateUserEmailResult {
  @Uuid()
  userId!: string;
}

/** Changes or removes a user's e-mail address. */
export const updateUserEmail = defineActivity({
  type: 'ACTIVITY_TYPE_UPDATE_USER_EMAIL',
  summary: "Changes or removes a user's e-mail address.",
  intent: UpdateUserEmailIntent,
  result: UpdateUserEmailResult,
  policy: { resource: 'USER', action: 'UPDATE' },
  params: { user_id: { type: { kind: 'string' }, from: ({ userId }) => userId } },
  foreseen: ({ userId, userEmail }) => [{ type: 'UserUpdated', data: { userId, userEmail } }],
  touches: ({ userId, userEmail }) => ({ type: 'UserUpdated', data: { userId, userEmail } }),

  check({ userId }, organization) {
    existingUser(organization, userId);
  },

  async prepare({ userEmail, verificationToken = '' }, ports, context) {
    return { claims: await verifiedChange({ userEmail, verificationToken }, ports, context) };
  },

  recall: ({ verificationToken }) => ({
    claims: verificationToken ? recalledContact(verificationToken) : undefined,
  }),

  decide({ userId, userEmail }, { organization }, { claims }) {
    return {
      events: [{ type: 'UserUpdated', data: { userId, userEmail } }, ...changeProved(organization, userId, claims)],
      result: { userId },
    };
  },
});
