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
import { redecide } from '../../src/audit/verify/decide-again.js';
import { exchange, objectWith, refusal, textLike } from './exchange.js';
import { loginService, resultOf, sdkClient } from './login-world.js';
import { claimsOf, clientSignature, codeOf } from './one-time-codes.js';
import { registry } from './routes.js';
import { SoftwareAuthenticator } from '../stamps/software-authenticator.js';
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
      PROXY_RATE_LIMIT_SIGN_UPS_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_CODES_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_PER_CONTACT: '0',
    },
  });
});
afterAll(() => coordinator.close());

/** One contact gets so many codes at a time. */
const later = () => coordinator.clock.advance('6m');
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
      message: textLike('it is valid only for the organization under'),
    });
    expect(await logsIn(contact, { organizationId })).toBe(organizationId);
    coordinator.clock.advance('4m');
    expect(await account(contact)).toBe(first.organizationId);
    expect(await logsIn(contact)).toBe(first.organizationId);
  });

  test('is proved by no token that anybody can have read', async () => {
    const contact = newContact();
    const [one, other] = [await asserted({ userEmail: contact }), await asserted({ userEmail: contact })];
    const spent = { status: 400, message: textLike(/verification token `[^`]+` has already been used for/) };
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

test('a proved address that its owner writes otherwise is proved no more, and whoever proves it next has it', async () => {
  const [contact, key] = [newContact(), coordinator.newKey()];
  const first = await signedUp(contact, { apiKeys: [apiKey(key)] });
  expect(await logsIn(contact)).toBe(first.organizationId);
  later();
  const userEmail = contact.toUpperCase();
  await clientOf(first.organizationId, key).submit(updateEmail, { userId: first.userId, userEmail });
  expect(await logsIn(contact)).toMatchObject({ status: 404 });
  later();
  const second = await signedUp(contact);
  expect(await logsIn(contact)).toBe(second.organizationId);
  later();
  expect(await account(contact)).toBe(second.organizationId);
});

describe('a contact that the parent’s members release', () => {
  const release = 'ACTIVITY_TYPE_RELEASE_CONTACT';
  const notFoundKey = { status: 401, turnkeyErrorCode: 'PUBLIC_KEY_NOT_FOUND' };
  const denied = { status: 403 };

  const released = async (organizationId: string, contact: string, more: object = {}, client = coordinator.client) =>
    resultOf<{ userIds: string[] }>(await client.submit(release, { contact, ...more }, { organizationId })).userIds;

  /** A phone number in whose organization there is another way in too. */
  async function holder(contact: string) {
    const key = coordinator.newKey();
    const { organizationId, userId } = await signedUp(contact, { apiKeys: [apiKey(key)] });
    return { organizationId, userId, key, client: clientOf(organizationId, key) };
  }

  const newNumber = () => `+1202555${String(++count).padStart(4, '0')}`;

  test('leads to who has proved it next, and lets nobody into the organization that had it', async () => {
    const number = newNumber();
    const old = await holder(number);
    const next = await holder(number);
    expect(await account(number)).toBe(old.organizationId);
    later();
    expect(await released(old.organizationId, number)).toEqual([old.userId]);
    expect(await account(number)).toBe(next.organizationId);
    expect(await logsIn(number)).toBe(next.organizationId);
    expect(await logsIn(number, { organizationId: old.organizationId })).toMatchObject(noContact);
    later();
    const nobody = { status: 401, turnkeyErrorCode: 'CREDENTIAL_NOT_FOUND' };
    expect(await refusal(attestedLogin(number, old.organizationId))).toMatchObject(nobody);
    expect(await verifiedSuborgs('PHONE_NUMBER', number)).toEqual([next.organizationId]);
    const sent = coordinator.messages().length;
    await coordinator.client.submit(
      'ACTIVITY_TYPE_INIT_OTP_AUTH_V3',
      { otpType: 'OTP_TYPE_SMS', contact: number, appName: 'Acme' },
      { organizationId: old.organizationId },
    );
    expect(coordinator.messages()).toHaveLength(sent);
    expect(await refusal(released(old.organizationId, number))).toMatchObject({ status: 404 });
    // The user is who they were, with all other ways in.
    const { user } = await old.client.query<{ user: object }>('get_user', { userId: old.userId });
    expect(user).toMatchObject({ userPhoneNumber: number });

    // Proved anew it serves the organization again, behind who has it by now.
    const verificationToken = await verified(number);
    await old.client.submit('ACTIVITY_TYPE_UPDATE_USER_PHONE_NUMBER', {
      userId: old.userId,
      userPhoneNumber: number,
      verificationToken,
    });
    expect(await logsIn(number, { organizationId: old.organizationId })).toBe(old.organizationId);
    later();
    expect(await account(number)).toBe(next.organizationId);
    await released(next.organizationId, number);
    expect(await account(number)).toBe(old.organizationId);
    await decidedAlike(old.organizationId);
    await decidedAlike(next.organizationId);
  });

  test('is whoever’s proves it next, and not whoever’s has written it down', async () => {
    const contact = newContact();
    const old = await holder(contact);
    const squatter = coordinator.newKey();
    await signUp({ userEmail: contact, apiKeys: [apiKey(squatter)] });
    await asserted({ userEmail: contact, apiKeys: [apiKey(squatter)] });
    await released(old.organizationId, contact);
    later();
    expect(await account(contact)).toBeUndefined();
    expect(await logsIn(contact)).toMatchObject({ status: 404 });
    // Neither does the old holder's own word bring it back, in other letters or the same.
    for (const userEmail of [contact.toUpperCase(), contact]) {
      await old.client.submit(updateEmail, { userId: old.userId, userEmail });
      const mailed = coordinator.client.submit(
        'ACTIVITY_TYPE_EMAIL_AUTH_V3',
        { email: contact, targetPublicKey: coordinator.newKey().publicKey, emailCustomization: { appName: 'Acme' } },
        { organizationId: old.organizationId },
      );
      expect(await refusal(mailed)).toMatchObject({ status: 404 });
    }
    later();
    const next = await signedUp(contact);
    expect(await account(contact)).toBe(next.organizationId);
    expect(await logsIn(contact)).toBe(next.organizationId);
  });

  test('takes a policy of the parent’s that speaks of it, and nobody else’s word', async () => {
    const contact = newContact();
    const old = await holder(contact);
    const sibling = await holder(newContact());
    const other = coordinator.newKey();
    for (const client of [old.client, clientOf(old.organizationId, sibling.key), clientOf(old.organizationId, other)]) {
      expect(await refusal(released(old.organizationId, contact, {}, client))).toMatchObject(notFoundKey);
    }
    const helper = await coordinator.createUser('Helper');
    const attempt = () => released(old.organizationId, contact, {}, helper.client);
    const grant = (condition: string) =>
      coordinator.createPolicy({
        policyName: `grant ${++count}`,
        condition,
        consensus: `approvers.any(user, user.id == '${helper.userId}')`,
      });
    expect(await refusal(attempt())).toMatchObject(denied);
    const of = (resource: string, action: string) =>
      `activity.resource == '${resource}' && activity.action == '${action}'`;
    for (const condition of [
      of('ORGANIZATION', 'CREATE'),
      of('ORGANIZATION', 'DELETE'),
      of('AUTH', 'CREATE'),
      of('OTP', 'VERIFY'),
      of('USER', 'UPDATE'),
      of('USER', 'DELETE'),
      of('CREDENTIAL', 'DELETE'),
      `activity.type == '${release}' && activity.params.contact == 'other@example.com'`,
    ]) {
      await grant(condition);
      expect(await refusal(attempt())).toMatchObject(denied);
    }
    // Not in the parent itself, whose members' contacts nobody is led to.
    expect(await refusal(released(coordinator.organizationId, contact))).toMatchObject(denied);
    expect(await account(contact)).toBe(old.organizationId);
    await grant(of('CONTACT', 'DELETE'));
    const policyId = await coordinator.createPolicy({
      policyName: 'never this one',
      effect: 'EFFECT_DENY',
      condition: `activity.type == '${release}' && activity.params.contact == '${contact}'`,
    });
    for (const spelt of [contact, contact.toUpperCase()]) {
      expect(await refusal(released(old.organizationId, spelt, {}, helper.client))).toMatchObject(denied);
    }
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
    await grant(`${of('CONTACT', 'DELETE')} && activity.params.leave_unreachable == false`);
    expect(await attempt()).toEqual([old.userId]);
  });

  test('is never the auth proxy’s to release, whatever policies allow', async () => {
    const contact = newContact();
    const old = await holder(contact);
    const { users } = await coordinator.client.query<{ users: { userId: string; userName: string }[] }>('list_users');
    const { userId } = users.find(({ userName }) => userName === 'Auth proxy')!;
    const key = coordinator.newKey();
    const keys = { userId, apiKeys: [apiKey(key)] };
    await coordinator.client.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', keys);
    const policyId = await coordinator.createPolicy({ policyName: 'everything', condition: 'true' });
    const attempt = released(old.organizationId, contact, {}, coordinator.clientFor(key));
    expect(await refusal(attempt)).toMatchObject({ ...denied, message: textLike('not through its auth proxy') });
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
    expect(await account(contact)).toBe(old.organizationId);
  });

  test('is released though its holder has registered the keys of the parent’s members', async () => {
    const contact = newContact();
    const passkey = new SoftwareAuthenticator();
    const ann = await coordinator.createUser(`Ann ${++count}`);
    const authenticator = { authenticatorName: 'own', ...passkey.register() };
    await ann.client.submit('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', {
      userId: ann.userId,
      authenticators: [authenticator],
    });
    await coordinator.createPolicy({
      policyName: 'Ann releases',
      condition: "activity.resource == 'CONTACT'",
      consensus: `approvers.any(user, user.id == '${ann.userId}')`,
    });
    const forged = { authenticatorName: 'forged', ...new SoftwareAuthenticator().register(passkey) };
    const squatter = await signedUp(contact, {
      apiKeys: [apiKey(coordinator.client.key), apiKey(coordinator.newKey())],
      authenticators: [forged],
    });
    const { organizationId } = squatter;
    const body = clientOf(organizationId, ann.key).submitBody(release, { contact });
    const stamp = { 'x-stamp-webauthn': passkey.assert({ body }) };
    await send(`${coordinator.url}${submitPath(release)}`, body, stamp);
    expect(await account(contact)).toBeUndefined();
    const second = newContact();
    const again = await signedUp(second, { apiKeys: [apiKey(coordinator.client.key)] });
    expect(await released(again.organizationId, second)).toEqual([again.userId]);
  });

  test('that is all there is to log in with takes a word more', async () => {
    const number = newNumber();
    const { organizationId, userId } = await signedUp(number);
    const session = coordinator.newKey();
    const key = coordinator.newKey();
    await ok('otp_login', { ...login(await verified(number, key), key, session), organizationId });
    expect(await refusal(released(organizationId, number))).toMatchObject({
      status: 400,
      message: textLike(/the root quorum .* has no way to log in other than this contact.*leaveUnreachable: true/),
    });
    expect(await account(number)).toBe(organizationId);
    later();
    expect(await released(organizationId, number, { leaveUnreachable: true })).toEqual([userId]);
    expect(await logsIn(number, { organizationId })).toMatchObject(noContact);
    // Whoever has a session from before can make a lasting way in until it ends.
    const person = clientOf(organizationId, session);
    await person.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', { userId, apiKeys: [apiKey(coordinator.newKey())] });
    await decidedAlike(organizationId);
  });

  test('need not have been proved: what the parent has asserted by mistake ends too', async () => {
    const [mistyped, other] = [newContact(), newContact()];
    const { organizationId, userIds } = await asserted({
      userEmail: mistyped,
      apiKeys: [apiKey(coordinator.newKey())],
    });
    expect(await refusal(released(organizationId, other))).toMatchObject({ status: 404 });
    const byMailOnly = await asserted({ userEmail: other });
    const attempt = released(byMailOnly.organizationId, other);
    expect(await refusal(attempt)).toMatchObject({ status: 400, message: textLike('leaveUnreachable: true') });
    expect(await released(byMailOnly.organizationId, other, { leaveUnreachable: true })).toEqual(byMailOnly.userIds);
    expect(await logsIn(other, { organizationId: byMailOnly.organizationId })).toMatchObject(noContact);
    expect(await refusal(released(organizationId, 'nobody'))).toMatchObject({
      status: 400,
      message: textLike('parameters.contact'),
    });
    expect(await released(organizationId, mistyped.toUpperCase())).toEqual(userIds);
    for (const isBound of [true, false]) {
      expect(await logsIn(mistyped, { organizationId }, isBound)).toMatchObject(isBound ? noContact : { status: 404 });
    }
  });
});
