import { AmbiguousText, Doubt, type PolicyValue } from '../types.js';

/** One fact that an approver should know. */
export interface DecodedFact {
  readonly name: string;
  readonly value: string;
}

/** One transaction, payload or changed object, described for approvers. */
export interface Decoded {
  /** The payload, if there are several. */
  readonly payload?: string;
  /** A sentence: amounts, addresses, names of functions, and what others have chosen only in quotes. */
  readonly text: string;
  readonly facts: readonly DecodedFact[];
  /** What it would change, if it is about policies, users, tags or the root quorum. */
  readonly changes?: readonly Change[];
  /** What is not shown, and why. */
  readonly notDecoded?: string;
}

/** A value as it is now, and as it would be; one of them is absent if something is added or removed. */
export interface Change {
  readonly name: string;
  readonly before?: string;
  readonly after?: string;
}

/** `words`: chosen by the requester, or by whoever uploaded the interface. */
export interface Fact extends DecodedFact {
  readonly words?: true;
}

/** Like `Decoded`, with who chose what. */
export interface Account extends Omit<Decoded, 'facts'> {
  readonly facts: readonly Fact[];
}

/** What policies see of one thing, by name. */
export type Values = Readonly<Record<string, PolicyValue | undefined>>;

/** Maximum facts about one payload, more than a Solana packet has transfers; and characters of one value. */
const mostFacts = 100;
export const maxValue = 200;
/** Characters of a clause of a policy, or of a text to be signed. */
export const longestShown = 2_000;

/** The facts and changes, as far as there is room. */
export function limited(account: Account): Account {
  const { facts, changes = [], notDecoded } = account;
  const left = Math.max(0, facts.length - mostFacts) + Math.max(0, changes.length - mostFacts);
  if (left === 0) return account;
  return {
    ...account,
    facts: facts.slice(0, mostFacts),
    ...(changes.length > 0 ? { changes: changes.slice(0, mostFacts) } : {}),
    notDecoded: allOf([notDecoded, `${left} or more details are not shown`]),
  };
}

/** Reasons, joined. */
export function allOf(reasons: readonly (string | undefined)[]): string {
  return reasons.filter((reason) => reason !== undefined).join('; ');
}

export function coins(value: PolicyValue | undefined, decimals: number): string {
  return typeof value === 'bigint' ? units(value, decimals) : shown(value);
}

/** An amount in the smallest unit, converted exactly to the usual unit. */
export function units(amount: bigint, decimals: number): string {
  const digits = (amount < 0n ? -amount : amount).toString().padStart(decimals + 1, '0');
  const fraction = digits.slice(-decimals).replace(/0+$/, '');
  return `${amount < 0n ? '-' : ''}${digits.slice(0, -decimals)}${fraction === '' ? '' : `.${fraction}`}`;
}

/** An amount that goes somewhere, as policies see both. */
export interface Payment {
  readonly amount: PolicyValue | undefined;
  readonly to: string;
}

/** Receivers that a sentence names. */
const mostReceivers = 3;

/**
 * Who receives how much: several payments to one receiver as their sum, the largest first; beyond three, the sum of all.
 */
export function paymentsText(payments: readonly Payment[], amountText: (amount: bigint) => string): string {
  const sums = new Map<string, bigint>();
  const unread: string[] = [];
  for (const { amount, to } of payments) {
    if (typeof amount === 'bigint') sums.set(to, (sums.get(to) ?? 0n) + amount);
    else unread.push(`${shown(amount)} to ${to}`);
  }
  const byAmount = [...sums].sort(([, one], [, other]) => (one > other ? -1 : one < other ? 1 : 0));
  const named = byAmount.slice(0, mostReceivers).map(([to, sum]) => `${amountText(sum)} to ${to}`);
  const total = byAmount.reduce((sum, [, amount]) => sum + amount, 0n);
  const all =
    byAmount.length > mostReceivers
      ? [`${amountText(total)} to ${byAmount.length} receivers, of it ${named.join(', ')}`]
      : named;
  const more = unread.length - mostReceivers;
  return [
    ...all,
    ...unread.slice(0, mostReceivers),
    ...(more > 0 ? [`${more} more ${more === 1 ? 'payment' : 'payments'} that cannot be read`] : []),
  ].join(', ');
}

/** A value on one line: numbers and hexadecimal as they are, other text in quotes. */
export function shown(value: PolicyValue | undefined): string {
  if (value === undefined) return 'not there';
  if (value instanceof Doubt) return 'not readable';
  if (value instanceof AmbiguousText) return value.text === '' ? value.reason : shown(value.text);
  if (typeof value === 'string') return isPlain(value) ? oneLine(value) : `"${oneLine(value)}"`;
  if (typeof value === 'object') return Array.isArray(value) ? `${value.length} elements` : 'several members';
  return String(value);
}

/** In one of the alphabets of addresses, hashes and type names, so it needs no quotes. */
function isPlain(text: string): boolean {
  return /^(?:0x[0-9a-fA-F]*|[1-9A-HJ-NP-Za-km-z]{20,128}|[a-z0-9]{2,10}1[a-z0-9]{6,100}|[A-Z0-9_]{1,64}|[A-Za-z]{1,64}Contract)$/.test(
    text,
  );
}

/** The name of a function, if valid: no punctuation that a mail program would turn into a link. */
export function identifier(name: string): string | undefined {
  return /^[A-Za-z_$][0-9A-Za-z_$]{0,63}$/.test(name) ? name : undefined;
}

/** Removes characters that would break a line, or hide or reorder the text around them. */
export function oneLine(text: string, max = maxValue): string {
  const cut = text.length > max ? `${text.slice(0, max)}…` : text;
  return cut.replace(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]+/gu, ' ').trim();
}

/** A text as it is, in quotes and on one line: what could break the line, stay unseen or reorder it is escaped. */
export function exact(text: string): string {
  return JSON.stringify(text).replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (found) => `\\u{${found.codePointAt(0)!.toString(16)}}`,
  );
}

export function recordOf(value: PolicyValue | undefined): Values | undefined {
  const isRecord =
    typeof value === 'object' &&
    !Array.isArray(value) &&
    !(value instanceof Doubt) &&
    !(value instanceof AmbiguousText);
  return isRecord ? (value as Values) : undefined;
}

export function recordsOf(value: PolicyValue | undefined): readonly Values[] {
  return Array.isArray(value) ? (value as readonly PolicyValue[]).map(recordOf).filter((one) => one !== undefined) : [];
}

export function argumentFacts(args: PolicyValue | undefined, prefix = ''): Fact[] {
  const facts: Fact[] = [];
  const visit = (path: string, value: PolicyValue | undefined): void => {
    if (facts.length > mostFacts) return;
    const record = recordOf(value);
    if (Array.isArray(value)) {
      if (value.length === 0) facts.push({ name: path, value: 'none', words: true });
      value.slice(0, mostFacts).forEach((item: PolicyValue, index) => visit(`${path}[${index}]`, item));
    } else if (record) {
      for (const name of Object.keys(record).slice(0, mostFacts)) {
        visit(path === '' ? oneLine(name, 64) : `${path}.${oneLine(name, 64)}`, record[name]);
      }
    } else facts.push({ name: oneLine(path), value: shown(value), words: true });
  };
  visit(prefix, args);
  return facts;
}
