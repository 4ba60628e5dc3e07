import { existingUser } from '../../domain/organization/users.js';
import { Email, Text, Uuid } from '../../schema/fields.js';
import { defineActivity } from '../define-activity.js';
import { refuseVerificationToken } from './user-params.js';

class UpdateUserEmailIntent {
  @Uuid({ about: 'The user whose address changes.' })
  userId!: string;

  @Email({ removable: true, about: 'The new e-mail address; empty: none.' })
  userEmail!: string;

  @Text({ optional: true, about: "Proof that the address is the user's." })
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

  decide({ userId, userEmail, verificationToken }, { organization }) {
    existingUser(organization, userId);
    refuseVerificationToken(verificationToken);
    return { events: [{ type: 'UserUpdated', data: { userId, userEmail } }], result: { userId } };
  },
});
