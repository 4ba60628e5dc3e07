import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { ActivityEnvelope } from '../../src/wire/envelope.js';
import { schemaOf } from '../../src/wire/json-schema.js';
import { isEmail } from '../../src/wire/fields.js';
import { registry } from '../e2e/routes.js';

type Json = Readonly<Record<string, unknown>>;

interface Content {
  readonly content: { readonly 'application/json': { readonly schema: Json } };
}

interface Operation {
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content>>;
}

/** An OpenAPI document, as far as answers are held against it. */
export interface OpenApi {
  readonly paths: Readonly<Record<string, { readonly post?: Operation }>>;
  readonly components: { readonly schemas: Readonly<Record<string, Json>> };
}

/** An answer of a server in JSON. */
export interface Answer {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly body: unknown;
}

/**
 * Holds answers against an OpenAPI document, with objects closed: a member that is not described is not documented. The
 * result of an activity is held against its definition, which the document does not repeat for each path.
 */
export class Documented {
  private readonly ajv = new Ajv2020({ strict: true, allErrors: true, allowUnionTypes: true });
  /** By the text of the schema: all refusals have one, and all submits. */
  private readonly validators = new Map<string, ValidateFunction>();

  constructor(private readonly document: OpenApi) {
    addFormats.default(this.ajv);
    this.ajv.addKeyword('components');
    this.ajv.addFormat('idn-email', isEmail);
    this.ajv.addFormat('int32', { type: 'number', validate: Number.isSafeInteger });
    this.ajv.addSchema({ $id: 'document', components: closed(document.components) as Json });
  }

  /** What is wrong with a request, by the document's own opinion. */
  questionProblem(path: string, body: unknown): string | undefined {
    const asked = this.document.paths[path]?.post?.requestBody;
    return asked ? this.problem(schemaIn(asked), body) : 'the path is not documented';
  }

  /** What is wrong with an answer; undefined when it is as documented. */
  answerProblem({ method, path, status, body }: Answer): string | undefined {
    const operation = method === 'POST' ? this.document.paths[path]?.post : undefined;
    if (!operation) {
      return status < 400 ? 'it is no documented path' : this.problem({ $ref: '#/components/schemas/Error' }, body);
    }
    const described = operation.responses[String(status)];
    if (!described) return 'the status is not documented';
    return this.problem(schemaIn(described), body) ?? (status === 200 ? this.resultProblem(body) : undefined);
  }

  private resultProblem(body: unknown): string | undefined {
    const { activity, activities = activity ? [activity] : [] } = body as {
      readonly activity?: ActivityEnvelope;
      readonly activities?: readonly ActivityEnvelope[];
    };
    return activities.map((one) => this.activityProblem(one)).find((problem) => problem !== undefined);
  }

  /** `intent` and `result` have the one key that their version has (`result` another name of it), and what its definition says. */
  private activityProblem({ type, status, intent, result }: ActivityEnvelope): string | undefined {
    const version = registry.versions.get(type);
    if (!version || version.definition.kind === 'vote') return `\`${type}\` is no type of an activity`;
    const { intentKey, resultKeys } = version.keys;
    if (Object.keys(intent).join() !== intentKey) return `intent has the keys ${Object.keys(intent).join()}`;
    const keys = status === 'ACTIVITY_STATUS_COMPLETED' ? resultKeys.join() : '';
    if (Object.keys(result).join() !== keys) return `result of ${status} has the keys ${Object.keys(result).join()}`;
    const { definition } = version;
    if (!keys) return undefined;
    return keys
      .split(',')
      .map((name) => this.problem(resultSchema(definition.result), result[name]))
      .find((problem) => problem !== undefined);
  }

  private problem(schema: Json, value: unknown): string | undefined {
    const validate = this.validator(schema);
    return validate(value) ? undefined : this.ajv.errorsText(validate.errors, { dataVar: 'body' });
  }

  private validator(schema: Json): ValidateFunction {
    const text = JSON.stringify(schema).replaceAll('"#/components', '"document#/components');
    const known = this.validators.get(text);
    if (known) return known;
    const validate = this.ajv.compile(JSON.parse(text) as Json);
    this.validators.set(text, validate);
    return validate;
  }
}

const schemaIn = ({ content }: Content): Json => content['application/json'].schema;

function resultSchema(result: abstract new () => object): Json {
  const components: Parameters<typeof schemaOf>[1] = new Map();
  const { $ref } = schemaOf(result, components);
  const $defs = Object.fromEntries([...components].map(([name, { schema }]) => [name, closed(schema)]));
  return JSON.parse(JSON.stringify({ $ref, $defs }).replaceAll('#/components/schemas/', '#/$defs/')) as Json;
}

/** The same schemas without room for members that they do not describe: an answer with one of those is not documented. */
function closed(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(closed);
  if (typeof node !== 'object' || node === null) return node;
  const entries = Object.entries(node).map(([name, member]): [string, unknown] => [name, closed(member)]);
  const schema = Object.fromEntries(entries);
  // Details of an error have members by their `@type`.
  const isOpen = Object.hasOwn(Object(schema['properties']) as object, '@type');
  return 'properties' in schema && schema['type'] === 'object' && !isOpen
    ? { ...schema, unevaluatedProperties: false }
    : schema;
}
