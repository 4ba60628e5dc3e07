import { Writable } from 'node:stream';
import { ApiKeyStamper } from '@turnkey/api-key-stamper';
import {
  decryptCredentialBundle,
  encryptOtpCodeToBundle,
  verifyOtpVerificationToken,
  verifySessionJwtSignature,
} from '@turnkey/crypto';
import { TurnkeyClient } from '@turnkey/http';
import type { Turnkey } from '@turnkey/sdk-server';
import { organizationStream, type OrganizationEvent } from '../../src/domain/organization/organization.js';
import {
  apiKeyPairFromPrivate,
  startCoordinator,
  StampingClient,
  type ApiKeyPair,
  type StartOptions,
  type TestCoordinator,
} from '../../src/testing/index.js';
import { redecide } from '../../src/audit/verify/decide-again.js';
import { openInbox } from '../delivery/smtp-inbox.js';
import { SoftwareAuthenticator } from '../stamps/software-authenticator.js';
import { anyText, exchange, refusal } from './exchange.js';
import { Installation, stop } from './installation.js';
import { claimsOf, clientSignature, codeOf, messageOf } from './one-time-codes.js';
import { registry } from './routes.js';
import { until } from './until.js';

// The package's index also loads its browser actions, which need a peer package (viem) that nothing here uses.
const sdkFile = new URL('../../node_modules/@turnkey/sdk-server/dist/sdk-client.mjs', import.meta.url).pathname;
const { TurnkeyServerSDK } = (await import(sdkFile)) as { TurnkeyServerSDK: typeof Turnkey };

const running: TestCoordinator[] = [];
async function started(options: StartOptions = {}): Promise<TestCoordinator> {
  const coordinator = await startCoordinator(options);
  running.push(coordinator);
  return coordinator;
}

afterEach(async () => {
  await Promise.all(running.splice(0).map((coordinator) => coordinator.close()));
});

const resultOf = (activity: { readonly result: unknown }): Readonly<Record<string, string>> =>
  Object.values(activity.result as Readonly<Record<string, Readonly<Record<string, string>>>>)[0]!;

/** A sub-organization with one user. */
async function subOrganization(
  coordinator: TestCoordinator,
  contacts: object,
  more: object = {},
  type = 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8',
) {
  const activity = await coordinator.client.submit(type, {
    subOrganizationName: 'Ann',
    rootUsers: [{ userName: 'Ann', ...contacts, apiKeys: [], authenticators: [], oauthProviders: [] }],
    rootQuorumThreshold: 1,
    ...more,
  });
  const { subOrganizationId, rootUserIds } = resultOf(activity) as unknown as {
    subOrganizationId: string;
    rootUserIds: [string];
  };
  return { organizationId: subOrganizationId, userId: rootUserIds[0] };
}

/** A login by a code, in a sub-organization and as its parent. */
function logins(coordinator: TestCoordinator, organizationId: string, client = coordinator.client) {
  let sends = 0;
  return {
    /** The id of a code that was sent; each is counted against somebody else. */
    init: async (contact = 'ann@example.com', more: object = {}): Promise<string> => {
      const asked = {
        otpType: contact.startsWith('+') ? 'OTP_TYPE_SMS' : 'OTP_TYPE_EMAIL',
        contact,
        appName: 'Acme',
        userIdentifier: `${organizationId} ${++sends}`,
        ...more,
      };
      const activity = await client.submit('ACTIVITY_TYPE_INIT_OTP_AUTH_V3', asked, { organizationId });
      return resultOf(activity)['otpId']!;
    },
    auth: (otpId: string, otpCode: string, more: object = {}) => {
      const asked = { otpId, otpCode, targetPublicKey: '', ...more };
      return client.submit('ACTIVITY_TYPE_OTP_AUTH', asked, { organizationId });
    },
  };
}

const typesOf = async (coordinator: TestCoordinator, organizationId: string, after = 0): Promise<string[]> =>
  (await coordinator.events(organizationStream(organizationId))).slice(after).map(({ type }) => type);

const textOf = (value: unknown): string =>
  JSON.stringify(value, (_name, member: unknown) => (typeof member === 'bigint' ? String(member) : member));

const count = (types: readonly string[], type: string): number => types.filter((one) => one === type).length;

/** What became of attempts: how many got through, and how many were told that the code is wrong. */
async function outcomes(attempts: readonly Promise<unknown>[]) {
  const settled = await Promise.allSettled(attempts);
  const reasons = settled.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []));
  const wrong = reasons.filter((reason) => reason.includes('Invalid OTP code')).length;
  expect({ reasons, wrong }).toMatchObject({ wrong: reasons.length });
  return { right: settled.length - reasons.length, wrong };
}

/** Another code than the right one. */
const wrongCode = (code: string, number = 1): string => String((Number(code) + number) % 1_000_000).padStart(6, '0');
const digits = { otpLength: 6, alphanumeric: false } as const;

