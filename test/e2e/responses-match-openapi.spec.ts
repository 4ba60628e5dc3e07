import { openApi, ownDocument } from '../answers/own-document.js';
import {
  ApiError,
  startCoordinator,
  submitPath,
  type StampingClient,
  type TestCoordinator,
} from '../../src/testing/index.js';
import type { ActivityEnvelope } from '../../src/wire/envelope.js';
import { exchange } from './exchange.js';
import { clientSignature, codeOf } from './one-time-codes.js';
import { registry, stampedPaths } from './routes.js';
import { furnish, querySamples, sealedTo, sampleSettings, submitSamples, type Furnished } from './samples.js';

// Every answer here, as everywhere, is held against the document by `test/answers`; these tests see to it that each path
// has an answer, and hold requests against it too.

interface World {
  readonly coordinator: TestCoordinator;
  readonly furnished: Furnished;
  /** A user who may do nothing. */
  readonly mallory: StampingClient;
}

const worlds: World[] = [];
let coordinator: TestCoordinator;
let furnished: Furnished;

async function newWorld(): Promise<World> {
  const own = await startCoordinator({ seed: `world ${worlds.length}`, settings: sampleSettings });
  const { client: mallory } = await own.createUser('Mallory');
  const world = { coordinator: own, furnished: await furnish(own), mallory };
  worlds.push(world);
  return world;
}

beforeAll(async () => {
  ({ coordinator, furnished } = await newWorld());
});

afterAll(() => Promise.all(worlds.map((world) => world.coordinator.close())));

async function answerOf(
  client: StampingClient,
  path: string,
  body: string,
): Promise<{ status: number; body: unknown }> {
  return client.post<unknown>(path, body).catch((error: unknown) => {
    if (error instanceof ApiError) return { status: error.status, body: error.body };
    throw error;
  });
}

test('the document is served as answers are held against it', async () => {
  const { body } = await exchange(`${coordinator.url}/openapi.json`);
  expect(body).toEqual(openApi);
});

test('every path is sampled', () => {
  const sampled = [
    ...Object.keys(submitSamples(furnished)).map(submitPath),
    ...Object.keys(querySamples(furnished)).map((path) => `/public/v1/query/${path}`),
  ];
  expect(sampled.sort()).toEqual([...stampedPaths].sort());
});

test('every query matches in its answer and its refusal', async () => {
  for (const [name, request] of Object.entries(querySamples(furnished))) {
    const path = `/public/v1/query/${name}`;
    const body = { organizationId: coordinator.organizationId, ...request };
    const ask = async (question: object) => (await answerOf(coordinator.client, path, JSON.stringify(question))).status;
    expect([name, ownDocument.questionProblem(path, body)]).toEqual([name, undefined]);
    expect([name, await ask(body)]).toEqual([name, 200]);
    expect([name, await ask({ ...body, more: 1 })]).toEqual([name, 400]);
    expect([name, await ask({ ...body, organizationId: furnished.policyId })]).toEqual([name, 404]);
  }
});

describe('every submit', () => {
  // A session of one's own and an invitation to oneself are nobody else's business, and a vote is about what waits.
  const undenied = ['stamp_login', 'create_read_write_session', 'create_read_only_session', 'accept_invitation'];

  /** Statuses of a denial and of success, and the answer to the latter. */
  async function submitted(world: World, name: string, type: string) {
    const { coordinator: own, furnished: one, mallory } = world;
    const path = `/public/v1/submit/${name}`;
    const samples: Readonly<Record<string, object>> = submitSamples(one);
    if (name === 'remove_organization_feature') {
      await own.client.submit('ACTIVITY_TYPE_SET_ORGANIZATION_FEATURE', { name: 'FEATURE_NAME_SMS_AUTH', value: '' });
    }
    const clients: Readonly<Record<string, StampingClient>> = {
      approve_activity: one.alice.client,
      reject_activity: one.alice.client,
      accept_invitation: one.invited.client,
      delete_sub_organization: one.child,
      release_contact: own.clientFor(own.client.key, one.child.organizationId),
    };
    const client = clients[name] ?? own.client;
    const body = client.submitBody(type, samples[type]!);
    expect(ownDocument.questionProblem(path, JSON.parse(body))).toBeUndefined();
    const isDeniable = !name.endsWith('_activity') && !undenied.includes(name);
    const denied = isDeniable ? await answerOf(mallory, path, mallory.submitBody(type, samples[type]!)) : undefined;
    const answer = await answerOf(client, path, body);
    expect((await answerOf(client, path, '{}')).status).toBe(400);
    expect((await answerOf(client, path, body.replace('{', '{"a":1,"a":2,'))).status).toBe(400);
    return { statuses: [denied?.status ?? 403, answer.status], body: answer.body };
  }

  test.each([...registry.paths].map(([path, versions]): [string, string] => [path, versions[0]!.type]))(
    '%s matches in its answer, its denial, and what the document says of the request',
    async (name, type) => {
      let outcome = await submitted(worlds.at(-1)!, name, type);
      // Another sample may have taken away what this one is about.
      if (outcome.statuses.join() !== '403,200') outcome = await submitted(await newWorld(), name, type);
      expect(outcome).toMatchObject({ statuses: [403, 200] });
      const { activity } = outcome.body as { activity: ActivityEnvelope };
      expect(activity.status).toBe(
        name === 'reject_activity' ? 'ACTIVITY_STATUS_REJECTED' : 'ACTIVITY_STATUS_COMPLETED',
      );
      expect(activity.type).toBe(name.endsWith('_activity') ? worlds.at(-1)!.furnished.waiting.type : type);
    },
  );
});

