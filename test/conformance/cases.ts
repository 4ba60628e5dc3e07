import type { Body, Wanted } from './fixtures.js';
import type { Field, FieldType, Form } from './specification/shape.js';

/** A request that is not as its table says, or lies at the edge of what it says. */
export interface Case {
  readonly name: string;
  /** Path of the field that is told to be wrong, such as `policies[0].effect`. */
  readonly field: string;
  readonly body: Body;
  /** What is named may also be answered as not found. */
  readonly mayBeMissing?: true;
}

type Path = readonly (string | number)[];

export const written = (path: Path): string =>
  path.map((step, index) => (typeof step === 'number' ? `[${step}]` : index ? `.${step}` : step)).join('');

interface Place {
  readonly field: Field;
  readonly path: Path;
}

/** Every field of a table that a request has, those of nested objects and of the first element of lists too. */
function places(fields: readonly Field[], body: Body, before: Path = []): readonly Place[] {
  return fields.flatMap((field) => {
    const value = body[field.name];
    if (value === undefined) return [];
    const path = [...before, field.name];
    return [{ field, path }, ...inside(field.type, value, path)];
  });
}

function inside(type: FieldType, value: unknown, path: Path): readonly Place[] {
  if (type.kind === 'object') return places(type.fields, value as Body, path);
  if (type.kind !== 'list') return [];
  const [first] = value as readonly unknown[];
  return first === undefined ? [] : inside(type.of, first, [...path, 0]);
}

/** The same request with another value in one place; `undefined` removes it. */
export function changed(body: Body, path: Path, value: unknown): Body {
  const copy = structuredClone(body) as Record<string, unknown>;
  let holder = copy as Record<string | number, unknown>;
  for (const step of path.slice(0, -1)) holder = holder[step] as Record<string | number, unknown>;
  const last = path.at(-1)!;
  if (value === undefined) delete holder[last];
  else holder[last] = value;
  return copy;
}

/** The request with its required members only. */
export function withoutOptional(fields: readonly Field[], body: Body): Body {
  return Object.fromEntries<unknown>(
    fields
      .filter(({ name, required }) => required && body[name] !== undefined)
      .map(({ name, type }): [string, unknown] => [name, requiredPart(type, body[name])]),
  );
}

function requiredPart(type: FieldType, value: unknown): unknown {
  if (type.kind === 'object') return withoutOptional(type.fields, value as Body);
  if (type.kind === 'list') return (value as readonly unknown[]).map((one) => requiredPart(type.of, one));
  return value;
}

/** The request with `null` in place of each optional member, which counts as absent (client protocol 2.8). */
export function withNulls(fields: readonly Field[], body: Body): Body {
  const nulls = fields.filter(({ required }) => !required).map(({ name }): [string, null] => [name, null]);
  return { ...withoutOptional(fields, body), ...Object.fromEntries(nulls) };
}

/** Whether an empty text in place of a member counts as absent: it is optional, and an empty text is none of its values. */
export function mayBeEmpty({ type, required }: Field): boolean {
  if (required) return false;
  if (type.kind === 'enum') return true;
  if (type.kind !== 'string' || type.emptyAllowed) return false;
  const { form, limit } = type;
  return (limit?.least ?? 0) > 0 || form === 'policy expression' || form === 'uuid' || form === 'email';
}

/** The request with an empty text in place of each optional member that may not be empty, which counts as absent. */
export function withEmptyTexts(fields: readonly Field[], body: Body): Body {
  const empty = fields.filter(mayBeEmpty).map(({ name }): [string, string] => [name, '']);
  return { ...withoutOptional(fields, body), ...Object.fromEntries(empty) };
}

/** Every required field missing, null, and empty where it may not be. */
export function missing(fields: readonly Field[], body: Body): readonly Case[] {
  return places(fields, body)
    .filter(({ field }) => field.required && !field.missingMayBeEmpty)
    .flatMap(({ field: { type }, path }) => {
      const mayNotBeEmpty = (type.kind === 'string' && !type.emptyAllowed) || type.kind === 'enum';
      return [
        { name: `${written(path)} is missing`, value: undefined },
        { name: `${written(path)} is null`, value: null },
        ...(mayNotBeEmpty ? [{ name: `${written(path)} is empty`, value: '' }] : []),
      ].map(({ name, value }) => ({ name, field: written(path), body: changed(body, path, value) }));
    });
}