describe('the published clients', () => {
  function clients(coordinator: TestCoordinator, key: ApiKeyPair, organizationId = coordinator.organizationId) {
    const { publicKey: apiPublicKey, privateKey: apiPrivateKey } = key;
    const sdk = new TurnkeyServerSDK({
      apiBaseUrl: coordinator.url,
      apiPublicKey,
      apiPrivateKey,
      defaultOrganizationId: organizationId,
      activityPoller: { intervalMs: 10, numRetries: 3 },
    }).apiClient();
    const stamper = new ApiKeyStamper({ apiPublicKey, apiPrivateKey });
    return { sdk, http: new TurnkeyClient({ baseUrl: coordinator.url }, stamper) };
  }

  /** Proves an address with the published packages; `verificationKey` is the key that this server signs tokens with. */
  async function provedAddress(
    coordinator: TestCoordinator,
    sdk: ReturnType<typeof clients>['sdk'],
    contact: string,
    verificationKey: string,
  ) {
    const asked = { otpType: 'OTP_TYPE_EMAIL', contact, appName: 'Acme' };
    const { otpId, otpEncryptionTargetBundle } = await sdk.initOtp(asked);
    const client = coordinator.newKey();
    const encryptedOtpBundle = await encryptOtpCodeToBundle(
      await codeOf(coordinator, otpId),
      otpEncryptionTargetBundle,
      client.publicKey,
      verificationKey,
    );
    const { verificationToken } = await sdk.verifyOtp({ otpId, encryptedOtpBundle });
    return { client, verificationToken };
  }

  test('sign up and log in with @turnkey/sdk-server and @turnkey/crypto: a code, a token, an organization, a session', async () => {
    const coordinator = await started({ at: new Date() });
    const { sdk } = clients(coordinator, coordinator.client.key);
    const { body } = await exchange(`${coordinator.url}/public/v1/discovery/keys`);
    const keys = body as { notarizer: string; verificationToken: string };

    const { client, verificationToken } = await provedAddress(
      coordinator,
      sdk,
      'ann@example.com',
      keys.verificationToken,
    );
    expect(await verifyOtpVerificationToken(verificationToken, keys.verificationToken)).toMatchObject({
      verification_type: 'OTP_TYPE_EMAIL',
      contact: 'ann@example.com',
      organization_id: coordinator.organizationId,
      public_key: client.publicKey,
    });

    const signup = { email: 'ann@example.com', apiKeys: [], authenticators: [], oauthProviders: [] };
    const { subOrganizationId, rootUserIds } = await sdk.createSubOrganization({
      subOrganizationName: 'Ann',
      rootUsers: [
        { userName: 'Ann', userEmail: 'ann@example.com', apiKeys: [], authenticators: [], oauthProviders: [] },
      ],
      rootQuorumThreshold: 1,
      verificationToken,
      clientSignature: clientSignature(client, verificationToken, 'USAGE_TYPE_SIGNUP', { signupV2: signup }),
    });

    const session = coordinator.newKey();
    const login = { publicKey: session.publicKey };
    const asked = {
      organizationId: subOrganizationId,
      verificationToken,
      publicKey: session.publicKey,
      clientSignature: clientSignature(client, verificationToken, 'USAGE_TYPE_LOGIN', { login }),
    };
    const { session: token } = await sdk.otpLogin(asked);
    expect(await verifySessionJwtSignature(token, keys.notarizer)).toBe(true);
    expect(claimsOf(token)).toMatchObject({
      public_key: session.publicKey,
      session_type: 'SESSION_TYPE_READ_WRITE',
      user_id: rootUserIds![0],
      organization_id: subOrganizationId,
      exp: Math.floor(coordinator.clock.now() / 1000) + 900,
    });
    const ann = clients(coordinator, session, subOrganizationId).sdk;
    expect(await ann.getWhoami()).toMatchObject({ organizationId: subOrganizationId, username: 'Ann' });
    await expect(sdk.otpLogin(asked)).rejects.toThrow('has already been used for USAGE_TYPE_LOGIN');
  });

  test('a back end founds an organization for two with their addresses alone; each logs in with a token of their own', async () => {
    const coordinator = await started({ at: new Date() });
    const { sdk } = clients(coordinator, coordinator.client.key);
    const { body } = await exchange(`${coordinator.url}/public/v1/discovery/keys`);
    const people = ['ann', 'ben'].map((name) => ({ userName: name, userEmail: `${name}@example.com` }));
    const { subOrganizationId, rootUserIds } = await sdk.createSubOrganization({
      subOrganizationName: 'Ann and Ben',
      rootUsers: people.map((one) => ({ ...one, apiKeys: [], authenticators: [], oauthProviders: [] })),
      rootQuorumThreshold: 1,
    });
    for (const [index, { userEmail: contact, userName }] of people.entries()) {
      const { client, verificationToken } = await provedAddress(
        coordinator,
        sdk,
        contact,
        (body as { verificationToken: string }).verificationToken,
      );
      const session = coordinator.newKey();
      const login = { publicKey: session.publicKey };
      await sdk.otpLogin({
        // As some databases give ids back.
        organizationId: subOrganizationId.toUpperCase(),
        verificationToken,
        publicKey: session.publicKey,
        clientSignature: clientSignature(client, verificationToken, 'USAGE_TYPE_LOGIN', { login }),
      });
      const them = clients(coordinator, session, subOrganizationId.toUpperCase()).sdk;
      expect(await them.getWhoami()).toMatchObject({
        organizationId: subOrganizationId,
        userId: rootUserIds![index],
        username: userName,
      });
    }
  });

  test('log in with @turnkey/http: the bundle of otp_auth opens, and its key stamps', async () => {
    const coordinator = await started({ at: new Date() });
    const { organizationId, userId } = await subOrganization(coordinator, { userPhoneNumber: '+13214567890' });
    const { http } = clients(coordinator, coordinator.client.key);
    const request = { organizationId, timestampMs: String(Date.now()) };
    const { activity: sent } = await http.initOtpAuth({
      ...request,
      type: 'ACTIVITY_TYPE_INIT_OTP_AUTH_V3',
      parameters: { otpType: 'OTP_TYPE_SMS', contact: '+13214567890', appName: 'Acme', ...digits },
    });
    const { otpId } = sent.result.initOtpAuthResultV2!;
    const target = coordinator.newKey();
    const { activity } = await http.otpAuth({
      ...request,
      type: 'ACTIVITY_TYPE_OTP_AUTH',
      parameters: { otpId, otpCode: await codeOf(coordinator, otpId), targetPublicKey: target.publicKey },
    });
    const { credentialBundle, ...made } = activity.result.otpAuthResult!;
    expect(made).toEqual({ userId, apiKeyId: anyText });
    const key = apiKeyPairFromPrivate(decryptCredentialBundle(credentialBundle!, target.privateKey));
    const ann = clients(coordinator, key, organizationId).http;
    expect(await ann.getWhoami({ organizationId })).toMatchObject({ userId, organizationId });
    const { apiKeys } = await ann.getApiKeys({ organizationId, userId });
    expect(apiKeys).toMatchObject([{ apiKeyName: `OTP Auth - ${new Date(coordinator.clock.now()).toISOString()}` }]);
  });

  test('log in with the mail of email_auth', async () => {
    const coordinator = await started({ at: new Date() });
    const { organizationId, userId } = await subOrganization(coordinator, { userEmail: 'ann@example.com' });
    const target = coordinator.newKey();
    const made = await clients(coordinator, coordinator.client.key).sdk.emailAuth({
      organizationId,
      email: 'ann@example.com',
      targetPublicKey: target.publicKey,
      emailCustomization: { appName: 'Acme', magicLinkTemplate: 'https://acme.example/login?bundle=%s' },
    });
    expect(made).toMatchObject({ userId, apiKeyId: anyText });
    await until('the mail is sent', () => coordinator.messages().length === 1);
    const [, bundle] = /login\?bundle=(\w+)/.exec(coordinator.messages()[0]!.text)!;
    // In the mail alone: not in the answer, and not in what is recorded.
    const events = await coordinator.events(organizationStream(organizationId));
    for (const text of [JSON.stringify(made), textOf(events)]) expect(text).not.toContain(bundle);
    const key = apiKeyPairFromPrivate(decryptCredentialBundle(bundle!, target.privateKey));
    const { sdk } = clients(coordinator, key, organizationId);
    expect(await sdk.getWhoami({ organizationId })).toMatchObject({ userId });
  });
});

