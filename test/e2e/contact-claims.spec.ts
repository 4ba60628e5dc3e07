import {
  send,
  startCoordinator,
  StampingClient,
  stampBody,
  submitPath,
  type ApiKeyPair,
  type TestCoordinator,
} from '../../src/testing/index.js';
import { organizationStream } from '../../src/domain/organization/organization.js';
import { redecide } from '../../src/replay/decide-again.js';
import { exchange, objectWith, refusal, textLike } from './exchange.js';
import { loginService, resultOf, sdkClient } from './login-world.js';
import { claimsOf, clientSignature, codeOf } from './one-time-codes.js';
import { registry } from './routes.js';
import { startTenants } from './tenants.js';

// Whose a contact is under a parent: what the parent's own members assert, what a token proves, and how both end.

const createSubOrganization = 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8';
const updateEmail = 'ACTIVITY_TYPE_UPDATE_USER_EMAIL';
const otpLogin = 'ACTIVITY_TYPE_OTP_LOGIN';

let coordinator: TestCoordinator;
let count = 0;

beforeAll(async () => {
  // The published client has the wall clock.
  coordinator = await startCoordinator({
    at: new Date(),
    settings: {
      PROXY_RATE_LIMIT_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_PER_CONFIGURATION: '0',
      PROXY_RATE_LIMIT_PER_CONTACT: '0',
    },
  });
});
afterAll(() => coordinator.close());

const newContact = () => `contact-${++count}@example.com`;
const nothing = { apiKeys: [], authenticators: [], oauthProviders: [] };
const apiKey = ({ publicKey, curve }: ApiKeyPair) => ({
  apiKeyName: `key ${++count}`,
  publicKey,
  curveType: curve,
});
const clientOf = (organizationId: string, key: ApiKeyPair) =>
  new StampingClient(coordinator.url, organizationId, key, coordinator.clock);

