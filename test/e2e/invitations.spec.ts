import { createContext, Script } from 'node:vm';
import { ApiKeyStamper } from '@turnkey/api-key-stamper';
import { send, startCoordinator, StampingClient, submitPath, type TestCoordinator } from '../../src/testing/index.js';
import { SoftwareAuthenticator } from '../stamps/software-authenticator.js';
import { exchange, refusal } from './exchange.js';
import { invitationLinkOf } from './invitation-links.js';
import { resultOf, sdkClient } from './login-world.js';
import { until } from './until.js';

const create = 'ACTIVITY_TYPE_CREATE_INVITATIONS';
const accept = 'ACTIVITY_TYPE_ACCEPT_INVITATION';

let coordinator: TestCoordinator;
let people = 0;

beforeAll(async () => {
  coordinator = await startCoordinator({ at: new Date(), store: 'sqlite' });
});
afterAll(() => coordinator.close());

const asked = (receiverUserEmail: string, accessType: string, receiverUserTags: string[] = []) => ({
  receiverUserName: 'Bob & <i>',
  receiverUserEmail,
  receiverUserTags,
  accessType,
  senderUserId: coordinator.root.userId,
});

/** Invites somebody new; the link of the mail. */
async function invite(accessType = 'ACCESS_TYPE_ALL', tags: string[] = []) {
  const address = `person-${++people}@example.com`;
  await coordinator.client.submit(create, { invitations: [asked(address, accessType, tags)] });
  return { address, ...(await invitationLinkOf(coordinator, address)) };
}

const newKey = () => {
  const key = coordinator.newKey();
  return { key, params: { apiKeyName: 'mine', publicKey: key.publicKey, curveType: key.curve } };
};

/** Everything that the organization's stream says, as text. */
const recorded = async () => JSON.stringify((await coordinator.events()).map(({ data, metadata }) => [data, metadata]));

const statusOf = async (invitationId: string) => {
  const { invitations } = await coordinator.client.query<{ invitations: { invitationId: string; status: string }[] }>(
    'list_invitations',
    { paginationOptions: { limit: '100' } },
  );
  return invitations.find((one) => one.invitationId === invitationId)?.status;
};

test('an invitation of the published client arrives by mail and makes a user with tags, also across a restart', async () => {
  const sdk = sdkClient(coordinator, coordinator.client.key);
  const { userTagId } = await sdk.createUserTag({ userTagName: 'staff', userIds: [] });
  const address = `person-${++people}@example.com`;
  const { invitationIds } = await sdk.createInvitations({
    invitations: [{ ...asked(address, 'ACCESS_TYPE_API', [userTagId]), accessType: 'ACCESS_TYPE_API' }],
  });
  const { client, invitationId, url } = await invitationLinkOf(coordinator, address);
  expect([invitationId]).toEqual(invitationIds);
  expect(url.split('#')[0]).toBe(`${coordinator.url}/invitations/accept`);
  const events = await recorded();
  expect(events).toContain(client.key.publicKey);
  expect(events).not.toContain(client.key.privateKey);

  coordinator = await coordinator.restart();
  const { key, params } = newKey();
  const invited = new StampingClient(coordinator.url, coordinator.organizationId, client.key, coordinator.clock);
  const { userId } = resultOf(await invited.submit(accept, { invitationId, apiKeys: [params] }));
  const bob = coordinator.clientFor(key);
  expect(await bob.query('whoami')).toMatchObject({ userId, username: 'Bob & <i>' });
  const { user } = await coordinator.client.query<{ user: object }>('get_user', { userId });
  expect(user).toMatchObject({ userEmail: address, userTags: [userTagId], apiKeys: [{ apiKeyName: 'mine' }] });
  const { invitations } = await coordinator.client.query<{ invitations: object[] }>('list_invitations');
  expect(invitations[0]).toMatchObject({ invitationId, status: 'INVITATION_STATUS_ACCEPTED', userId });
  expect(await recorded()).not.toContain(client.key.privateKey);
});

