import { compiled } from '../lint/lint-subject.js';
import { derivedId } from '../../ledger/ids.js';
import { YamlFile, type Mistake } from './yaml-file.js';
import { unknownWords } from '../../domain/policy/known-literals.js';
import type { PolicyEnvironment } from '../../domain/policy/namespaces.js';
import { PolicyError } from '../../domain/policy/syntax.js';
import type { Policy, PolicyValue } from '../../domain/policy/types.js';

/** A kind of thing that policies name: `'<tag treasurer>'` in a clause stands for the id of the tag. */
export type NamedKind = 'user' | 'tag' | 'wallet' | 'private key' | 'private key tag';

/** Ids for names, by kind. */
type Names = ReadonlyMap<NamedKind, ReadonlyMap<string, string>>;

/** Finds the id of what has a name, or says why there is none. */
export type IdOf = (kind: NamedKind, name: string) => string | { readonly wrong: string };

/** An id for what has a name and no id: the same each time, and nobody's. */
export const madeUpId = (kind: NamedKind, name: string): string => derivedId(kind, name);

/** Policies as a file has them, with ids in place of names. */
export interface PolicyFile {
  /** The file says who makes up the root quorum. */
  readonly hasQuorum: boolean;
  readonly quorum: { readonly threshold: number; readonly userIds: readonly string[] };
  readonly policies: readonly Policy[];
  readonly names: Names;
  readonly mistakes: readonly Mistake[];
  /** Reports that the root quorum cannot be as the file has it. */
  wrongQuorum(text: string): void;
}

const clauses = ['condition', 'consensus', 'time'] as const;
const effects = { allow: 'EFFECT_ALLOW', deny: 'EFFECT_DENY' } as const;
const lists = {
  users: 'user',
  tags: 'tag',
  wallets: 'wallet',
  privateKeys: 'private key',
  privateKeyTags: 'private key tag',
} as const;
const fileKeys = [...Object.keys(lists), 'quorum', 'policies'];
const policyKeys = ['name', 'effect', 'condition', 'consensus', 'time', 'notes'];

/** Reads a file of policies, and checks every clause. Without an organization, a name has the same id each time. */
export function readPolicyFile(
  name: string,
  text: string,
  environment: PolicyEnvironment,
  idOf: IdOf = madeUpId,
): PolicyFile {
  const file = new YamlFile(name, text);
  const root = recordAt(file, file.value, [], fileKeys);
  const names: Names = new Map(
    Object.entries(lists).map(([key, kind]) => [kind, namesAt(file, root[key], key, (one) => idOf(kind, one))]),
  );
  const quorum = readQuorum(file, root['quorum'], names);
  const input: unknown = root['policies'] ?? [];
  if (!Array.isArray(input)) file.wrong(['policies'], 'must be a list');
  const policies = (Array.isArray(input) ? (input as readonly unknown[]) : []).map((one, index) =>
    readPolicy(file, one, index, names, environment),
  );
  for (const [index, { policyName }] of policies.entries()) {
    if (policyName === '' || policies.findIndex((one) => one.policyName === policyName) === index) continue;
    file.wrong(['policies', index, 'name'], `\`${policyName}\` appears twice: names of policies are unique`);
  }
  return {
    hasQuorum: root['quorum'] !== undefined,
    quorum,
    policies,
    names,
    mistakes: file.mistakes,
    wrongQuorum: (text) => file.wrong(['quorum'], text),
  };
}

function namesAt(file: YamlFile, input: unknown, key: string, idOf: (name: string) => ReturnType<IdOf>) {
  const ids = new Map<string, string>();
  for (const [index, one] of textsAt(file, input, [key]).entries()) {
    const id = idOf(one);
    if (typeof id === 'string') ids.set(one, id);
    else file.wrong([key, index], id.wrong);
  }
  return ids;
}

function readQuorum(file: YamlFile, input: unknown, names: Names): PolicyFile['quorum'] {
  const { threshold = 1n, members: listed } = recordAt(file, input ?? {}, ['quorum'], ['threshold', 'members']);
  const isWhole = typeof threshold === 'bigint' && threshold >= 1n;
  if (!isWhole) file.wrong(['quorum', 'threshold'], 'must be a whole number from 1');
  const members = textsAt(file, listed, ['quorum', 'members']);
  if (isWhole && members.length > 0 && threshold > BigInt(new Set(members).size)) {
    file.wrong(['quorum', 'threshold'], `${threshold} of ${new Set(members).size} members can never approve`);
  }
  const userIds = members.flatMap((member, index) => {
    const id = names.get('user')!.get(member);
    if (id === undefined) file.wrong(['quorum', 'members', index], `there is no user \`${member}\` in \`users\``);
    return id ?? [];
  });
  return { threshold: isWhole ? Number(threshold) : 1, userIds };
}

