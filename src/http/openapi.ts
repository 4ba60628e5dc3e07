import type { ActivityVersion, Registry } from '../decide/registry.js';
import { stampsOf, submittersOf } from '../decide/submitters.js';
import { grpcNumbers } from '../domain/errors.js';
import type { AnyQuery } from '../read-models/index.js';
import { ActivityShape } from '../wire/shapes.js';
import { fieldsOfShape, schemaOf, type JsonSchema } from '../wire/json-schema.js';
import { httpStatuses } from './errors.filter.js';

type Components = Parameters<typeof schemaOf>[1];

const errorSchema: JsonSchema = {
  type: 'object',
  required: ['code', 'message', 'details', 'turnkeyErrorCode'],
  properties: {
    code: { type: 'integer', enum: Object.values(grpcNumbers), description: 'google.rpc.Code' },
    message: { type: 'string', description: 'What was wrong, with which value, and what to do.' },
    details: {
      type: 'array',
      items: { type: 'object', required: ['@type'], properties: { '@type': { type: 'string' } } },
    },
    turnkeyErrorCode: { type: 'string', description: 'Category that a client can branch on; empty when none.' },
  },
};

const stamps: readonly object[] = [{ ApiKeyStamp: [] }, { PasskeyStamp: [] }];

const isAttestable = ({ definition }: Pick<ActivityVersion, 'definition'>): boolean =>
  stampsOf(definition).includes('attested');

const json = (schema: JsonSchema) => ({ 'application/json': { schema } });

const errorResponses = Object.fromEntries(
  [...new Set(Object.values(httpStatuses))].map((status) => [
    String(status),
    { description: namesOf(status), content: json({ $ref: '#/components/schemas/Error' }) },
  ]),
);

function namesOf(status: number): string {
  return Object.entries(httpStatuses)
    .filter(([, one]) => one === status)
    .map(([name]) => name)
    .join(' or ');
}

/** An endpoint of the auth proxy, for the document. */
export interface ProxyEndpoint {
  /** Last segment of the path. */
  readonly name: string;
  readonly summary: string;
  readonly request: new () => object;
  readonly response: new () => object;
  readonly takesCaptcha?: true;
}

