import { AmbiguousText, Doubt, type PolicyValue } from '../../domain/policy/types.js';

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

/** @throws {NotExecuted} if it is negative, too */
export function amountIn(value: PolicyValue | undefined, path: string): bigint | undefined {
  const known = factIn(value, path);
  if (known === undefined) return undefined;
  if (typeof known !== 'bigint') throw odd(path);
  if (known < 0n) throw new NotExecuted(`nothing has a negative ${path}`);
  return known;
}

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
