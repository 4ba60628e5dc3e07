import { checkExpression } from './check.js';
import { CoordinatorError } from '../errors.js';
import type { Reading } from './doubt.js';
import type { PolicyEnvironment } from './namespaces.js';
import { maxNodes, parseCounted, parsePolicy } from './parse.js';
import type { PolicySet } from './policy-set.js';
import { partsOf } from './roots.js';
import type { Steps } from '../steps.js';
import { PolicyError, type CheckedExpression } from './syntax.js';
import type { Clause } from './types.js';

export { checkExpression, parsePolicy };

/** Estimated memory limit of compiled clauses, in bytes, per environment; and one tenant's share of it. */
const maxKeptBytes = 64 * 2 ** 20;
const maxBytesOfTenant = maxKeptBytes / 8;

/** A parsed clause: the result, and the cost of parsing, which is counted each time. */
export interface ReadClause {
  readonly compiled: CheckedExpression | PolicyError;
  readonly parts: number;
  readonly schedules: number;
}

type Readings = { [Name in Clause]?: ReadClause };

/** One tenant's clauses by their text, most recently used last. */
interface Shelf {
  readonly texts: Map<string, Readings>;
  latest: string | undefined;
  bytes: number;
}

/** Compiled clauses, with a share for each tenant, so that none can evict the others'. */
class CompiledClauses {
  private readonly shelves = new Map<string, Shelf>();
  /** The most recently used one. */
  private latest: Shelf | undefined;
  private bytes = 0;

  get(text: string, clause: Clause, tenant: string): ReadClause | undefined {
    const shelf = this.shelves.get(tenant);
    const readings = shelf?.texts.get(text);
    if (!shelf || !readings) return undefined;
    this.use(tenant, shelf);
    useText(shelf, text, readings);
    return readings[clause];
  }

  set(text: string, clause: Clause, tenant: string, read: ReadClause): void {
    const shelf = this.shelves.get(tenant) ?? { texts: new Map<string, Readings>(), latest: undefined, bytes: 0 };
    this.use(tenant, shelf);
    const readings = shelf.texts.get(text) ?? {};
    readings[clause] = read;
    useText(shelf, text, readings);
    this.count(shelf, bytesOf(text, read));
    while (shelf.bytes > maxBytesOfTenant) this.dropOldest(tenant, shelf);
    while (this.bytes > maxKeptBytes) {
      const [oldest] = this.shelves;
      this.dropOldest(...oldest!);
    }
  }

  /** All clauses of a decision are of one tenant, and moving one of many shelves takes as long as evaluating its clause. */
  private use(tenant: string, shelf: Shelf): void {
    if (shelf === this.latest) return;
    moveToEnd(this.shelves, tenant, shelf);
    this.latest = shelf;
  }

  private dropOldest(tenant: string, shelf: Shelf): void {
    const [oldest] = shelf.texts;
    if (!oldest) {
      this.shelves.delete(tenant);
      return;
    }
    const [text, readings] = oldest;
    shelf.texts.delete(text);
    if (shelf.latest === text) shelf.latest = undefined;
    for (const read of Object.values(readings)) this.count(shelf, -bytesOf(text, read));
    if (shelf.texts.size === 0) this.shelves.delete(tenant);
  }

  private count(shelf: Shelf, bytes: number): void {
    shelf.bytes += bytes;
    this.bytes += bytes;
  }
}

/** Most organizations have few texts, and V8 shrinks a small map at each deletion. */
function useText(shelf: Shelf, text: string, readings: Readings): void {
  if (shelf.latest === text) return;
  moveToEnd(shelf.texts, text, readings);
  shelf.latest = text;
}

function moveToEnd<Key, Value>(map: Map<Key, Value>, key: Key, value: Value): void {
  map.delete(key);
  map.set(key, value);
}

/** An upper bound, according to heap snapshots. */
function bytesOf(text: string, { parts, schedules }: ReadClause): number {
  return 500 + 2 * text.length + 300 * parts + 2_000 * schedules;
}

/**
 * Caches only results of a pure function of (text, clause, environment): only timing can reveal whether an entry
 * exists. Its size is bounded.
 */
const memory = new WeakMap<PolicyEnvironment, CompiledClauses>();

/**
 * A clause ready for evaluation, if valid. Texts repeat from request to request, so each is compiled once; `tenant`
 * pays for the memory.
 */
