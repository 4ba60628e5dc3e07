import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import {
  ApiError,
  startCoordinator,
  submitPath,
  type StampingClient,
  type TestCoordinator,
} from '../../src/testing/index.js';
import type { ActivityEnvelope } from '../../src/domain/activity/envelope.js';
import { schemaOf } from '../../src/schema/json-schema.js';
import { exchange } from './exchange.js';
import { clientSignature, codeOf } from './one-time-codes.js';
import { registry, stampedPaths } from './routes.js';
import { furnish, querySamples, sealedTo, sampleSettings, submitSamples, type Furnished } from './samples.js';

type Json = Readonly<Record<string, unknown>>;
interface Operation {
  readonly requestBody: { readonly content: { readonly 'application/json': { readonly schema: Json } } };
  readonly responses: Readonly<
    Record<string, { readonly content: { readonly 'application/json': { readonly schema: Json } } }>
  >;
}

let coordinator: TestCoordinator;
let furnished: Furnished;
let paths: Readonly<Record<string, { readonly post: Operation }>>;
let ajv: Ajv2020;

beforeAll(async () => {
  coordinator = await startCoordinator({ settings: sampleSettings });
  furnished = await furnish(coordinator);
  const { body } = await exchange(`${coordinator.url}/openapi.json`);
  const document = body as { paths: typeof paths; components: { schemas: Record<string, Json> } };
  paths = document.paths;
  ajv = new Ajv2020({ strict: true, allErrors: true, allowUnionTypes: true });
  addFormats.default(ajv);
  ajv.addKeyword('components');
  ajv.addFormat('int32', { type: 'number', validate: Number.isSafeInteger });
  ajv.addSchema({ $id: 'document', components: closed(document.components) as Json });
});

afterAll(() => coordinator.close());

/** The same schemas without room for members that they do not describe: an answer with one of those is not documented. */
function closed(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(closed);
  if (typeof node !== 'object' || node === null) return node;
  const entries = Object.entries(node).map(([name, member]): [string, unknown] => [name, closed(member)]);
  const schema = Object.fromEntries(entries);
  const isOpen = JSON.stringify(schema).includes('"@type"');
  return 'properties' in schema && schema['type'] === 'object' && !isOpen
    ? { ...schema, unevaluatedProperties: false }
    : schema;
}

function validator(schema: Json): ValidateFunction {
  return ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"document#/components')) as Json);
}

const answerOf = (path: string, status: number) =>
  validator(paths[path]!.post.responses[String(status)]!.content['application/json'].schema);
const questionOf = (path: string) => validator(paths[path]!.post.requestBody.content['application/json'].schema);

function check(validate: ValidateFunction, value: unknown): void {
  validate(value);
  expect(validate.errors ?? []).toEqual([]);
}

/** Sends it, and holds question and answer, whatever it is, against the document. */
async function checked(
  path: string,
  body: string,
  client = coordinator.client,
): Promise<{ status: number; body: unknown }> {
  const outcome = await client.post<unknown>(path, body).catch((error: unknown) => {
    if (error instanceof ApiError) return { status: error.status, body: error.body };
    throw error;
  });
  check(answerOf(path, outcome.status), outcome.body);
  return outcome;
}

test('every path is sampled', () => {
  const sampled = [
    ...Object.keys(submitSamples(furnished)).map(submitPath),
    ...Object.keys(querySamples(furnished)).map((path) => `/public/v1/query/${path}`),
  ];
  expect(sampled.sort()).toEqual([...stampedPaths].sort());
});

test('every query, its answer and its refusal', async () => {
  for (const [name, request] of Object.entries(querySamples(furnished))) {
    const path = `/public/v1/query/${name}`;
    const body = { organizationId: coordinator.organizationId, ...request };
    check(questionOf(path), body);
    expect([name, (await checked(path, JSON.stringify(body))).status]).toEqual([name, 200]);
    expect([name, (await checked(path, JSON.stringify({ ...body, more: 1 }))).status]).toEqual([name, 400]);
    expect([
      name,
      (await checked(path, JSON.stringify({ ...body, organizationId: furnished.policyId }))).status,
    ]).toEqual([name, 404]);
  }
});