describe('older versions', () => {
  test('of init_otp, verify_otp and otp_login make a session, and answer under their own keys', async () => {
    const coordinator = await started();
    const { client } = coordinator;
    const contact = '+13214567890';
    const sent = await client.submit('ACTIVITY_TYPE_INIT_OTP', { otpType: 'OTP_TYPE_SMS', contact });
    expect(sent.result).toEqual({ initOtpResult: { otpId: anyText } });
    const { otpId } = resultOf(sent);
    const otpCode = (await codeOf(coordinator, otpId!)).toLowerCase();
    const verified = await client.submit('ACTIVITY_TYPE_VERIFY_OTP', { otpId, otpCode });
    expect(verified.result).toEqual({ verifyOtpResult: { verificationToken: anyText } });
    const { verificationToken } = resultOf(verified);
    // A token that is bound to no key needs no signature.
    const type = 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V7';
    const child = await subOrganization(coordinator, { userPhoneNumber: contact }, { verificationToken }, type);
    const { publicKey } = coordinator.newKey();
    const asked = { verificationToken, publicKey };
    const login = await client.submit('ACTIVITY_TYPE_OTP_LOGIN', asked, child);
    expect(login.result).toEqual({ otpLoginResult: { session: anyText } });
    expect(claimsOf(resultOf(login)['session']!)['user_id']).toBe(child.userId);
  });

  test('of init_otp_auth and email_auth answer under their own keys', async () => {
    const coordinator = await started();
    const { client } = coordinator;
    await coordinator.createUser('Ann', { userEmail: 'ann@example.com' });
    const asked = { otpType: 'OTP_TYPE_EMAIL', contact: 'ann@example.com', emailCustomization: { appName: 'Acme' } };
    const first = await client.submit('ACTIVITY_TYPE_INIT_OTP_AUTH', asked);
    expect(first.result).toEqual({ initOtpAuthResult: { otpId: anyText } });
    const second = await client.submit('ACTIVITY_TYPE_INIT_OTP_AUTH_V2', { ...asked, otpLength: 6 });
    expect(second.result).toEqual({ initOtpAuthResultV2: { otpId: anyText } });
    const { subject, text } = await messageOf(coordinator, resultOf(second)['otpId']!);
    expect([subject, text]).toEqual(['Your code for Acme', expect.stringMatching(/^ *[0-9A-Z]{6}$/m)]);
    const mailed = await client.submit('ACTIVITY_TYPE_EMAIL_AUTH', {
      email: 'ann@example.com',
      targetPublicKey: coordinator.newKey().publicKey,
    });
    expect(mailed.result).toEqual({ emailAuthResult: { userId: anyText, apiKeyId: anyText } });
  });
});

