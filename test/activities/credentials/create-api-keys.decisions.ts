import { createApiKeys } from '../../../src/activities/credentials/create-api-keys.js';
import type { OrganizationEvent } from '../../../src/domain/organization/organization.js';
import { anApiKey, anOrganization, aUser, publicKeyOf } from '../facts.js';
import { given, id } from '../given.js';
import { lifted } from '../lifted.js';

const ann = id(101);
const bob = id(102);
const history = [anOrganization(), aUser(ann), aUser(bob, { userName: 'Bob' })];

const key = (number: number, more: object = {}) => ({
  apiKeyName: `key ${number}`,
  publicKey: publicKeyOf(number),
  curveType: 'API_KEY_CURVE_P256',
  ...more,
});

/** A key recorded a day before the decision: one that lives 90,000 s still lives, one that lives 60 s is over. */
const expiring = (number: number, seconds = 90_000): OrganizationEvent =>
  anApiKey(ann, number, { expirationSeconds: seconds });

const numbers = (from: number, count: number) => Array.from({ length: count }, (_, index) => from + index);

describe('create API keys', () => {
  it('creates keys of every curve in the order given', () =>
    given(...history)
      .when(createApiKeys, {
        userId: ann,
        apiKeys: [
          key(11),
          key(12, {
            publicKey: publicKeyOf(12, 'API_KEY_CURVE_SECP256K1'),
            curveType: 'API_KEY_CURVE_SECP256K1',
            expirationSeconds: '3600',
          }),
          key(13, { publicKey: publicKeyOf(13, 'API_KEY_CURVE_ED25519'), curveType: 'API_KEY_CURVE_ED25519' }),
        ],
      })
      .then(
        [
          {
            type: 'ApiKeyCreated',
            data: {
              userId: ann,
              apiKeyId: id(1),
              apiKeyName: 'key 11',
              publicKey: publicKeyOf(11),
              curve: 'API_KEY_CURVE_P256',
              credentialType: 'CREDENTIAL_TYPE_API_KEY_P256',
            },
          },
          {
            type: 'ApiKeyCreated',
            data: {
              userId: ann,
              apiKeyId: id(2),
              apiKeyName: 'key 12',
              publicKey: publicKeyOf(12, 'API_KEY_CURVE_SECP256K1'),
              curve: 'API_KEY_CURVE_SECP256K1',
              credentialType: 'CREDENTIAL_TYPE_API_KEY_SECP256K1',
              expirationSeconds: 3600,
            },
          },
          {
            type: 'ApiKeyCreated',
            data: {
              userId: ann,
              apiKeyId: id(3),
              apiKeyName: 'key 13',
              publicKey: publicKeyOf(13, 'API_KEY_CURVE_ED25519'),
              curve: 'API_KEY_CURVE_ED25519',
              credentialType: 'CREDENTIAL_TYPE_API_KEY_ED25519',
            },
          },
        ],
        { apiKeyIds: [id(1), id(2), id(3)] },
      ));

  it('keeps one spelling of a key, however it was written', () =>
    given(...history)
      .when(createApiKeys, { userId: ann, apiKeys: [key(11, { publicKey: publicKeyOf(11).toUpperCase() })] })
      .then([anApiKey(ann, 11, { apiKeyId: id(1) })], { apiKeyIds: [id(1)] }));

  it('refuses a key that the organization knows, naming its user', () =>
    given(...history, anApiKey(bob, 11))
      .when(createApiKeys, { userId: ann, apiKeys: [key(12), key(11, { publicKey: publicKeyOf(11).toUpperCase() })] })
      .thenRefused(
        'ALREADY_EXISTS',
        new RegExp(
          `parameters\\.apiKeys\\[1\\]\\.publicKey: public key \`${publicKeyOf(11)}\` is already registered for user \`${bob}\``,
        ),
      ));

  it('takes a key again once it was deleted', () =>
    given(...history, anApiKey(bob, 11), { type: 'ApiKeyDeleted', data: { userId: bob, apiKeyId: id(11) } })
      .when(createApiKeys, { userId: ann, apiKeys: [key(11)] })
      .then([anApiKey(ann, 11, { apiKeyId: id(1) })], { apiKeyIds: [id(1)] }));

  it('refuses the same key twice in one request', () =>
    given(...history)
      .when(createApiKeys, { userId: ann, apiKeys: [key(11), key(11)] })
      .thenRefused('ALREADY_EXISTS', /parameters\.apiKeys\[1\]\.publicKey: .* appears twice in this request/));

  it('refuses a user that is not there', () =>
    given(...history)
      .when(createApiKeys, { userId: id(103), apiKeys: [key(11)] })
      .thenRefused('NOT_FOUND', new RegExp(`no user \`${id(103)}\``)));

  describe('limits', () => {
    it('takes ten keys that last, and no eleventh', () => {
      given(...history)
        .when(createApiKeys, { userId: ann, apiKeys: numbers(11, 10).map((number) => key(number)) })
        .then(expect.any(Array) as OrganizationEvent[], { apiKeyIds: numbers(1, 10).map(id) });
      given(...history, ...numbers(11, 9).map((number) => anApiKey(ann, number)), expiring(30))
        .when(createApiKeys, { userId: ann, apiKeys: [key(41), key(42)] })
        .thenRefused(
          'RESOURCE_EXHAUSTED',
          /a user may have 10 API keys that never expire: this one has 9, and this request adds 2/,
        );
    });

    it('does not count keys that last among those that expire, nor the other way round', () =>
      given(
        ...history,
        ...numbers(11, 10).map((number) => anApiKey(ann, number)),
        ...numbers(31, 9).map((n) => expiring(n)),
      )
        .when(createApiKeys, { userId: ann, apiKeys: [key(51, { expirationSeconds: '60' })] })
        .then([anApiKey(ann, 51, { apiKeyId: id(1), expirationSeconds: 60 })], { apiKeyIds: [id(1)] }));

    it('drops expiring keys that are over first, then the oldest, and no more than it must', () =>
      given(
        ...history,
        ...numbers(11, 5).map((n) => expiring(n)),
        expiring(20, 60),
        ...numbers(21, 4).map((n) => expiring(n)),
      )
        .when(createApiKeys, {
          userId: ann,
          apiKeys: [51, 52].map((number) => key(number, { expirationSeconds: '60' })),
        })
        .then(
          [
            { type: 'ApiKeyDeleted', data: { userId: ann, apiKeyId: id(20) } },
            { type: 'ApiKeyDeleted', data: { userId: ann, apiKeyId: id(11) } },
            anApiKey(ann, 51, { apiKeyId: id(1), expirationSeconds: 60 }),
            anApiKey(ann, 52, { apiKeyId: id(2), expirationSeconds: 60 }),
          ],
          { apiKeyIds: [id(1), id(2)] },
        ));

    it('leaves expiring keys alone when only a lasting one comes', () =>
      given(...history, ...numbers(11, 10).map((n) => expiring(n)))
        .when(createApiKeys, { userId: ann, apiKeys: [key(51)] })
        .then([anApiKey(ann, 51, { apiKeyId: id(1) })], { apiKeyIds: [id(1)] }));

    it('refuses more expiring keys at once than a user may have', () =>
      given(...history)
        .when(createApiKeys, {
          userId: ann,
          apiKeys: numbers(11, 11).map((number) => key(number, { expirationSeconds: '60' })),
        })
        .thenRefused('RESOURCE_EXHAUSTED', /may have 10 API keys that expire/));
  });

  it.each([
    ['no keys', [], /parameters\.apiKeys: must have 1 to 100 elements, has 0/],
    [
      'a key that is not a point',
      [key(11, { publicKey: `02${'ff'.repeat(32)}` })],
      /parameters\.apiKeys\[0\]\.publicKey: P-256 public key .* is not a point on the curve/,
    ],
    [
      'a key of another curve',
      [key(11, { curveType: 'API_KEY_CURVE_ED25519' })],
      /publicKey: Ed25519 public key .* 33 bytes long/,
    ],
    [
      'an unknown curve',
      [key(11, { curveType: 'API_KEY_CURVE_P384' })],
      /parameters\.apiKeys\[0\]\.curveType: must be one of/,
    ],
    [
      'a key with 0x',
      [key(11, { publicKey: `0x${publicKeyOf(11)}` })],
      /publicKey: must be bytes in hexadecimal without 0x/,
    ],
    [
      'a life of nothing',
      [key(11, { expirationSeconds: '0' })],
      /expirationSeconds: must be a decimal string from "1"/,
    ],
    [
      'a life of ages',
      [key(11, { expirationSeconds: '3153600001' })],
      /expirationSeconds: must be a decimal string from "1" to "3153600000"/,
    ],
    ['a life as a number', [key(11, { expirationSeconds: 60 })], /expirationSeconds: must be a decimal string/],
  ])('refuses %s', (_what, apiKeys, message) =>
    given(...history)
      .when(createApiKeys, { userId: ann, apiKeys })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  it('takes the first version: keys are P-256', () => {
    const { curveType: _curve, ...old } = key(11, { expirationSeconds: '60' });
    const intent = { userId: ann, apiKeys: [old] };
    given(...history)
      .when(createApiKeys, lifted('ACTIVITY_TYPE_CREATE_API_KEYS', intent))
      .then([anApiKey(ann, 11, { apiKeyId: id(1), expirationSeconds: 60 })], { apiKeyIds: [id(1)] });
    expect(() => lifted('ACTIVITY_TYPE_CREATE_API_KEYS', { userId: ann, apiKeys: [key(11)] })).toThrow(
      /curveType: is not a field/,
    );
  });
});
