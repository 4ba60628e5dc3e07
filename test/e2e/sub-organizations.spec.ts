import type { Turnkey } from '@turnkey/sdk-server';
import { ApiKeyStamper } from '@turnkey/api-key-stamper';
import { TurnkeyClient } from '@turnkey/http';
import { decodeJwt } from 'jose';
import type { ActivityEnvelope } from '../../src/wire/envelope.js';
import { organizationStream } from '../../src/domain/organization/organization.js';
import {
  startCoordinator,
  submitPath,
  type ApiKeyPair,
  type StampingClient,
  type TestCoordinator,
} from '../../src/testing/index.js';
import { claimsOf, pairFor, publishedKey, sign, startIssuer, type Issuer } from '../oidc/issuer.js';
import { SoftwareAuthenticator } from '../stamps/software-authenticator.js';
import { objectWith, refusal, textLike } from './exchange.js';
import { clientSignature, codeOf } from './one-time-codes.js';

// The package's index also loads its browser actions, which need a peer package (viem) that nothing here uses.
const sdkFile = new URL('../../node_modules/@turnkey/sdk-server/dist/sdk-client.mjs', import.meta.url).pathname;
const { TurnkeyServerSDK } = (await import(sdkFile)) as { TurnkeyServerSDK: typeof Turnkey };

const newest = 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8';
const deletion = 'ACTIVITY_TYPE_DELETE_SUB_ORGANIZATION';
const wallet = {
  walletName: 'first',
  accounts: [
    {
      curve: 'CURVE_SECP256K1',
      pathFormat: 'PATH_FORMAT_BIP32',
      path: "m/44'/60'/0'/0/0",
      addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
    },
  ],
} as const;

let issuer: Issuer;
let coordinator: TestCoordinator;
let parent: StampingClient;
let parentId: string;

beforeAll(async () => {
  issuer = await startIssuer([await publishedKey('ES256', 'k')]);
  // Published clients stamp with the wall clock.
  coordinator = await startCoordinator({ at: new Date(), settings: { ALLOW_PRIVATE_NETWORK: 'true' } });
  parent = coordinator.client;
  parentId = coordinator.organizationId;
});

afterAll(async () => {
  await coordinator.close();
  await issuer.close();
});

interface Created {
  readonly subOrganizationId: string;
  readonly rootUserIds: readonly string[];
  readonly wallet?: { readonly walletId: string; readonly addresses: readonly string[] };
}

interface Child extends Created {
  readonly userId: string;
  readonly key: ApiKeyPair;
  readonly client: StampingClient;
}

const keyParams = ({ publicKey, curve }: ApiKeyPair) => ({ apiKeyName: 'key', publicKey, curveType: curve });
const noCredentials = { apiKeys: [], authenticators: [], oauthProviders: [] };
const createdBy = ({ result }: Pick<ActivityEnvelope, 'result'>) => Object.values(result)[0] as Created;

/** Creates a sub-organization with one root user, who has an API key and whatever else is said. */
async function create(
  { name = 'Child', user = {}, ...more }: { name?: string; user?: object; wallet?: object } = {},
  by: StampingClient = parent,
): Promise<Child> {
  const key = coordinator.newKey();
  const activity = await by.submit(newest, {
    subOrganizationName: name,
    rootUsers: [{ userName: 'Root', ...noCredentials, apiKeys: [keyParams(key)], ...user }],
    rootQuorumThreshold: 1,
    ...more,
  });
  const created = createdBy(activity);
  const { subOrganizationId } = created;
  const client = coordinator.clientFor(key, subOrganizationId);
  return { ...created, userId: created.rootUserIds[0]!, key, client };
}

async function list(query: 'list_suborgs' | 'list_verified_suborgs', request: object = {}, client = parent) {
  return (await client.query<{ organizationIds: string[] }>(query, request)).organizationIds;
}

const listed = (filterType: string, filterValue: string, client = parent) =>
  list('list_suborgs', { filterType, filterValue }, client);
const verified = (filterType: string, filterValue: string) =>
  list('list_verified_suborgs', { filterType, filterValue });

function sdkClient(key: ApiKeyPair, defaultOrganizationId = parentId) {
  return new TurnkeyServerSDK({
    apiBaseUrl: coordinator.url,
    apiPublicKey: key.publicKey,
    apiPrivateKey: key.privateKey,
    defaultOrganizationId,
    activityPoller: { intervalMs: 10, numRetries: 3 },
  }).apiClient();
}