test('a contact counts by whatever spelling, and is shown as it was given', async () => {
  const coordinator = await started();
  const given = 'Zoe\u0308@M\u00fcnchen.de';
  const { organizationId, userId } = await subOrganization(coordinator, { userEmail: given });
  const { init, auth } = logins(coordinator, organizationId);
  for (const contact of ['zo\u00eb@mu\u0308nchen.de', 'ZOe\u0308@xn--mnchen-3ya.de']) {
    const otpId = await init(contact);
    const login = await auth(otpId, await codeOf(coordinator, otpId), {
      targetPublicKey: coordinator.newKey().publicKey,
    });
    expect(resultOf(login)).toMatchObject({ userId });
  }
  const { user } = await coordinator.client.query<{ user: object }>('get_user', { organizationId, userId });
  expect(user).toMatchObject({ userEmail: given });
  for (const filterValue of ['zo\u00eb@m\u00fcnchen.de', given]) {
    const asked = { filterType: 'EMAIL', filterValue } as const;
    expect(await coordinator.client.query('list_suborgs', asked)).toEqual({ organizationIds: [organizationId] });
  }
});

describe('a code', () => {
  test('is locked by three wrong guesses, also of twenty at once; the right one does not open it then', async () => {
    const coordinator = await started();
    const { organizationId } = await subOrganization(coordinator, { userEmail: 'ann@example.com' });
    const { init, auth } = logins(coordinator, organizationId);
    const otpId = await init(undefined, digits);
    const code = await codeOf(coordinator, otpId);
    const before = (await typesOf(coordinator, organizationId)).length;
    const guesses = Array.from({ length: 20 }, (_, number) => auth(otpId, wrongCode(code, number + 1)));
    expect(await outcomes(guesses)).toEqual({ right: 0, wrong: 20 });
    expect(await outcomes([auth(otpId, code), auth(otpId, code)])).toEqual({ right: 0, wrong: 2 });
    const types = await typesOf(coordinator, organizationId, before);
    // What came after the lock has left nothing.
    expect([count(types, 'OtpGuessFailed'), count(types, 'OtpInvalidated'), count(types, 'ActivityFailed')]).toEqual([
      3, 1, 3,
    ]);
    expect(types).toHaveLength(3 * 3 + 1);
  });

  test.each([1, 2, 3])('opens at most once among twenty guesses of which some are right (round %i)', async (round) => {
    const coordinator = await started({ seed: `round ${round}` });
    const { organizationId } = await subOrganization(coordinator, { userEmail: 'ann@example.com' });
    const { init, auth } = logins(coordinator, organizationId);
    const otpId = await init(undefined, digits);
    const code = await codeOf(coordinator, otpId);
    const isRight = (number: number) => number % 5 === round;
    const guesses = Array.from({ length: 20 }, (_, number) =>
      auth(otpId, isRight(number) ? code : wrongCode(code, number + 1)),
    );
    const { right } = await outcomes(guesses);
    const events = await coordinator.events(organizationStream(organizationId));
    const failed = events.filter(({ type }) => type === 'OtpGuessFailed').length;
    const ended = events
      .filter(({ type }) => type === 'OtpInvalidated')
      .map(({ data }) => (data as { reason: string }).reason);
    expect([right, failed, ended]).toEqual(right === 1 ? [1, Math.min(failed, 2), ['used']] : [0, 3, ['locked']]);
  });

  test('remembers wrong guesses, and that it is locked, over a restart', async () => {
    let coordinator = await started({ store: 'sqlite' });
    const { organizationId } = await subOrganization(coordinator, { userEmail: 'ann@example.com' });
    const otpId = await logins(coordinator, organizationId).init(undefined, digits);
    const code = await codeOf(coordinator, otpId);
    const restart = async () => {
      coordinator = await coordinator.restart();
      running.splice(0, 1, coordinator);
      return logins(coordinator, organizationId);
    };
    const { auth } = logins(coordinator, organizationId);
    expect(await outcomes([1, 2].map((number) => auth(otpId, wrongCode(code, number))))).toEqual({
      right: 0,
      wrong: 2,
    });
    expect(await outcomes([(await restart()).auth(otpId, wrongCode(code, 3))])).toEqual({ right: 0, wrong: 1 });
    expect(await outcomes([(await restart()).auth(otpId, code)])).toEqual({ right: 0, wrong: 1 });
    expect(count(await typesOf(coordinator, organizationId), 'OtpGuessFailed')).toBe(3);
  });

  test('is used up by the first that is right, also of several at once', async () => {
    const coordinator = await started();
    const { organizationId, userId } = await subOrganization(coordinator, { userEmail: 'ann@example.com' });
    const { init, auth } = logins(coordinator, organizationId);
    const otpId = await init();
    const code = await codeOf(coordinator, otpId);
    expect(code).toMatch(/^[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{9}$/);
    expect(await outcomes([auth(otpId, code), auth(otpId, code), auth(otpId, code)])).toEqual({ right: 1, wrong: 2 });
    // Without a target key there is no key, only who it is.
    const events = await coordinator.events(organizationStream(organizationId));
    const completed = events.filter(({ type }) => type === 'ActivityCompleted').at(-1)!.data as { result: object };
    expect(completed.result).toEqual({ userId });
    expect(events.filter(({ type }) => type === 'ApiKeyCreated')).toEqual([]);
  });

  test('lives as long as it is told, and its key goes when the next is sent', async () => {
    const coordinator = await started();
    const { client, clock } = coordinator;
    const init = async (more: object = {}) => {
      const asked = { otpType: 'OTP_TYPE_EMAIL', contact: 'ann@example.com', appName: 'Acme', ...more };
      return resultOf(await client.submit('ACTIVITY_TYPE_INIT_OTP_V3', asked))['otpId']!;
    };
    const otpId = await init({ expirationSeconds: '60' });
    const otpCode = await codeOf(coordinator, otpId);
    clock.advance('60s');
    expect(await outcomes([client.submit('ACTIVITY_TYPE_VERIFY_OTP', { otpId, otpCode })])).toMatchObject({ wrong: 1 });
    const sent = (await coordinator.events()).find(({ type }) => type === 'OtpSent')!.data as { vaultId: string };
    const vault = `vault-${sent.vaultId}`;
    expect(await coordinator.events(vault)).toHaveLength(1);
    const second = await init();
    const ended = (await coordinator.events()).find(({ type }) => type === 'OtpInvalidated');
    expect(ended?.data).toEqual({ otpId, reason: 'expired', vaultId: sent.vaultId });
    expect(await coordinator.events(vault).catch(() => [])).toEqual([]);
    clock.advance('299s');
    const code = await codeOf(coordinator, second);
    expect((await client.submit('ACTIVITY_TYPE_VERIFY_OTP', { otpId: second, otpCode: code })).status).toBe(
      'ACTIVITY_STATUS_COMPLETED',
    );
  });

  test('is one of three for a contact: the fourth takes the place of the first', async () => {
    const coordinator = await started();
    const { organizationId } = await subOrganization(coordinator, { userEmail: 'ann@example.com' });
    const { init, auth } = logins(coordinator, organizationId);
    const ids = [await init(), await init('Ann@example.com'), await init(), await init()];
    const attempts = await Promise.all(
      ids.map(async (otpId) => auth(otpId, await codeOf(coordinator, otpId))).map(outcome),
    );
    expect(attempts).toEqual(['wrong', 'right', 'right', 'right']);
  });

  const outcome = async (attempt: Promise<unknown>): Promise<string> => {
    const { right } = await outcomes([attempt]);
    return right === 1 ? 'right' : 'wrong';
  };

  test('is bound to its organization and its purpose', async () => {
    const coordinator = await started();
    const { client } = coordinator;
    const one = await subOrganization(coordinator, { userEmail: 'ann@example.com' });
    const other = await subOrganization(coordinator, { userEmail: 'ann@example.com' });
    await coordinator.createUser('Ann', { userEmail: 'ann@example.com' });
    const otpId = await logins(coordinator, one.organizationId).init();
    const otpCode = await codeOf(coordinator, otpId);
    const elsewhere = [other.organizationId, coordinator.organizationId].map((organizationId) =>
      logins(coordinator, organizationId).auth(otpId, otpCode),
    );
    const otherwise = client.submit('ACTIVITY_TYPE_VERIFY_OTP', { otpId, otpCode });
    expect(await outcomes([...elsewhere, otherwise])).toEqual({ right: 0, wrong: 3 });
    expect(await outcomes([logins(coordinator, one.organizationId).auth(otpId, otpCode)])).toMatchObject({ right: 1 });
  });

  test('is sent three times in three minutes to one identifier, then refused in the words that clients look for', async () => {
    const coordinator = await started();
    const { organizationId } = await subOrganization(coordinator, { userEmail: 'ann@example.com' });
    const { init } = logins(coordinator, organizationId);
    const same = { userIdentifier: '' };
    // Several at once are no more than three either.
    const six = await Promise.allSettled(Array.from({ length: 6 }, () => init(undefined, same)));
    expect(six.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
    expect(count(await typesOf(coordinator, organizationId), 'OtpSent')).toBe(3);
    expect(await refusal(init(undefined, same))).toMatchObject({
      status: 429,
      turnkeyErrorCode: 'MAX_OTP_INITIATED',
      message: expect.stringContaining('Max number of OTPs have been initiated for `ann@example.com`') as string,
    });
    coordinator.clock.advance('179s');
    expect((await refusal(init('Ann@example.com', same))).status).toBe(429);
    coordinator.clock.advance('1s');
    await init(undefined, same);
    await until('four mails are sent', () => coordinator.messages().length === 4);
  });

  test('is in its message alone: not in what is recorded, answered or logged', async () => {
    let logged = '';
    const log = new Writable({
      write(chunk, _encoding, done) {
        logged += String(chunk);
        done();
      },
    });
    const coordinator = await started({ logLevel: 'trace', log });
    const asked = { otpType: 'OTP_TYPE_EMAIL', contact: 'ann@example.com', appName: 'Acme' };
    const activity = await coordinator.client.submit('ACTIVITY_TYPE_INIT_OTP_V3', asked);
    const code = await codeOf(coordinator, resultOf(activity)['otpId']!);
    const recorded = textOf(await coordinator.events());
    expect(recorded).toContain('"OtpSent"');
    for (const text of [recorded, JSON.stringify(activity), logged]) expect(text).not.toContain(code);
  });
});

describe('what an observer learns', () => {
  test('of a contact that nobody has is what a contact of somebody gives, but that nothing is sent', async () => {
    const coordinator = await started();
    const { organizationId } = await subOrganization(coordinator, { userEmail: 'ann@example.com' });
    const { init, auth } = logins(coordinator, organizationId);
    const seen: unknown[] = [];
    const ids: string[] = [];
    for (const contact of ['ann@example.com', 'bob@example.com']) {
      const before = (await typesOf(coordinator, organizationId)).length;
      const otpId = await init(contact);
      ids.push(otpId);
      const guess = await refusal(auth(otpId, '000000000'));
      const events = (await coordinator.events(organizationStream(organizationId))).slice(before);
      const shapes = events.map(({ type, data }) => [type, Object.keys(data as object)]);
      seen.push({ idLength: otpId.length, guess, shapes });
    }
    expect(seen[1]).toEqual(seen[0]);
    await messageOf(coordinator, ids[0]!);
    expect(coordinator.messages().map(({ to }) => to)).toEqual(['ann@example.com']);
  });
});

describe('who may', () => {
  test('a user of the parent whom its policies allow, and nobody else of it', async () => {
    const coordinator = await started();
    const { organizationId } = await subOrganization(coordinator, { userEmail: 'ann@example.com' });
    const backend = await coordinator.createUser('Backend');
    const { init } = logins(coordinator, organizationId, backend.client);
    expect((await refusal(init())).status).toBe(403);
    await coordinator.createPolicy({
      policyName: 'backend logs users in, with long codes',
      condition: "activity.resource == 'AUTH' && activity.action == 'CREATE' && activity.params.otp_length >= 9",
      consensus: `approvers.any(user, user.id == '${backend.userId}')`,
    });
    expect((await refusal(init(undefined, digits))).status).toBe(403);
    await init();
  });

  test('no passkey may have a code sent', async () => {
    const coordinator = await started();
    const passkey = new SoftwareAuthenticator();
    await coordinator.client.submit('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', {
      userId: coordinator.root.userId,
      authenticators: [{ authenticatorName: 'passkey', ...passkey.register() }],
    });
    const body = coordinator.client.submitBody('ACTIVITY_TYPE_INIT_OTP_AUTH_V3', {
      otpType: 'OTP_TYPE_EMAIL',
      contact: 'ann@example.com',
      appName: 'Acme',
    });
    const { status } = await exchange(`${coordinator.url}/public/v1/submit/init_otp_auth`, {
      method: 'POST',
      headers: { 'x-stamp-webauthn': passkey.assert({ body }) },
      body,
    });
    expect(status).toBe(401);
  });

  test('nobody where the sub-organization has switched it off', async () => {
    const coordinator = await started();
    const contacts = { userEmail: 'ann@example.com', userPhoneNumber: '+13214567890' };
    const off = { disableOtpEmailAuth: true, disableEmailAuth: true, disableSmsAuth: true };
    const { organizationId } = await subOrganization(coordinator, contacts, off);
    const { init } = logins(coordinator, organizationId);
    const mail = coordinator.client.submit(
      'ACTIVITY_TYPE_EMAIL_AUTH_V3',
      {
        email: 'ann@example.com',
        targetPublicKey: coordinator.newKey().publicKey,
        emailCustomization: { appName: 'Acme' },
      },
      { organizationId },
    );
    const refusals = await Promise.all([init(), init('+13214567890'), mail].map((attempt) => refusal(attempt)));
    expect(refusals.map(({ message }) => /^`(\w+)` is disabled/.exec(message)?.[1])).toEqual([
      'FEATURE_NAME_OTP_EMAIL_AUTH',
      'FEATURE_NAME_SMS_AUTH',
      'FEATURE_NAME_EMAIL_AUTH',
    ]);
  });
});

describe('the key of a login', () => {
  test('lives to the second, and goes with invalidateExisting and by its class only', async () => {
    const coordinator = await started();
    const { clock, url } = coordinator;
    const { organizationId, userId } = await subOrganization(coordinator, { userEmail: 'ann@example.com' });
    const { init, auth } = logins(coordinator, organizationId);
    const login = async (more: object = {}) => {
      const otpId = await init();
      const target = coordinator.newKey();
      const asked = { targetPublicKey: target.publicKey, ...more };
      const { credentialBundle } = resultOf(await auth(otpId, await codeOf(coordinator, otpId), asked));
      const key = apiKeyPairFromPrivate(decryptCredentialBundle(credentialBundle!, target.privateKey));
      return new StampingClient(url, organizationId, key, clock);
    };
    const [first, short] = [await login(), await login({ expirationSeconds: '61' })];
    const own = coordinator.newKey();
    await first.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', {
      userId,
      apiKeys: [{ apiKeyName: 'own', publicKey: own.publicKey, curveType: own.curve, expirationSeconds: '3600' }],
    });
    const whoami = (client: StampingClient) => client.query('whoami');
    clock.advance(60_999);
    await whoami(short);
    clock.advance(1);
    expect(await refusal(whoami(short))).toMatchObject({ status: 401, turnkeyErrorCode: 'API_KEY_EXPIRED' });
    const next = await login({ invalidateExisting: true });
    expect(await refusal(whoami(first))).toMatchObject({ status: 401, turnkeyErrorCode: 'PUBLIC_KEY_NOT_FOUND' });
    await whoami(next);
    await whoami(new StampingClient(url, organizationId, own, clock));
    clock.advance('899s');
    await whoami(next);
    clock.advance('1s');
    expect(await refusal(whoami(next))).toMatchObject({ turnkeyErrorCode: 'API_KEY_EXPIRED' });
  });
});

