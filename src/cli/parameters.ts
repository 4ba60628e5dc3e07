import { readFile } from 'node:fs/promises';
import { errorMessage } from '../domain/errors.js';
import { fieldsOfShape, type JsonSchema } from '../wire/json-schema.js';
import { BadUsage } from './bad-usage.js';
import type { CliCommand } from './command.js';
import { unreadable } from './input-files.js';
import type { Terminal } from './terminal.js';
import { unknownName } from './wire-names.js';

type Shape = abstract new () => object;

/** How parameters are given on a command line. */
export interface ParameterOptions {
  readonly file?: string;
  readonly set: readonly string[];
}

/** Adds the options for parameters. */
export function withParameters<SomeCommand extends CliCommand>(command: SomeCommand): SomeCommand {
  return command
    .option('--file <file>', 'the parameters as JSON; - reads standard input')
    .option(
      '--set <name=value>',
      'one parameter, such as `--set userName=Bob`, `--set apiKeys[0].apiKeyName=laptop` or `--set userIds[]=…`; write a whole list or ' +
        'object as JSON. Can be repeated, and overrides --file',
      (input: string, before: readonly string[]) => [...before, input],
      [],
    );
}

/**
 * The parameters as given, each value converted to the type that the request has there. Whether they obey its rules is
 * not checked here.
 * @throws {BadUsage} for an unknown name, or a value that cannot have its type
 */
export async function givenParameters(
  terminal: Terminal,
  shape: Shape,
  { file, set }: ParameterOptions,
): Promise<Readonly<Record<string, unknown>>> {
  const parameters = file === undefined ? {} : await parametersIn(terminal, file);
  for (const assignment of set) {
    const [, path, value] = /^([^=]+)=([^]*)$/.exec(assignment) ?? [];
    if (path === undefined || value === undefined) throw new BadUsage(`--set ${assignment}: must be name=value`);
    assign(parameters, { $shape: () => shape }, segmentsOf(path), { path, value });
  }
  return parameters;
}

async function parametersIn(terminal: Terminal, file: string): Promise<Record<string, unknown>> {
  const name = file === '-' ? 'standard input' : terminal.path(file);
  const text = await (file === '-' ? terminal.input() : readFile(name, 'utf8')).catch((cause: unknown) => {
    throw unreadable(name, cause);
  });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new BadUsage(`${name} is not JSON: ${errorMessage(cause)}`, { cause });
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new BadUsage(`${name} must be a JSON object with the parameters`);
  }
  return value as Record<string, unknown>;
}

const append = Symbol('append');
type Step = string | number | typeof append;

interface Assignment {
  readonly path: string;
  readonly value: string;
}

/** `a.b[0].c[]` as the steps of its path. */
function segmentsOf(path: string): readonly Step[] {
  if (!/^\w+(?:\[\d{0,3}\])*(?:\.\w+(?:\[\d{0,3}\])*)*$/.test(path)) {
    throw new BadUsage(`--set ${path}: the name must look like name, object.name, list[0] or list[]`);
  }
  return [...path.matchAll(/(\w+)|\[(\d*)\]/g)].map(([, name, index]) =>
    index === undefined ? name! : index === '' ? append : Number(index),
  );
}

/** Sets a value in an object or a list at the end of a path; missing parts of the path are created. */
function assign(
  into: Record<string | number, unknown> | unknown[],
  schema: JsonSchema,
  [step, ...rest]: readonly Step[],
  assignment: Assignment,
): void {
  if (step === undefined) return;
  const inner = Array.isArray(into) ? (schema.items ?? {}) : memberSchema(schema, String(step), assignment);
  const key = step === append ? (into as unknown[]).length : step;
  const holder = into as Record<string | number, unknown>;
  if (rest.length === 0) {
    holder[key] = typed(inner, assignment);
    return;
  }
  const before = holder[key];
  const isList = typeof rest[0] !== 'string';
  if (isList && inner.type !== 'array') throw new BadUsage(`--set ${assignment.path}: ${String(step)} is not a list`);
  if (!isList && !inner.$shape)
    throw new BadUsage(`--set ${assignment.path}: ${String(step)} has no members that can be set individually`);
  const next = typeof before === 'object' && before !== null ? before : isList ? [] : {};
  holder[key] = next;
  assign(next as Record<string, unknown>, inner, rest, assignment);
}

function memberSchema(schema: JsonSchema, name: string, { path }: Assignment): JsonSchema {
  const fields = schema.$shape ? fieldsOfShape(schema.$shape()) : new Map<string, { readonly schema: JsonSchema }>();
  const field = fields.get(name);
  if (field) return field.schema;
  throw new BadUsage(`--set ${path}: ${unknownName('parameter', name, [...fields.keys()]).message}`);
}

/**
 * The text converted to the type in the schema. Text that does not fit stays text, and is refused with the rule of its
 * field.
 */
function typed(schema: JsonSchema, { path, value }: Assignment): unknown {
  const alternatives = schema.anyOf ?? [schema];
  if (alternatives.some(({ type }) => type === 'string') || alternatives.some((one) => one.enum)) return value;
  if (alternatives.some(({ type }) => type === 'boolean') && /^(?:true|false)$/.test(value)) return value === 'true';
  if (alternatives.some(({ type }) => type === 'integer' || type === 'number') && /^-?\d+(?:\.\d+)?$/.test(value)) {
    return Number(value);
  }
  if (!alternatives.some((one) => one.type === 'array' || one.type === 'object' || one.$shape)) return value;
  try {
    return JSON.parse(value);
  } catch (cause) {
    throw new BadUsage(`--set ${path}: write a list or an object as JSON, got ${value}`, { cause });
  }
}