export function readClause(text: string, clause: Clause, environment: PolicyEnvironment, tenant = ''): ReadClause {
  let compiledClauses = memory.get(environment);
  if (!compiledClauses) {
    compiledClauses = new CompiledClauses();
    memory.set(environment, compiledClauses);
  }
  let read = compiledClauses.get(text, clause, tenant);
  if (!read) {
    read = compile(text, clause, environment);
    compiledClauses.set(text, clause, tenant, read);
  }
  return read;
}

/**
 * A clause ready for evaluation.
 * @throws {PolicyError}
 */
export function compileClause(text: string, clause: Clause, environment: PolicyEnvironment): CheckedExpression {
  const { compiled } = readClause(text, clause, environment);
  if (compiled instanceof PolicyError) throw compiled;
  return compiled;
}

/** Clauses parsed for one request, or one page: each is counted once, however often it is used. */
export class ClausesRead {
  private readonly known: { [Name in Clause]?: Map<string, CheckedExpression | PolicyError> } = {};
  private readings: WeakMap<object, Map<CheckedExpression, Reading>> | undefined;
  /** Most decisions are about one request that is not in parts. */
  private first: { readonly request: object; readonly readings: Map<CheckedExpression, Reading> } | undefined;
  private readonly sets: PolicySet[] = [];
  private taken = 0;

  constructor(
    private readonly environment: PolicyEnvironment,
    private readonly tenant: string,
  ) {}

  /** Steps taken by parsing so far. */
  get spent(): number {
    return this.taken;
  }

  /** Values of clauses for a request, or for one of its payloads. */
  readingsOf(request: object): Map<CheckedExpression, Reading> {
    this.first ??= { request, readings: new Map() };
    if (this.first.request === request) return this.first.readings;
    this.readings ??= new WeakMap();
    let readings = this.readings.get(request);
    if (!readings) {
      readings = new Map<CheckedExpression, Reading>();
      this.readings.set(request, readings);
    }
    return readings;
  }

  /**
   * Counts reading every condition of a set, once: which of its policies could apply costs the same whether or not that
   * was still known.
   * @throws {OutOfSteps}
   */
  readConditionsOf(set: PolicySet, steps: Steps): void {
    if (this.sets.includes(set)) return;
    const before = steps.spent;
    steps.take('clauseCharacter', set.characters);
    steps.take('clausePart', set.parts);
    this.taken += steps.spent - before;
    this.sets.push(set);
  }

  private isCounted(condition: string): boolean {
    for (const { conditions } of this.sets) if (conditions.has(condition)) return true;
    return false;
  }

  /**
   * Parsing costs the same whether or not the clause was still cached.
   * @throws {OutOfSteps}
   */
  read(text: string, clause: Clause, steps: Steps): CheckedExpression | PolicyError {
    const texts = (this.known[clause] ??= new Map<string, CheckedExpression | PolicyError>());
    const known = texts.get(text);
    if (known) return known;
    const isCounted = clause === 'condition' && this.isCounted(text);
    const before = steps.spent;
    if (!isCounted) steps.take('clauseCharacter', text.length);
    const { compiled, parts, schedules } = readClause(text, clause, this.environment, this.tenant);
    if (!isCounted) {
      steps.take('clausePart', parts);
      steps.take('scheduleRead', schedules);
    }
    this.taken += steps.spent - before;
    texts.set(text, compiled);
    return compiled;
  }
}

/**
 * Refuses a clause that could not be evaluated, when a policy is written.
 * @throws {CoordinatorError} INVALID_ARGUMENT, with the message that policy authors know (docs/protocol.md, messages that clients match)
 */
export function checkPolicyText(text: string, clause: Clause, environment: PolicyEnvironment): void {
  const { compiled } = readClause(text, clause, environment);
  if (!(compiled instanceof PolicyError)) return;
  throw new CoordinatorError(
    'INVALID_ARGUMENT',
    `invalid policy ${clause}: Expression cannot be evaluated: ${compiled.message}`,
    { category: 'REQUEST_INVALID', cause: compiled },
  );
}

function compile(text: string, clause: Clause, environment: PolicyEnvironment): ReadClause {
  try {
    const { expression, parts } = parseCounted(text, environment.functions);
    const compiled = checkExpression(expression, environment, clause);
    return { compiled, parts, schedules: schedulesIn(compiled) };
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    // It is unknown how far it was parsed.
    return { compiled: error, parts: Math.min(text.length, maxNodes), schedules: 0 };
  }
}

function schedulesIn(node: CheckedExpression): number {
  const own = node.kind === 'call' ? node.schedules : 0;
  return partsOf(node).reduce((count, part) => count + schedulesIn(part), own);
}