describe('a changed contact', () => {
  test('counts as proved with a token, which then is good for logins by the new contact', async () => {
    const coordinator = await started();
    const { client } = coordinator;
    const { organizationId, userId } = await subOrganization(coordinator, { userEmail: 'ann@example.com' });
    const otpId = await logins(coordinator, organizationId).init();
    const target = coordinator.newKey();
    const asked = { targetPublicKey: target.publicKey };
    const login = await logins(coordinator, organizationId).auth(otpId, await codeOf(coordinator, otpId), asked);
    const key = apiKeyPairFromPrivate(decryptCredentialBundle(resultOf(login)['credentialBundle']!, target.privateKey));
    const ann = new StampingClient(coordinator.url, organizationId, key, coordinator.clock);

    const contact = '+13214567890';
    const sent = await client.submit('ACTIVITY_TYPE_INIT_OTP_V3', {
      otpType: 'OTP_TYPE_SMS',
      contact,
      appName: 'Acme',
    });
    const proof = { otpId: resultOf(sent)['otpId']!, publicKey: key.publicKey };
    const otpCode = await codeOf(coordinator, proof.otpId);
    const verified = await client.submit('ACTIVITY_TYPE_VERIFY_OTP', { ...proof, otpCode });
    const { verificationToken } = resultOf(verified) as { verificationToken: string };
    const session = coordinator.newKey();
    const loginByPhone = () =>
      client.submit(
        'ACTIVITY_TYPE_OTP_LOGIN_V2',
        {
          verificationToken,
          publicKey: session.publicKey,
          clientSignature: clientSignature(key, verificationToken, 'USAGE_TYPE_LOGIN', {
            login: { publicKey: session.publicKey },
          }),
        },
        { organizationId },
      );
    expect((await refusal(loginByPhone())).status).toBe(404);

    // Written down only, the number is nobody's proof.
    await ann.submit('ACTIVITY_TYPE_UPDATE_USER_PHONE_NUMBER', { userId, userPhoneNumber: contact });
    expect((await refusal(loginByPhone())).message).toContain('as a verified contact');
    const change = () =>
      ann.submit('ACTIVITY_TYPE_UPDATE_USER_PHONE_NUMBER', { userId, userPhoneNumber: contact, verificationToken });
    await change();
    expect((await refusal(change())).message).toContain('has already been used for USAGE_TYPE_UPDATE_CONTACT');
    expect(claimsOf(resultOf(await loginByPhone())['session']!)['user_id']).toBe(userId);
    await new StampingClient(coordinator.url, organizationId, session, coordinator.clock).query('whoami');
  });
});

