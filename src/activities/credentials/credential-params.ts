import { CoordinatorError, invalidField } from '../../domain/errors.js';
import type { ApiKeyCurve } from '../../domain/key-formats.js';
import { apiKeyCredentialType, keysGivingWay, type CredentialEvent } from '../../domain/organization/credentials.js';
import { oauthIdentity } from '../../domain/organization/oauth-identity.js';
import type { Limits } from '../../domain/organization/limits.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import type { User } from '../../domain/organization/users.js';
import {
  Base64Url,
  DecimalString,
  Flag,
  Hex,
  Label,
  ListOfOneOf,
  Nested,
  OneOf,
  Text,
  Uuid,
} from '../../wire/fields.js';
import { normalizePublicKey } from '../../stamps/keys.js';
import type { DecideContext, Foreseen } from '../define-activity.js';
import type { RecordedActivity } from '../recorded-activity.js';
import { maxCredentialIdBytes, type VerifiedRegistration } from '../../ports/passkeys.js';
import type { PreparePorts } from '../../ports/prepare.js';
import type { NamedIdentity } from './oauth-params.js';

const curves = Object.keys(apiKeyCredentialType) as readonly ApiKeyCurve[];

/** A hundred years: for longer, a key without an expiry is meant. */
export const longestLifeSeconds = 100 * 365 * 24 * 60 * 60;

const transports = [
  'AUTHENTICATOR_TRANSPORT_BLE',
  'AUTHENTICATOR_TRANSPORT_INTERNAL',
  'AUTHENTICATOR_TRANSPORT_NFC',
  'AUTHENTICATOR_TRANSPORT_USB',
  'AUTHENTICATOR_TRANSPORT_HYBRID',
];

/** An API key of the first version: always P-256. */
export class ApiKeyParams {
  @Label({ about: 'The name of the key.' })
  apiKeyName!: string;

  @Hex({ max: 130, about: 'The public key: a compressed or uncompressed point, or the 32 bytes of an Ed25519 key.' })
  publicKey!: string;

  @DecimalString({
    optional: true,
    min: 1,
    max: longestLifeSeconds,
    about: 'Lifetime of the key in seconds; if absent, it never expires.',
  })
  expirationSeconds?: string;
}

/** An API key. */
export class ApiKeyParamsV2 extends ApiKeyParams {
  @OneOf(curves, { about: 'The curve of the key.' })
  curveType!: ApiKeyCurve;
}

/** 1,023 bytes in base64. */
const maxCredentialIdCharacters = Math.ceil(maxCredentialIdBytes / 3) * 4;

/** What a browser returns for a new passkey (WebAuthn level 3, section 5.1.1). */
export class Attestation {
  @Base64Url({ max: maxCredentialIdCharacters, about: 'Id of the credential, base64url.' })
  credentialId!: string;

  @Base64Url({ about: 'Client data JSON, base64url.' })
  clientDataJson!: string;

  @Base64Url({ about: 'Attestation object, base64url.' })
  attestationObject!: string;

  @ListOfOneOf(transports, { about: 'Transports through which browsers can reach the authenticator.' })
  transports!: string[];
}

/** A passkey to register. */
export class AuthenticatorParamsV2 {
  @Label({ about: 'The name of the authenticator.' })
  authenticatorName!: string;

  @Text({ min: 1, max: 256, about: 'The challenge used to create the passkey, base64url.' })
  challenge!: string;

  @Nested(() => Attestation, { about: 'Proof that the passkey exists, and its public key.' })
  attestation!: Attestation;
}

class AuthenticatorAttestationResponse {
  @Base64Url({ about: 'Client data JSON, base64url.' })
  clientDataJson!: string;

  @Base64Url({ about: 'Attestation object, base64url.' })
  attestationObject!: string;

  @ListOfOneOf(transports, { optional: true, about: 'Transports through which browsers can reach the authenticator.' })
  transports?: string[];

  @OneOf(['cross-platform', 'platform'], { optional: true, about: 'How the authenticator is attached; not used.' })
  authenticatorAttachment?: string;
}

