import { readFileSync } from 'node:fs';
import { memberKinds } from '../../src/audit/export/personal-members.js';
import { fieldsOfShape } from '../../src/wire/json-schema.js';
import { registry } from './exported.js';

// What a redacted export replaces is said for every member of every event and every activity: one that is forgotten would be
// replaced as a text, and decisions on it would come out otherwise.

interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly items?: Schema | false;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly $shape?: () => new () => object;
}

const published = JSON.parse(
  readFileSync(new URL('../../docs/reference/events.schema.json', import.meta.url), 'utf8'),
) as { readonly $defs: Readonly<Record<string, Schema>> };

/** Streams of organizations, denials and claims are exported, no others. */
const elsewhere =
  /^(Boot|Restore|Coordinator|Attestation|Founding|KeyEncryption|DataKey|Sealed|Secret|Vault|Webhook(?!Endpoint|Sub)|Attempt|Delivery|Message)/;

function textsIn(schema: Schema | false | undefined, note: (name: string) => void, name = ''): void {
  if (!schema) return;
  if (name && (schema.type === 'string' || schema.enum || schema.const !== undefined)) note(name);
  for (const one of schema.anyOf ?? []) textsIn(one, note, name);
  textsIn(schema.items, note, name);
  for (const [member, inside] of Object.entries(schema.properties ?? {})) textsIn(inside, note, member);
}

function textsOfShape(shape: new () => object, note: (name: string) => void, seen: readonly unknown[] = []): void {
  if (seen.includes(shape)) return;
  for (const [name, { schema }] of fieldsOfShape(shape)) {
    const look = (one: Schema | false | undefined): void => {
      if (!one) return;
      if (one.$shape) textsOfShape(one.$shape(), note, [...seen, shape]);
      for (const inside of one.anyOf ?? []) look(inside);
      look(one.items);
      if (one.enum || [one.type].flat().includes('string')) note(name);
    };
    look(schema as unknown as Schema);
  }
}

/** Texts of events and activities for which it is not decided whether an export keeps them. */
function undecided(kinds: object): readonly string[] {
  const missing = new Set<string>();
  const note = (where: string) => (name: string) => {
    if (!Object.hasOwn(kinds, name)) missing.add(`${where}: ${name}`);
  };
  for (const [name, schema] of Object.entries(published.$defs)) {
    if (!elsewhere.test(name)) textsIn(schema, note(name));
  }
  for (const { type, intent, definition } of registry.versions.values()) {
    textsOfShape(intent, note(type));
    if (definition.kind === 'activity') textsOfShape(definition.result, note(type));
  }
  return [...missing];
}

test('every text of every event and every activity is kept or replaced, on purpose', () => {
  expect(undecided(memberKinds)).toEqual([]);
});

test.each(['policyName', 'userEmail'])('`%s` is missed where nothing is decided about it', (name) => {
  const { [name]: _kind, ...rest } = memberKinds;
  const found = undecided(rest);
  expect(found.length).toBeGreaterThan(1);
  expect(found.filter((where) => !where.endsWith(`: ${name}`))).toEqual([]);
});

test('an inherited name is no member', () => {
  expect(Object.hasOwn(memberKinds, 'constructor')).toBe(false);
  expect(Object.keys(memberKinds).length).toBeGreaterThan(150);
});