test('the page makes a passkey with it, which then stamps; the link goes nowhere', async () => {
  const { url, client } = await invite('ACCESS_TYPE_WEB');
  const [page, fragment] = url.split('#') as [string, string];
  const html = await exchange(page);
  expect(html.headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self'; /);
  expect([html.headers.get('referrer-policy'), html.headers.get('cache-control')]).toEqual(['no-referrer', 'no-store']);
  expect(html.text).not.toMatch(/<script>|style=| on\w+=|https?:/);
  expect((await exchange(`${page}/../accept.html`)).status).toBe(404);

  // The served script, in a browser that is only as large as the script needs.
  const passkey = new SoftwareAuthenticator();
  const sent: string[] = [];
  const elements = new Map<string, { hidden: boolean; textContent: string; press?: (event: object) => void }>();
  const element = (name: string) => {
    if (!html.text.includes(`id="${name}"`)) throw new Error(`the page has no ${name}`);
    const made = elements.get(name) ?? { hidden: true, textContent: '' };
    elements.set(name, made);
    return Object.assign(made, {
      addEventListener: (_type: string, listener: (event: object) => void) => (made.press = listener),
    });
  };
  const location = { hash: `#${fragment}`, hostname: 'localhost', pathname: '/invitations/accept' };
  let shown = url;
  const world = createContext({
    ...{ TextEncoder, URLSearchParams, crypto, btoa, location },
    document: { getElementById: element },
    history: { replaceState: (_state: unknown, _title: string, path: string) => (shown = path) },
    Date: { now: () => coordinator.clock.now() },
    fetch: (path: string, init: RequestInit) => {
      sent.push(path, JSON.stringify(init));
      return fetch(coordinator.url + path, init);
    },
    navigator: {
      credentials: {
        create: ({ publicKey }: { publicKey: { challenge: Uint8Array; rp: { id: string } } }) => {
          const { attestation } = passkey.register({
            challenge: Buffer.from(publicKey.challenge).toString('base64url'),
            rpId: publicKey.rp.id,
            origin: 'http://localhost',
          });
          const bytes = (text: string) => Uint8Array.from(Buffer.from(text, 'base64url')).buffer;
          return Promise.resolve({
            rawId: bytes(attestation.credentialId),
            response: {
              clientDataJSON: bytes(attestation.clientDataJson),
              attestationObject: bytes(attestation.attestationObject),
              getTransports: () => ['internal', 'future'],
            },
          });
        },
      },
    },
  });
  new Script((await exchange(`${page}.js`)).text).runInContext(world);
  expect([element('web').hidden, element('api').hidden]).toEqual([false, true]);
  element('passkey').press!({ preventDefault: () => undefined });
  await until('the page has accepted', () => /^(?:Welcome|It did not)/.test(element('status').textContent));
  expect(element('status').textContent).toMatch(/^Welcome\. You are user /);
  expect([shown, element('web').hidden]).toEqual(['/invitations/accept', true]);
  expect(sent.join()).not.toContain(client.key.privateKey);

  const userId = /user (\S+)/.exec(element('status').textContent)![1]!;
  const body = JSON.stringify({ organizationId: coordinator.organizationId });
  const answer = await send(`${coordinator.url}/public/v1/query/whoami`, body, {
    'x-stamp-webauthn': passkey.assert({ body, rpId: 'localhost', origin: 'http://localhost' }),
  });
  expect(answer.body).toMatchObject({ userId });
});

test('one of many who accept at once succeeds; the same request again is the same activity', async () => {
  const { client, invitationId } = await invite();
  const bodies = Array.from({ length: 8 }, () =>
    client.submitBody(accept, { invitationId, apiKeys: [newKey().params] }),
  );
  const outcomes = await Promise.allSettled(bodies.map((body) => client.post(submitPath(accept), body)));
  const done = outcomes.flatMap((outcome, index) => (outcome.status === 'fulfilled' ? [index] : []));
  expect(done).toHaveLength(1);
  const [winner] = done as [number];
  expect(await refusal(client.post(submitPath(accept), bodies[winner === 0 ? 1 : 0]!))).toMatchObject({
    status: 400,
    message: /has been accepted/,
  });
  const repeated = await client.post(submitPath(accept), bodies[winner]!);
  const first = outcomes[winner] as PromiseFulfilledResult<typeof repeated>;
  expect(repeated.body).toEqual(first.value.body);
  expect(await statusOf(invitationId)).toBe('INVITATION_STATUS_ACCEPTED');
});

test('get_organization has those that are open, in the order of their creation', async () => {
  const opened = [await invite('ACCESS_TYPE_WEB'), await invite('ACCESS_TYPE_API')];
  const { client, invitationId: accepted } = await invite();
  await client.submit(accept, { invitationId: accepted, apiKeys: [newKey().params] });
  const { invitationId: deleted } = await invite();
  await coordinator.client.submit('ACTIVITY_TYPE_DELETE_INVITATION', { invitationId: deleted });

  type Invitations = readonly { readonly invitationId: string; readonly status: string }[];
  const paginationOptions = { limit: '100' };
  const [{ invitations }, { organizationData }] = await Promise.all([
    coordinator.client.query<{ invitations: Invitations }>('list_invitations', { paginationOptions }),
    coordinator.client.query<{ organizationData: { invitations: Invitations } }>('get_organization'),
  ]);
  const open = invitations.filter(({ status }) => status === 'INVITATION_STATUS_CREATED').reverse();
  expect(organizationData.invitations).toEqual(open);
  expect(open.slice(-2).map(({ invitationId }) => invitationId)).toEqual(
    opened.map(({ invitationId }) => invitationId),
  );
});

describe('a link is good for nothing', () => {
  const attempt = async (client: StampingClient, invitationId: string) =>
    refusal(client.submit(accept, { invitationId, apiKeys: [newKey().params] }));

  test('once the invitation was deleted', async () => {
    const { client, invitationId } = await invite();
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_INVITATION', { invitationId });
    expect(await attempt(client, invitationId)).toMatchObject({
      status: 401,
      turnkeyErrorCode: 'PUBLIC_KEY_NOT_FOUND',
    });
    expect(await statusOf(invitationId)).toBe('INVITATION_STATUS_REVOKED');
  });

  test('for another invitation, in another organization, or with another key', async () => {
    const [one, other] = [await invite(), await invite()];
    expect(await attempt(one.client, other.invitationId)).toMatchObject({ status: 403 });
    const { subOrganizationId } = resultOf(
      await coordinator.client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
        subOrganizationName: 'child',
        rootUsers: [{ userName: 'C', apiKeys: [newKey().params], authenticators: [], oauthProviders: [] }],
        rootQuorumThreshold: 1,
      }),
    );
    const elsewhere = coordinator.clientFor(one.client.key, subOrganizationId);
    expect(await attempt(elsewhere, one.invitationId)).toMatchObject({ status: 401 });
    expect(await attempt(coordinator.clientFor(coordinator.newKey()), one.invitationId)).toMatchObject({ status: 401 });
    expect(await attempt(coordinator.client, one.invitationId)).toMatchObject({ status: 401 });
    expect(await statusOf(one.invitationId)).toBe('INVITATION_STATUS_CREATED');
  });

  test('for anything else than to accept', async () => {
    const { client } = await invite();
    expect(await refusal(client.query('whoami'))).toMatchObject({ status: 401 });
    expect(
      await refusal(client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'x', userIds: [] })),
    ).toMatchObject({ status: 401 });
  });

  test('with anything changed on its way', async () => {
    const { client, invitationId } = await invite();
    const body = client.submitBody(accept, { invitationId, apiKeys: [newKey().params] });
    const { stampHeaderName, stampHeaderValue } = await new ApiKeyStamper({
      apiPublicKey: client.key.publicKey,
      apiPrivateKey: client.key.privateKey,
    }).stamp(body);
    const tampered = body.replace(/"publicKey":"../, '"publicKey":"03');
    const changed = tampered === body ? body.replace('"mine"', '"ours"') : tampered;
    const answer = await exchange(`${coordinator.url}${submitPath(accept)}`, {
      method: 'POST',
      headers: { [stampHeaderName]: stampHeaderValue, 'content-type': 'application/json' },
      body: changed,
    });
    expect([answer.status, changed === body]).toEqual([401, false]);
  });

  test('where a policy forbids it', async () => {
    const { client, invitationId } = await invite();
    const policyId = await coordinator.createPolicy({
      policyName: 'Nobody joins',
      effect: 'EFFECT_DENY',
      condition: "activity.kind == 'ACCEPT_INVITATION'",
    });
    expect(await attempt(client, invitationId)).toMatchObject({ status: 403 });
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
    await client.submit(accept, { invitationId, apiKeys: [newKey().params] });
  });

  test('once the user who asked for it was deleted, whoever is named as its sender', async () => {
    const member = await coordinator.createUser('Member');
    const policyId = await coordinator.createPolicy({
      policyName: 'invites',
      condition: "activity.kind == 'CREATE_INVITATIONS'",
      consensus: `approvers.any(user, user.id == '${member.userId}')`,
    });
    const address = `person-${++people}@example.com`;
    await member.client.submit(create, { invitations: [asked(address, 'ACCESS_TYPE_ALL')] });
    const { invitationId, client } = await invitationLinkOf(coordinator, address);
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_USERS', { userIds: [member.userId] });
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
    const { message } = await attempt(client, invitationId);
    expect(message).toContain(`user \`${member.userId}\`, who sent invitation`);
  });

  test('after a week', async () => {
    const own = await startCoordinator({ settings: { INVITATION_URL: 'https://app.example/join' } });
    try {
      await own.client.submit(create, {
        invitations: [{ ...asked('late@example.com', 'ACCESS_TYPE_ALL'), senderUserId: own.root.userId }],
      });
      const { client, invitationId, url } = await invitationLinkOf(own, 'late@example.com');
      expect(url).toMatch(/^https:\/\/app\.example\/join#organizationId=/);
      own.clock.advance('168h');
      expect(await attempt(client, invitationId)).toMatchObject({
        status: 401,
        turnkeyErrorCode: 'PUBLIC_KEY_NOT_FOUND',
      });
    } finally {
      await own.close();
    }
  });
});

test('a passkey cannot invite: the specification lists X-Stamp alone', async () => {
  const passkey = new SoftwareAuthenticator();
  await coordinator.client.submit('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', {
    userId: coordinator.root.userId,
    authenticators: [{ authenticatorName: 'mine', ...passkey.register() }],
  });
  const body = coordinator.client.submitBody(create, { invitations: [asked('x@example.com', 'ACCESS_TYPE_WEB')] });
  const answer = await send(`${coordinator.url}${submitPath(create)}`, body, {
    'x-stamp-webauthn': passkey.assert({ body }),
  }).catch((error: unknown) => error);
  expect(answer).toMatchObject({ status: 401 });
});
