import { AmbiguousText, Doubt, type PolicyValue, shownValue } from 'countersign/internal';
/** Values by name. */
export type Facts = Readonly<Record<string, PolicyValue | undefined>>;

/** An example that is not executed, and why, for people. */
export class NotExecuted extends Error {}

/** A record of facts; empty if nothing is said about it. @throws {NotExecuted} if the example has it unreadable */
export function recordIn(value: PolicyValue | undefined, path: string): Readonly<Record<string, PolicyValue>> {
  const known = factIn(value, path);
  if (known === undefined) return {};
  if (typeof known !== 'object' || Array.isArray(known) || known instanceof AmbiguousText) throw odd(path);
  return known as Readonly<Record<string, PolicyValue>>;
}

/** @throws {NotExecuted} */
export function textIn(value: PolicyValue | undefined, path: string): string | undefined {
  const known = factIn(value, path);
  if (known !== undefined && typeof known !== 'string') throw odd(path);
  return known;
}

/** @throws {NotExecuted} */
export function textsIn(value: PolicyValue | undefined, path: string): readonly string[] | undefined {
  const known = factIn(value, path);
  if (known === undefined) return undefined;
  if (!Array.isArray(known)) throw odd(path);
  return (known as readonly PolicyValue[]).map((one, index) => textIn(one, `${path}[${index}]`) ?? '');
}

/** @throws {NotExecuted} */
export function flagIn(value: PolicyValue | undefined, path: string): boolean | undefined {
  const known = factIn(value, path);
  if (known !== undefined && typeof known !== 'boolean') throw odd(path);
  return known;
}

/** @throws {NotExecuted} if it is negative, too */
export function amountIn(value: PolicyValue | undefined, path: string): bigint | undefined {
  const known = factIn(value, path);
  if (known === undefined) return undefined;
  if (typeof known !== 'bigint') throw odd(path);
  if (known < 0n) throw new NotExecuted(`nothing has a negative ${path}`);
  return known;
}

/** A list, each of its elements a record; undefined if nothing is said about it. @throws {NotExecuted} */
export function recordsIn(value: PolicyValue | undefined, path: string): readonly Facts[] | undefined {
  const known = factIn(value, path);
  if (known === undefined) return undefined;
  if (!Array.isArray(known)) throw odd(path);
  return (known as readonly PolicyValue[]).map((one, index) => recordIn(one, `${path}[${index}]`));
}

/** Text in hexadecimal, with `prefix` and whole bytes, of a certain number of them if that is given. @throws {NotExecuted} */
export function bytesIn(value: PolicyValue | undefined, path: string, prefix = '', bytes?: number): string | undefined {
  const text = textIn(value, path)?.toLowerCase();
  if (text === undefined) return undefined;
  const digits = text.slice(prefix.length);
  if (
    !text.startsWith(prefix) ||
    !/^(?:[0-9a-f]{2})*$/.test(digits) ||
    digits.length !== 2 * (bytes ?? digits.length / 2)
  )
    throw new NotExecuted(`nothing has \`${text}\` as ${path}`);
  return text;
}

/** An integer below 2^bits. @throws {NotExecuted} */
export function unsignedIn(value: PolicyValue | undefined, path: string, bits: number): bigint | undefined {
  const known = amountIn(value, path);
  if (known !== undefined && known >= 1n << BigInt(bits)) throw new NotExecuted(`no ${path} is as much as ${known}`);
  return known;
}

/** What is said, without what is in doubt: what cannot be read is nothing that could be made. */
export function saidIn(facts: Facts): Facts {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => !(value instanceof Doubt)));
}

/**
 * Refuses what was made where it is not as an example has it; `real` has the addresses that stand for its own.
 * @throws {NotExecuted}
 */
export function checkMade(
  requested: PolicyValue | undefined,
  made: PolicyValue | undefined,
  path: string,
  real: ReadonlyMap<string, string> = new Map(),
): void {
  if (requested === undefined || (requested instanceof Doubt && requested.kind === 'not-applicable')) return;
  if (requested instanceof Doubt) {
    if (made !== undefined && !(made instanceof Doubt)) factIn(requested, path);
    return;
  }
  if (Array.isArray(requested)) {
    const [list, other] = [
      requested as readonly PolicyValue[],
      Array.isArray(made) ? (made as readonly PolicyValue[]) : [],
    ];
    if (list.length !== other.length || !Array.isArray(made)) throw unlike(`${path}.count()`, BigInt(list.length));
    for (const [index, one] of list.entries()) checkMade(one, other[index], `${path}[${index}]`, real);
    return;
  }
  if (typeof requested === 'object' && !(requested instanceof AmbiguousText)) {
    const other = typeof made === 'object' && made.constructor === Object ? (made as Facts) : {};
    for (const [name, one] of Object.entries(requested)) checkMade(one, other[name], `${path}.${name}`, real);
    return;
  }
  const shown = made instanceof AmbiguousText ? made.text : made;
  const isReal = typeof requested === 'string' && shown !== undefined && real.get(requested) === shown;
  if (lowered(requested) !== lowered(shown) && !isReal) throw unlike(path, requested);
}

/** To policies, the letter case of what begins with 0x does not matter. */
const lowered = (value: PolicyValue | undefined): PolicyValue | undefined =>
  typeof value === 'string' && /^0x/i.test(value) ? value.toLowerCase() : value;

const unlike = (path: string, requested: PolicyValue): NotExecuted =>
  new NotExecuted(`nothing here makes a request with ${shownValue(requested)} as ${path}`);

/** Refuses facts that nobody here knows how to bring about. @throws {NotExecuted} */
export function refuseOthers(facts: Readonly<Record<string, PolicyValue>>, path: string, known: readonly string[]) {
  for (const [name, value] of Object.entries(facts)) {
    if (!known.includes(name) && factIn(value, `${path}.${name}`) !== undefined)
      throw new NotExecuted(`nothing here makes a request with a given ${path}.${name}`);
  }
}

/** Undefined if it is not part of the request. */
function factIn(value: PolicyValue | undefined, path: string): Exclude<PolicyValue, Doubt> | undefined {
  if (!(value instanceof Doubt)) return value;
  if (value.kind === 'not-applicable') return undefined;
  throw new NotExecuted(`nothing here makes a request whose ${path} cannot be read`);
}

const odd = (path: string): NotExecuted => new NotExecuted(`${path} is of an unexpected type`);
