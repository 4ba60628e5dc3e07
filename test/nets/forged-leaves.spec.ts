import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { activities } from '../../src/activities/index.js';
import { beginningOf, recordedChild } from '../../src/decide/found-organization.js';
import { buildRegistry } from '../../src/decide/registry.js';
import { organizationEventTypes, organizationStream } from '../../src/domain/organization/organization.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { isChained } from '../../src/replay/checked-chains.js';
import { SavedHeads } from '../../src/replay/saved-heads.js';
import { verifyHistory } from '../../src/replay/verify.js';
import { fill, golden, isDeciding, sealAgain, withVaults, type Event, type History } from '../replay/forged-history.js';
import { richHistory } from './rich-history.js';

const registry = buildRegistry(activities);

const folder = mkdtempSync(join(tmpdir(), 'forged-'));
const file = join(folder, 'heads.json');

/** @param last the stream and revision of the last event that is known to be right */
async function findingsIn(history: History, last?: readonly [stream: string, revision: number]) {
  const store = new InMemoryEventStore();
  let since: SavedHeads | undefined;
  if (last && last[1] >= 0) {
    const [stream, revision] = last;
    const head = { revision, hash: history.get(stream)![revision]!.metadata.hash };
    writeFileSync(file, JSON.stringify({ format: 'countersign heads 1', heads: { [stream]: head } }));
    since = await SavedHeads.read(file, false);
  }
  await fill(store, history);
  try {
    return (await verifyHistory(store, { registry, maxFindings: 1, since })).findings;
  } finally {
    since?.close();
    await store.close();
  }
}

/** Each parent with its sub-organizations, and everything beside them: what can be verified alone. */
function families(history: History): History[] {
  const parentOf = (events: readonly Event[]) => events[0]!.data['parentOrganizationId'];
  const isOrganization = (stream: string) => stream.startsWith('organization-');
  const parents = [...history].filter(([stream, events]) => isOrganization(stream) && parentOf(events) === undefined);
  return parents.map(([stream, events]) => {
    const id = events[0]!.data['organizationId'];
    return withVaults(
      new Map([[stream, events], ...[...history].filter(([, others]) => parentOf(others) === id)] as [string, Event[]][]),
    );
  });
}

type Path = readonly (string | number)[];

interface Leaf {
  readonly history: History;
  readonly stream: string;
  readonly revision: number;
  readonly path: Path;
  readonly kind: string;
  readonly context: string;
  readonly value: unknown;
}

function* leavesIn(value: unknown, path: Path = []): Generator<{ path: Path; value: unknown }> {
  if (typeof value !== 'object' || value === null || Object.keys(value).length === 0) yield { path, value };
  else {
    for (const [name, inside] of Object.entries(value)) {
      yield* leavesIn(inside, [...path, Array.isArray(value) ? Number(name) : name]);
    }
  }
}

const at = (value: unknown, path: Path): unknown =>
  path.reduce<unknown>((inside, name) => (inside as Record<string | number, unknown>)?.[name], value);

function replaced(value: unknown, [name, ...rest]: Path, leaf: unknown): unknown {
  if (name === undefined) return leaf;
  if (Array.isArray(value)) return value.with(name as number, replaced(value[name as number], rest, leaf));
  return { ...(value as object), [name]: replaced((value as Record<string, unknown>)[name], rest, leaf) };
}

const isEventType = (value: unknown) => (organizationEventTypes as readonly unknown[]).includes(value);

/** The path of a leaf without the places in lists; an event in a list by its type. */
function folded(event: Event, path: Path): string {
  return path
    .map((name, index) => {
      if (typeof name === 'string') return index === 0 ? name : `.${name}`;
      const { type } = (at(event, path.slice(0, index + 1)) ?? {}) as { type?: unknown };
      return isEventType(type) ? `[${String(type)}]` : '[]';
    })
    .join('')
    .replace(/^data\./, `${event.type}.`);
}

function kindOf(stream: string, event: Event, path: Path): string {
  const kind = folded(event, path);
  return path[0] === 'data' ? kind : `${stream.split('-')[0]}-*: ${kind}`;
}

function runAround(events: readonly Event[], revision: number): [number, number] {
  const start = events.slice(0, revision + 1).findLastIndex(isDeciding);
  if (start < 0) return [revision, revision + 1];
  const end = events.findIndex((event, index) => index > revision && isDeciding(event));
  return [start, end < 0 ? events.length : end];
}

function leavesOf(history: History): Leaf[] {
  return [...history].flatMap(([stream, events]) => {
    if (!isChained(stream) || stream.startsWith('vault-') && events[0]!.data['name'] === 'a secret') return [];
    const isKnown = !stream.startsWith('organization-') || history.has('installation-root') || 'parentRevision' in events[0]!.data;
    return events.flatMap((event, revision) => {
      if (!isKnown && revision < events.findIndex(isDeciding)) return [];
      const [start] = runAround(events, revision);
      const context = `${String(events[start]!.data['type'] ?? events[start]!.type)} ${event.type}`;
      const { hash: _hash, ...metadata } = event.metadata;
      return [...leavesIn({ ...event, metadata })].map(({ path, value }) => ({
        history, stream, revision, path, value, context, kind: kindOf(stream, event, path),
      }));
    });
  });
}

