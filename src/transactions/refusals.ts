import { CoordinatorError } from '../domain/errors.js';
import type { Steps } from '../domain/steps.js';

const LONGEST_QUOTE = 80;

/** A refusal of something in a transaction, a payload or an interface: INVALID_ARGUMENT, in the category of bad requests. */
export function refusal(message: string): CoordinatorError {
  return new CoordinatorError('INVALID_ARGUMENT', message, { category: 'REQUEST_INVALID' });
}

/** A caller's value for an error message, in backticks; long ones (a payload can be megabytes) are truncated. */
export function quoted(value: unknown): string {
  const text = typeof value === 'string' ? value : textOf(value);
  const oneLine = text.slice(0, LONGEST_QUOTE).replace(/[\p{Cc}\p{Surrogate}`]/gu, ' ');
  return text.length > LONGEST_QUOTE ? `\`${oneLine}…\`` : `\`${oneLine}\``;
}

/** Nesting too deep for the stack cannot be printed; whatever quotes it is about to refuse it anyway. */
function textOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return Array.isArray(value) ? '[…]' : '{…}';
  }
}

/** Maximum nesting that is parsed: far less than a stack can hold. Each reader accepts less. */
const maxDepth = 20_000;

/**
 * Counts a JSON text before it is parsed: strings by their length, and each possible value, because an object takes a
 * few characters to write and a few hundred bytes to hold. Returns what is wrong if it is nested too deep; the parser
 * refuses what is not JSON.
 * @throws {OutOfSteps}
 */
export function checkDepth(text: string, steps: Steps): string | undefined {
  steps.take('byteRead', text.length);
  let depth = 0;
  let values = 0;
  let isInString = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (isInString) {
      if (character === '\\') at += 1;
      else if (character === '"') isInString = false;
    } else if (character === '"') isInString = true;
    else if (character === ',' || character === ':') values += 1;
    else if (character === '[' || character === '{') {
      depth += 1;
      values += 1;
    } else if (character === ']' || character === '}') depth -= 1;
    if (depth > maxDepth) return `is nested deeper than ${maxDepth} levels`;
  }
  steps.take('jsonValue', values);
  return undefined;
}

/** Counts a hash of this many bytes. */
export function takeKeccak(steps: Steps, length: number): void {
  steps.take('keccakBlock', 1 + Math.floor(length / 136));
}

/** Counts a hash of this many bytes. */
export function takeSha256(steps: Steps, length: number): void {
  steps.take('sha256Block', 1 + Math.ceil(length / 64));
}

/** A JSON object: not null, not a list. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Parses JSON text. `what` names it in the error, which never repeats the text.
 * @throws {CoordinatorError} INVALID_ARGUMENT, also for nesting beyond 20 000 levels or too many values
 */
export function parseJson(text: string, what: string, steps: Steps): unknown {
  const problem = checkDepth(text, steps);
  if (problem !== undefined) throw refusal(`${what} ${problem}`);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw refusal(`${what} is not valid JSON`);
  }
}

/**
 * An integer in JSON: a whole number, or decimal or 0x-hexadecimal text. A number beyond 2^53 - 1 was already rounded
 * by the parser, so it is refused. Undefined for anything that is not an integer.
 */
export function toInteger(value: unknown): bigint | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : undefined;
  if (typeof value !== 'string' || value.length > LONGEST_QUOTE) return undefined;
  const parts = /^(-?)(\d+|0x[0-9a-fA-F]+)$/.exec(value);
  if (parts?.[2] === undefined) return undefined;
  return parts[1] === '-' ? -BigInt(parts[2]) : BigInt(parts[2]);
}
