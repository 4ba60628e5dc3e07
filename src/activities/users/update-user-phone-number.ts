import { existingUser } from '../../domain/organization/users.js';
import { Phone, Text, Uuid } from '../../wire/fields.js';
import { changeProved, recalledContact, verifiedChange } from '../auth/verification.js';
import { defineActivity } from '../define-activity.js';

class UpdateUserPhoneNumberIntent {
  @Uuid({ about: 'The user whose number changes.' })
  userId!: string;

  @Phone({ removable: true, about: 'The new phone number in E.164 format; empty to remove it.' })
  userPhoneNumber!: string;

  @Text({ optional: true, about: 'Verification token for the number, from verify_otp.' })
  verificationToken?: string;
}

class UpdateUserPhoneNumberResult {
  @Uuid()
  userId!: string;
}

/** Changes or removes a user's phone number. */
export const updateUserPhoneNumber = defineActivity({
  type: 'ACTIVITY_TYPE_UPDATE_USER_PHONE_NUMBER',
  summary: "Changes or removes a user's phone number.",
  intent: UpdateUserPhoneNumberIntent,
  result: UpdateUserPhoneNumberResult,
  policy: { resource: 'USER', action: 'UPDATE' },
  params: { user_id: { type: { kind: 'string' }, from: ({ userId }) => userId } },
  foreseen: ({ userId, userPhoneNumber }) => [{ type: 'UserUpdated', data: { userId, userPhoneNumber } }],
  touches: ({ userId, userPhoneNumber }) => ({ type: 'UserUpdated', data: { userId, userPhoneNumber } }),

  check({ userId }, organization) {
    existingUser(organization, userId);
  },

  async prepare({ userPhoneNumber, verificationToken = '' }, ports, context) {
    return { claims: await verifiedChange({ userPhoneNumber, verificationToken }, ports, context) };
  },

  recall: ({ verificationToken }) => ({
    claims: verificationToken ? recalledContact(verificationToken) : undefined,
  }),

  decide({ userId, userPhoneNumber }, { organization }, { claims }) {
    return {
      events: [
        { type: 'UserUpdated', data: { userId, userPhoneNumber } },
        ...changeProved(organization, userId, claims),
      ],
      result: { userId },
    };
  },
});