async function proxy(path: string, body: object) {
  const answer = await exchange(`${coordinator.url}/v1/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-auth-proxy-config-id': coordinator.root.authProxyConfigId },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: answer.body as Record<string, string> };
}

async function ok(path: string, body: object) {
  const answer = await proxy(path, body);
  expect(answer).toMatchObject({ status: 200, body: {} });
  return answer.body;
}

/** A token for a contact, by a code that was asked for through the auth proxy; bound to a key if there is one. */
async function verified(contact: string, key?: ApiKeyPair): Promise<string> {
  const otpType = contact.startsWith('+') ? 'OTP_TYPE_SMS' : 'OTP_TYPE_EMAIL';
  const { otpId } = await ok('otp_init', { otpType, contact });
  const otpCode = await codeOf(coordinator, otpId!);
  return (await ok('otp_verify', { otpId, otpCode, ...(key && { publicKey: key.publicKey }) }))['verificationToken']!;
}

/** What a login by a token says; signed for when the token is bound. */
function login(verificationToken: string, key?: ApiKeyPair, session = coordinator.newKey()) {
  const { publicKey } = session;
  const clientSigned = key && {
    clientSignature: clientSignature(key, verificationToken, 'USAGE_TYPE_LOGIN', { login: { publicKey } }),
  };
  return { verificationToken, publicKey, ...clientSigned };
}

/** A login through the auth proxy, as anybody may try it, with a token that is bound to a key unless told otherwise. */
async function logsIn(contact: string, named: { organizationId?: string } = {}, isBound = true) {
  const key = isBound ? coordinator.newKey() : undefined;
  const { status, body } = await proxy('otp_login', { ...login(await verified(contact, key), key), ...named });
  return status === 200 ? claimsOf(body['session']!)['organization_id'] : { status, ...body };
}

/** A public sign-up, as whoever reads the configuration's id in a page may make it. */
async function signUp(user: object): Promise<{ organizationId: string; userId: string }> {
  const { organizationId, userId } = await ok('signup', { userName: `Stranger ${++count}`, ...nothing, ...user });
  return { organizationId: organizationId!, userId: userId! };
}

/** A public sign-up that proves its contact. */
async function signUpWith(contact: string, verificationToken: string, key: ApiKeyPair, more: object = {}) {
  const kind = contact.startsWith('+') ? 'phoneNumber' : 'email';
  const asked = { ...nothing, ...more };
  const signed = clientSignature(key, verificationToken, 'USAGE_TYPE_SIGNUP', {
    signup: { ...asked, [kind]: contact },
  });
  const held = kind === 'email' ? { userEmail: contact } : { userPhoneNumber: contact };
  return signUp({ ...held, ...asked, verificationToken, clientSignature: signed });
}

async function signedUp(contact: string, more: object = {}): Promise<{ organizationId: string; userId: string }> {
  const key = coordinator.newKey();
  return signUpWith(contact, await verified(contact, key), key, more);
}

/** What only the parent's members may make. */
async function asserted(...rootUsers: readonly object[]): Promise<{ organizationId: string; userIds: string[] }> {
  const users = rootUsers.map((user) => ({ userName: `Person ${++count}`, ...nothing, ...user }));
  const activity = await coordinator.client.submit(createSubOrganization, {
    subOrganizationName: `Sub ${++count}`,
    rootUsers: users,
    rootQuorumThreshold: 1,
  });
  const { subOrganizationId, rootUserIds } = resultOf<{ subOrganizationId: string; rootUserIds: string[] }>(activity);
  return { organizationId: subOrganizationId, userIds: rootUserIds };
}

/** Where the auth proxy says that a contact leads. */
async function account(contact: string): Promise<string | undefined> {
  const filterType = contact.startsWith('+') ? 'PHONE_NUMBER' : 'EMAIL';
  const verificationToken = await verified(contact, coordinator.newKey());
  return (await ok('account', { filterType, filterValue: contact, verificationToken }))['organizationId'];
}

/** A session by the attested stamp of the published client. */
async function attestedLogin(contact: string, organizationId: string): Promise<unknown> {
  const key = coordinator.newKey();
  const type = 'ACTIVITY_TYPE_STAMP_LOGIN';
  const publicKeyAttestation = await verified(contact, key);
  const body = clientOf(organizationId, key).submitBody(type, { publicKey: key.publicKey });
  const { signature } = JSON.parse(Buffer.from(stampBody(body, key).headerValue, 'base64url').toString()) as {
    signature: string;
  };
  const scheme = 'STAMP_ATTESTED_SCHEME_P256_VERIFICATION_TOKEN';
  const stamp = { publicKeyAttestation, scheme, publicKey: key.publicKey, signature };
  const headers = { 'x-stamp-attested': Buffer.from(JSON.stringify(stamp)).toString('base64url') };
  return (await send<{ activity: unknown }>(`${coordinator.url}${submitPath(type)}`, body, headers)).body.activity;
}

const verifiedSuborgs = async (filterType: 'EMAIL' | 'PHONE_NUMBER', filterValue: string) =>
  (await coordinator.client.query<{ organizationIds: string[] }>('list_verified_suborgs', { filterType, filterValue }))
    .organizationIds;

/** Nobody there has the contact, as far as logins are concerned. */
const noContact = { status: 404, message: textLike('as a verified contact') };

/** Whatever was decided in a sub-organization comes out the same when it is decided again. */
async function decidedAlike(organizationId: string): Promise<void> {
  const parent = await coordinator.events();
  const made = redecide(await coordinator.events(organizationStream(organizationId)), registry, parent);
  expect(made.length).toBeGreaterThan(0);
  for (const { recorded, again } of made) expect(again).toEqual(JSON.parse(JSON.stringify(recorded)));
}

describe('a contact that the parent’s members assert', () => {
  test('is proved by the first login that names its organization, as back ends do it with @turnkey/sdk-server', async () => {
    const sdk = sdkClient(coordinator, coordinator.client.key);
    const contact = newContact();
    const { otpId } = await sdk.initOtp({ otpType: 'OTP_TYPE_EMAIL', contact, appName: 'Acme' });
    const key = coordinator.newKey();
    const { verificationToken } = resultOf(
      await coordinator.client.submit('ACTIVITY_TYPE_VERIFY_OTP', {
        otpId,
        otpCode: await codeOf(coordinator, otpId),
        publicKey: key.publicKey,
      }),
    );
    const { subOrganizationId, rootUserIds } = await sdk.createSubOrganization({
      subOrganizationName: 'Ann',
      rootUsers: [{ userName: 'Ann', userEmail: contact, ...nothing }],
      rootQuorumThreshold: 1,
    });
    expect(await verifiedSuborgs('EMAIL', contact)).toEqual([]);
    const session = coordinator.newKey();
    const asked = login(verificationToken!, key, session);
    const made = await sdk.otpLogin({
      organizationId: subOrganizationId,
      ...asked,
      clientSignature: asked.clientSignature!,
    });
    expect(claimsOf(made.session)).toMatchObject({ organization_id: subOrganizationId, user_id: rootUserIds![0] });
    expect(await clientOf(subOrganizationId, session).query('whoami')).toMatchObject({ userId: rootUserIds![0] });
    // From now on it is proved, and leads there by the parent's id too.
    expect(await verifiedSuborgs('EMAIL', contact)).toEqual([subOrganizationId]);
    expect(await account(contact)).toBe(subOrganizationId);
    expect(await logsIn(contact)).toBe(subOrganizationId);
    expect(await coordinator.events(organizationStream(subOrganizationId))).toContainEqual(
      objectWith({
        type: 'UserContactVerified',
        data: { userId: rootUserIds![0], contact: 'email', issuerOrganizationId: coordinator.organizationId },
      }),
    );
    await decidedAlike(subOrganizationId);
  });

  test('is proved by a token that is bound to no key too, as older back ends have it, and by a text message', async () => {
    const service = await loginService(coordinator);
    for (const contact of [newContact(), '+12025550101']) {
      const held = contact.startsWith('+') ? { userPhoneNumber: contact } : { userEmail: contact };
      const { organizationId, userIds } = await asserted(held);
      const verificationToken = await verified(contact);
      const { publicKey } = coordinator.newKey();
      const made = await service.client.submit(otpLogin, { verificationToken, publicKey }, { organizationId });
      expect(claimsOf(resultOf(made)['session']!)).toMatchObject({ user_id: userIds[0] });
      expect(await account(contact)).toBe(organizationId);
    }
  });

  test('serves nothing else until then', async () => {
    const contact = newContact();
    const { organizationId } = await asserted({ userEmail: contact });
    expect(await account(contact)).toBeUndefined();
    expect(await logsIn(contact)).toMatchObject({ status: 404, turnkeyErrorCode: 'ORGANIZATION_NOT_FOUND' });
    coordinator.clock.advance('4m');
    const nobody = { status: 401, turnkeyErrorCode: 'CREDENTIAL_NOT_FOUND' };
    for (const named of [organizationId, coordinator.organizationId]) {
      expect(await refusal(attestedLogin(contact, named))).toMatchObject(nobody);
    }
    expect(await verifiedSuborgs('EMAIL', contact)).toEqual([]);
    const records = await coordinator.events(`claims-${coordinator.organizationId}`);
    expect(JSON.stringify(records.map(({ data }) => data))).not.toContain(contact);
    coordinator.clock.advance('4m');
    expect(await logsIn(contact, { organizationId })).toBe(organizationId);
  });

  test('is none where the auth proxy’s key has made the organization, whoever’s contact it is', async () => {
    const contact = newContact();
    const { organizationId } = await signUp({ userEmail: contact, apiKeys: [apiKey(coordinator.newKey())] });
    for (const isBound of [true, false]) {
      expect(await logsIn(contact, { organizationId }, isBound)).toMatchObject(isBound ? noContact : { status: 404 });
    }
    // Neither is it the parent's word when a back end logs in there.
    const key = coordinator.newKey();
    coordinator.clock.advance('4m');
    const asked = login(await verified(contact, key), key);
    const attempt = coordinator.client.submit(otpLogin, asked, { organizationId });
    expect(await refusal(attempt)).toMatchObject(noContact);
  });

  test('is none that somebody in the organization has written down', async () => {
    const [own, victims] = [newContact(), newContact()];
    const key = coordinator.newKey();
    const { organizationId, userIds } = await asserted({ userEmail: own, apiKeys: [apiKey(key)] });
    const person = clientOf(organizationId, key);
    const change = (userEmail: string) => person.submit(updateEmail, { userId: userIds[0], userEmail });
    await change(victims);
    expect(await logsIn(victims, { organizationId })).toMatchObject(noContact);
    expect(await logsIn(own, { organizationId })).toMatchObject(noContact);
    // What was given up and written down again is the organization's word, not the parent's.
    await change(own);
    expect(await logsIn(own, { organizationId })).toMatchObject(noContact);
    await person.submit('ACTIVITY_TYPE_CREATE_USERS_V4', {
      users: [{ userName: 'Guest', userEmail: victims, userTags: [], ...nothing }],
    });
    expect(await logsIn(victims, { organizationId })).toMatchObject(noContact);
  });

  test('stays where it was proved first, and there alone a token without a key logs in', async () => {
    const contact = newContact();
    const { organizationId } = await asserted({ userEmail: contact });
    const first = await signedUp(contact);
    expect(await logsIn(contact, { organizationId }, false)).toMatchObject({
      status: 400,
      message: textLike('logs in only where its contact was proved first'),
    });
    expect(await logsIn(contact, { organizationId })).toBe(organizationId);
    coordinator.clock.advance('4m');
    expect(await account(contact)).toBe(first.organizationId);
    expect(await logsIn(contact)).toBe(first.organizationId);
  });

  test('is proved by no token that anybody can have read', async () => {
    const contact = newContact();
    const [one, other] = [await asserted({ userEmail: contact }), await asserted({ userEmail: contact })];
    const spent = { status: 400, message: textLike(/verification token `[^`]+` has been used for/) };
    for (const isBound of [true, false]) {
      coordinator.clock.advance('4m');
      const fresh = newContact();
      const [victim, second] = [await asserted({ userEmail: fresh }), await asserted({ userEmail: fresh })];
      const key = isBound ? coordinator.newKey() : undefined;
      const asked = login(await verified(fresh, key), key);
      await ok('otp_login', { ...asked, organizationId: victim.organizationId });
      for (const { organizationId } of [victim, second]) {
        expect(
          await proxy('otp_login', { ...asked, ...login(asked.verificationToken, key), organizationId }),
        ).toMatchObject({ status: 400, body: objectWith({ message: spent.message }) });
      }
    }
    // One that has served a sign-up stands in the parent's history.
    const key = coordinator.newKey();
    const verificationToken = await verified(contact, key);
    await signUpWith(contact, verificationToken, key);
    for (const { organizationId } of [one, other]) {
      const attempt = await proxy('otp_login', { ...login(verificationToken, key), organizationId });
      expect(attempt).toMatchObject({ status: 400, body: objectWith({ message: spent.message }) });
    }
  });

  test('is not proved by a token of a sibling, of another parent, or of the same contact elsewhere', async () => {
    const contact = newContact();
    const { organizationId } = await asserted({ userEmail: contact });
    const key = coordinator.newKey();
    const theirs = await asserted({ userEmail: contact, apiKeys: [apiKey(key)] });
    const sibling = clientOf(theirs.organizationId, key);
    const sent = await sibling.submit('ACTIVITY_TYPE_INIT_OTP_V2', {
      otpType: 'OTP_TYPE_EMAIL',
      contact,
      appName: 'Acme',
    });
    const { otpId } = resultOf(sent);
    const otpCode = await codeOf(coordinator, otpId!);
    const { verificationToken } = resultOf(await sibling.submit('ACTIVITY_TYPE_VERIFY_OTP', { otpId, otpCode }));
    const attempt = coordinator.client.submit(otpLogin, login(verificationToken!), { organizationId });
    const issuedElsewhere = { status: 400, message: textLike('which is neither') };
    expect(await refusal(attempt)).toMatchObject(issuedElsewhere);

    const { parent, stranger, messages, close } = await startTenants();
    try {
      const activity = await parent.client.submit(createSubOrganization, {
        subOrganizationName: 'Ann',
        rootUsers: [{ userName: 'Ann', userEmail: contact, ...nothing }],
        rootQuorumThreshold: 1,
      });
      const { subOrganizationId } = resultOf(activity);
      const asked = { otpType: 'OTP_TYPE_EMAIL', contact, appName: 'Acme' };
      const { otpId: id } = resultOf(await stranger.client.submit('ACTIVITY_TYPE_INIT_OTP_V2', asked));
      const code = await codeOf({ messages }, id!);
      const token = resultOf(await stranger.client.submit('ACTIVITY_TYPE_VERIFY_OTP', { otpId: id, otpCode: code }));
      const named = { organizationId: subOrganizationId! };
      const elsewhere = parent.client.submit(otpLogin, login(token['verificationToken']!), named);
      expect(await refusal(elsewhere)).toMatchObject(issuedElsewhere);
    } finally {
      await close();
    }
  });

  test('of several root users is proved by each with a token of their own', async () => {
    const [ann, ben, both] = [newContact(), newContact(), newContact()];
    const { organizationId, userIds } = await asserted({ userEmail: ann }, { userEmail: ben });
    for (const [index, contact] of [ann, ben].entries()) {
      const session = coordinator.newKey();
      const key = coordinator.newKey();
      await ok('otp_login', { ...login(await verified(contact, key), key, session), organizationId });
      expect(await clientOf(organizationId, session).query('whoami')).toMatchObject({ userId: userIds[index] });
    }
    expect([await account(ann), await account(ben)]).toEqual([organizationId, organizationId]);
    // Which of two is meant by one contact nobody knows.
    const shared = await asserted({ userEmail: both }, { userEmail: both.toUpperCase() });
    expect(await logsIn(both, { organizationId: shared.organizationId })).toMatchObject({
      status: 400,
      message: textLike('2 users of organization'),
    });
  });
});
