import type { AppProof } from './app-proof.js';
import type { ActivityRecord } from './record.js';
import { submitLifeMs } from './liveness.js';

/**
 * What answers say of recorded secrets that still prove something (docs/adr/0027): a token without its signature while it
 * lives, and no code unless it was used up. The events keep them, as they were signed. Time counts only against what is
 * recorded, so that everybody reads alike.
 */

/** When something is read, milliseconds since the epoch. */
interface Reading {
  readonly now: number;
  /** Whether its codes were used up by what was done. */
  readonly codesAreSpent: boolean;
}

/** Members of parameters that hold what somebody was sent: one-time codes, and codes of OAuth 2.0 providers with their verifiers. */
const codes: readonly string[] = ['otpCode', 'authCode', 'codeVerifier'];
/** Results that whoever has them can use; in older history they are complete. */
const bearerResults: readonly string[] = ['verificationToken', 'oidcToken'];
/** How far the clock of a token's issuer may be from ours. */
const leewayMs = 60_000;
/** Longest text in parameters that is looked into as JSON: the message of a client's signature. */
const longestMessage = 65_536;
/** Longest OIDC token with base64 around it. */
const longestToken = 32_768;
/** What is nested deeper than any request may be says nothing to anybody. */
const deepest = 64;

/** An activity as it may be read. */
export type ReadableActivity<Voter> = Omit<ActivityRecord<Voter>, 'votes' | 'appProofs'> & {
  readonly votes: readonly (ActivityRecord<Voter>['votes'][number] & Redacted)[];
  readonly appProofs?: readonly (AppProof & Redacted)[];
} & Redacted;

/** Some of it was left out. */
export interface Redacted {
  readonly redacted?: true;
}

/**
 * The activity without what it would still open. `asSubmitted`: whoever has just submitted it is told it as it was sent
 * (specification, section 4.2), with app proofs that can be verified.
 */
export function readableActivity<Voter>(
  record: ActivityRecord<Voter>,
  now: number,
  { asSubmitted = false }: { readonly asSubmitted?: boolean } = {},
): ReadableActivity<Voter> {
  const reading = readingOf(record, now);
  const result = record.result && readableResult(record.result, reading);
  if (asSubmitted)
    return result === record.result ? record : { ...record, ...(result ? { result } : {}), redacted: true };
  const intent = readable(record.intent, reading);
  if (intent === record.intent && result === record.result) return record;
  const { appProofs } = record;
  return {
    ...record,
    intent,
    ...(result ? { result } : {}),
    votes: record.votes.map((vote) => {
      const message = readableText(vote.message, reading);
      return message === vote.message ? vote : { ...vote, message, redacted: true };
    }),
    ...(appProofs
      ? {
          appProofs: appProofs.map((proof) => {
            const proofPayload = readableText(proof.proofPayload, reading);
            return proofPayload === proof.proofPayload ? proof : { ...proof, proofPayload, redacted: true };
          }),
        }
      : {}),
    redacted: true,
  };
}

/** Data of an activity's event as it may be read; the same object if all of it may. */
export function readableEventData(
  { type, data }: { readonly type: string; readonly data: object },
  record: Pick<ActivityRecord<unknown>, 'status'>,
  now: number,
): object {
  const reading = readingOf(record, now);
  if (type !== 'ActivityCompleted') return readable(data, reading, Infinity);
  const { result, ...rest } = data as { readonly result: Readonly<Record<string, unknown>> };
  const told = readableResult(result, reading);
  return told === result ? data : { ...rest, result: told };
}

/** A denial as it may be read: its stamp, too, could still be used, once it is allowed. */
export function readableDenial<
  Denial extends { readonly message: string; readonly signature: string; readonly timestampMs: string },
>(denial: Denial, now: number): Denial & Redacted {
  const until = Number(denial.timestampMs) + submitLifeMs;
  const message = readableText(denial.message, { now, codesAreSpent: false });
  if (until <= now && message === denial.message) return denial;
  return { ...denial, message, ...(until > now ? { signature: '' } : {}), redacted: true };
}