describe('the auth proxy', () => {
  const answered = new Set<string>();

  async function proxied(name: string, body?: object): Promise<{ status: number; body: Record<string, string> }> {
    const path = `/v1/${name}`;
    if (body) expect(ownDocument.questionProblem(path, body)).toBeUndefined();
    const { status, body: answer } = await exchange(`${coordinator.url}${path}`, {
      method: 'POST',
      headers: { 'x-auth-proxy-config-id': coordinator.root.authProxyConfigId },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    if (status === 200) answered.add(name);
    return { status, body: answer as Record<string, string> };
  }

  async function ok(name: string, body?: object): Promise<Record<string, string>> {
    const answer = await proxied(name, body);
    expect([name, answer]).toEqual([name, { status: 200, body: answer.body }]);
    return answer.body;
  }

  test('matches in the answer and the refusal of each endpoint', async () => {
    const contact = 'documented@example.com';
    const key = coordinator.newKey();
    const asked = { apiKeys: [], authenticators: [], oauthProviders: [] };
    const apiKeys = [{ apiKeyName: 'key', publicKey: key.publicKey, curveType: 'API_KEY_CURVE_P256' }];
    const token = async () => {
      const { otpId } = await ok('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact });
      const otpCode = await codeOf(coordinator, otpId!);
      const verified = await ok('otp_verify', { otpId, otpCode, publicKey: key.publicKey });
      return verified['verificationToken']!;
    };
    const signup = await token();
    await ok('signup', {
      userEmail: contact,
      verificationToken: signup,
      ...asked,
      clientSignature: clientSignature(key, signup, 'USAGE_TYPE_SIGNUP', { signup: { ...asked, email: contact } }),
    });
    const { organizationId } = await ok('signup_v2', {
      userName: 'Documented',
      ...asked,
      apiKeys,
      wallet: { walletName: 'first', accounts: [] },
    });
    // A key that nobody has used is told to nobody.
    await coordinator
      .clientFor(key, organizationId)
      .submit('ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME', { organizationName: 'Documented' });
    for (const name of ['otp_login', 'otp_login_v2']) {
      const verificationToken = await token();
      const { publicKey } = coordinator.newKey();
      await ok(name, {
        verificationToken,
        publicKey,
        invalidateExisting: false,
        clientSignature: clientSignature(key, verificationToken, 'USAGE_TYPE_LOGIN', { login: { publicKey } }),
      });
    }
    const { otpId, otpEncryptionTargetBundle } = await ok('otp_init_v2', {
      otpType: 'OTP_TYPE_EMAIL',
      contact: 'sealed@example.com',
    });
    const sealed = { otp_code: await codeOf(coordinator, otpId!), public_key: key.publicKey };
    await ok('otp_verify_v2', {
      otpId,
      encryptedOtpBundle: sealedTo(otpEncryptionTargetBundle!, JSON.stringify(sealed)),
    });
    expect(await ok('account', { filterType: 'PUBLIC_KEY', filterValue: key.publicKey })).not.toEqual({});
    await ok('wallet_kit_config');
    await ok('wallet_kit_client_params');

    // With a provider: test/e2e/auth-proxy.spec.ts has their answers.
    for (const [name, body] of [
      ['oauth_login', { oidcToken: 'x', publicKey: key.publicKey }],
      [
        'oauth2_authenticate',
        { provider: 'p', authCode: 'a', redirectUri: 'r', codeVerifier: 'v', nonce: 'n', clientId: 'c' },
      ],
    ] as const) {
      expect([name, (await proxied(name, body)).status]).not.toEqual([name, 200]);
      answered.add(name);
    }
    const documented = Object.keys(openApi.paths).filter((path) => path.startsWith('/v1/'));
    expect(documented.sort()).toEqual([...answered].map((name) => `/v1/${name}`).sort());
    for (const path of documented) {
      const bad = await exchange(`${coordinator.url}${path}`, { method: 'POST', body: '{}' });
      expect([path, bad.status]).toEqual([path, 400]);
    }
  });
});
