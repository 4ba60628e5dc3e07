import { send, submitPath } from '../../src/client/stamping-client.js';
import type { AttestedScheme } from '../../src/stamps/stamp.js';
import { organizationStream } from '../../src/domain/organization/organization.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import {
  apiKeyPairFromPrivate,
  generateApiKeyPair,
  ManualClock,
  stampBody,
  type ApiKeyPair,
} from '../../src/testing/index.js';
import { refusal } from '../e2e/exchange.js';
import { IdentityProvider } from '../e2e/identity-provider.js';
import { resultOf } from '../e2e/login-world.js';
import { codeOf } from '../e2e/one-time-codes.js';
import { until } from '../e2e/until.js';
import { SeededPasskey } from './seeded-passkey.js';
import { startBeside, type Beside } from './shared-store.js';

// What lets somebody in besides a key, taken away on one coordinator while another still holds the organization as it was
// and hears nothing.

const store = new InMemoryEventStore();
const clock = new ManualClock(Date.UTC(2026, 0, 1));
let identities: IdentityProvider;
let here: Beside;
let elsewhere: Beside;
let count = 0;

beforeAll(async () => {
  identities = await IdentityProvider.start();
  here = await startBeside(store, 'here', clock, { ...identities.settings, PASSKEY_COUNTERS: 'strict' });
  elsewhere = await startBeside(store, 'elsewhere', clock, identities.settings);
});
afterEach(async () => {
  here.store.releaseFeed();
  await here.followed();
});
afterAll(async () => {
  await here.close();
  await elsewhere.close();
  await identities.close();
  await store.close();
});

const newKey = () => generateApiKeyPair((length) => crypto.getRandomValues(new Uint8Array(length)));
const apiKey = ({ publicKey, curve }: ApiKeyPair) => ({ apiKeyName: `key ${++count}`, publicKey, curveType: curve });

async function eventsOf(organizationId: string): Promise<readonly string[]> {
  const types: string[] = [];
  for await (const { type } of store.read(organizationStream(organizationId))) types.push(type);
  return types;
}

/** A token that proves an address, by the code that was sent to it; bound to a key if there is one. */
async function verificationToken(contact: string, by: Beside['root'], key?: ApiKeyPair): Promise<string> {
  const asked = { otpType: 'OTP_TYPE_EMAIL', contact, appName: 'Acme', userIdentifier: `${++count}` };
  const { otpId } = resultOf(await by.submit('ACTIVITY_TYPE_INIT_OTP_V3', asked));
  const otpCode = await codeOf({ messages: () => here.messages() }, otpId!);
  const bound = key ? { publicKey: key.publicKey } : {};
  return resultOf(await by.submit('ACTIVITY_TYPE_VERIFY_OTP', { otpId, otpCode, ...bound }))['verificationToken']!;
}

/** A sub-organization whose root user has proved an address, and has an identity. */
async function newPerson() {
  const own = newKey();
  const userEmail = `person.${++count}@example.com`;
  const subject = `person ${count}`;
  const idToken = (key?: ApiKeyPair) =>
    identities.idToken({ subject, at: clock.now(), ...(key ? { publicKey: key.publicKey } : {}) });
  const activity = await here.root.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
    subOrganizationName: `Child ${++count}`,
    rootUsers: [
      {
        userName: 'Ann',
        userEmail,
        apiKeys: [apiKey(own)],
        authenticators: [],
        oauthProviders: [{ providerName: 'provider', oidcToken: await idToken() }],
      },
    ],
    rootQuorumThreshold: 1,
  });
  const { subOrganizationId: organizationId, rootUserIds } = resultOf<{
    subOrganizationId: string;
    rootUserIds: [string];
  }>(activity);
  const userId = rootUserIds[0];
  const client = here.clientOf(own, organizationId);
  const token = await verificationToken(userEmail, client);
  await client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', { userId, userEmail, verificationToken: token });
  await here.followed();
  await elsewhere.followed();
  return { organizationId, userId, userEmail, idToken, elsewhere: elsewhere.clientOf(own, organizationId) };
}

const stampLogin = 'ACTIVITY_TYPE_STAMP_LOGIN';
const byToken = 'STAMP_ATTESTED_SCHEME_P256_VERIFICATION_TOKEN';
const byOidc = 'STAMP_ATTESTED_SCHEME_P256_OIDC';

/** A login here with a key that a token vouches for; sent again, it is the same bytes. */
function login(organizationId: string, key: ApiKeyPair, publicKeyAttestation: string, scheme: AttestedScheme) {
  const { publicKey } = key;
  const body = here
    .clientOf(key, organizationId)
    .submitBody(stampLogin, { publicKey }, { timestampMs: String(clock.now() + ++count) });
  const { signature } = JSON.parse(Buffer.from(stampBody(body, key).headerValue, 'base64url').toString()) as {
    signature: string;
  };
  const stamp = JSON.stringify({ publicKeyAttestation, scheme, publicKey, signature });
  const headers = { 'x-stamp-attested': Buffer.from(stamp).toString('base64url') };
  return async () =>
    (await send<{ activity: { organizationId: string } }>(`${here.url}${submitPath(stampLogin)}`, body, headers)).body
      .activity;
}

type Person = Awaited<ReturnType<typeof newPerson>>;