class CredPropsAuthenticationExtensionsClientOutputs {
  @Flag({ about: 'Whether the passkey is discoverable; not used.' })
  rk!: boolean;
}

class SimpleClientExtensionResults {
  @Flag({ optional: true, about: 'Output of the extension appid; not used.' })
  appid?: boolean;

  @Flag({ optional: true, about: 'Output of the extension appidExclude; not used.' })
  appidExclude?: boolean;

  @Nested(() => CredPropsAuthenticationExtensionsClientOutputs, {
    optional: true,
    about: 'Output of the extension credProps; not used.',
  })
  credProps?: CredPropsAuthenticationExtensionsClientOutputs;
}

class PublicKeyCredentialWithAttestation {
  @Base64Url({ max: maxCredentialIdCharacters, about: 'Id of the credential, base64url.' })
  id!: string;

  @OneOf(['public-key'], { about: 'Kind of the credential.' })
  type!: string;

  @Base64Url({ max: maxCredentialIdCharacters, about: 'Id of the credential, base64url; the same as `id`.' })
  rawId!: string;

  @OneOf(['cross-platform', 'platform'], { optional: true, about: 'How the authenticator is attached; not used.' })
  authenticatorAttachment?: string;

  @Nested(() => AuthenticatorAttestationResponse, { about: 'Response of the authenticator.' })
  response!: AuthenticatorAttestationResponse;

  @Nested(() => SimpleClientExtensionResults, { about: 'Outputs of extensions; not used.' })
  clientExtensionResults!: SimpleClientExtensionResults;
}

/** A passkey to register, in the shape of the first version. */
export class AuthenticatorParams {
  @Label({ about: 'The name of the authenticator.' })
  authenticatorName!: string;

  @Uuid({ about: 'The user it belongs to.' })
  userId!: string;

  @Nested(() => PublicKeyCredentialWithAttestation, { about: 'The credential as serialized by browsers.' })
  attestation!: PublicKeyCredentialWithAttestation;

  @Text({ min: 1, max: 256, about: 'The challenge used to create the passkey, base64url.' })
  challenge!: string;
}

/** The first version had no choice of curve. */
export function liftApiKey(params: ApiKeyParams): ApiKeyParamsV2 {
  return { ...params, curveType: 'API_KEY_CURVE_P256' };
}

/** The same registration in the newer shape. @throws {CoordinatorError} INVALID_ARGUMENT if its two ids differ */
export function liftAuthenticator(params: AuthenticatorParams, field: string): AuthenticatorParamsV2 {
  const { authenticatorName, challenge, attestation } = params;
  const { id, rawId, response } = attestation;
  if (id !== rawId) throw invalidField(`${field}.attestation.rawId`, `must be the same as id, got \`${rawId}\``);
  const { clientDataJson, attestationObject, transports = [] } = response;
  return {
    authenticatorName,
    challenge,
    attestation: { credentialId: rawId, clientDataJson, attestationObject, transports },
  };
}

/** What is known of a user's new credentials before they are verified. */
export function credentialsForeseen(
  userId: string,
  {
    apiKeys = [],
    authenticators = [],
    oauthProviders = [],
  }: {
    readonly apiKeys?: readonly ApiKeyParamsV2[];
    readonly authenticators?: readonly AuthenticatorParamsV2[];
    readonly oauthProviders?: readonly { readonly providerName: string }[];
  },
): readonly Foreseen[] {
  return [
    ...apiKeys.map(({ apiKeyName, publicKey }): Foreseen => {
      return { type: 'ApiKeyCreated', data: { userId, apiKeyName, publicKey } };
    }),
    ...authenticators.map(({ authenticatorName }): Foreseen => {
      return { type: 'AuthenticatorCreated', data: { userId, authenticatorName } };
    }),
    ...oauthProviders.map(({ providerName }): Foreseen => {
      return { type: 'OauthProviderCreated', data: { userId, providerName } };
    }),
  ];
}

/**
 * Verifies the registrations of one user, created where passkeys of the organization may be used; for a future
 * sub-organization, where those of its parent may. `field` names their list in errors.
 * @throws {CoordinatorError} INVALID_ARGUMENT for one that does not verify, RESOURCE_EXHAUSTED for too many
 */
