import { readSessionText } from '../../domain/read-session.js';
import { mendsOf } from '../../domain/organization/clock-mends.js';
import { existingUser } from '../../domain/organization/users.js';
import { DecimalString, Text, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { sessionSeconds } from './session-keys.js';

class CreateReadOnlySessionIntent {}

class CreateReadOnlySessionResult {
  @Uuid()
  organizationId!: string;

  @Text()
  organizationName!: string;

  @Uuid()
  userId!: string;

  @Text()
  username!: string;

  @Text({
    about:
      'Session token for the X-Session header of queries. Only the response to the submit holds it in full; read back later, it proves nothing.',
  })
  session!: string;

  @DecimalString({ min: 0, max: Number.MAX_SAFE_INTEGER, about: 'When the session ends, in seconds since the epoch.' })
  sessionExpiry!: string;
}

/**
 * Lets the caller read their organization for a while without stamping (docs/protocol.md, read-only sessions). Only the public
 * half is recorded: someone who reads the activity later, even in a backup, cannot query in the user's name.
 */
export const createReadOnlySession = defineActivity({
  type: 'ACTIVITY_TYPE_CREATE_READ_ONLY_SESSION',
  summary: 'Issues a read-only session to the user who stamped the request.',
  intent: CreateReadOnlySessionIntent,
  result: CreateReadOnlySessionResult,
  policy: { resource: 'AUTH', action: 'CREATE' },
  submittedBy: 'user-who-logs-in',

  decide(_intent, { organization, submitterId, credentialId, now }) {
    const { organizationId, name: organizationName } = organization;
    const { userId, userName: username } = existingUser(organization, submitterId);
    const expiresAt = Math.floor(now / 1000) + sessionSeconds(undefined);
    const session = readSessionText({
      organizationId,
      userId,
      credentialId,
      expiresAt,
      clockMends: mendsOf(organization),
    });
    const sessionExpiry = String(expiresAt);
    return { events: [], result: { organizationId, organizationName, userId, username, session, sessionExpiry } };
  },

  async reveal(result, { tokens }, appended) {
    return appended && { ...result, session: await tokens.proveReadSession(result.session) };
  },
});