const wrong: Readonly<Record<FieldType['kind'], (type: FieldType, value: unknown) => readonly unknown[]>> = {
  string: (_type, value) => [7, true, [value], { value }],
  number: (_type, value) => [String(value), 6.5, true, [value], { value }],
  boolean: (_type, value) => [String(value), 1, [value], { value }],
  enum: (_type, value) => [7, true, [value], { value }],
  object: (_type, value) => ['text', 7, true, [value]],
  list: (type, value) => ['text', 7, true, { 0: (value as unknown[])[0] }, ...wrongElements(type, value)],
  timestamp: () => [],
  map: (_type, value) => ['text', 7, true, [value]],
};

function wrongElements(type: FieldType, value: unknown): readonly unknown[] {
  if (type.kind !== 'list') return [];
  const [first] = value as readonly unknown[];
  // An element that is null is no absent member.
  return [...wrong[type.of.kind](type.of, first), null].map((element) => [element]);
}

/** Every field with values of every other JSON type. */
export function wrongTypes(fields: readonly Field[], body: Body): readonly Case[] {
  return places(fields, body)
    .filter(({ field }) => !field.unread)
    .flatMap(({ field: { type }, path }) =>
      wrong[type.kind](type, valueAt(body, path)).map((value) => ({
        name: `${written(path)} is ${JSON.stringify(value).slice(0, 40)}`,
        field: written(path),
        body: changed(body, path, value),
      })),
    );
}

const badForms: Readonly<Record<Form, readonly string[]>> = {
  uuid: ['nobody', '0190a1b2-0000-7000-8000-00000000000', '0190a1b2000070008000000000000000'],
  decimal: ['ten', '-1', '1.5', '0x10', '1e3', ' 1'],
  hex: ['not hex', '0g'],
  email: ['nobody', 'nobody@', 'two@at@example.com'],
  'E.164': ['3214567890', '+0', '+1 321 456 78 90', '+12345678901234567'],
  JSON: ['not JSON', '{', '7'],
  'policy expression': ['', 'activity.kind ==', 'nobody.knows == 1'],
};

const innermost = (type: FieldType): FieldType => (type.kind === 'list' ? innermost(type.of) : type);

const has =
  (isSo: (type: FieldType) => boolean) =>
  ({ type }: Field): boolean => {
    const one = innermost(type);
    return isSo(one) || (one.kind === 'object' && one.fields.some(has(isSo)));
  };

/** Whether a field is, or holds, a text with a form. */
export const hasForm = has((type) => type.kind === 'string' && type.form !== undefined);
/** Whether a field is, or holds, an enumeration. */
export const hasEnumeration = has(({ kind }) => kind === 'enum');

/** Every text that has a form, in others. */
export function wrongForms(fields: readonly Field[], body: Body): readonly Case[] {
  return places(fields, body)
    .filter(({ field }) => !field.unread)
    .flatMap(({ field, path }) => {
      const { type } = field;
      const isList = type.kind === 'list';
      const one = isList ? type.of : type;
      if (one.kind !== 'string' || !one.form) return [];
      const texts = badForms[one.form].filter((text) => text !== '' || !mayBeEmpty(field));
      return texts.map((bad) => ({
        name: `${written(path)} is \`${bad}\``,
        field: written(path),
        body: changed(body, path, isList ? [bad] : bad),
      }));
    });
}

/** Every enumeration with texts that are none of its values. */
export function unknownValues(fields: readonly Field[], body: Body): readonly Case[] {
  return places(fields, body).flatMap(({ field: { type, openValues }, path }) => {
    const isList = type.kind === 'list';
    const one = isList ? type.of : type;
    if (one.kind !== 'enum') return [];
    const [known] = [...one.values, ...one.further];
    const bad = [`${known!.slice(0, known!.lastIndexOf('_'))}_NOBODY`, known!.toLowerCase(), 'UNSPECIFIED', 'toString'];
    return bad.map((value) => ({
      name: `${written(path)} is \`${value}\``,
      field: written(path),
      body: changed(body, path, isList ? [value] : value),
      ...(openValues ? { mayBeMissing: openValues } : {}),
    }));
  });
}

