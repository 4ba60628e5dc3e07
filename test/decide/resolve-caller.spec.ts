import { attestedCaller, refusalOf, resolveCaller, type OwnStamp } from '../../src/decide/resolve-caller.js';
import type { Attestation } from '../../src/domain/activity/events.js';
import {
  emptyOrganization,
  evolve,
  type Organization,
  type OrganizationEvent,
} from '../../src/domain/organization/organization.js';
import { anApiKey, aPasskey, anIdentity, anOrganization, aUser, identityOf, publicKeyOf } from '../activities/facts.js';
import { id } from '../activities/given.js';
import { refusedWith } from '../stamps/refused-with.js';

// Whose stamp it is: of a user of the organization, of a user of its parent, or of whom a token speaks for.

const created = Date.UTC(2026, 0, 1);
const [ann, parentsAnn] = [id(1), id(2)];

function organization(organizationId: string, ...facts: readonly OrganizationEvent[]): Organization {
  const one = emptyOrganization();
  for (const fact of [anOrganization({ organizationId }), ...facts]) evolve(one, fact, created);
  return one;
}

const apiKeyStamp = (publicKey: string, scheme = 'SIGNATURE_SCHEME_TK_API_P256' as const): OwnStamp => ({
  kind: 'api-key',
  scheme,
  publicKey,
  signature: '',
});
const passkeyStamp = (credentialId: string): OwnStamp => ({
  kind: 'webauthn',
  scheme: 'SIGNATURE_SCHEME_TK_WEBAUTHN',
  credentialId,
  authenticatorData: '',
  clientDataJson: '',
  signature: '',
});

describe('a stamp by a credential', () => {
  const child = organization(id(700), aUser(ann), anApiKey(ann, 10), anApiKey(ann, 12), aPasskey(ann, 11));
  const parent = organization(
    id(800),
    aUser(parentsAnn),
    anApiKey(parentsAnn, 20),
    anApiKey(parentsAnn, 12),
    aPasskey(parentsAnn, 21),
  );
  const of = (stamp: OwnStamp, now = created) => resolveCaller(stamp, child, parent, now);

  test.each([
    ['an API key', apiKeyStamp(publicKeyOf(10)), ann, id(700), 'CREDENTIAL_TYPE_API_KEY_P256'],
    ['an API key of the parent', apiKeyStamp(publicKeyOf(20)), parentsAnn, id(800), 'CREDENTIAL_TYPE_API_KEY_P256'],
    ['an API key of both', apiKeyStamp(publicKeyOf(12)), ann, id(700), 'CREDENTIAL_TYPE_API_KEY_P256'],
    ['a passkey', passkeyStamp('credential-11'), ann, id(700), 'CREDENTIAL_TYPE_WEBAUTHN_AUTHENTICATOR'],
    [
      'a passkey of the parent',
      passkeyStamp('credential-21'),
      parentsAnn,
      id(800),
      'CREDENTIAL_TYPE_WEBAUTHN_AUTHENTICATOR',
    ],
  ])('%s is its owner’s', (_what, stamp, userId, organizationId, type) => {
    const caller = of(stamp);
    expect(caller).toMatchObject({ user: { userId }, organizationId, credential: { userId, type } });
    expect(caller.authenticator?.credentialId).toBe(stamp.kind === 'webauthn' ? stamp.credentialId : undefined);
  });

  test('that nobody has says where it was looked for', () => {
    const nobodys = apiKeyStamp(publicKeyOf(99));
    const where = (text: string) =>
      `could not find public key in ${text}: organizationId=${id(700)} publicKey=${publicKeyOf(99)}`;
    expect(() => of(nobodys)).toThrow(
      refusedWith('UNAUTHENTICATED', where('organization or its parent organization'), 'PUBLIC_KEY_NOT_FOUND'),
    );
    expect(() => resolveCaller(nobodys, child, undefined, created)).toThrow(
      refusedWith('UNAUTHENTICATED', where('organization'), 'PUBLIC_KEY_NOT_FOUND'),
    );
    expect(() => of(passkeyStamp('nobodys'))).toThrow(
      refusedWith(
        'UNAUTHENTICATED',
        /^credential ID could not be found .*credentialId=nobodys$/,
        'CREDENTIAL_NOT_FOUND',
      ),
    );
  });

  test('by a key of another curve is refused, unless the parent has it on that curve', () => {
    const curve = 'API_KEY_CURVE_SECP256K1';
    const shared = { publicKey: publicKeyOf(30) };
    const own = organization(id(700), aUser(ann), anApiKey(ann, 30, { ...shared, curve }));
    const stamp = apiKeyStamp(publicKeyOf(30));
    expect(() => resolveCaller(stamp, own, undefined, created)).toThrow(
      refusedWith(
        'UNAUTHENTICATED',
        `could not verify api key signature: the key is registered for ${curve}, the stamp's scheme is SIGNATURE_SCHEME_TK_API_P256`,
        'SIGNATURE_INVALID',
      ),
    );
    expect(() => resolveCaller(stamp, own, parent, created)).toThrow(/is registered for/);
    const parents = organization(id(800), aUser(parentsAnn), anApiKey(parentsAnn, 30));
    expect(resolveCaller(stamp, own, parents, created)).toMatchObject({ user: { userId: parentsAnn } });
  });

  test('by an expired key is refused from the millisecond on at which it ends', () => {
    const own = organization(id(700), aUser(ann), anApiKey(ann, 10, { expirationSeconds: 60 }));
    const stamp = apiKeyStamp(publicKeyOf(10));
    const end = created + 60_000;
    expect(resolveCaller(stamp, own, undefined, end - 1)).toMatchObject({ user: { userId: ann } });
    const message = `expired api key: it ended at ${new Date(end).toISOString()}; log in again`;
    expect(() => resolveCaller(stamp, own, undefined, end)).toThrow(
      refusedWith('UNAUTHENTICATED', message, 'API_KEY_EXPIRED'),
    );
    const [key] = own.users.get(ann)!.apiKeys;
    expect(refusalOf(key!, { scheme: 'SIGNATURE_SCHEME_TK_API_P256' }, end - 1)).toBeUndefined();
  });
});