/** A verification token for a contact, bound to a new key. */
async function proofOf(otpType: 'OTP_TYPE_EMAIL' | 'OTP_TYPE_SMS', contact: string, client = parent) {
  const { result } = await client.submit('ACTIVITY_TYPE_INIT_OTP_V3', {
    otpType,
    contact,
    appName: 'Sample',
    userIdentifier: coordinator.newKey().publicKey,
  });
  const { otpId } = result['initOtpResultV2'] as { otpId: string };
  const key = coordinator.newKey();
  const { result: verification } = await client.submit('ACTIVITY_TYPE_VERIFY_OTP', {
    otpId,
    otpCode: await codeOf(coordinator, otpId),
    publicKey: key.publicKey,
  });
  return { key, ...(verification['verifyOtpResult'] as { verificationToken: string }) };
}

describe('published clients', () => {
  test('@turnkey/sdk-server creates one, and finds it by all that it has', async () => {
    const sdk = sdkClient(parent.key);
    const key = coordinator.newKey();
    const passkey = new SoftwareAuthenticator();
    const { privateKey } = await pairFor('ES256');
    const claims = { ...claimsOf(issuer.url), iat: Date.now() / 1_000 - 10, exp: Date.now() / 1_000 + 600 };
    const oidcToken = await sign(claims, { alg: 'ES256', kid: 'k' }, privateKey);
    const created = await sdk.createSubOrganization({
      subOrganizationName: 'By the SDK',
      rootUsers: [
        {
          userName: 'Sdk',
          userEmail: 'Sdk@Example.com',
          userPhoneNumber: '+15550001111',
          apiKeys: [{ apiKeyName: 'key', publicKey: key.publicKey, curveType: 'API_KEY_CURVE_P256' }],
          authenticators: [
            { authenticatorName: 'passkey', ...passkey.register() } as unknown as Parameters<
              typeof sdk.createSubOrganization
            >[0]['rootUsers'][number]['authenticators'][number],
          ],
          oauthProviders: [{ providerName: 'issuer', oidcToken }],
        },
      ],
      rootQuorumThreshold: 1,
      wallet: { ...wallet, accounts: [...wallet.accounts] },
    });
    const { subOrganizationId } = created;
    const [address] = created.wallet!.addresses;
    expect(created.rootUserIds).toHaveLength(1);

    const { iss, sub, aud } = decodeJwt(oidcToken);
    for (const [filterType, filterValue] of [
      ['NAME', 'By the SDK'],
      ['USERNAME', 'Sdk'],
      ['EMAIL', 'sdk@example.COM'],
      ['PHONE_NUMBER', '+15550001111'],
      ['PUBLIC_KEY', key.publicKey],
      ['CREDENTIAL_ID', passkey.credentialId],
      ['OIDC_TOKEN', oidcToken],
      ['OIDC_CLAIMS', JSON.stringify({ iss, sub, aud })],
      ['OAUTH_CLAIM', JSON.stringify({ issuer: iss, subject: sub, audience: aud })],
      ['WALLET_ACCOUNT_ADDRESS', address!.toLowerCase()],
    ] as const) {
      const { organizationIds } = await sdk.getSubOrgIds({ filterType, filterValue });
      expect([filterType, organizationIds]).toEqual([filterType, [subOrganizationId]]);
    }
    // Nobody has proved these yet.
    const unproved = await sdk.getVerifiedSubOrgIds({ filterType: 'EMAIL', filterValue: 'sdk@example.com' });
    expect(unproved.organizationIds).toEqual([]);

    const { organizationData } = await parent.query('get_organization', { organizationId: subOrganizationId });
    expect(organizationData).toMatchObject({
      organizationId: subOrganizationId,
      name: 'By the SDK',
      rootQuorum: { threshold: 1, userIds: created.rootUserIds },
      wallets: [{ walletId: created.wallet!.walletId, walletName: 'first', exported: false }],
      privateKeys: [],
    });
    const own = sdkClient(key, subOrganizationId);
    expect(await own.getWhoami()).toMatchObject({ organizationId: subOrganizationId, username: 'Sdk' });
    const deleted = await own.deleteSubOrganization({ deleteWithoutExport: true });
    expect(deleted.subOrganizationUuid).toBe(subOrganizationId);
    expect((await sdk.getSubOrgIds({ filterType: 'NAME', filterValue: 'By the SDK' })).organizationIds).toEqual([]);
  });

  test('@turnkey/http reads the result where it looks for it', async () => {
    const { publicKey: apiPublicKey, privateKey: apiPrivateKey } = parent.key;
    const client = new TurnkeyClient({ baseUrl: coordinator.url }, new ApiKeyStamper({ apiPublicKey, apiPrivateKey }));
    const { activity } = await client.createSubOrganization({
      type: newest,
      timestampMs: String(Date.now()),
      organizationId: parentId,
      parameters: {
        subOrganizationName: 'By http',
        rootUsers: [{ userName: 'Http', ...noCredentials, userEmail: 'http@example.com' }],
        rootQuorumThreshold: 1,
      },
    });
    expect(activity).toMatchObject({ status: 'ACTIVITY_STATUS_COMPLETED', organizationId: parentId });
    const { subOrganizationId } = activity.result.createSubOrganizationResultV8!;
    const { organizationIds } = await client.getSubOrgIds({ organizationId: parentId });
    expect(organizationIds[0]).toBe(subOrganizationId);
  });

  test.each([
    ['V2', 'createSubOrganizationResult'],
    ['V4', 'createSubOrganizationResultV4'],
    ['V5', 'createSubOrganizationResultV5'],
    ['V6', 'createSubOrganizationResultV6'],
    ['V7', 'createSubOrganizationResultV7'],
  ])('version %s answers under %s', async (version, resultKey) => {
    const { publicKey, curve } = coordinator.newKey();
    const hasCurve = version === 'V6' || version === 'V7';
    const { intent, result } = await parent.submit(`ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_${version}`, {
      subOrganizationName: version,
      rootUsers: [
        {
          userName: 'Old',
          apiKeys: [{ apiKeyName: 'key', publicKey, ...(hasCurve ? { curveType: curve } : {}) }],
          authenticators: [],
        },
      ],
      rootQuorumThreshold: 1,
    });
    expect(Object.keys(intent)).toEqual([`createSubOrganizationIntent${version}`]);
    expect(Object.keys(result)).toEqual([resultKey]);
    expect(await listed('PUBLIC_KEY', publicKey)).toEqual([createdBy({ result }).subOrganizationId]);
  });

  test('an unsupported version names the supported one', async () => {
    const attempt = parent.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V3', {
      subOrganizationName: 'V3',
      rootUsers: [{ userName: 'Old', apiKeys: [], authenticators: [] }],
      rootQuorumThreshold: 1,
      privateKeys: [],
    });
    expect(await refusal(attempt)).toMatchObject({ status: 501, code: 12, message: textLike(`send ${newest}`) });
  });
});

