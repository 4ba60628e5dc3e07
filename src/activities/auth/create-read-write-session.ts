import { CoordinatorError } from '../../domain/errors.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { existingUser, type User } from '../../domain/organization/users.js';
import { parsePublicKey } from '../../keyring/curves.js';
import { Email, Flag, Hex, Label, Text, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { recalledKey, sessionKeyEvents, SessionSeconds } from './session-keys.js';

class SessionParams {
  @Hex({ max: 130, about: 'P-256 key to which the credentials are sealed.' })
  targetPublicKey!: string;

  @Label({ optional: true, about: 'The name of the new key; `Read Write Session - <Timestamp>` by default.' })
  apiKeyName?: string;

  @SessionSeconds()
  expirationSeconds?: string;
}

class CreateReadWriteSessionIntent extends SessionParams {
  @Email({ about: 'E-mail address of the user; it must be the user who stamps the request.' })
  email!: string;
}

class CreateReadWriteSessionIntentV2 extends SessionParams {
  @Uuid({ optional: true, about: 'The user; it must be the one who stamps the request.' })
  userId?: string;

  @Flag({ optional: true, about: "Deletes the user's keys from other read-write sessions." })
  invalidateExisting?: boolean;

  /** The first version names the user here. */
  email?: string;
}

class CreateReadWriteSessionResult {
  @Uuid()
  organizationId!: string;

  @Text()
  organizationName!: string;

  @Uuid()
  userId!: string;

  @Text()
  username!: string;

  @Uuid()
  apiKeyId!: string;

  @Text()
  credentialBundle!: string;
}

/**
 * Gives the caller a short-lived key. Nobody gets one for another user, whatever policies say: the right to log people
 * in would be the right to be each of them.
 */
export const createReadWriteSession = defineActivity({
  type: 'ACTIVITY_TYPE_CREATE_READ_WRITE_SESSION_V2',
  // `@turnkey/core` 1.x sends the second version and reads the result of the first.
  resultKey: ['createReadWriteSessionResult', 'createReadWriteSessionResultV2'],
  summary: 'Issues short-lived credentials to the user who stamped the request.',
  intent: CreateReadWriteSessionIntentV2,
  result: CreateReadWriteSessionResult,
  olderVersions: [
    {
      type: 'ACTIVITY_TYPE_CREATE_READ_WRITE_SESSION',
      intent: CreateReadWriteSessionIntent,
      lift: (intent: CreateReadWriteSessionIntent): CreateReadWriteSessionIntentV2 => intent,
    },
  ],
  policy: { resource: 'AUTH', action: 'CREATE' },
  submittedBy: 'user-who-logs-in',

  check({ targetPublicKey }) {
    parsePublicKey('CURVE_P256', targetPublicKey, 'parameters.targetPublicKey');
  },

  prepare(intent, { loginSecrets }, { organization, submitterId }) {
    submitterAsked(intent, organization, submitterId);
    return loginSecrets.newApiKey(intent.targetPublicKey);
  },

  recall: (_intent, recorded) => recalledKey(recorded),

  decide(intent, context, { publicKey, credentialBundle }) {
    const { organization, submitterId } = context;
    const user = submitterAsked(intent, organization, submitterId);
    const { apiKeyName, expirationSeconds, invalidateExisting } = intent;
    const { apiKeyId, events } = sessionKeyEvents(context, user, {
      publicKey,
      curve: 'API_KEY_CURVE_P256',
      credentialType: 'CREDENTIAL_TYPE_READ_WRITE_SESSION_KEY_P256',
      apiKeyName,
      expirationSeconds,
      invalidateExisting,
    });
    const { organizationId, name: organizationName } = organization;
    const { userId, userName: username } = user;
    return { events, result: { organizationId, organizationName, userId, username, apiKeyId, credentialBundle } };
  },
});

/** The caller, who must be the named user. @throws {CoordinatorError} PERMISSION_DENIED */
function submitterAsked(
  { userId, email }: CreateReadWriteSessionIntentV2,
  organization: OrganizationView,
  submitterId: string,
): User {
  const user = existingUser(organization, submitterId);
  if ((userId === undefined || userId === submitterId) && (email === undefined || email === user.userEmail))
    return user;
  throw new CoordinatorError(
    'PERMISSION_DENIED',
    `a session is issued only to the user who requests it, \`${submitterId}\`, not to \`${userId ?? email}\`: stamp as that user`,
    { category: 'REQUEST_NOT_AUTHORIZED' },
  );
}
