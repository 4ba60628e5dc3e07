import { createSubOrganization } from '../../../src/activities/organization/create-sub-organization.js';
import type { PreparePorts } from '../../../src/ports/prepare.js';
import type { VerificationClaims } from '../../../src/ports/tokens.js';
import { validate } from '../../../src/wire/validate.js';
import { CoordinatorError } from '../../../src/domain/errors.js';
import {
  emptyOrganization,
  evolve,
  organizationStream,
  type OrganizationEvent,
} from '../../../src/domain/organization/organization.js';
import { InMemoryEventStore } from '../../../src/ledger/stores/in-memory.js';
import { generateApiKeyPair, SeededRandomness, type ApiKeyPair } from '../../../src/testing/index.js';
import { preparePorts } from '../../coordinator/prepare-ports.js';
import { clientSignature } from '../../e2e/one-time-codes.js';
import { claimsOf, noon, pairFor, publishedKey, sign, startIssuer, verifierAt } from '../../oidc/issuer.js';
import { SoftwareAuthenticator } from '../../stamps/software-authenticator.js';
import { anOrganization, aUser, publicKeyOf } from '../facts.js';
import { enabledProxy } from '../auth-proxy/facts.js';
import { given, id, policyEnvironment, usualLimits } from '../given.js';
import { lifted } from '../lifted.js';
import { ethereum, solana } from '../wallets/wallet-facts.js';

const parentId = id(700);
const parent: readonly OrganizationEvent[] = [anOrganization()];
const key = (number: number) => ({
  apiKeyName: `key ${number}`,
  publicKey: publicKeyOf(number),
  curveType: 'API_KEY_CURVE_P256',
});
const ann = { userName: 'Ann', apiKeys: [key(11)], authenticators: [], oauthProviders: [] };
const bob = { userName: 'Bob', apiKeys: [key(12)], authenticators: [], oauthProviders: [] };
const child = { subOrganizationName: 'Child', rootUsers: [ann], rootQuorumThreshold: 1 };

const loginFeatures = [
  'FEATURE_NAME_EMAIL_RECOVERY',
  'FEATURE_NAME_EMAIL_AUTH',
  'FEATURE_NAME_SMS_AUTH',
  'FEATURE_NAME_OTP_EMAIL_AUTH',
] as const;

const store = new InMemoryEventStore();
const ports = await preparePorts(store);

interface Attempt {
  readonly history?: readonly OrganizationEvent[];
  readonly ports?: PreparePorts;
  readonly now?: number;
  /** As of version 7, which takes tokens that are bound to no key. */
  readonly takesUnboundToken?: true;
}

let requests = 0;

/** The request, and the parent that it is for. */
function accepted(intent: object, { history = parent, takesUnboundToken }: Attempt) {
  const organization = emptyOrganization();
  for (const event of history) evolve(organization, event, 0);
  const valid = validate(createSubOrganization.intent, intent, 'parameters');
  if (takesUnboundToken) valid.takesUnboundToken = takesUnboundToken;
  createSubOrganization.check!(valid, organization, usualLimits);
  return { organization, valid };
}

/** What `prepare` gives for the request of that number: ids follow from it, as they follow from the bytes of a real one. */
function prepare(intent: object, request: number, attempt: Attempt = {}) {
  const { organization, valid } = accepted(intent, attempt);
  const { ports: theirs = ports, now = noon } = attempt;
  let count = request * 100;
  return createSubOrganization.prepare!(valid, theirs, {
    organization,
    submitterId: id(900),
    now,
    newId: () => id(1_000_000 + ++count),
    ...usualLimits,
  });
}

async function refusedBy(attempt: Promise<unknown>): Promise<{ code: string; message: string }> {
  try {
    await attempt;
  } catch (error) {
    if (error instanceof CoordinatorError) return { code: error.code, message: error.message };
    throw error;
  }
  throw new Error('was not refused');
}

/** Every stream of an organization in the store: preparing writes none. */
async function foundedStreams(): Promise<string[]> {
  const head = await store.head();
  const streams = new Set<string>();
  await new Promise<void>((resolve) => {
    const subscription = store.subscribe({
      after: 'start',
      onEvents(events) {
        for (const { stream } of events) streams.add(stream);
        if ((events.at(-1)?.position ?? -1n) < (head ?? -1n)) return;
        resolve();
        void subscription.close();
      },
      onError: (error) => {
        throw error;
      },
    });
  });
  return [...streams].filter((stream) => stream.startsWith(organizationStream('')));
}