/** How long the codes of what was not done are good for, only those know who have sent them: they are never told. */
function readingOf({ status }: Pick<ActivityRecord<unknown>, 'status'>, now: number): Reading {
  return { now, codesAreSpent: status === 'ACTIVITY_STATUS_COMPLETED' };
}

function readableResult(
  result: Readonly<Record<string, unknown>>,
  reading: Reading,
): Readonly<Record<string, unknown>> {
  return mapped(result, (value, name) => (bearerResults.includes(name) ? readable(value, reading) : value));
}

/** A text that is JSON, such as a request body, or else may hold tokens. */
function readableText(text: string, reading: Reading): string {
  return readable(text, reading, Infinity);
}

/** The same value without live secrets; the very same one if it has none. */
function readable<Value>(value: Value, reading: Reading, longest = longestMessage, depth = 0): Value {
  return withoutSecrets(value, reading, longest, depth) as Value;
}

function withoutSecrets(value: unknown, reading: Reading, longest: number, depth: number): unknown {
  if (typeof value === 'string') return withoutTokens(value, reading, longest, depth);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > deepest) return null;
  if (Array.isArray(value)) {
    const elements = value.map((element) => withoutSecrets(element, reading, longest, depth + 1));
    return elements.some((element, index) => element !== value[index]) ? elements : value;
  }
  return mapped(value as Readonly<Record<string, unknown>>, (member, name) =>
    codes.includes(name) && typeof member === 'string' && member !== '' && !reading.codesAreSpent
      ? ''
      : withoutSecrets(member, reading, longest, depth + 1),
  );
}

function mapped(
  members: Readonly<Record<string, unknown>>,
  map: (value: unknown, name: string) => unknown,
): Readonly<Record<string, unknown>> {
  const entries = Object.entries(members).map(([name, value]) => [name, map(value, name)] as const);
  return entries.some(([name, value]) => value !== members[name]) ? Object.fromEntries(entries) : members;
}

function withoutTokens(text: string, reading: Reading, longest: number, depth: number): string {
  if (text.length <= longest && /^\s*[{[]/.test(text)) {
    const parsed = jsonOf(text);
    // Within JSON a token may be written with escapes; a request body that was cut off is none.
    if (parsed !== undefined) {
      const said = withoutSecrets(parsed, reading, longest, depth + 1);
      return said === parsed ? text : JSON.stringify(said);
    }
    return withoutSpelledTokens(text, reading).replace(
      /("(?:otpCode|authCode|codeVerifier)"\s*:\s*")((?:[^"\\]|\\.)*)/g,
      (all, name: string) => (reading.codesAreSpent ? all : name),
    );
  }
  return withoutSpelledTokens(text, reading);
}

function withoutSpelledTokens(text: string, { now }: Reading): string {
  return text.replace(/[\w+/=.-]{40,}/g, (run) => {
    if (run.includes('.')) return withoutSignatures(run, now);
    if (run.length > longestToken) return run;
    // Base64 around a token is taken off where it is verified, so it is here.
    const inside = Buffer.from(run, 'base64').toString('latin1');
    const said = /^[\w-]+\.[\w-]*\.[\w-]*$/.test(inside) ? withoutSignatures(inside, now) : inside;
    return said === inside ? run : Buffer.from(said, 'latin1').toString('base64');
  });
}

function withoutSignatures(run: string, now: number): string {
  const parts = run.split('.');
  for (let index = 2; index < parts.length; index++) {
    if (parts[index] !== '' && isLive(parts[index - 2]!, parts[index - 1]!, now)) parts[index] = '';
  }
  return parts.join('.');
}

/** Ours say milliseconds as a text, those of OpenID providers seconds as a number. */
function isLive(header: string, payload: string, now: number): boolean {
  const { alg } = jsonIn(header);
  if (alg === undefined) return false;
  const { exp } = jsonIn(payload);
  const end = typeof exp === 'number' ? exp * 1000 : Number(exp);
  return end + leewayMs > now;
}

function jsonIn(part: string): { readonly alg?: unknown; readonly exp?: unknown } {
  const value = jsonOf(Buffer.from(part, 'base64url').toString());
  return typeof value === 'object' && value !== null ? value : {};
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