export async function verifyAuthenticators(
  authenticators: readonly AuthenticatorParamsV2[],
  { verifyRegistration, passkeyOrigins }: PreparePorts,
  organization: OrganizationView,
  field: string,
  limits: Limits,
): Promise<readonly VerifiedRegistration[]> {
  // Before the costly work: more than one user may have is refused whoever the user is.
  checkRoom(limits, 'authenticators', 0, authenticators.length, field);
  if (authenticators.length === 0) return [];
  const origins = await passkeyOrigins(organization);
  const allowed = origins.length > 0 ? { allowedOrigins: origins } : {};
  return Promise.all(
    authenticators.map(({ challenge, attestation }, index) =>
      verifyRegistration({ challenge, attestation, ...allowed }).catch((error: unknown) => {
        throw inField(`${field}[${index}]`, error);
      }),
    ),
  );
}

/** The result of `verifyAuthenticators` for a user, from the events of the passkeys. */
export function recalledAuthenticators(recorded: RecordedActivity, owner: string): readonly VerifiedRegistration[] {
  return recorded
    .all('AuthenticatorCreated')
    .filter(({ userId }) => userId === owner)
    .map(({ userId: _user, authenticatorId: _id, authenticatorName: _name, ...registration }) => registration);
}

/**
 * Creates the events by which users get credentials. One instance serves a whole decision, so that it notices a key
 * given to two users.
 */