function nextCharacter(character: string): string {
  if (/[0-9]/.test(character)) return String((Number(character) + 1) % 10);
  if (/[a-f]/.test(character)) return character === 'f' ? 'a' : String.fromCharCode(character.charCodeAt(0) + 1);
  return character === 'x' ? 'y' : character === 'X' ? 'Y' : character < 'a' ? 'X' : 'x';
}

/** Another plausible value of the same type. */
function another(value: unknown): unknown {
  if (typeof value === 'boolean') return !value;
  if (typeof value === 'number') return value + 1;
  if (Array.isArray(value)) return ['another'];
  if (typeof value === 'object') return { another: 'x' };
  const text = value as string;
  const last = text.search(/[A-Za-z0-9](?=[^A-Za-z0-9]*$)/);
  return last < 0 ? `${text}x` : text.slice(0, last) + nextCharacter(text[last]!) + text.slice(last + 1);
}

/** The history with a leaf changed. */
function forged({ history, stream, revision, path, value }: Leaf, other: unknown, everywhere: boolean): History {
  const events = history.get(stream)!;
  const [start, end] = stream.startsWith('organization-') ? runAround(events, revision) : [revision, revision + 1];
  const isCopied = everywhere && typeof value === 'string' && value.length >= 16;
  const changed = events.map((event, index) => {
    if (index < start || index >= end) return event;
    let made: unknown = event;
    if (index === revision || (everywhere && path[0] === 'metadata')) made = replaced(made, path, other);
    if (isCopied) {
      for (const leaf of [...leavesIn(event)]) if (leaf.value === value) made = replaced(made, leaf.path, other);
    }
    return made as Event;
  });
  const result = new Map(history).set(stream, sealAgain(stream, changed));
  // Who forges what founds a sub-organization founds it so.
  for (const [index, event] of result.get(stream)!.entries()) {
    if (index < start || index >= end) continue;
    const child = recordedChild(event, index);
    const name = child && organizationStream(child.subOrganizationId);
    if (!name || !result.has(name)) continue;
    const beginning = beginningOf(child) as Event[];
    result.set(name, sealAgain(name, [...beginning, ...result.get(name)!.slice(beginning.length)]));
  }
  return result;
}

it('explores', async () => {
  const started = performance.now();
  const rich = await richHistory();
  const chained = new Map([...rich].filter(([stream]) => isChained(stream)));
  const all = [...families(golden()), chained];
  for (const one of all) expect(await findingsIn(one)).toEqual([]);
  const leaves = all.flatMap(leavesOf);
  const groups = new Map<string, Map<string, Leaf[]>>();
  const values = new Map<string, unknown[]>();
  for (const leaf of leaves) {
    const contexts = groups.get(leaf.kind) ?? new Map<string, Leaf[]>();
    groups.set(leaf.kind, contexts);
    contexts.set(leaf.context, [...(contexts.get(leaf.context) ?? []), leaf]);
    const known = values.get(leaf.kind) ?? [];
    values.set(leaf.kind, known);
    if (known.length < 50) known.push(leaf.value);
  }
  let count = 0;
  for (const contexts of groups.values()) count += contexts.size;
  console.log('kinds', groups.size, 'in contexts', count, 'leaves', leaves.length, performance.now() - started);
  const lines: string[] = [];
  const only = process.env['KINDS'];
  let done = 0;
  for (const [kind, contexts] of groups) {
    if (only && !new RegExp(only).test(kind)) continue;
    for (const [context, found0] of [...contexts].slice(0, Number(process.env['CONTEXTS'] ?? 2))) {
      const [before, first] = [found0.at(-2) ?? found0.at(-1)!, found0.at(-1)!];
      const other = values.get(kind)!.find((one) => !isDeepStrictEqual(one, before.value) && typeof one === typeof before.value);
      const forgeries = [
        [first, another(first.value), false],
        [before, other ?? another(before.value), true],
      ] as [Leaf, unknown, boolean][];
      const found: string[] = [];
      for (const [leaf, value, everywhere] of forgeries) {
        const begin = performance.now();
        let result: string;
        try {
          const [finding] = await findingsIn(forged(leaf, value, everywhere), [leaf.stream, runAround(leaf.history.get(leaf.stream)!, leaf.revision)[0] - 1]);
          time(performance.now() - begin);
          result = finding ? finding.problem.slice(0, 150).replaceAll('\n', ' ') : 'MISSED';
        } catch (error) {
          result = `THROWN ${String(error)}`;
        }
        if (!finding0(result)) found.push(`${result} (${String(leaf.value).slice(0, 60)} → ${String(value).slice(0, 60)}${everywhere ? ' *' : ''} r${leaf.revision})`);
        else found.push(result);
        done++;
      }
      lines.push(`${kind} | ${context} | ${found.some((one) => /^(MISSED|THROWN)/.test(one)) ? 'MISSED' : 'found'} | ${found.join(' || ')}`);
      if (lines.length % 20 === 0) writeFileSync('/tmp/verify-leaves.txt', lines.join('\n'));
    }
  }
  writeFileSync('/tmp/verify-leaves.txt', lines.join('\n'));
  console.log(done, performance.now() - started);
}, 3_000_000);

const finding0 = (result: string) => !/^(MISSED|THROWN)/.test(result);

const times: number[] = [];
function time(ms: number) {
  times.push(ms);
  if (times.length % 40 === 0) writeFileSync('/tmp/verify-times.txt', times.join('\n'));
}
