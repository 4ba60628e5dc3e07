import type { RecordedTokens } from '../activities/auth/token-uses.js';
import type { NamedIdentity } from '../activities/credentials/oauth-params.js';
import type { DerivedAccount, NewPrivateKey } from '../ports/keyring.js';
import type { VerifiedRegistration } from '../ports/passkeys.js';
import type { VerificationClaims } from '../ports/tokens.js';
import type { OrganizationEvent, OrganizationView } from '../domain/organization/organization.js';
import { signingKeyOf } from '../domain/organization/signing-keys.js';

/** An activity that was done, as history tells it. */
interface Done {
  /** Of the newest version. */
  readonly intent: object;
  /** As it was decided on. */
  readonly organization: OrganizationView;
  readonly effects: readonly OrganizationEvent[];
}

type Effect<Type extends OrganizationEvent['type']> = Extract<OrganizationEvent, { type: Type }>['data'];

/** Data of the effects of a type, in order. */
function all<Type extends OrganizationEvent['type']>({ effects }: Done, type: Type): Effect<Type>[] {
  return effects.flatMap((effect) => (effect.type === type ? [effect.data as Effect<Type>] : []));
}

function first<Type extends OrganizationEvent['type']>(done: Done, type: Type): Effect<Type> {
  const [data] = all(done, type);
  if (!data) throw new Error(`a \`${type}\` should be among the effects`);
  return data;
}

const resultOf = (done: Done) => first(done, 'ActivityCompleted').result;

function registrations(done: Done, owner: string): VerifiedRegistration[] {
  return all(done, 'AuthenticatorCreated')
    .filter(({ userId }) => userId === owner)
    .map(({ userId: _user, authenticatorId: _id, authenticatorName: _name, ...registration }) => registration);
}

function derivedAccounts(done: Done): DerivedAccount[] {
  return all(done, 'WalletAccountsCreated').flatMap(({ accounts }) =>
    accounts.map(({ curve, path, addressFormat, address, publicKey }) => ({
      curve,
      path,
      addressFormat,
      address,
      publicKey,
    })),
  );
}

function newWallet(done: Done) {
  return { vaultId: first(done, 'WalletCreated').vaultId, accounts: derivedAccounts(done) };
}

function newPrivateKeys(done: Done): NewPrivateKey[] {
  return all(done, 'PrivateKeyCreated').map(({ vaultId, publicKey, addresses }) => ({ vaultId, publicKey, addresses }));
}

function startedImport(done: Done) {
  const { vaultId, targetPublicKey } = first(done, 'ImportStarted');
  return { vaultId, targetPublicKey, importBundle: resultOf(done)['importBundle'] };
}

const signedBy = ({ intent, organization }: Done) =>
  signingKeyOf(organization, (intent as { signWith: string }).signWith);

/** What the verification token of a request says, if it has one. */
function proved({ intent }: Done): VerificationClaims | undefined {
  const { verificationToken } = intent as { verificationToken?: string };
  if (!verificationToken) return undefined;
  const claims = JSON.parse(Buffer.from(verificationToken.split('.')[1]!, 'base64url').toString()) as {
    readonly [name: string]: string;
  };
  return {
    tokenId: claims['id']!,
    verificationType: claims['verification_type'] as VerificationClaims['verificationType'],
    contact: claims['contact']!,
    organizationId: claims['organization_id']!,
    expiresAt: Number(claims['exp']),
  };
}

/** Identities that users got. */
function identities(done: Done, owner: string): NamedIdentity[] {
  return all(done, 'OauthProviderCreated')
    .filter(({ userId }) => userId === owner)
    .map(({ providerName, issuer, audience, subject }) => ({ providerName, issuer, audience, subject }));
}

/** What the OIDC token of a login says. */
function identityOf({ intent }: Done): Omit<NamedIdentity, 'providerName'> {
  const { oidcToken } = intent as { oidcToken: string };
  const claims = JSON.parse(Buffer.from(oidcToken.split('.')[1]!, 'base64url').toString()) as {
    readonly [name: string]: string;
  };
  return { issuer: claims['iss']!, audience: claims['aud']!, subject: claims['sub']! };
}

/** The OIDC tokens that count as used. */
function tokens(done: Done): RecordedTokens {
  return { tokens: all(done, 'OidcTokenUsed') };
}