const ways: readonly {
  readonly way: string;
  readonly scheme: AttestedScheme;
  readonly tokenOf: (person: Person, key: ApiKeyPair) => Promise<string>;
  readonly remove: (person: Person) => Promise<unknown>;
}[] = [
  {
    way: 'a contact',
    scheme: byToken,
    tokenOf: ({ userEmail }, key) => verificationToken(userEmail, here.root, key),
    remove: ({ elsewhere: client, userId }) =>
      client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', { userId, userEmail: '' }),
  },
  {
    way: 'an identity',
    scheme: byOidc,
    tokenOf: ({ idToken }, key) => idToken(key),
    remove: async ({ elsewhere: client, userId }) => {
      const { oauthProviders } = await client.query<{ oauthProviders: { providerId: string }[] }>(
        'get_oauth_providers',
        {
          userId,
        },
      );
      const providerIds = oauthProviders.map(({ providerId }) => providerId);
      return client.submit('ACTIVITY_TYPE_DELETE_OAUTH_PROVIDERS', { userId, providerIds });
    },
  },
];

describe.each(ways)('$way that another coordinator has removed', ({ scheme, tokenOf, remove }) => {
  const gone = { status: 401, turnkeyErrorCode: 'CREDENTIAL_NOT_FOUND' };

  test.each(['the parent', 'the sub-organization'])('lets nobody in who names %s', async (named) => {
    const person = await newPerson();
    const { organizationId } = person;
    const name = named === 'the parent' ? here.organizationId : organizationId;
    const [before, after] = [newKey(), newKey()];
    const tokens = [await tokenOf(person, before), await tokenOf(person, after)] as const;
    expect((await login(name, before, tokens[0], scheme)()).organizationId).toBe(organizationId);
    await here.followed();

    here.store.holdFeed();
    await remove(person);
    const events = await eventsOf(organizationId);
    expect(await refusal(login(name, after, tokens[1], scheme)())).toMatchObject(gone);
    expect(await eventsOf(organizationId)).toEqual(events);
  });

  test.each(['the parent', 'the sub-organization'])(
    'gives nothing again for the same bytes, which name %s',
    async (named) => {
      const person = await newPerson();
      const key = newKey();
      const name = named === 'the parent' ? here.organizationId : person.organizationId;
      const again = login(name, key, await tokenOf(person, key), scheme);
      expect((await again()).organizationId).toBe(person.organizationId);
      expect((await again()).organizationId).toBe(person.organizationId);

      here.store.holdFeed();
      await remove(person);
      expect(await refusal(again())).toMatchObject(gone);
    },
  );
});

describe('an invitation that another coordinator has withdrawn', () => {
  test('is accepted by nobody', async () => {
    const receiverUserEmail = `person.${++count}@example.com`;
    const { userId: senderUserId } = await here.root.query<{ userId: string }>('whoami');
    const invitation = {
      receiverUserName: 'Bob',
      receiverUserEmail,
      receiverUserTags: [],
      accessType: 'ACCESS_TYPE_API',
    };
    const { invitationIds } = resultOf<{ invitationIds: [string] }>(
      await here.root.submit('ACTIVITY_TYPE_CREATE_INVITATIONS', { invitations: [{ ...invitation, senderUserId }] }),
    );
    const find = () => here.messages().find(({ to }) => to === receiverUserEmail);
    await until('the invitation is sent', () => find() !== undefined);
    const privateKey = /privateKey=([0-9a-f]{64})/.exec(find()!.text)![1]!;
    const invited = here.clientOf(apiKeyPairFromPrivate(privateKey));
    await here.followed();
    await elsewhere.followed();

    here.store.holdFeed();
    const [invitationId] = invitationIds;
    await elsewhere.root.submit('ACTIVITY_TYPE_DELETE_INVITATION', { invitationId });
    const events = await eventsOf(here.organizationId);
    const accepted = invited.submit('ACTIVITY_TYPE_ACCEPT_INVITATION', { invitationId, apiKeys: [apiKey(newKey())] });
    expect(await refusal(accepted)).toMatchObject({ status: 401, turnkeyErrorCode: 'PUBLIC_KEY_NOT_FOUND' });
    expect(await eventsOf(here.organizationId)).toEqual(events);
  });
});

describe('a counter of a passkey that another coordinator has recorded', () => {
  test('is gone for a copy of the passkey, in another sub-organization too', async () => {
    const [passkey, copy] = [new SeededPasskey('one'), new SeededPasskey('one')];
    const { userId } = await here.root.query<{ userId: string }>('whoami');
    const authenticators = [passkey.register('one')];
    await here.root.submit('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', { userId, authenticators });
    const [first, second] = [await newPerson(), await newPerson()];
    here.store.holdFeed();
    const type = 'ACTIVITY_TYPE_RELEASE_CONTACT';
    const release = (by: Beside, { organizationId, userEmail }: Person, at: SeededPasskey) => {
      const body = by.clientOf(newKey(), organizationId).submitBody(type, { contact: userEmail });
      return send<{ activity: { status: string } }>(`${by.url}${submitPath(type)}`, body, {
        'x-stamp-webauthn': at.assert(body),
      });
    };
    const { body } = await release(elsewhere, first, passkey);
    expect(body.activity.status).toBe('ACTIVITY_STATUS_COMPLETED');

    const events = await eventsOf(second.organizationId);
    const refused = refusal(release(here, second, copy));
    // Only what is waited for can be heard in time.
    await new Promise((resolve) => setTimeout(resolve, 100));
    here.store.releaseFeed();
    expect(await refused).toMatchObject({ status: 401, turnkeyErrorCode: 'SIGNATURE_INVALID' });
    expect(await eventsOf(second.organizationId)).toEqual(events);
  });
});