describe('the sandbox', () => {
  const log = () => {
    const lines: string[] = [];
    const stream = new Writable({
      write(chunk, _encoding, done) {
        lines.push(String(chunk));
        done();
      },
    });
    return { lines, stream };
  };
  const options = (stream: Writable) => ({ settings: { SANDBOX: '2026-01-02' }, logLevel: 'warn', log: stream });

  test('takes 000000 from two contacts until its last day is over, and says so loudly', async () => {
    const { lines, stream } = log();
    const coordinator = await started(options(stream));
    expect(lines.join('')).toMatch(
      /"level":40.*"until":"2026-01-03T00:00:00\.000Z".*SANDBOX is on: anybody can log in/,
    );
    const contacts = { userEmail: 'user@example.com', userPhoneNumber: '+19999999999' };
    const { organizationId } = await subOrganization(coordinator, contacts);
    const { init, auth } = logins(coordinator, organizationId);
    for (const contact of Object.values(contacts)) await auth(await init(contact, digits), '000000');
    expect(await outcomes([auth(await init('user@example.com'), '000000')])).toMatchObject({ wrong: 1 });
    coordinator.clock.advance('2d');
    expect(await outcomes([auth(await init('user@example.com', digits), '000000')])).toMatchObject({ wrong: 1 });
  });

  test('is off, without a word, when its day has passed at the start', async () => {
    const { lines, stream } = log();
    await started({ ...options(stream), at: new Date('2026-01-03T00:00:00Z') });
    expect(lines.join('')).not.toContain('SANDBOX');
  });
});