/** Those of a user who was created: they stand behind the user's other events. */
function tokensFor({ effects }: Done, userId: string): RecordedTokens['tokens'] {
  const from = effects.findIndex((effect) => effect.type === 'UserCreated' && effect.data.userId === userId);
  const length = effects.slice(from + 1).findIndex(({ type }) => type === 'UserCreated');
  const own = effects.slice(from, length < 0 ? undefined : from + 1 + length);
  return own.flatMap((effect) => (effect.type === 'OidcTokenUsed' ? [effect.data] : []));
}

/** The address in the token of a login that has given the user a new identity. */
function linkedBy(done: Done): string | undefined {
  const { oidcToken } = done.intent as { oidcToken: string };
  const { email } = JSON.parse(Buffer.from(oidcToken.split('.')[1]!, 'base64url').toString()) as { email?: string };
  return all(done, 'OauthProviderCreated').length > 0 ? email : undefined;
}

/** The address in each token of a request that has given the user identities. */
function linkingEmails({ intent }: Done): (string | undefined)[] {
  const { oauthProviders } = intent as { readonly oauthProviders: readonly { readonly oidcToken?: string }[] };
  return oauthProviders.map(({ oidcToken }) => {
    if (!oidcToken) return undefined;
    const said = JSON.parse(Buffer.from(oidcToken.split('.')[1]!, 'base64url').toString()) as { email?: string };
    return said.email;
  });
}

/** A key that was made, sealed to somebody. */
const sealedKey = (done: Done) => ({
  publicKey: first(done, 'ApiKeyCreated').publicKey,
  credentialBundle: resultOf(done)['credentialBundle'],
});

const session = (done: Done) => ({
  userId: first(done, 'ApiKeyCreated').userId,
  session: resultOf(done)['session'],
});

const withToken = (done: Done) => ({ claims: proved(done) });

/** A guess that failed has another hash than the code, which one does not matter. */
function guess(done: Done) {
  const { otpId } = done.intent as { otpId: string };
  const isWrong = all(done, 'OtpGuessFailed').length > 0;
  return { isWrong, codeHash: isWrong ? '' : done.organization.otps.get(otpId)?.codeHash };
}

function sentOtp(done: Done) {
  const { otpId, codeHash, vaultId } = first(done, 'OtpSent');
  return { otpId, codeHash, vaultId, targetBundle: resultOf(done)['otpEncryptionTargetBundle'], message: undefined };
}

/** None where the auth proxy was enabled before. */
function newProxyKey(done: Done) {
  const [enabled] = all(done, 'AuthProxyEnabled');
  return enabled && { vaultId: enabled.vaultId, publicKey: enabled.publicKey };
}