function readPolicy(
  file: YamlFile,
  input: unknown,
  index: number,
  names: Names,
  environment: PolicyEnvironment,
): Policy {
  const path = ['policies', index];
  const one = recordAt(file, input, path, policyKeys);
  for (const key of policyKeys) {
    if (one[key] !== undefined && typeof one[key] !== 'string') file.wrong([...path, key], `\`${key}\` must be text`);
  }
  const { name: policyName = '', effect = 'allow', notes = '' } = one as Readonly<Record<string, string | undefined>>;
  if (!policyName) file.wrong(path, 'a policy needs a `name`');
  if (effect !== 'allow' && effect !== 'deny') file.wrong([...path, 'effect'], 'must be `allow` or `deny`');
  const texts = clauses.flatMap((clause) => {
    const text = one[clause];
    if (typeof text !== 'string') return [];
    const { named, unknown } = withIds(text, names);
    for (const { at, what } of unknown) file.wrong([...path, clause], `there is no ${what} in this file`, at);
    const error = unknown.length > 0 ? undefined : compiled(named, clause, environment);
    if (error instanceof PolicyError) {
      // The place is that in the file.
      const said = error.message.replace(/ \(line \d+, column \d+\)$/, '');
      file.wrong([...path, clause], said, placeBefore(text, named, error.at));
    }
    return [[clause, named] as const];
  });
  const said = Object.fromEntries(texts);
  const isValid = texts.every(([clause, named]) => !(compiled(named, clause, environment) instanceof PolicyError));
  if (isValid) for (const mistake of unknownWords(said, environment)) file.wrong(path, mistake);
  return {
    // In the order of the file: policies are evaluated in the order of their ids.
    policyId: `policy ${String(index + 1).padStart(4, '0')}`,
    policyName,
    effect: effects[effect === 'deny' ? 'deny' : 'allow'],
    notes,
    createdAt: 0,
    updatedAt: 0,
    ...said,
  };
}

const placeholder = /<(user|tag|wallet|private key tag|private key) ([^<>]+)>/g;

/** A clause with ids in place of `<kind name>`. */
function withIds(text: string, names: Names) {
  const unknown: { readonly what: string; readonly at: { readonly line: number; readonly column: number } }[] = [];
  const named = text.replace(placeholder, (whole, kind: NamedKind, name: string, offset: number) => {
    const id = names.get(kind)?.get(name);
    if (id !== undefined) return id;
    unknown.push({ what: `${kind} \`${name}\``, at: placeOf(text, offset) });
    return whole;
  });
  return { named, unknown };
}

/** A value of a request as a file has it: whole numbers become those of the language, `<wallet name>` an id. */
export function valueWithIds(input: unknown, names: Names): PolicyValue {
  if (typeof input === 'bigint' || typeof input === 'boolean') return input;
  if (Array.isArray(input)) return input.map((one) => valueWithIds(one, names));
  if (typeof input === 'object' && input !== null) {
    return Object.fromEntries(Object.entries(input).map(([name, one]) => [name, valueWithIds(one, names)]));
  }
  const text = String(input);
  const [, kind, name] = /^<(user|tag|wallet|private key tag|private key) ([^<>]+)>$/.exec(text) ?? [];
  for (const [known, ids] of names) if (known === kind && name !== undefined) return ids.get(name) ?? text;
  return text;
}

/** Where a place in the text with ids is in the text with names; at the beginning of a name, if it is within its id. */
function placeBefore(text: string, named: string, at: { readonly line: number; readonly column: number }) {
  const written = text.split('\n')[at.line - 1] ?? '';
  let [from, to] = [0, 0];
  for (const { 0: whole, index } of written.matchAll(placeholder)) {
    const idLength = 36;
    if (at.column - 1 < to + (index - from)) break;
    to += index - from + idLength;
    from = index + whole.length;
    if (at.column - 1 < to) return { line: at.line, column: index + 1 };
  }
  return { line: at.line, column: named === text ? at.column : from + (at.column - 1 - to) + 1 };
}

function placeOf(text: string, offset: number) {
  const before = text.slice(0, offset).split('\n');
  return { line: before.length, column: before.at(-1)!.length + 1 };
}

/** An object with these members and no others. */
export function recordAt(
  file: YamlFile,
  value: unknown,
  path: readonly (string | number)[],
  keys: readonly string[],
): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    if (file.mistakes.length === 0 || path.length > 0) file.wrong(path, `must have some of ${keys.join(', ')}`);
    return {};
  }
  for (const key of Object.keys(value)) {
    if (!keys.includes(key)) file.wrong([...path, key], `unknown \`${key}\`: known are ${keys.join(', ')}`);
  }
  return value as Readonly<Record<string, unknown>>;
}

/** A list of texts; none if it is absent. */
export function textsAt(file: YamlFile, value: unknown, path: readonly (string | number)[]): readonly string[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value;
  file.wrong(path, 'must be a list of names');
  return [];
}
