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
import { registry, stampedPaths } from './routes.js';
import { furnish, querySamples, sampleSettings, submitSamples, type Furnished } from './samples.js';

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