export function newCredentials({
  organization,
  newId,
  now,
  limits,
}: Pick<DecideContext, 'organization' | 'newId' | 'now' | 'limits'>) {
  const sent = new Set<string>();

  function claim(
    owners: ReadonlyMap<string, string>,
    name: string,
    what: string,
    field: string,
    category?: 'OAUTH_PROVIDER_ALREADY_EXISTS',
  ): void {
    const owner = owners.get(name);
    if (owner === undefined && !sent.has(name)) {
      sent.add(name);
      return;
    }
    const why = owner === undefined ? 'appears twice in this request' : `is already registered for user \`${owner}\``;
    throw new CoordinatorError(
      'ALREADY_EXISTS',
      `${field}: ${what} \`${name}\` ${why}: a credential identifies exactly one user of an organization`,
      category ? { category } : {},
    );
  }

  return {
    /**
     * Gives API keys to a user. If there is no room for another expiring key, expired ones are deleted first, then the
     * oldest (docs/protocol.md, sessions).
     * @throws {CoordinatorError} INVALID_ARGUMENT, ALREADY_EXISTS, RESOURCE_EXHAUSTED
     */
    apiKeys(
      { userId, apiKeys }: Pick<User, 'userId' | 'apiKeys'>,
      params: readonly ApiKeyParamsV2[],
      field: string,
    ): { readonly apiKeyIds: string[]; readonly events: CredentialEvent[] } {
      const lasting = apiKeys.filter(({ expirationSeconds }) => expirationSeconds === undefined);
      const expiring = params.filter(({ expirationSeconds }) => expirationSeconds !== undefined).length;
      checkRoom(limits, 'longLivedApiKeys', lasting.length, params.length - expiring, field);
      checkRoom(limits, 'expiringApiKeys', 0, expiring, field);

      const created = params.map(
        ({ apiKeyName, publicKey, curveType, expirationSeconds }, index): Created<'ApiKeyCreated'> => {
          const where = `${field}[${index}].publicKey`;
          const normalized = normalizedKey(publicKey, curveType, where);
          claim(organization.apiKeyOwners, normalized, 'public key', where);
          return {
            type: 'ApiKeyCreated',
            data: {
              userId,
              apiKeyId: newId(),
              apiKeyName,
              publicKey: normalized,
              curve: curveType,
              credentialType: apiKeyCredentialType[curveType],
              ...(expirationSeconds === undefined ? {} : { expirationSeconds: Number(expirationSeconds) }),
            },
          };
        },
      );

      const evicted = keysGivingWay(apiKeys, expiring, now, limits).map(({ apiKeyId }): Created<'ApiKeyDeleted'> => {
        return { type: 'ApiKeyDeleted', data: { userId, apiKeyId } };
      });
      return { apiKeyIds: created.map(({ data }) => data.apiKeyId), events: [...evicted, ...created] };
    },

    /**
     * Gives passkeys to a user; `verified` is the result of `verifyAuthenticators` for `params`.
     * @throws {CoordinatorError} ALREADY_EXISTS, RESOURCE_EXHAUSTED
     */
    authenticators(
      { userId, authenticators }: Pick<User, 'userId' | 'authenticators'>,
      params: readonly AuthenticatorParamsV2[],
      verified: readonly VerifiedRegistration[],
      field: string,
    ): { readonly authenticatorIds: string[]; readonly events: CredentialEvent[] } {
      checkRoom(limits, 'authenticators', authenticators.length, params.length, field);
      const created = params.map(({ authenticatorName }, index): Created<'AuthenticatorCreated'> => {
        const registration = verified[index];
        if (!registration) throw new Error(`${field}[${index}] was not verified before it was decided`);
        const { credentialId, publicKey, aaguid, attestationType, transports, rpIdHash, signCount } = registration;
        claim(organization.authenticatorOwners, credentialId, 'credential', `${field}[${index}].attestation`);
        return {
          type: 'AuthenticatorCreated',
          data: {
            userId,
            authenticatorId: newId(),
            authenticatorName,
            credentialId,
            publicKey,
            aaguid,
            attestationType,
            transports,
            rpIdHash,
            signCount,
          },
        };
      });
      return { authenticatorIds: created.map(({ data }) => data.authenticatorId), events: created };
    },

    /**
     * Gives identities at OpenID providers to a user.
     * @throws {CoordinatorError} ALREADY_EXISTS, RESOURCE_EXHAUSTED
     */
    oauthProviders(
      { userId, oauthProviders }: Pick<User, 'userId' | 'oauthProviders'>,
      identities: readonly NamedIdentity[],
      field: string,
    ): { readonly providerIds: string[]; readonly events: CredentialEvent[] } {
      checkRoom(limits, 'oauthProviders', oauthProviders.length, identities.length, field);
      const created = identities.map((identity, index): Created<'OauthProviderCreated'> => {
        const where = `${field}[${index}]`;
        const category = 'OAUTH_PROVIDER_ALREADY_EXISTS';
        claim(organization.oauthOwners, oauthIdentity(identity), 'identity', where, category);
        return { type: 'OauthProviderCreated', data: { userId, providerId: newId(), ...identity } };
      });
      return { providerIds: created.map(({ data }) => data.providerId), events: created };
    },
  };
}

type Created<Type extends CredentialEvent['type']> = Extract<CredentialEvent, { type: Type }>;

const nouns = {
  longLivedApiKeys: ['API keys that never expire', 'delete one with delete_api_keys, or send expirationSeconds'],
  expiringApiKeys: ['API keys that expire', 'send fewer at once'],
  authenticators: ['authenticators', 'delete one with delete_authenticators'],
  oauthProviders: ['OAuth providers', 'delete one with delete_oauth_providers'],
} as const;

function checkRoom(limits: Limits, kind: keyof typeof nouns, held: number, more: number, field: string): void {
  const limit = limits[kind];
  if (more === 0 || held + more <= limit) return;
  const [noun, help] = nouns[kind];
  throw new CoordinatorError(
    'RESOURCE_EXHAUSTED',
    `${field}: a user may have ${limit} ${noun}: this one has ${held}, and this request adds ${more}; ${help}`,
  );
}

function normalizedKey(publicKey: string, curve: ApiKeyCurve, field: string): string {
  try {
    return normalizePublicKey(publicKey, curve);
  } catch (error) {
    throw inField(field, error);
  }
}

/** The same refusal, naming its field. */
function inField(field: string, error: unknown): unknown {
  if (!(error instanceof CoordinatorError) || error.code !== 'INVALID_ARGUMENT') return error;
  return invalidField(field, error.message.replace(/^invalid request: /, ''));
}