/** How the effects of each activity show what its `prepare` gave, by its newest type. */
const readers: Readonly<Record<string, (done: Done) => unknown>> = {
  ACTIVITY_TYPE_ACCEPT_INVITATION: (done) => registrations(done, first(done, 'UserCreated').userId),
  ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2: (done) => registrations(done, (done.intent as { userId: string }).userId),
  ACTIVITY_TYPE_CREATE_FIAT_ON_RAMP_CREDENTIAL: (done) => first(done, 'FiatOnRampCredentialCreated').vaultId,
  ACTIVITY_TYPE_CREATE_INVITATIONS: (done) =>
    all(done, 'InvitationCreated').map(({ invitationId, userId, publicKey, expiresAt }) => {
      return { invitationId, userId, publicKey, expiresAt, message: undefined };
    }),
  ACTIVITY_TYPE_CREATE_OAUTH2_CREDENTIAL: (done) => first(done, 'Oauth2CredentialCreated').vaultId,
  ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2: (done) => ({
    identities: identities(done, (done.intent as { userId: string }).userId),
    ...tokens(done),
    linkingEmails: linkingEmails(done),
  }),
  ACTIVITY_TYPE_CREATE_PRIVATE_KEYS_V2: newPrivateKeys,
  ACTIVITY_TYPE_CREATE_READ_WRITE_SESSION_V2: sealedKey,
  ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8: (done) => ({
    ...resultOf(done),
    ...withToken(done),
    founding: first(done, 'SubOrganizationCreated').founding,
    ...tokens(done),
  }),
  ACTIVITY_TYPE_CREATE_USERS_V4: (done) =>
    all(done, 'UserCreated').map(({ userId }) => ({
      authenticators: registrations(done, userId),
      identities: identities(done, userId),
      tokens: tokensFor(done, userId),
    })),
  ACTIVITY_TYPE_CREATE_WALLET: newWallet,
  ACTIVITY_TYPE_CREATE_WALLET_ACCOUNTS: (done) => {
    const addresses = resultOf(done)['addresses'] as string[];
    const recorded = derivedAccounts(done);
    // Accounts that are not kept leave nothing but their addresses.
    return recorded.length > 0 ? recorded : addresses.map((address) => ({ address }));
  },
  // It only looks whether deliveries could go there.
  ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT: () => undefined,
  ACTIVITY_TYPE_EMAIL_AUTH_V3: (done) => ({ publicKey: first(done, 'ApiKeyCreated').publicKey, message: undefined }),
  ACTIVITY_TYPE_ENABLE_AUTH_PROXY: newProxyKey,
  ACTIVITY_TYPE_EXPORT_PRIVATE_KEY: (done) => resultOf(done)['exportBundle'],
  ACTIVITY_TYPE_EXPORT_WALLET: (done) => resultOf(done)['exportBundle'],
  ACTIVITY_TYPE_EXPORT_WALLET_ACCOUNT: (done) => ({
    walletAccountId: first(done, 'WalletAccountExported').walletAccountId,
    exportBundle: resultOf(done)['exportBundle'],
  }),
  ACTIVITY_TYPE_IMPORT_PRIVATE_KEY: (done) => ({
    importId: first(done, 'ImportEnded').importId,
    sealed: newPrivateKeys(done)[0],
  }),
  ACTIVITY_TYPE_IMPORT_WALLET: (done) => ({ importId: first(done, 'ImportEnded').importId, ...newWallet(done) }),
  ACTIVITY_TYPE_INIT_IMPORT_PRIVATE_KEY: startedImport,
  ACTIVITY_TYPE_INIT_IMPORT_WALLET: startedImport,
  ACTIVITY_TYPE_INIT_OTP_V3: sentOtp,
  ACTIVITY_TYPE_INIT_OTP_AUTH_V3: sentOtp,
  ACTIVITY_TYPE_OAUTH: (done) => ({ identity: identityOf(done), ...tokens(done), key: sealedKey(done) }),
  ACTIVITY_TYPE_OAUTH2_AUTHENTICATE: (done) => resultOf(done)['oidcToken'],
  ACTIVITY_TYPE_OAUTH_LOGIN: (done) => ({
    identity: identityOf(done),
    email: linkedBy(done),
    ...tokens(done),
    ...session(done),
  }),
  ACTIVITY_TYPE_OTP_AUTH: (done) => {
    const { isWrong, codeHash } = guess(done);
    const [made] = all(done, 'ApiKeyCreated');
    if (isWrong || !made) return { codeHash, key: undefined };
    return { codeHash, key: { publicKey: made.publicKey, credentialBundle: resultOf(done)['credentialBundle'] } };
  },
  ACTIVITY_TYPE_OTP_LOGIN_V2: (done) => ({
    ...withToken(done),
    ...session(done),
  }),
  ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2: (done) => ({ key: signedBy(done), signature: resultOf(done) }),
  ACTIVITY_TYPE_SIGN_RAW_PAYLOADS: (done) => ({ key: signedBy(done), signatures: resultOf(done)['signatures'] }),
  ACTIVITY_TYPE_SIGN_TRANSACTION_V2: (done) => ({
    key: signedBy(done),
    signedTransaction: resultOf(done)['signedTransaction'],
  }),
  ACTIVITY_TYPE_STAMP_LOGIN: session,
  ACTIVITY_TYPE_UPDATE_FIAT_ON_RAMP_CREDENTIAL: (done) => first(done, 'FiatOnRampCredentialUpdated').vaultId,
  ACTIVITY_TYPE_UPDATE_OAUTH2_CREDENTIAL: (done) => first(done, 'Oauth2CredentialUpdated').vaultId,
  ACTIVITY_TYPE_UPDATE_USER_EMAIL: withToken,
  ACTIVITY_TYPE_UPDATE_USER_PHONE_NUMBER: withToken,
  ACTIVITY_TYPE_UPDATE_WEBHOOK_ENDPOINT: () => undefined,
  ACTIVITY_TYPE_VERIFY_OTP_V2: (done) => {
    const { isWrong, codeHash } = guess(done);
    return { codeHash, verificationToken: isWrong ? undefined : resultOf(done)['verificationToken'] };
  },
};

/** What `prepare` must have given, read off the effects. */
export function preparedFrom(newestType: string, done: Done): unknown {
  const read = readers[newestType];
  if (!read) throw new Error(`say how the effects of ${newestType} show what it has prepared`);
  return read(done);
}