describe('every submit', () => {
  test.each([...registry.paths].map(([path, versions]): [string, string] => [path, versions[0]!.type]))(
    '%s: its answer, its denial, and the document’s own opinion of the request',
    async (name, type) => {
      // One after the other they would take each other's users and policies away.
      const own = await startCoordinator({ seed: name, settings: sampleSettings });
      try {
        const one = await furnish(own);
        const path = `/public/v1/submit/${name}`;
        const samples: Readonly<Record<string, object>> = submitSamples(one);
        if (name === 'remove_organization_feature') {
          await own.client.submit('ACTIVITY_TYPE_SET_ORGANIZATION_FEATURE', {
            name: 'FEATURE_NAME_SMS_AUTH',
            value: '',
          });
        }
        const isVote = name.endsWith('_activity');
        // A session of one's own is nobody else's business.
        const isOwn = ['stamp_login', 'create_read_write_session', 'create_read_only_session'].includes(name);
        if (!isVote && !isOwn) {
          const { client: mallory } = await own.createUser('Mallory');
          expect((await checked(path, mallory.submitBody(type, samples[type]!), mallory)).status).toBe(403);
        }

        const clients: Readonly<Record<string, StampingClient>> = {
          approve_activity: one.alice.client,
          reject_activity: one.alice.client,
          delete_sub_organization: one.child,
        };
        const client = clients[name] ?? own.client;
        const body = client.submitBody(type, samples[type]!);
        check(questionOf(path), JSON.parse(body));
        const { status, body: answer } = await checked(path, body, client);
        expect({ status, answer }).toMatchObject({ status: 200 });
        const { activity } = answer as { activity: ActivityEnvelope };
        expect(activity.status).toBe(
          name === 'reject_activity' ? 'ACTIVITY_STATUS_REJECTED' : 'ACTIVITY_STATUS_COMPLETED',
        );
        checkKeys(activity, isVote ? one.waiting.type : type, name === 'reject_activity');
        if (!isVote) checkResult(activity);
        expect((await checked(path, '{}', client)).status).toBe(400);
        expect((await checked(path, body.replace('{', '{"a":1,"a":2,'), client)).status).toBe(400);
      } finally {
        await own.close();
      }
    },
  );
});

describe('the auth proxy', () => {
  const answered = new Set<string>();

  async function proxied(name: string, body?: object): Promise<{ status: number; body: Record<string, string> }> {
    const path = `/v1/${name}`;
    if (body) check(questionOf(path), body);
    const { status, body: answer } = await exchange(`${coordinator.url}${path}`, {
      method: 'POST',
      headers: { 'x-auth-proxy-config-id': coordinator.root.authProxyConfigId },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    check(answerOf(path, status), answer);
    if (status === 200) answered.add(name);
    return { status, body: answer as Record<string, string> };
  }

  async function ok(name: string, body?: object): Promise<Record<string, string>> {
    const answer = await proxied(name, body);
    expect([name, answer]).toEqual([name, { status: 200, body: answer.body }]);
    return answer.body;
  }

  test('each endpoint, its answer and its refusal', async () => {
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
    await ok('signup_v2', {
      userName: 'Documented',
      ...asked,
      apiKeys,
      wallet: { walletName: 'first', accounts: [] },
    });
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
      encryptedOtpBundle: await sealedTo(otpEncryptionTargetBundle!, JSON.stringify(sealed)),
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
    const documented = Object.keys(paths).filter((path) => path.startsWith('/v1/'));
    expect(documented.sort()).toEqual([...answered].map((name) => `/v1/${name}`).sort());
    for (const path of documented) {
      const bad = await exchange(`${coordinator.url}${path}`, { method: 'POST', body: '{}' });
      check(answerOf(path, bad.status), bad.body);
      expect([path, bad.status]).toEqual([path, 400]);
    }
  });
});

/** `intent` and `result` have the one key that their version has. */
function checkKeys(activity: ActivityEnvelope, type: string, isWithoutResult: boolean): void {
  const { intentKey, resultKey } = registry.versions.get(type)!.keys;
  expect(activity.type).toBe(type);
  expect(Object.keys(activity.intent)).toEqual([intentKey]);
  expect(Object.keys(activity.result)).toEqual(isWithoutResult ? [] : [resultKey]);
}

/** The result has the members that its definition says, which the document does not repeat for each of the paths. */
function checkResult({ type, result }: ActivityEnvelope): void {
  const { definition, keys } = registry.versions.get(type)!;
  if (definition.kind === 'vote') throw new Error(`${type} is a vote`);
  const components: Parameters<typeof schemaOf>[1] = new Map();
  const { $ref } = schemaOf(definition.result, components);
  const $defs = Object.fromEntries([...components].map(([name, { schema }]) => [name, closed(schema)]));
  const text = JSON.stringify({ $ref, $defs }).replaceAll('#/components/schemas/', '#/$defs/');
  check(ajv.compile(JSON.parse(text) as Json), result[keys.resultKey]);
}
