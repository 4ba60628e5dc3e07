import { CoordinatorError } from '../../domain/errors.js';
import type { ApiKeyCurve } from '../../domain/key-formats.js';
import {
  isExpired,
  keysGivingWay,
  type ApiKey,
  type CredentialEvent,
  type LoginCredentialType,
} from '../../domain/organization/credentials.js';
import type { User } from '../../domain/organization/users.js';
import { DecimalString } from '../../wire/fields.js';
import { normalizePublicKey } from '../../stamps/keys.js';
import { longestLifeSeconds } from '../credentials/credential-params.js';
import type { DecideContext } from '../define-activity.js';
import type { RecordedActivity } from '../recorded-activity.js';

/** Default lifetime of a key created by a login, in seconds (specification, section 8). */
export const usualSessionSeconds = 15 * 60;

/** Default name of such a key, before ` - ` and the time (specification, 4.3.1 and 4.3.2). */
const names: Readonly<Record<LoginCredentialType, string>> = {
  CREDENTIAL_TYPE_LOGIN: 'Login',
  CREDENTIAL_TYPE_OTP_AUTH_KEY_P256: 'OTP Auth',
  CREDENTIAL_TYPE_OAUTH_KEY_P256: 'Oauth',
  CREDENTIAL_TYPE_EMAIL_AUTH_KEY_P256: 'Email Auth',
  CREDENTIAL_TYPE_READ_WRITE_SESSION_KEY_P256: 'Read Write Session',
};

/** The field of a login that sets the lifetime of its key. */
export function SessionSeconds() {
  return DecimalString({
    optional: true,
    min: 1,
    max: longestLifeSeconds,
    about: `Lifetime of the key in seconds; default ${usualSessionSeconds}.`,
  });
}

/** A key created by a login. */
interface SessionKey {
  /** Hex. */
  readonly publicKey: string;
  readonly curve: ApiKeyCurve;
  /** The class of the login, to which `invalidateExisting` applies. */
  readonly credentialType: LoginCredentialType;
  readonly apiKeyName?: string | undefined;
  /** Decimal; 900 by default. */
  readonly expirationSeconds?: string | undefined;
  readonly invalidateExisting?: boolean | undefined;
}

/** The lifetime of a session in seconds, as its login requests it. */
export function sessionSeconds(expirationSeconds: string | undefined): number {
  return expirationSeconds === undefined ? usualSessionSeconds : Number(expirationSeconds);
}

/** A key created for a user and sealed to a key of the client. */
export function recalledKey(recorded: RecordedActivity<{ credentialBundle?: string }>) {
  return {
    publicKey: recorded.first('ApiKeyCreated').publicKey,
    credentialBundle: recorded.result.credentialBundle!,
  };
}

/**
 * The events by which a login gives its key to a user (docs/protocol.md, sessions). With `invalidateExisting`, the
 * user's other keys of the same class are deleted. If there is no room for another expiring key, expired ones are
 * deleted first, then the oldest.
 * @throws {CoordinatorError} INVALID_ARGUMENT for a key of another curve, ALREADY_EXISTS for one that is taken
 */
export function sessionKeyEvents(
  { organization, now, newId, limits }: Pick<DecideContext, 'organization' | 'now' | 'newId' | 'limits'>,
  { userId, apiKeys }: Pick<User, 'userId' | 'apiKeys'>,
  { publicKey, curve, credentialType, apiKeyName, expirationSeconds, invalidateExisting = false }: SessionKey,
): { readonly apiKeyId: string; readonly events: CredentialEvent[] } {
  const normalized = normalizePublicKey(publicKey, curve);
  const isInTheWay = (key: ApiKey): boolean =>
    (invalidateExisting && key.credentialType === credentialType) ||
    // A client that logs in again with the same key; a key of another kind must not change its kind.
    (key.publicKey === normalized && (key.credentialType === credentialType || isExpired(key, now)));
  const gone = apiKeys.filter(isInTheWay);
  const kept = apiKeys.filter((key) => !isInTheWay(key));
  const owner = organization.apiKeyOwners.get(normalized);
  if (owner !== undefined && !gone.some((key) => key.publicKey === normalized)) {
    throw new CoordinatorError(
      'ALREADY_EXISTS',
      `public key \`${normalized}\` is already registered for user \`${owner}\`: log in with a new key`,
    );
  }
  const apiKeyId = newId();
  return {
    apiKeyId,
    events: [
      ...[...gone, ...keysGivingWay(kept, 1, now, limits)].map((key): CredentialEvent => {
        return { type: 'ApiKeyDeleted', data: { userId, apiKeyId: key.apiKeyId } };
      }),
      {
        type: 'ApiKeyCreated',
        data: {
          userId,
          apiKeyId,
          apiKeyName: apiKeyName ?? `${names[credentialType]} - ${new Date(now).toISOString()}`,
          publicKey: normalized,
          curve,
          credentialType,
          expirationSeconds: sessionSeconds(expirationSeconds),
        },
      },
    ],
  };
}