describe('a stamp that a token attests', () => {
  const stamp = {
    kind: 'attested',
    scheme: 'SIGNATURE_SCHEME_TK_ATTESTED_P256',
    attestedBy: 'SIGNATURE_SCHEME_TK_API_P256',
    token: '',
    publicKey: publicKeyOf(40),
    signature: '',
  } as unknown as Parameters<typeof attestedCaller>[0];
  const contact = { userId: ann, contact: 'email' } as const;
  const known = organization(
    id(700),
    aUser(ann, { userEmail: 'ann@example.com' }),
    { type: 'UserContactVerified', data: { ...contact, issuerOrganizationId: id(700) } },
    anIdentity(ann, 50),
  );
  const token = (more: object = {}): Attestation => ({
    kind: 'contact',
    tokenId: 'token',
    verificationType: 'OTP_TYPE_EMAIL',
    contact: 'ann@example.com',
    organizationId: id(800),
    expiresAt: created + 1_000,
    ...more,
  });
  const identity = (subject = identityOf(50).subject): Attestation => ({
    kind: 'identity',
    ...identityOf(50),
    subject,
  });
  const of = (attestation: Attestation, now = created) => attestedCaller(stamp, attestation, known, now);

  test('is that of the user with the verified contact, or with the identity', () => {
    const key = { userId: ann, publicKey: publicKeyOf(40) };
    expect(of(token())).toEqual({
      user: known.users.get(ann),
      organizationId: id(700),
      credential: { ...key, id: 'token', type: 'CREDENTIAL_TYPE_OTP_AUTH_KEY_P256' },
    });
    expect(of(identity())).toEqual({
      user: known.users.get(ann),
      organizationId: id(700),
      credential: { ...key, id: id(50), type: 'CREDENTIAL_TYPE_OAUTH_KEY_P256' },
    });
    expect(of(token({ organizationId: id(700), logsInToIssuer: true }))).toMatchObject({ user: { userId: ann } });
  });

  const noContact = (contact = 'ann@example.com') =>
    `no user has \`${contact}\` as a verified contact, or the token has expired: organizationId=${id(700)}`;

  test.each<[string, Attestation, number, string]>([
    ['has expired', token(), created + 1_000, noContact()],
    [
      'is about a contact that nobody has',
      token({ contact: 'bob@example.com' }),
      created,
      noContact('bob@example.com'),
    ],
    ['is about a number', token({ verificationType: 'OTP_TYPE_SMS' }), created, noContact()],
    ['the organization itself gave to whoever asked', token({ organizationId: id(700) }), created, noContact()],
    [
      'is of another subject',
      identity('nobody'),
      created,
      `no user has the identity of the token: issuer=https://issuer.example audience=app: organizationId=${id(700)}`,
    ],
  ])('is nobody’s where the token %s', (_what, attestation, now, message) => {
    expect(() => of(attestation, now)).toThrow(refusedWith('UNAUTHENTICATED', message, 'CREDENTIAL_NOT_FOUND'));
  });

  test('is still that of its user in the millisecond before the token ends', () => {
    expect(of(token(), created + 999)).toMatchObject({ user: { userId: ann } });
  });
});