describe('a sign-up', () => {
  test.each([
    ['ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V7', 'signup', 'OTP_TYPE_EMAIL', 'v7@example.com'],
    [newest, 'signupV2', 'OTP_TYPE_SMS', '+15550002222'],
  ] as const)('%s with the token of a code, signed as %s', async (type, variant, otpType, contact) => {
    const { key, verificationToken } = await proofOf(otpType, contact);
    const isMail = otpType === 'OTP_TYPE_EMAIL';
    const own = keyParams(coordinator.newKey());
    const signed = { ...noCredentials, apiKeys: [own], ...(isMail ? { email: contact } : { phoneNumber: contact }) };
    const request = (name: string) => ({
      subOrganizationName: name,
      rootUsers: [
        {
          userName: 'New',
          ...noCredentials,
          apiKeys: [own],
          ...(isMail ? { userEmail: contact } : { userPhoneNumber: contact }),
        },
      ],
      rootQuorumThreshold: 1,
      verificationToken,
      clientSignature: clientSignature(key, verificationToken, 'USAGE_TYPE_SIGNUP', { [variant]: signed }),
    });
    const { subOrganizationId } = createdBy(await parent.submit(type, request('signed up')));
    const kind = isMail ? 'EMAIL' : 'PHONE_NUMBER';
    expect(await verified(kind, contact)).toEqual([subOrganizationId]);

    // One token is one sign-up.
    expect(await refusal(parent.submit(type, request('again')))).toMatchObject({
      status: 400,
      message: textLike('has already been used for USAGE_TYPE_SIGNUP'),
    });
    expect(await verified(kind, contact)).toEqual([subOrganizationId]);
  });

  test('twice at the same moment with one token is one sub-organization', async () => {
    const contact = 'twice@example.com';
    const { key, verificationToken } = await proofOf('OTP_TYPE_EMAIL', contact);
    const attempts = Array.from({ length: 5 }, (_, index) =>
      parent.submit(newest, {
        subOrganizationName: `attempt ${index}`,
        rootUsers: [{ userName: 'New', userEmail: contact, ...noCredentials }],
        rootQuorumThreshold: 1,
        verificationToken,
        clientSignature: clientSignature(key, verificationToken, 'USAGE_TYPE_SIGNUP', {
          signupV2: { ...noCredentials, email: contact },
        }),
      }),
    );
    const outcomes = await Promise.allSettled(attempts);
    const done = outcomes.filter(({ status }) => status === 'fulfilled');
    expect(done).toHaveLength(1);
    expect(await verified('EMAIL', contact)).toHaveLength(1);
    expect(await listed('EMAIL', contact)).toHaveLength(1);
  });
});