test('whatever was decided about codes comes out the same when it is decided again', async () => {
  const coordinator = await started();
  const { client, newKey } = coordinator;
  const ann = await coordinator.createUser('Ann', { userEmail: 'ann@example.com' });
  const { init, auth } = logins(coordinator, coordinator.organizationId);
  const sent = async (type: string, contact: string) => {
    const looks = { appName: 'Acme', userIdentifier: `${type} ${contact}`, ...digits };
    const asked = { otpType: contact.startsWith('+') ? 'OTP_TYPE_SMS' : 'OTP_TYPE_EMAIL', contact, ...looks };
    const { otpId } = resultOf(await client.submit(type, asked)) as { otpId: string };
    return { otpId, otpCode: await codeOf(coordinator, otpId) };
  };
  const locked = await init(undefined, digits);
  const code = await codeOf(coordinator, locked);
  await outcomes([1, 2, 3].map((number) => auth(locked, wrongCode(code, number))));
  const used = await init(undefined, digits);
  await auth(used, await codeOf(coordinator, used), { targetPublicKey: newKey().publicKey, invalidateExisting: true });
  for (const _ of [1, 2, 3, 4]) await init();
  coordinator.clock.advance('10m');

  const userPhoneNumber = '+13214567890';
  const key = newKey();
  const proof = await sent('ACTIVITY_TYPE_INIT_OTP_V3', userPhoneNumber);
  const verify = (otpCode: string) =>
    client.submit('ACTIVITY_TYPE_VERIFY_OTP', { ...proof, otpCode, publicKey: key.publicKey });
  await outcomes([verify(wrongCode(proof.otpCode))]);
  const { verificationToken } = resultOf(await verify(proof.otpCode)) as { verificationToken: string };
  const { userId } = ann;
  await client.submit('ACTIVITY_TYPE_UPDATE_USER_PHONE_NUMBER', { userId, userPhoneNumber, verificationToken });
  const login = { publicKey: key.publicKey };
  await client.submit('ACTIVITY_TYPE_OTP_LOGIN_V2', {
    verificationToken,
    ...login,
    clientSignature: clientSignature(key, verificationToken, 'USAGE_TYPE_LOGIN', { login }),
  });
  await client.submit('ACTIVITY_TYPE_EMAIL_AUTH_V3', {
    email: 'ann@example.com',
    targetPublicKey: newKey().publicKey,
    emailCustomization: { appName: 'Acme' },
  });

  const again = redecide(await coordinator.events(), registry);
  for (const one of again) expect(one.again).toEqual(one.recorded);
  const reasons = again.flatMap(({ recorded }) =>
    (recorded as readonly OrganizationEvent[]).flatMap((event) =>
      event.type === 'OtpInvalidated' ? [event.data.reason] : [],
    ),
  );
  expect(new Set(reasons)).toEqual(new Set(['locked', 'used', 'replaced', 'expired']));
  const kinds = ['EMAIL_AUTH', 'INIT_OTP', 'INIT_OTP_AUTH', 'OTP_AUTH', 'OTP_LOGIN', 'VERIFY_OTP'];
  const seen = new Set(again.map(({ activityType }) => registry.versions.get(activityType)!.kind));
  for (const kind of kinds) expect([...seen]).toContain(kind);
});

