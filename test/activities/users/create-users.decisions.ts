import { createUsers } from '../../../src/activities/users/create-users.js';
import { CoordinatorError } from '../../../src/domain/errors.js';
import { SoftwareAuthenticator } from '../../stamps/software-authenticator.js';
import { anApiKey, anOrganization, aRegistration, aUser, aUserTag, publicKeyOf } from '../facts.js';
import { emptyOrganization } from '../../../src/domain/organization/organization.js';
import type { VerifiedRegistration } from '../../../src/ports/passkeys.js';
import { preparePorts } from '../../coordinator/prepare-ports.js';
import { given, id, usualLimits } from '../given.js';
import { lifted } from '../lifted.js';

const history = [anOrganization(), aUserTag(id(401), 'admins'), aUserTag(id(402), 'robots')];

const none = { apiKeys: [], authenticators: [], oauthProviders: [], userTags: [] };
const key = (number: number) => ({
  apiKeyName: `key ${number}`,
  publicKey: publicKeyOf(number),
  curveType: 'API_KEY_CURVE_P256',
});
const attestation = {
  credentialId: 'credential-21',
  clientDataJson: 'e30',
  attestationObject: 'oA',
  transports: ['AUTHENTICATOR_TRANSPORT_INTERNAL'],
};
const passkey = (number: number) => ({
  authenticatorName: `passkey ${number}`,
  challenge: 'Y2hhbGxlbmdl',
  attestation,
});

const proved = (...authenticators: VerifiedRegistration[]) => ({ authenticators, identities: [] });

