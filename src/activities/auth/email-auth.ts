import { CoordinatorError } from '../../domain/errors.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { messageSender } from '../../domain/organization/message-senders.js';
import { userReachedBy, type User } from '../../domain/organization/users.js';
import { authEmail, readEmailCustomization } from '../../delivery/templates.js';
import { parsePublicKey } from '../../keyring/curves.js';
import { Email, Flag, Hex, Label, Nested, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { checkLoginFeature } from '../organization/organization-features.js';
import { parentsWords } from '../parent-message-branding.js';
import { OlderEmailLooks, EmailLooks, MailSender, senderOf } from './otp-params.js';
import { sessionKeyEvents, SessionSeconds, sessionSeconds } from './session-keys.js';

class NamedEmailLooks extends EmailLooks {
  @Label({ about: 'Name of the application, as the recipient sees it.' })
  appName!: string;
}

class EmailAuthParams extends MailSender {
  @Email({ about: "The user's e-mail address, to which the credentials are sent." })
  email!: string;

  @Hex({ max: 130, about: 'P-256 key to which the credentials are sealed.' })
  targetPublicKey!: string;

  @Label({ optional: true, about: 'The name of the new key; `Email Auth - <Timestamp>` by default.' })
  apiKeyName?: string;

  @SessionSeconds()
  expirationSeconds?: string;

  @Flag({ optional: true, about: "Deletes the user's other keys created by email_auth." })
  invalidateExisting?: boolean;
}

class EmailAuthIntent extends EmailAuthParams {
  @Nested(() => OlderEmailLooks, { optional: true, about: 'Appearance of the e-mail.' })
  emailCustomization?: OlderEmailLooks;
}

class EmailAuthIntentV3 extends EmailAuthParams {
  @Nested(() => NamedEmailLooks, { about: 'Appearance of the e-mail.' })
  emailCustomization!: NamedEmailLooks;
}

class EmailAuthResult {
  @Uuid()
  userId!: string;

  @Uuid()
  apiKeyId!: string;
}

const resultKey = 'emailAuthResult';

const lift = ({ emailCustomization, ...rest }: EmailAuthIntent): EmailAuthIntentV3 => ({
  ...rest,
  emailCustomization: { ...emailCustomization, appName: emailCustomization?.appName ?? '' },
});

/** Sends new credentials to a user by e-mail, sealed to a key held by the user's client. */
export const emailAuth = defineActivity({
  type: 'ACTIVITY_TYPE_EMAIL_AUTH_V3',
  resultKey,
  summary: 'Emails new credentials to a user, encrypted to a key of the client.',
  intent: EmailAuthIntentV3,
  result: EmailAuthResult,
  olderVersions: [
    { type: 'ACTIVITY_TYPE_EMAIL_AUTH_V2', resultKey, intent: EmailAuthIntent, lift },
    { type: 'ACTIVITY_TYPE_EMAIL_AUTH', resultKey, intent: EmailAuthIntent, lift },
  ],
  policy: { resource: 'AUTH', action: 'CREATE' },
  submittedBy: 'user-or-parent',

  check({ email, targetPublicKey, emailCustomization }, organization) {
    parsePublicKey('CURVE_P256', targetPublicKey, 'parameters.targetPublicKey');
    readEmailCustomization(emailCustomization);
    checkLoginFeature(organization, 'FEATURE_NAME_EMAIL_AUTH');
    userToReach(organization, email);
  },

  async prepare(intent, { loginSecrets, delivery, contactLimits }, context) {
    const { organization, now } = context;
    const { organizationId } = organization;
    const { email: to, targetPublicKey } = intent;
    const words = parentsWords(context);
    // The parent's link is for codes: its page could not handle credentials.
    const { appName, magicLinkTemplate, ...looks } = words
      ? { ...words.emailCustomization, appName: words.appName, magicLinkTemplate: undefined }
      : intent.emailCustomization;
    await contactLimits.count({ contact: to, sender: messageSender(context, 'email', to), organizationId });
    const { publicKey, credentialBundle: bundle } = await loginSecrets.newApiKey(targetPublicKey);
    const seconds = sessionSeconds(intent.expirationSeconds);
    const mail = authEmail({
      ...readEmailCustomization({ ...looks, magicLinkTemplate }),
      appName: appName || organization.name,
      bundle,
      expiresInMinutes: Math.ceil(seconds / 60),
    });
    const expiresAt = now + seconds * 1000;
    const message = { channel: 'email', to, ...mail, ...senderOf(words ?? intent), expiresAt } as const;
    delivery.check(message);
    return { publicKey, message };
  },

  recall: (_intent, recorded) => ({ publicKey: recorded.first('ApiKeyCreated').publicKey }),

  decide({ email, apiKeyName, expirationSeconds, invalidateExisting }, context, { publicKey }) {
    const user = userToReach(context.organization, email);
    const { apiKeyId, events } = sessionKeyEvents(context, user, {
      publicKey,
      curve: 'API_KEY_CURVE_P256',
      credentialType: 'CREDENTIAL_TYPE_EMAIL_AUTH_KEY_P256',
      apiKeyName,
      expirationSeconds,
      invalidateExisting,
    });
    const { userId } = user;
    return { events, result: { userId, apiKeyId }, login: { userId, by: 'email' } };
  },

  afterwards: ({ message }, { delivery }) => void delivery.enqueue(message),
});

/** The result names the user, so the response to an unknown address must differ. */
function userToReach(organization: OrganizationView, email: string): User {
  const user = userReachedBy(organization, 'email', email);
  if (user) return user;
  throw new CoordinatorError(
    'NOT_FOUND',
    `no user of organization \`${organization.organizationId}\` has the e-mail address \`${email}\``,
  );
}