test('a code comes by real SMTP, from the sender that may be named, and the process logs nobody in without it', async () => {
  const inbox = await openInbox({ plain: true });
  const installation = await Installation.make();
  try {
    const server = await installation.start({
      SMTP_URL: `smtp://127.0.0.1:${inbox.port}`,
      MAIL_FROM: 'Countersign <no-reply@example.com>',
    });
    const client = await installation.client(server.url);
    const init = async (sendFromEmailAddress: string) => {
      const activity = await client.submit('ACTIVITY_TYPE_INIT_OTP_V3', {
        otpType: 'OTP_TYPE_EMAIL',
        contact: 'ann@example.org',
        appName: 'Acme',
        sendFromEmailAddress,
        sendFromEmailSenderName: 'Acme logins',
        replyToEmailAddress: 'help@example.com',
      });
      return resultOf(activity)['otpId']!;
    };
    const otpId = await init('logins@example.com');
    await until('the mail is there', () => inbox.received.length === 1);
    const { mail, envelope } = inbox.received[0]!;
    expect(envelope).toEqual({ from: 'logins@example.com', to: ['ann@example.org'] });
    expect([mail.from?.text, mail.replyTo?.text]).toEqual(['"Acme logins" <logins@example.com>', 'help@example.com']);
    const [, otpCode] = /^ *([0-9A-Z]{9})\s*$/m.exec(mail.text!)!;
    const verified = await client.submit('ACTIVITY_TYPE_VERIFY_OTP', { otpId, otpCode });
    expect(claimsOf(resultOf(verified)['verificationToken']!)['contact']).toBe('ann@example.org');

    await init('logins@elsewhere.example');
    await until('the second mail is there', () => inbox.received.length === 2);
    const other = inbox.received[1]!;
    expect(other.envelope.from).toBe('no-reply@example.com');
    expect([other.mail.from?.text, other.mail.replyTo]).toEqual(['"Countersign" <no-reply@example.com>', undefined]);
    await stop(server);
  } finally {
    await installation.remove();
    await inbox.close();
  }
}, 120_000);