/** The OpenAPI 3.1 document of everything listed: activities, queries, and endpoints of the auth proxy. */
export function openApiDocument(
  registry: Registry,
  queries: readonly AnyQuery[],
  proxy: readonly ProxyEndpoint[],
  server: string,
): object {
  const components: Components = new Map();
  const ofAnswers: Components = new Map();
  const activity = schemaOf(ActivityShape, ofAnswers);
  const paths: Record<string, unknown> = {};

  for (const [path, versions] of [...registry.paths].sort(([one], [other]) => one.localeCompare(other))) {
    const [newest] = versions;
    if (!newest) continue;
    paths[`/public/v1/submit/${path}`] = {
      post: {
        operationId: path,
        tags: [tagOf(newest)],
        summary: newest.definition.summary,
        description: descriptionOf(newest),
        ...(isAttestable(newest) ? { security: [...stamps, { AttestedStamp: [] }] } : {}),
        requestBody: {
          required: true,
          content: json({ oneOf: versions.map((version) => submitSchema(version, components)) }),
        },
        responses: {
          '200': {
            description: 'The activity, finished or waiting for votes.',
            headers: {
              'X-Position': { schema: { type: 'string' }, description: 'For X-Min-Position of a later query.' },
            },
            content: json({ type: 'object', required: ['activity'], properties: { activity } }),
          },
          ...errorResponses,
        },
      },
    };
  }
  for (const query of queries) {
    paths[`/public/v1/query/${query.path}`] = {
      post: {
        operationId: query.path,
        tags: ['Queries'],
        summary: query.summary,
        security: [...stamps, { ReadSession: [] }],
        parameters: [
          {
            name: 'X-Min-Position',
            in: 'header',
            schema: { type: 'string' },
            description: 'X-Position of an earlier response.',
          },
        ],
        requestBody: { required: true, content: json(schemaOf(query.request, components)) },
        responses: {
          '200': { description: 'The response.', content: json(schemaOf(query.response, ofAnswers)) },
          ...errorResponses,
        },
      },
    };
  }
  for (const endpoint of proxy) paths[`/v1/${endpoint.name}`] = { post: proxyOperation(endpoint, components) };

  return {
    openapi: '3.1.0',
    info: {
      title: 'Countersign Activity API',
      version: '1',
      description:
        'Every write and every read is signed by the caller. The stamp in `X-Stamp` (API key) or ' +
        '`X-Stamp-WebAuthn` (passkey) is a signature over the exact bytes of the request body.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: server }],
    security: stamps,
    paths,
    components: {
      securitySchemes: {
        ApiKeyStamp: { type: 'apiKey', in: 'header', name: 'X-Stamp' },
        PasskeyStamp: { type: 'apiKey', in: 'header', name: 'X-Stamp-WebAuthn' },
        AttestedStamp: { type: 'apiKey', in: 'header', name: 'X-Stamp-Attested' },
        ReadSession: { type: 'apiKey', in: 'header', name: 'X-Session' },
      },
      schemas: {
        Error: errorSchema,
        ...Object.fromEntries([...ofAnswers].map(([name, { schema }]) => [name, withoutLimits(schema)])),
        ...Object.fromEntries([...components].map(([name, { schema }]) => [name, schema])),
      },
    },
  };
}

/** Responses have no limits in the document: limits are for what callers send, and operators may change them. */
function withoutLimits({ properties, ...schema }: JsonSchema): JsonSchema {
  const members = Object.entries(properties ?? {}).map(([name, member]): [string, JsonSchema] => {
    const { minItems: _minItems, maxItems: _maxItems, minLength: _minLength, maxLength: _maxLength, ...rest } = member;
    return [name, rest];
  });
  return { ...schema, properties: Object.fromEntries(members) };
}

const captchaParameter = {
  name: 'X-Captcha-Token',
  in: 'header',
  required: false,
  schema: { type: 'string', maxLength: 8_192 },
  description: 'Token of a solved captcha, where the operator requires one.',
} as const;

/** Clients of the proxy have no key to stamp with; the named configuration says what they may do. */
function proxyOperation(
  { name, summary, request, response, takesCaptcha }: ProxyEndpoint,
  components: Components,
): object {
  return {
    operationId: `v1_${name}`,
    tags: ['Auth proxy'],
    summary,
    security: [],
    parameters: [
      {
        name: 'X-Auth-Proxy-Config-Id',
        in: 'header',
        required: true,
        schema: { type: 'string', format: 'uuid' },
        description: 'Id of the configuration, from get_auth_proxy_config.',
      },
      ...(takesCaptcha ? [captchaParameter] : []),
    ],
    requestBody: {
      required: fieldsOfShape(request).size > 0,
      content: json(schemaOf(request, components)),
    },
    responses: {
      '200': { description: 'The response.', content: json(schemaOf(response, components)) },
      ...errorResponses,
    },
  };
}

function submitSchema({ type, intent, keys }: ActivityVersion, components: Components): JsonSchema {
  return {
    type: 'object',
    title: keys.intentKey,
    required: ['type', 'timestampMs', 'organizationId', 'parameters'],
    additionalProperties: false,
    properties: {
      type: { const: type },
      timestampMs: {
        type: 'string',
        description: 'Request time in milliseconds: less than 1 h old, at most 5 min ahead.',
      },
      organizationId: { type: 'string', format: 'uuid' },
      parameters: schemaOf(intent, components),
      generateAppProofs: { type: 'boolean' },
    },
  };
}

function tagOf({ definition }: ActivityVersion): string {
  if (definition.kind === 'vote') return 'Consensus';
  return definition.policy === 'root-quorum-only' ? 'Root quorum only' : definition.policy.resource;
}

function descriptionOf({ definition, keys }: ActivityVersion): string {
  if (definition.kind === 'vote') return 'Returns the activity that the vote is for.';
  const policy =
    definition.policy === 'root-quorum-only'
      ? 'Only the root quorum may do this; policies do not apply.'
      : `Policies see \`activity.resource == '${definition.policy.resource}' && activity.action == '${definition.policy.action}'\`.`;
  const { about } = submittersOf(definition);
  const params = Object.keys(definition.params ?? {}).map((name) => `\`activity.params.${name}\``);
  return [
    `Result: \`${keys.resultKeys.join('`, and the same as `')}\`.`,
    policy,
    ...(params.length > 0 ? [`Parameters for policies: ${params.join(', ')}.`] : []),
    ...(stampsOf(definition).includes('webauthn') ? [] : ['Accepts only X-Stamp.']),
    ...(isAttestable({ definition }) ? ['Also accepts X-Stamp-Attested: a key that a token vouches for.'] : []),
    ...(about === undefined ? [] : [about]),
  ].join(' ');
}