test('the same request is the same sub-organization, also after a restart', async () => {
  let own = await startCoordinator({ store: 'sqlite', seed: 'again' });
  try {
    const { publicKey, curve } = own.newKey();
    const body = own.client.submitBody(newest, {
      subOrganizationName: 'Once',
      rootUsers: [
        {
          userName: 'Root',
          apiKeys: [{ apiKeyName: 'key', publicKey, curveType: curve }],
          authenticators: [],
          oauthProviders: [],
        },
      ],
      rootQuorumThreshold: 1,
      wallet,
    });
    const send = async () =>
      (await own.client.post<{ activity: ActivityEnvelope }>(submitPath(newest), body)).body.activity;
    const [first, ...others] = await Promise.all(Array.from({ length: 10 }, send));
    for (const other of others) expect(other).toEqual(first);
    own = await own.restart();
    expect(await send()).toEqual(first);
    expect(await list('list_suborgs', {}, own.client)).toEqual([createdBy(first!).subOrganizationId]);
  } finally {
    await own.close();
  }
});

test('what takes two is founded when the second agrees, and not before', async () => {
  const own = await startCoordinator({ seed: 'two' });
  try {
    const [alice, bob] = [await own.createUser('Alice'), await own.createUser('Bob')];
    await own.createPolicy({
      policyName: 'two create',
      condition: "activity.resource == 'ORGANIZATION' && activity.action == 'CREATE'",
      consensus: 'approvers.count() >= 2',
    });
    const intent = {
      subOrganizationName: 'Ours',
      rootUsers: [{ userName: 'Root', ...noCredentials, userEmail: 'root@example.com' }],
      rootQuorumThreshold: 1,
    };
    const asked = await alice.client.submit(newest, intent);
    expect(asked.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    expect(await list('list_suborgs', {}, own.client)).toEqual([]);
    const done = await bob.client.approve(asked.fingerprint);
    expect(done.status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect(await list('list_suborgs', {}, own.client)).toEqual([createdBy(done).subOrganizationId]);
    // What could never be done is not voted on.
    const impossible = alice.client.submit(newest, { ...intent, rootQuorumThreshold: 2 });
    expect(await refusal(impossible)).toMatchObject({ status: 400, message: textLike('rootQuorumThreshold') });
  } finally {
    await own.close();
  }
});

describe('what is refused did not happen', () => {
  /** Ids of all organizations that have a stream. */
  const organizations = async ({ recorded }: TestCoordinator) =>
    (await recorded()).flatMap(({ type, data }) =>
      type === 'OrganizationCreated' ? [(data as { organizationId: string }).organizationId] : [],
    );

  /** Takes a while to be made, in which others may do something. */
  const slow = {
    walletName: 'slow',
    accounts: Array.from({ length: 60 }, (_, index) => ({ ...wallet.accounts[0], path: `m/44'/60'/0'/0/${index}` })),
  };

  test('of two approvers one approves while the other rejects: there is a sub-organization, or it was rejected', async () => {
    const own = await startCoordinator({ seed: 'race' });
    try {
      const [alice, bob, carol] = await Promise.all(['Alice', 'Bob', 'Carol'].map((name) => own.createUser(name)));
      await own.createPolicy({
        policyName: 'two create',
        condition: "activity.kind == 'CREATE_SUB_ORGANIZATION'",
        consensus: 'approvers.count() >= 2',
      });
      const ends: string[] = [];
      for (let round = 0; round < 3; round++) {
        const before = await organizations(own);
        const asked = await alice!.client.submit(newest, {
          subOrganizationName: 'Contested',
          rootUsers: [{ userName: 'Root', ...noCredentials, apiKeys: [keyParams(own.newKey())] }],
          rootQuorumThreshold: 1,
          wallet: slow,
        });
        await Promise.allSettled([bob!.client.approve(asked.fingerprint), carol!.client.reject(asked.fingerprint)]);
        const { activity } = await own.client.query<{ activity: ActivityEnvelope }>('get_activity', {
          activityId: asked.id,
        });
        ends.push(activity.status);
        const made = (await organizations(own)).filter((id) => !before.includes(id));
        const isDone = activity.status === 'ACTIVITY_STATUS_COMPLETED';
        expect(made).toEqual(isDone ? [createdBy(activity).subOrganizationId] : []);
      }
      expect(ends).toContain('ACTIVITY_STATUS_REJECTED');
    } finally {
      await own.close();
    }
  });

  test('four sign-ups at once with one token: one is, and nobody logs in to the others', async () => {
    const before = await organizations(coordinator);
    const userEmail = 'four@example.com';
    const { key, verificationToken } = await proofOf('OTP_TYPE_EMAIL', userEmail);
    const signUps = Array.from({ length: 4 }, (_, index) => {
      const apiKeys = [keyParams(coordinator.newKey())];
      const signed = { signupV2: { email: userEmail, apiKeys, authenticators: [], oauthProviders: [] } };
      return parent.submit(newest, {
        subOrganizationName: `sign-up ${index}`,
        rootUsers: [{ userName: 'Root', userEmail, apiKeys, authenticators: [], oauthProviders: [] }],
        rootQuorumThreshold: 1,
        wallet: slow,
        verificationToken,
        clientSignature: clientSignature(key, verificationToken, 'USAGE_TYPE_SIGNUP', signed),
      });
    });
    const settled = await Promise.allSettled(signUps);
    const done = settled.flatMap((one) => (one.status === 'fulfilled' ? [createdBy(one.value)] : []));
    expect(done).toHaveLength(1);
    expect((await organizations(coordinator)).filter((id) => !before.includes(id))).toEqual([
      done[0]!.subOrganizationId,
    ]);
  });
});

describe('between parent, sub-organization and siblings', () => {
  let child: Child;
  let sibling: Child;

  beforeAll(async () => {
    child = await create({ name: 'isolated', wallet });
    sibling = await create({ name: 'sibling' });
  });

  test('the parent reads, and the sub-organization reads itself', async () => {
    const organizationId = child.subOrganizationId;
    for (const client of [parent, child.client]) {
      const { users } = await client.query<{ users: object[] }>('list_users', { organizationId });
      expect(users).toEqual([objectWith({ userId: child.userId, userName: 'Root' })]);
      const { wallets } = await client.query<{ wallets: object[] }>('list_wallets', { organizationId });
      expect(wallets).toEqual([objectWith({ walletId: child.wallet!.walletId })]);
    }
  });

  test.each([
    ['ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'tag', userIds: [] }],
    ['ACTIVITY_TYPE_UPDATE_ROOT_QUORUM', { threshold: 1, userIds: ['00000000-0000-4000-8000-000000000001'] }],
    [deletion, { deleteWithoutExport: true }],
    ['ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint: `sha256:${'0'.repeat(64)}` }],
  ])('the parent does not act inside: %s', async (type, parameters) => {
    const organizationId = child.subOrganizationId;
    const refused = await refusal(parent.submit(type, parameters, { organizationId }));
    expect(refused).toMatchObject({ status: 400, code: 3, turnkeyErrorCode: 'ORGANIZATION_MISMATCH' });
    expect(refused.message).toContain(organizationId);
    expect(refused.message).toContain(parentId);
  });

  test('no policy of the parent opens it', async () => {
    const policyId = await coordinator.createPolicy({ policyName: 'all', condition: 'true' });
    const { client } = await coordinator.createUser('Mallory');
    const attempt = client.submit(
      'ACTIVITY_TYPE_CREATE_USER_TAG',
      { userTagName: 'tag', userIds: [] },
      { organizationId: child.subOrganizationId },
    );
    expect(await refusal(attempt)).toMatchObject({ turnkeyErrorCode: 'ORGANIZATION_MISMATCH' });
    await parent.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
  });

  test('a sub-organization neither reads nor acts in its parent or a sibling', async () => {
    for (const organizationId of [parentId, sibling.subOrganizationId]) {
      const attempts = [
        child.client.query('list_users', { organizationId }),
        child.client.query('get_organization', { organizationId }),
        child.client.query('list_suborgs', { organizationId }),
        child.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'tag', userIds: [] }, { organizationId }),
        child.client.submit(deletion, { deleteWithoutExport: true }, { organizationId }),
      ];
      // All at once: a refusal that nobody awaits yet ends the test.
      for (const refused of await Promise.all(attempts.map(refusal))) {
        expect(refused).toMatchObject({ status: 401, turnkeyErrorCode: 'PUBLIC_KEY_NOT_FOUND' });
      }
    }
  });

  test('it has no sub-organizations, and can neither create nor list any', async () => {
    const attempt = create({ name: 'grandchild' }, child.client);
    expect(await refusal(attempt)).toMatchObject({
      status: 400,
      message: textLike(`cannot have sub-organizations of its own: create it in \`${parentId}\``),
    });
    expect(await list('list_suborgs', {}, child.client)).toEqual([]);
    expect(await listed('NAME', 'sibling', child.client)).toEqual([]);
  });

  test('other parents’ sub-organizations are not shown', async () => {
    const other = await startCoordinator({ seed: 'other parent' });
    try {
      expect(await list('list_suborgs', {}, other.client)).toEqual([]);
      const organizationId = child.subOrganizationId;
      expect(await refusal(other.client.query('list_suborgs', { organizationId }))).toMatchObject({ status: 404 });
    } finally {
      await other.close();
    }
  });

  test('one key in both: the sub-organization’s user is meant', async () => {
    const key = parent.key;
    const both = await create({ name: 'both', user: { apiKeys: [keyParams(key)] } });
    const { activity } = (
      await parent.post<{ activity: ActivityEnvelope }>(
        submitPath('ACTIVITY_TYPE_CREATE_USER_TAG'),
        parent.submitBody(
          'ACTIVITY_TYPE_CREATE_USER_TAG',
          { userTagName: 'mine', userIds: [] },
          { organizationId: both.subOrganizationId },
        ),
      )
    ).body;
    expect(activity.votes).toEqual([objectWith({ userId: both.userId })]);
  });
});

describe('lists', () => {
  test('pages, the newest first, with and without a filter', async () => {
    const own = await startCoordinator({ seed: 'pages' });
    const make = async (name: string) =>
      createdBy(
        await own.client.submit(newest, {
          subOrganizationName: name,
          rootUsers: ['Ann', 'Bob'].map((userName) => ({
            userName,
            userEmail: 'office@example.com',
            ...noCredentials,
          })),
          rootQuorumThreshold: 1,
        }),
      ).subOrganizationId;
    try {
      const ids: string[] = [];
      for (let count = 0; count < 12; count++) ids.unshift(await make(count % 2 ? 'odd' : 'even'));
      const odd = ids.filter((_id, index) => index % 2 === 0);
      const ask = (request: object) => list('list_suborgs', request, own.client);
      expect(await ask({})).toEqual(ids.slice(0, 10));
      expect(await ask({ paginationOptions: { after: ids[9] } })).toEqual(ids.slice(10));
      expect(await ask({ paginationOptions: { limit: '3', before: ids[5] } })).toEqual(ids.slice(2, 5));
      const named = { filterType: 'NAME', filterValue: 'odd' };
      expect(await ask(named)).toEqual(odd);
      expect(await ask({ ...named, paginationOptions: { limit: '2', after: odd[1] } })).toEqual(odd.slice(2, 4));
      // Two users with one address are one sub-organization, and count once in a page.
      const shared = { filterType: 'EMAIL', filterValue: 'Office@Example.com' };
      expect(await ask({ ...shared, paginationOptions: { limit: '12' } })).toEqual(ids);
      expect(await ask({ ...shared, paginationOptions: { limit: '3', after: ids[0] } })).toEqual(ids.slice(1, 4));
      const unknown = ask({ paginationOptions: { after: own.organizationId } });
      expect(await refusal(unknown)).toMatchObject({
        status: 400,
        message: textLike('is not an element of this list'),
      });
    } finally {
      await own.close();
    }
  });

  test.each([
    [{ filterType: 'COLOUR', filterValue: 'red' }, 'filterType'],
    [{ filterType: 'NAME' }, 'filterValue: is required'],
    [{ filterType: 'NAME', filterValue: '' }, 'filterValue: is required'],
    [{ filterType: 'OIDC_TOKEN', filterValue: 'a.b.c' }, 'INVALID_OIDC_TOKEN'],
    [{ filterType: 'OIDC_CLAIMS', filterValue: '{"iss":"x"}' }, 'must be JSON with the strings `iss`, `sub` and `aud`'],
    [
      { filterType: 'OAUTH_CLAIM', filterValue: '{"iss":"x","sub":"y","aud":"z"}' },
      '`issuer`, `subject` and `audience`',
    ],
    [{ paginationOptions: { limit: '0' } }, 'paginationOptions.limit'],
  ])('refuse %j', async (request, message) =>
    expect(await refusal(list('list_suborgs', request))).toMatchObject({ status: 400, message: textLike(message) }),
  );

  test('follow what changes', async () => {
    const child = await create({ name: 'before', user: { userEmail: 'before@example.com' } });
    const { client, subOrganizationId, userId } = child;
    const here = [subOrganizationId];
    await client.submit('ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME', { organizationName: 'after' });
    expect([await listed('NAME', 'before'), await listed('NAME', 'after')]).toEqual([[], here]);
    await client.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', { userId, userName: 'Changed by name' });
    expect([await listed('USERNAME', 'Root'), await listed('USERNAME', 'Changed by name')]).toEqual([
      listWithout(await listed('USERNAME', 'Root'), subOrganizationId),
      here,
    ]);
    await client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', { userId, userEmail: 'after@example.com' });
    expect([await listed('EMAIL', 'before@example.com'), await listed('EMAIL', 'after@example.com')]).toEqual([
      [],
      here,
    ]);
    await client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', { userId, userEmail: '' });
    expect(await listed('EMAIL', 'after@example.com')).toEqual([]);

    // A second key, which goes; then a second user, who goes with all that was theirs.
    const spare = coordinator.newKey();
    const { result: keys } = await client.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', {
      userId,
      apiKeys: [keyParams(spare)],
    });
    expect(await listed('PUBLIC_KEY', spare.publicKey.toUpperCase())).toEqual(here);
    const { apiKeyIds } = keys['createApiKeysResult'] as { apiKeyIds: string[] };
    await client.submit('ACTIVITY_TYPE_DELETE_API_KEYS', { userId, apiKeyIds });
    expect(await listed('PUBLIC_KEY', spare.publicKey)).toEqual([]);

    const passkey = new SoftwareAuthenticator();
    const { result: users } = await client.submit('ACTIVITY_TYPE_CREATE_USERS_V4', {
      users: [
        {
          userName: 'Second',
          userEmail: 'second@example.com',
          ...noCredentials,
          apiKeys: [keyParams(spare)],
          authenticators: [{ authenticatorName: 'passkey', ...passkey.register() }],
          userTags: [],
        },
      ],
    });
    const second = [
      ['USERNAME', 'Second'],
      ['EMAIL', 'second@example.com'],
      ['PUBLIC_KEY', spare.publicKey],
      ['CREDENTIAL_ID', passkey.credentialId],
    ] as const;
    for (const [kind, value] of second) expect([kind, await listed(kind, value)]).toEqual([kind, here]);
    const { userIds } = users['createUsersResult'] as { userIds: string[] };
    await client.submit('ACTIVITY_TYPE_DELETE_USERS', { userIds });
    for (const [kind, value] of second) expect([kind, await listed(kind, value)]).toEqual([kind, []]);
  });

  test('a wallet’s addresses are found as long as the account is there', async () => {
    const child = await create({ name: 'addresses', wallet });
    const { walletId, addresses } = child.wallet!;
    const [address] = addresses;
    expect(await listed('WALLET_ACCOUNT_ADDRESS', address!.toUpperCase().replace('0X', '0x'))).toEqual([
      child.subOrganizationId,
    ]);
    await child.client.submit('ACTIVITY_TYPE_DELETE_WALLETS', { walletIds: [walletId], deleteWithoutExport: true });
    expect(await listed('WALLET_ACCOUNT_ADDRESS', address!)).toEqual([]);
  });

  test('a proof is of the contact that was: another one has to be proved again', async () => {
    const contact = 'proved@example.com';
    const { client, userId, subOrganizationId } = await create({ name: 'proved', user: { userEmail: contact } });
    expect(await verified('EMAIL', contact)).toEqual([]);
    const { verificationToken } = await proofOf('OTP_TYPE_EMAIL', contact, client);
    await client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', { userId, userEmail: contact, verificationToken });
    expect(await verified('EMAIL', 'Proved@Example.com')).toEqual([subOrganizationId]);
    // Without a change nothing is lost.
    await client.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', { userId, userName: 'Renamed' });
    expect(await verified('EMAIL', contact)).toEqual([subOrganizationId]);
    await client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', { userId, userEmail: 'unproved@example.com' });
    expect(await verified('EMAIL', contact)).toEqual([]);
    expect(await verified('EMAIL', 'unproved@example.com')).toEqual([]);
    expect(await listed('EMAIL', 'unproved@example.com')).toEqual([subOrganizationId]);
    await client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', { userId, userEmail: contact });
    expect(await verified('EMAIL', contact)).toEqual([]);
  });
});