/** The sub-organization that comes of it: what the event in its parent says that it begins with. */
async function founded(intent: object, attempt: Attempt = {}) {
  const prepared = await prepare(intent, ++requests, attempt);
  const { organization, valid } = accepted(intent, attempt);
  const outcome = createSubOrganization.decide(
    valid,
    {
      organization,
      activityId: id(800),
      submitterId: id(900),
      credentialId: id(901),
      now: attempt.now ?? noon,
      newId: () => id(802),
      policyEnvironment,
      ...usualLimits,
    },
    prepared,
  );
  const [recorded] = outcome.events;
  if (recorded?.type !== 'SubOrganizationCreated' || 'failure' in outcome) throw new Error('it was not founded');
  return { prepared, events: recorded.data.initialEvents, result: outcome.result };
}

const typesOf = (events: readonly OrganizationEvent[]) => events.map(({ type }) => type);

const randomness = new SeededRandomness('sign-up');
const newKey = (): ApiKeyPair => generateApiKeyPair((count) => randomness.bytes(count));
let tokens = 0;

async function aToken(more: Partial<VerificationClaims> = {}): Promise<string> {
  return ports.tokens.signVerification({
    tokenId: id(8_000 + ++tokens),
    verificationType: 'OTP_TYPE_EMAIL',
    contact: 'ann@example.com',
    organizationId: parentId,
    expiresAt: noon + 3_600_000,
    ...more,
  });
}

/** A sign-up as the published clients build it: they sign what they ask for with the key of the token. */
async function signup(variant: 'signup' | 'signupV2', { proofKey = newKey(), token = '', asked = {} } = {}) {
  const verificationToken = token || (await aToken({ publicKey: proofKey.publicKey }));
  const { apiKeys, authenticators, oauthProviders } = ann;
  const signed = { [variant]: { apiKeys, authenticators, oauthProviders, email: 'ann@example.com', ...asked } };
  return {
    ...child,
    rootUsers: [{ ...ann, userEmail: 'ann@example.com' }],
    verificationToken,
    clientSignature: clientSignature(proofKey, verificationToken, 'USAGE_TYPE_SIGNUP', signed),
  };
}