describe('create users', () => {
  it('creates each user, then what is theirs, in the order given', () =>
    given(...history)
      .when(
        createUsers,
        {
          users: [
            {
              userName: 'Ann',
              userEmail: 'ann@example.com',
              userPhoneNumber: '+13214567890',
              apiKeys: [key(11), { ...key(12), expirationSeconds: '3600' }],
              authenticators: [passkey(21)],
              oauthProviders: [],
              userTags: [id(401), id(402)],
            },
            { userName: 'Bob', ...none, apiKeys: [key(13)] },
          ],
        },
        { prepared: [proved(aRegistration(21)), proved()] },
      )
      .then(
        [
          {
            type: 'UserCreated',
            data: {
              userId: id(1),
              userName: 'Ann',
              userEmail: 'ann@example.com',
              userPhoneNumber: '+13214567890',
              userTags: [id(401), id(402)],
            },
          },
          anApiKey(id(1), 11, { apiKeyId: id(2) }),
          anApiKey(id(1), 12, { apiKeyId: id(3), expirationSeconds: 3600 }),
          {
            type: 'AuthenticatorCreated',
            data: { userId: id(1), authenticatorId: id(4), authenticatorName: 'passkey 21', ...aRegistration(21) },
          },
          { type: 'UserCreated', data: { userId: id(5), userName: 'Bob', userTags: [] } },
          anApiKey(id(5), 13, { apiKeyId: id(6) }),
        ],
        { userIds: [id(1), id(5)] },
      ));

  it('takes lists that are absent for empty ones, and empty contacts for none', () =>
    given(...history)
      .when(createUsers, { users: [{ userName: 'Ann', userEmail: '', userPhoneNumber: '' }] }, { prepared: [proved()] })
      .then([{ type: 'UserCreated', data: { userId: id(1), userName: 'Ann', userTags: [] } }], { userIds: [id(1)] }));

  it('takes a name that another user has', () =>
    given(...history, aUser(id(101), { userName: 'Ann' }))
      .when(createUsers, { users: [{ userName: 'Ann', ...none }] }, { prepared: [proved()] })
      .then([{ type: 'UserCreated', data: { userId: id(1), userName: 'Ann', userTags: [] } }], { userIds: [id(1)] }));

  it('refuses a key that the organization knows, naming its user', () =>
    given(...history, aUser(id(101)), anApiKey(id(101), 11))
      .when(createUsers, { users: [{ userName: 'Bob', apiKeys: [key(11)] }] }, { prepared: [proved()] })
      .thenRefused(
        'ALREADY_EXISTS',
        new RegExp(
          `parameters\\.users\\[0\\]\\.apiKeys\\[0\\]\\.publicKey: .* is already registered for user \`${id(101)}\``,
        ),
      ));

  it('refuses one key for two of the new users', () =>
    given(...history)
      .when(
        createUsers,
        {
          users: [
            { userName: 'Ann', apiKeys: [key(11)] },
            { userName: 'Bob', apiKeys: [key(11)] },
          ],
        },
        { prepared: [proved(), proved()] },
      )
      .thenRefused(
        'ALREADY_EXISTS',
        /parameters\.users\[1\]\.apiKeys\[0\]\.publicKey: .* appears twice in this request/,
      ));

  it('refuses one passkey for two of the new users', () =>
    given(...history)
      .when(
        createUsers,
        {
          users: [
            { userName: 'Ann', authenticators: [passkey(21)] },
            { userName: 'Bob', authenticators: [passkey(21)] },
          ],
        },
        { prepared: [proved(aRegistration(21)), proved(aRegistration(21))] },
      )
      .thenRefused('ALREADY_EXISTS', /parameters\.users\[1\]\.authenticators\[0\]\.attestation: .* twice/));

  it('refuses more keys that last than a user may have', () =>
    given(...history)
      .when(
        createUsers,
        { users: [{ userName: 'Ann', apiKeys: Array.from({ length: 11 }, (_, index) => key(11 + index)) }] },
        { prepared: [proved()] },
      )
      .thenRefused(
        'RESOURCE_EXHAUSTED',
        /parameters\.users\[0\]\.apiKeys: a user may have 10 API keys that never expire/,
      ));

  it('refuses a tag that is not there', () =>
    given(...history)
      .when(createUsers, { users: [{ userName: 'Ann', userTags: [id(403)] }] }, { prepared: [proved()] })
      .thenRefused('NOT_FOUND', new RegExp(`no user tag \`${id(403)}\``)));

  it('gives identities that were proved, each to one user', () => {
    const google = { providerName: 'Google', issuer: 'https://issuer.example', audience: 'app', subject: 'ann' };
    given(...history)
      .when(createUsers, { users: [{ userName: 'Ann' }] }, { prepared: [{ authenticators: [], identities: [google] }] })
      .then(
        [
          { type: 'UserCreated', data: { userId: id(1), userName: 'Ann', userTags: [] } },
          { type: 'OauthProviderCreated', data: { userId: id(1), providerId: id(2), ...google } },
        ],
        { userIds: [id(1)] },
      );
    given(...history)
      .when(
        createUsers,
        { users: [{ userName: 'Ann' }, { userName: 'Bob' }] },
        { prepared: [google, google].map((identity) => ({ authenticators: [], identities: [identity] })) },
      )
      .thenRefused(
        'ALREADY_EXISTS',
        /^parameters\.users\[1\]\.oauthProviders\[0\]: identity .* appears twice in this request/,
      );
  });

  it.each([
    ['no users', [], /parameters\.users: must have 1 to 100 elements, has 0/],
    ['a user without a name', [{}], /parameters\.users\[0\]\.userName: is required/],
    [
      'a bad e-mail address',
      [{ userName: 'Ann', userEmail: 'ann' }],
      /users\[0\]\.userEmail: must be an e-mail address/,
    ],
    [
      'a bad phone number',
      [{ userName: 'Ann', userPhoneNumber: '123' }],
      /users\[0\]\.userPhoneNumber: must be a phone/,
    ],
    [
      'a bad key',
      [{ userName: 'Ann', apiKeys: [{ ...key(1), publicKey: '0000' }] }],
      /users\[0\]\.apiKeys\[0\]\.publicKey: P-256 public key/,
    ],
    ['an unknown member', [{ userName: 'Ann', isRoot: true }], /users\[0\]\.isRoot: is not a field/],
  ])('refuses %s', (_what, users, message) =>
    given(...history)
      .when(createUsers, { users }, { prepared: [proved()] })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  it('verifies the passkeys of every user, and says whose does not verify', async () => {
    const good = { authenticatorName: 'phone', ...new SoftwareAuthenticator().register() };
    const bad = { ...good, challenge: 'b3RoZXI' };
    const ports = await preparePorts();
    const nothing = {
      organization: emptyOrganization(),
      submitterId: id(900),
      now: 0,
      newId: () => id(1),
      ...usualLimits,
    };
    const users = [{ userName: 'Ann' }, { userName: 'Bob', authenticators: [good] }];
    expect(await createUsers.prepare!({ users }, ports, nothing)).toEqual([
      { authenticators: [], identities: [] },
      { authenticators: [expect.objectContaining({ credentialId: good.attestation.credentialId })], identities: [] },
    ]);
    const refused: unknown = await createUsers.prepare!(
      { users: [...users, { userName: 'Cal', authenticators: [good, bad] }] },
      ports,
      nothing,
    ).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(CoordinatorError);
    expect(refused).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(
        /: parameters\.users\[2\]\.authenticators\[1\]: attestation\.clientDataJson/,
      ) as string,
    });
  });

  describe('older versions', () => {
    const { curveType: _curve, ...oldKey } = key(11);
    const oldPasskey = {
      authenticatorName: 'passkey 21',
      userId: id(999),
      challenge: 'Y2hhbGxlbmdl',
      attestation: {
        id: 'credential-21',
        rawId: 'credential-21',
        type: 'public-key',
        response: {
          clientDataJson: 'e30',
          attestationObject: 'oA',
          transports: ['AUTHENTICATOR_TRANSPORT_INTERNAL'],
        },
        clientExtensionResults: {},
      },
    };

    it('V3 differs in its OAuth providers only, which must have a token', () => {
      const user = { userName: 'Ann', userPhoneNumber: '+13214567890', ...none, apiKeys: [key(11)] };
      expect(lifted('ACTIVITY_TYPE_CREATE_USERS_V3', { users: [user] })).toEqual({ users: [user] });
      const provider = { providerName: 'p', oidcClaims: { iss: 'i', sub: 's', aud: 'a' } };
      expect(() =>
        lifted('ACTIVITY_TYPE_CREATE_USERS_V3', { users: [{ ...user, oauthProviders: [provider] }] }),
      ).toThrow(/oauthProviders\[0\]\.oidcToken: is required/);
    });

    it('V2 has P-256 keys, no phone number and no OAuth providers', () => {
      const user = { userName: 'Ann', apiKeys: [oldKey], authenticators: [passkey(21)], userTags: [id(401)] };
      expect(lifted('ACTIVITY_TYPE_CREATE_USERS_V2', { users: [user] })).toEqual({
        users: [{ ...user, apiKeys: [key(11)] }],
      });
      expect(() =>
        lifted('ACTIVITY_TYPE_CREATE_USERS_V2', { users: [{ ...user, userPhoneNumber: '+13214567890' }] }),
      ).toThrow(/users\[0\]\.userPhoneNumber: is not a field/);
    });

    it('V1 has an access type and passkeys as browsers serialise them', () => {
      const user = {
        userName: 'Ann',
        userEmail: 'ann@example.com',
        accessType: 'ACCESS_TYPE_ALL',
        apiKeys: [oldKey],
        authenticators: [oldPasskey],
        userTags: [],
      };
      expect(lifted('ACTIVITY_TYPE_CREATE_USERS', { users: [user] })).toEqual({
        users: [
          {
            userName: 'Ann',
            userEmail: 'ann@example.com',
            apiKeys: [key(11)],
            authenticators: [passkey(21)],
            userTags: [],
          },
        ],
      });
      expect(() =>
        lifted('ACTIVITY_TYPE_CREATE_USERS', {
          users: [
            { ...user, authenticators: [{ ...oldPasskey, attestation: { ...oldPasskey.attestation, id: 'x' } }] },
          ],
        }),
      ).toThrow(/parameters\.users\[0\]\.authenticators\[0\]\.attestation\.rawId: must be the same as id/);
    });
  });
});