describe('deleting one', () => {
  test('is for its own root users, and not while something would be lost', async () => {
    const child = await create({ name: 'kept', wallet });
    const { client, subOrganizationId: organizationId } = child;
    expect(await refusal(client.submit(deletion, {}))).toMatchObject({
      status: 400,
      message: textLike(`wallet has not been exported: \`${child.wallet!.walletId}\``),
    });
    const key = coordinator.newKey();
    await client.submit('ACTIVITY_TYPE_CREATE_USERS_V4', {
      users: [{ userName: 'Member', ...noCredentials, apiKeys: [keyParams(key)], userTags: [] }],
    });
    await client.submit('ACTIVITY_TYPE_CREATE_POLICY_V3', {
      policyName: 'all',
      effect: 'EFFECT_ALLOW',
      condition: 'true',
      notes: '',
    });
    const member = coordinator.clientFor(key, organizationId);
    expect(await refusal(member.submit(deletion, { deleteWithoutExport: true }))).toMatchObject({
      status: 403,
      message: textLike('only a root user of a sub-organization may delete it'),
    });
    expect(await refusal(parent.submit(deletion, { deleteWithoutExport: true }))).toMatchObject({
      status: 400,
      message: textLike('is not a sub-organization'),
    });
    expect(await client.query('whoami')).toMatchObject({ organizationId });
  });

  test('shreds its secrets; from then on nobody acts or reads in it, and the parent reads what was', async () => {
    const child = await create({ name: 'ended', wallet, user: { userEmail: 'ended@example.com' } });
    const { client, subOrganizationId: organizationId, userId } = child;
    const vaults = await vaultsOf(organizationId);
    expect(vaults).toHaveLength(1);
    expect(await coordinator.events(`vault-${vaults[0]!}`)).not.toEqual([]);
    const tag = client.submitBody('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'tag', userIds: [] });

    const body = client.submitBody(deletion, { deleteWithoutExport: true });
    const send = async () =>
      (await client.post<{ activity: ActivityEnvelope }>(submitPath(deletion), body)).body.activity;
    const done = await send();
    expect(done).toMatchObject({
      status: 'ACTIVITY_STATUS_COMPLETED',
      result: { deleteSubOrganizationResult: { subOrganizationUuid: organizationId } },
    });
    expect(await coordinator.events(`vault-${vaults[0]!}`)).toEqual([]);
    // Whoever did not hear the answer may ask again.
    expect(await send()).toEqual(done);

    const gone = { status: 404, turnkeyErrorCode: 'ORGANIZATION_NOT_FOUND', message: textLike('has been deleted') };
    for (const attempt of [
      client.post(submitPath('ACTIVITY_TYPE_CREATE_USER_TAG'), tag),
      client.submit(deletion, { deleteWithoutExport: true }),
      client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', {
        signWith: child.wallet!.addresses[0],
        payload: 'hello',
        encoding: 'PAYLOAD_ENCODING_TEXT_UTF8',
        hashFunction: 'HASH_FUNCTION_KECCAK256',
      }),
      client.query('whoami'),
      client.query('list_activities'),
      client.query('get_activity', { activityId: done.id }),
    ]) {
      expect(await refusal(attempt)).toMatchObject(gone);
    }

    const { activity } = await parent.query<{ activity: ActivityEnvelope }>('get_activity', {
      organizationId,
      activityId: done.id,
    });
    expect(activity).toEqual(done);
    const { users } = await parent.query<{ users: object[] }>('list_users', { organizationId });
    expect(users).toEqual([objectWith({ userId })]);
    const inside = parent.submit(
      'ACTIVITY_TYPE_CREATE_USER_TAG',
      { userTagName: 'x', userIds: [] },
      { organizationId },
    );
    expect(await refusal(inside)).toMatchObject({ turnkeyErrorCode: 'ORGANIZATION_MISMATCH' });
    for (const [kind, value] of [
      ['NAME', 'ended'],
      ['EMAIL', 'ended@example.com'],
      ['PUBLIC_KEY', child.key.publicKey],
      ['WALLET_ACCOUNT_ADDRESS', child.wallet!.addresses[0]!],
    ] as const) {
      expect([kind, await listed(kind, value)]).toEqual([kind, []]);
    }
    expect(await list('list_suborgs', { paginationOptions: { limit: '100' } })).not.toContain(organizationId);
  });

  test('not even what its parent may start for its users is started any more', async () => {
    const { client, subOrganizationId: organizationId } = await create({
      name: 'no login',
      user: { userEmail: 'no-login@example.com' },
    });
    await client.submit(deletion, {});
    const attempt = parent.submit(
      'ACTIVITY_TYPE_INIT_OTP_AUTH_V3',
      { otpType: 'OTP_TYPE_EMAIL', contact: 'no-login@example.com', appName: 'Sample' },
      { organizationId },
    );
    expect(await refusal(attempt)).toMatchObject({ status: 404, message: textLike('has been deleted') });
  });

  test('takes as many of its root users as anything else', async () => {
    const [one, other] = [coordinator.newKey(), coordinator.newKey()];
    const { subOrganizationId } = createdBy(
      await parent.submit(newest, {
        subOrganizationName: 'two of two',
        rootUsers: [one, other].map((key) => ({ userName: 'Root', ...noCredentials, apiKeys: [keyParams(key)] })),
        rootQuorumThreshold: 2,
      }),
    );
    const [first, second] = [one, other].map((key) => coordinator.clientFor(key, subOrganizationId));
    const waiting = await first!.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'never', userIds: [] });
    const asked = await first!.submit(deletion, {});
    expect(asked.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    const done = await second!.approve(asked.fingerprint);
    expect(done.status).toBe('ACTIVITY_STATUS_COMPLETED');
    // What still waits there waits for nobody.
    expect(await refusal(second!.approve(waiting.fingerprint))).toMatchObject({
      message: textLike('has been deleted'),
    });
    const { activity } = await parent.query<{ activity: ActivityEnvelope }>('get_activity', {
      organizationId: subOrganizationId,
      activityId: waiting.id,
    });
    expect(activity).toMatchObject({ canApprove: false, canReject: false });
  });
});

/** Vaults that wallets of an organization were made in. */
async function vaultsOf(organizationId: string): Promise<string[]> {
  const events = await coordinator.events(organizationStream(organizationId));
  return events.flatMap(({ type, data }) => (type === 'WalletCreated' ? [(data as { vaultId: string }).vaultId] : []));
}

const listWithout = (ids: readonly string[], id: string) => ids.filter((one) => one !== id);