describe('create_sub_organization', () => {
  describe('create a sub-organization', () => {
    it('records in the parent that there is one, and what it begins with', () =>
      given(...parent)
        .when(
          createSubOrganization,
          { ...child, rootUsers: [{ ...ann, apiKeys: [], userEmail: 'ann@example.com' }] },
          {
            prepared: {
              subOrganizationId: id(50),
              claims: undefined,
              proved: [{ authenticators: [], identities: [] }],
              wallet: undefined,
              ids: [id(51)],
            },
          },
        )
        .then(
          [
            {
              type: 'SubOrganizationCreated',
              data: {
                subOrganizationId: id(50),
                name: 'Child',
                initialEvents: [
                  {
                    type: 'OrganizationCreated',
                    data: { organizationId: id(50), name: 'Child', parentOrganizationId: parentId },
                  },
                  {
                    type: 'UserCreated',
                    data: { userId: id(51), userName: 'Ann', userEmail: 'ann@example.com', userTags: [] },
                  },
                  { type: 'RootQuorumUpdated', data: { threshold: 1, userIds: [id(51)] } },
                  ...loginFeatures.map(
                    (name) => ({ type: 'OrganizationFeatureSet', data: { name, value: '' } }) as const,
                  ),
                ],
              },
            },
          ],
          {
            subOrganizationId: id(50),
            rootUserIds: [id(51)],
          },
        ));

    it('founds it with its users, their credentials, the quorum, and every way to log in', async () => {
      const passkey = new SoftwareAuthenticator();
      const { prepared, events, result } = await founded({
        ...child,
        rootUsers: [
          { ...ann, userEmail: 'ann@example.com', userPhoneNumber: '+13214567890' },
          { ...bob, apiKeys: [], authenticators: [{ authenticatorName: 'passkey', ...passkey.register() }] },
        ],
        rootQuorumThreshold: 2,
      });
      const [annId, bobId] = result.rootUserIds!;
      expect(typesOf(events)).toEqual([
        'OrganizationCreated',
        'UserCreated',
        'ApiKeyCreated',
        'UserCreated',
        'AuthenticatorCreated',
        'RootQuorumUpdated',
        ...Array.from({ length: 4 }, () => 'OrganizationFeatureSet'),
      ]);
      const data = events.map((event): object => event.data);
      expect(data[0]).toEqual({
        organizationId: prepared.subOrganizationId,
        name: 'Child',
        parentOrganizationId: parentId,
      });
      expect(data[1]).toEqual({
        userId: annId,
        userName: 'Ann',
        userEmail: 'ann@example.com',
        userPhoneNumber: '+13214567890',
        userTags: [],
      });
      expect(data[2]).toMatchObject({ userId: annId, publicKey: publicKeyOf(11) });
      expect(data[4]).toMatchObject({ userId: bobId, publicKey: passkey.publicKey });
      expect(data[5]).toEqual({ threshold: 2, userIds: [annId, bobId] });
      expect(data.slice(6)).toEqual(loginFeatures.map((name) => ({ name, value: '' })));
    });

    it.each([
      ['disableEmailRecovery', 'FEATURE_NAME_EMAIL_RECOVERY'],
      ['disableEmailAuth', 'FEATURE_NAME_EMAIL_AUTH'],
      ['disableSmsAuth', 'FEATURE_NAME_SMS_AUTH'],
      ['disableOtpEmailAuth', 'FEATURE_NAME_OTP_EMAIL_AUTH'],
    ])('%s switches off %s, and only that', async (flag, feature) => {
      const { events } = await founded({ ...child, [flag]: true });
      const on = events.flatMap(({ type, data }) => (type === 'OrganizationFeatureSet' ? [data.name as string] : []));
      expect(on).toHaveLength(3);
      expect(on).not.toContain(feature);
    });

    it('makes its wallet in its own vault, and answers the addresses', async () => {
      const wallet = { walletName: 'first', accounts: [{ ...ethereum, name: 'main' }, solana], mnemonicLength: 24 };
      const { events, result } = await founded({ ...child, wallet });
      const { subOrganizationId: organizationId } = result;
      const created = events.find((event) => event.type === 'WalletCreated')!.data;
      const accounts = events.find((event) => event.type === 'WalletAccountsCreated')!.data.accounts;
      expect(accounts.map(({ address, name }) => [address, name])).toEqual([
        [result.wallet!.addresses[0], 'main'],
        [result.wallet!.addresses[1], undefined],
      ]);
      expect(result.wallet!.walletId).toBe(created.walletId);
      const words = (organization: string) =>
        ports.vault.open(
          { organizationId: organization, vaultId: created.vaultId, name: 'mnemonic' },
          (secret) => secret.toString('utf8').split(' ').length,
        );
      expect(await words(organizationId)).toBe(24);
      await expect(words(parentId)).rejects.toThrow();
    });

    it('takes identities that a token proves, and the same person for another audience', async () => {
      const issuer = await startIssuer([await publishedKey('ES256', 'k')]);
      try {
        const { privateKey } = await pairFor('ES256');
        const oidcToken = await sign(claimsOf(issuer.url), { alg: 'ES256', kid: 'k' }, privateKey);
        const oidcClaims = { iss: issuer.url, sub: 'subject-1', aud: 'client-2' };
        const withProviders = (...oauthProviders: object[]) => ({
          ...child,
          rootUsers: [{ ...ann, apiKeys: [], oauthProviders }],
        });
        const there = { ...ports, oidc: verifierAt({ now: () => noon }) };
        const settings = {
          allowedOrigins: [],
          allowedAuthMethods: [],
          socialLinkingClientIds: ['client-1', 'client-2'],
        };
        const listing = [...parent, ...enabledProxy, { type: 'AuthProxyUpdated', data: { settings } } as const];
        const { events } = await founded(
          withProviders({ providerName: 'web', oidcToken }, { providerName: 'app', oidcClaims }),
          { ports: there, history: listing },
        );
        const identities = events.flatMap(({ type, data }) => (type === 'OauthProviderCreated' ? [data] : []));
        expect(identities).toMatchObject([
          { providerName: 'web', issuer: issuer.url, subject: 'subject-1', audience: 'client-1' },
          { providerName: 'app', issuer: issuer.url, subject: 'subject-1', audience: 'client-2' },
        ]);
        const forged = `${oidcToken.slice(0, -4)}AAAA`;
        for (const [providers, message] of [
          [[{ providerName: 'web', oidcToken: forged }], /INVALID_OIDC_TOKEN/],
          [[{ providerName: 'app', oidcClaims }], /oauthProviders\[0\]\.oidcClaims: no oidcToken in the list proves/],
          [[{ providerName: 'app' }], /oauthProviders\[0\]: needs oidcToken or oidcClaims/],
        ] as const) {
          const refused = await refusedBy(prepare(withProviders(...providers), ++requests, { ports: there }));
          expect(refused).toEqual({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(message) as string });
          expect(await foundedStreams()).toEqual([]);
        }
      } finally {
        await issuer.close();
      }
    });

    it('refuses a passkey that does not verify, and founds nothing', async () => {
      const forged = new SoftwareAuthenticator().register({ clientData: { type: 'webauthn.get' } });
      const rootUsers = [{ ...ann, authenticators: [{ authenticatorName: 'passkey', ...forged }] }];
      const refused = await refusedBy(prepare({ ...child, rootUsers }, ++requests));
      expect(refused.code).toBe('INVALID_ARGUMENT');
      expect(refused.message).toContain('parameters.rootUsers[0].authenticators[0]');
      expect(await foundedStreams()).toEqual([]);
    });

    it.each([
      [
        'in a sub-organization',
        [anOrganization({ parentOrganizationId: id(600) })],
        child,
        'FAILED_PRECONDITION',
        new RegExp(`is a sub-organization and cannot have sub-organizations of its own: create it in \`${id(600)}\``),
      ],
      [
        'a threshold above the number of users',
        parent,
        { ...child, rootQuorumThreshold: 2 },
        'INVALID_ARGUMENT',
        /rootQuorumThreshold: `2` cannot be reached by 1 root users/,
      ],
      ['a threshold of none', parent, { ...child, rootQuorumThreshold: 0 }, 'INVALID_ARGUMENT', /rootQuorumThreshold/],
      ['no users', parent, { ...child, rootUsers: [] }, 'INVALID_ARGUMENT', /rootUsers: must have 1 to 100 elements/],
      ['no name', parent, { ...child, subOrganizationName: '' }, 'INVALID_ARGUMENT', /subOrganizationName/],
      [
        'a quorum of users who could never sign',
        parent,
        { ...child, rootUsers: [ann, { ...bob, apiKeys: [] }], rootQuorumThreshold: 2 },
        'INVALID_ARGUMENT',
        /rootUsers: the root quorum requires 2 of them, but only 1 could ever sign/,
      ],
      [
        'a key that is none',
        parent,
        { ...child, rootUsers: [{ ...ann, apiKeys: [{ ...key(11), publicKey: 'abcd' }] }] },
        'INVALID_ARGUMENT',
        /rootUsers\[0\]\.apiKeys\[0\]\.publicKey/,
      ],
      [
        'one key for two users',
        parent,
        { ...child, rootUsers: [ann, { ...bob, apiKeys: ann.apiKeys }] },
        'ALREADY_EXISTS',
        /rootUsers\[1\]\.apiKeys\[0\]\.publicKey: public key .* appears twice in this request/,
      ],
      [
        'eleven keys',
        parent,
        { ...child, rootUsers: [{ ...ann, apiKeys: Array.from({ length: 11 }, (_, index) => key(30 + index)) }] },
        'RESOURCE_EXHAUSTED',
        /rootUsers\[0\]\.apiKeys: a user may have 10 API keys that never expire/,
      ],
      [
        'a mnemonic of 13 words',
        parent,
        { ...child, wallet: { walletName: 'first', accounts: [], mnemonicLength: 13 } },
        'INVALID_ARGUMENT',
        /wallet\.mnemonicLength: `13`/,
      ],
      [
        'one account twice',
        parent,
        { ...child, wallet: { walletName: 'first', accounts: [ethereum, ethereum] } },
        'ALREADY_EXISTS',
        /has an account at path/,
      ],
      [
        'a member that only the server may set',
        parent,
        { ...child, takesUnboundToken: true },
        'INVALID_ARGUMENT',
        /takesUnboundToken: is not a field/,
      ],
    ] as const)('is refused before anybody votes on it: %s', (_what, history, intent, code, message) =>
      given(...history)
        .when(createSubOrganization, intent, {
          prepared: { subOrganizationId: id(50), claims: undefined, proved: [], wallet: undefined, ids: [] },
        })
        .thenRefused(code, message),
    );

    it('takes two users with the same contact for two users', async () => {
      const userEmail = 'office@example.com';
      const { result } = await founded({
        ...child,
        rootUsers: [
          { ...ann, userEmail },
          { ...bob, userEmail },
        ],
      });
      expect(new Set(result.rootUserIds).size).toBe(2);
    });
  });

  it('is another one when prepared again, with another seed: nothing of an attempt is used by the next', async () => {
    const wallet = { walletName: 'first', accounts: [ethereum] };
    const [one, other] = [await founded({ ...child, wallet }), await founded({ ...child, wallet })];
    expect(other.prepared.subOrganizationId).not.toBe(one.prepared.subOrganizationId);
    expect(other.result.wallet!.addresses).not.toEqual(one.result.wallet!.addresses);
    expect(await foundedStreams()).toEqual([]);
  });

  describe('a sign-up', () => {
    it.each(['signup', 'signupV2'] as const)(
      'with a token and a signature (%s) proves the contact, once',
      async (variant) => {
        const request = await signup(variant);
        const { prepared, events, result } = await founded(request);
        const [userId] = result.rootUserIds!;
        const data = { userId, contact: 'email', issuerOrganizationId: parentId };
        expect(events).toContainEqual({ type: 'UserContactVerified', data });
        const { subOrganizationId } = prepared;
        const used = {
          type: 'VerificationTokenUsed',
          data: {
            tokenId: prepared.claims!.tokenId,
            usage: 'USAGE_TYPE_SIGNUP',
            expiresAt: prepared.claims!.expiresAt,
          },
        } as const;
        given(...parent)
          .when(createSubOrganization, request, { prepared })
          .then(
            [
              { type: 'SubOrganizationCreated', data: { subOrganizationId, name: 'Child', initialEvents: events } },
              used,
            ],
            {
              subOrganizationId,
              rootUserIds: result.rootUserIds!,
            },
          );

        // Two at the same moment are both prepared; what is recorded decides.
        given(...parent, used)
          .when(createSubOrganization, request, { prepared })
          .thenRefused('FAILED_PRECONDITION', /has already been used for USAGE_TYPE_SIGNUP/);
        const again = await refusedBy(prepare(request, ++requests, { history: [...parent, used] }));
        expect(again.code).toBe('FAILED_PRECONDITION');
      },
    );

    it('by telephone proves the number', async () => {
      const proofKey = newKey();
      const claims = {
        verificationType: 'OTP_TYPE_SMS',
        contact: '+13214567890',
        publicKey: proofKey.publicKey,
      } as const;
      const token = await aToken(claims);
      const base = await signup('signupV2', {
        proofKey,
        token,
        asked: { email: undefined, phoneNumber: '+13214567890' },
      });
      const { events, result } = await founded({ ...base, rootUsers: [{ ...ann, userPhoneNumber: '+13214567890' }] });
      expect(events).toContainEqual({
        type: 'UserContactVerified',
        data: { userId: result.rootUserIds![0], contact: 'phone-number', issuerOrganizationId: parentId },
      });
    });

    it('with a token that is bound to no key is for version 7 only', async () => {
      const request = {
        ...child,
        rootUsers: [{ ...ann, userEmail: 'ann@example.com' }],
        verificationToken: await aToken(),
      };
      const refused = await refusedBy(prepare(request, ++requests));
      expect(refused).toEqual({
        code: 'INVALID_ARGUMENT',
        message: expect.stringContaining('parameters.verificationToken: is not bound to a key') as string,
      });
      const { events } = await founded(request, { takesUnboundToken: true });
      expect(typesOf(events)).toContain('UserContactVerified');
    });

    it('of several users with such a token proves the contact of its owner, and no other', async () => {
      const rootUsers = [bob, { ...ann, userEmail: 'ann@example.com' }].map((one) => ({ ...one, userName: 'Root' }));
      const request = { ...child, rootUsers, verificationToken: await aToken() };
      const { events, result } = await founded(request, { takesUnboundToken: true });
      const proved = events.filter(({ type }) => type === 'UserContactVerified');
      expect(proved.map(({ data }) => (data as { userId: string }).userId)).toEqual([result.rootUserIds![1]]);
    });

    it('is refused unless token, signature and request agree', async () => {
      const good = await signup('signupV2');
      const signed = good.clientSignature;
      const cases: readonly (readonly [object, RegExp])[] = [
        [{ ...good, clientSignature: undefined }, /clientSignature: is required/],
        [
          { ...good, clientSignature: { ...signed, publicKey: newKey().publicKey } },
          /is not the key that the .* bound to/,
        ],
        [
          { ...good, clientSignature: { ...signed, message: `${signed.message} ` } },
          /signature: is not a valid signature of the message/,
        ],
        [await signup('signupV2', { asked: { email: 'eve@example.com' } }), /message: does not match the request/],
        [await signup('signupV2', { asked: { apiKeys: [key(13)] } }), /message: does not match the request/],
        [{ ...good, rootUsers: [{ ...ann, userEmail: 'eve@example.com' }] }, /verifies a contact that no root user/],
        [
          { ...good, rootUsers: [...good.rootUsers, bob] },
          /verificationToken: covers one root user.*the request has 2/,
        ],
        [{ ...good, verificationToken: `${good.verificationToken.slice(0, -4)}AAAA` }, /its signature is not by/],
        [await foreignSignup(), /was issued by organization/],
      ];
      for (const [request, message] of cases) {
        const refused = await refusedBy(prepare(request, ++requests));
        expect(refused).toEqual({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(message) as string });
        expect(await foundedStreams()).toEqual([]);
      }
    });

    async function foreignSignup() {
      const proofKey = newKey();
      return signup('signupV2', {
        proofKey,
        token: await aToken({ organizationId: id(701), publicKey: proofKey.publicKey }),
      });
    }
  });

  describe('older versions', () => {
    const { curveType: _curve, ...oldKey } = key(11);
    const oldAnn = { userName: 'Ann', userEmail: 'ann@example.com', apiKeys: [oldKey], authenticators: [] };
    const old = { subOrganizationName: 'Child', rootQuorumThreshold: 1, rootUsers: [oldAnn] };
    const newest = { ...old, rootUsers: [{ ...oldAnn, apiKeys: [key(11)] }] };

    it.each([
      ['V2', old, newest],
      ['V4', { ...old, disableEmailAuth: true }, { ...newest, disableEmailAuth: true }],
      [
        'V5',
        { ...old, rootUsers: [{ ...oldAnn, oauthProviders: [] }] },
        { ...newest, rootUsers: [{ ...oldAnn, apiKeys: [key(11)], oauthProviders: [] }] },
      ],
      ['V6', { ...child, disableEmailRecovery: true }, { ...child, disableEmailRecovery: true }],
      ['V7', { ...child, disableSmsAuth: true }, { ...child, disableSmsAuth: true, takesUnboundToken: true }],
    ])('%s says the same in other words', (version, intent, expected) =>
      expect(lifted(`ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_${version}`, intent)).toEqual(expected),
    );

    it.each([
      [
        'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V3',
        { ...old, privateKeys: [] },
        /starts without private keys.*; send .*_V8/,
      ],
      [
        'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION',
        {
          name: 'Child',
          rootAuthenticator: { authenticatorName: 'passkey', ...new SoftwareAuthenticator().register() },
        },
        /its root user has no name; send .*_V8/,
      ],
    ])('%s is not taken, and says what to send', (type, intent, message) => {
      let thrown: unknown;
      try {
        lifted(type, intent);
      } catch (error) {
        thrown = error;
      }
      expect(thrown).toBeInstanceOf(CoordinatorError);
      const { code, message: text } = thrown as CoordinatorError;
      expect({ code, text }).toEqual({ code: 'UNIMPLEMENTED', text: expect.stringMatching(message) as string });
    });

    it('have no fields of newer ones', () => {
      const withPhone = { ...child, rootUsers: [{ ...ann, userPhoneNumber: '+13214567890' }] };
      expect(() => lifted('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V6', withPhone)).toThrow(
        /userPhoneNumber: is not a field/,
      );
    });
  });

  test('a user of the parent is nobody in the sub-organization', async () => {
    const { events } = await founded(child, { history: [...parent, aUser(id(101))] });
    expect(events.filter(({ type }) => type === 'UserCreated')).toHaveLength(1);
  });
});