/** Every value of every enumeration of a table. */
export function knownValues(fields: readonly Field[], body: Body): readonly Wanted[] {
  return places(fields, body)
    .filter(({ field }) => !field.valuesIn)
    .flatMap(({ field: { type }, path }) => {
      const isList = type.kind === 'list';
      const one = isList ? type.of : type;
      if (one.kind !== 'enum') return [];
      return [...one.values, ...one.further].map((value) => ({ at: written(path), value }));
    });
}

interface Edge {
  readonly name: string;
  readonly field: string;
  readonly path: Path;
  readonly value: unknown;
  readonly isWithin: boolean;
}

/** Every limit of a table: at it, next to it inside, next to it outside. `textOf` makes a text of a length for a field. */
export function edges(
  fields: readonly Field[],
  body: Body,
  textOf: (field: string, length: number, type: FieldType) => string,
): readonly Edge[] {
  return places(fields, body).flatMap(({ field, path }) => {
    const { type } = field;
    if (!('limit' in type) || type.limit === undefined) return [];
    const { least, most } = type.limit;
    const isNumber = type.kind === 'number';
    const isDecimal = type.kind === 'string' && type.form === 'decimal';
    const isList = type.kind === 'list';
    const make = (size: number): unknown => {
      if (isNumber) return size;
      if (isDecimal) return String(size);
      if (isList) return Array.from({ length: size }, () => (valueAt(body, path) as readonly unknown[])[0]);
      return textOf(written(path), size, type);
    };
    const unit = isNumber || isDecimal ? '' : isList ? ' elements' : ' characters';
    const at = (size: number, isWithin: boolean): Edge => ({
      name: `${written(path)} ${isWithin ? 'takes' : 'does not take'} ${size}${unit}`,
      field: written(path),
      path,
      value: make(size),
      isWithin,
    });
    // What is shorter than one character is absent.
    const hasShorter = (size: number) => size > 1 || (size === 1 && (isDecimal || !mayBeEmpty(field)));
    return [
      ...(least === undefined ? [] : [at(least, true), ...(hasShorter(least) ? [at(least - 1, false)] : [])]),
      ...(most === undefined ? [] : [at(most - 1, true), at(most, true), at(most + 1, false)]),
    ];
  });
}

/** Every id of a table that names something, with its path. */
export function namedResources(fields: readonly Field[], body: Body): readonly Place[] {
  return places(fields, body).filter(({ field }) => field.names !== undefined);
}

export function valueAt(body: Body, path: Path): unknown {
  return path.reduce<unknown>((holder, step) => (holder as Record<string | number, unknown>)[step], body);
}

/** What is wrong with an answer, by its table; members beyond the table are allowed. */
export function misshapen(fields: readonly Field[], value: unknown, at = ''): readonly string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return [`${at || 'the answer'} is no object`];
  const members = value as Body;
  return fields.flatMap(({ name, type, required }) => {
    const path = at ? `${at}.${name}` : name;
    const member = members[name];
    if (member === undefined) return required ? [`${path} is missing`] : [];
    return misfit(type, member, path);
  });
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

function misfit(type: FieldType, value: unknown, at: string): readonly string[] {
  const bad = (what: string): readonly string[] => [`${at} is no ${what}: ${JSON.stringify(value)}`];
  switch (type.kind) {
    case 'string':
      if (typeof value !== 'string') return bad('string');
      if (type.form === 'uuid' && !uuidPattern.test(value)) return bad('UUID');
      if (type.form === 'hex' && !/^[0-9a-f]+$/.test(value)) return bad('hex');
      return type.form === 'decimal' && !/^\d+$/.test(value) ? bad('decimal string') : [];
    case 'enum':
      return [...type.values, ...type.further].includes(value as string) ? [] : bad('value of the enumeration');
    case 'number':
    case 'boolean':
      return typeof value === type.kind ? [] : bad(type.kind);
    case 'list':
      if (!Array.isArray(value)) return bad('list');
      return value.flatMap((element: unknown, index) => misfit(type.of, element, `${at}[${index}]`));
    case 'object':
      return misshapen(type.fields, value, at);
    case 'timestamp':
      return misshapen(timestampFields, value, at);
    case 'map':
      return typeof value === 'object' && value !== null ? [] : bad('object');
  }
}

/** Section 2, timestamp object. */
const timestampFields: readonly Field[] = ['seconds', 'nanos'].map((name) => ({
  name,
  type: { kind: 'string', form: 'decimal' },
  required: true,
  source: 'specification',
}));
