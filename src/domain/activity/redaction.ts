import type { AppProof } from './app-proof.js';
import type { ActivityRecord } from './record.js';
import { submitLifeMs } from './liveness.js';

/**
 * What answers say of recorded secrets that still prove something (docs/adr/0027): a token without its signature while it
 * lives, and no code unless it was used up. The events keep them, as they were signed. Time counts only against what is
 * recorded, so that everybody reads alike.
 */

/** One reading of an activity, an event or a denial. */
interface Reading {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Whether its codes were used up by what was done. */
  readonly codesAreSpent: boolean;
  /** What may still be looked into: anybody may have written it, and everybody waits while it is read. */
  readonly left: { characters: number; tokens: number };
}

/** Members of parameters that hold what somebody was sent: one-time codes, and codes of OAuth 2.0 providers with their verifiers. */
const codes: readonly string[] = ['otpCode', 'authCode', 'codeVerifier'];
/** Results that whoever has them can use; in older history they are complete. */
const bearerResults: readonly string[] = ['verificationToken', 'oidcToken'];
/** How far the clock of a token's issuer may be from ours. */
const leewayMs = 60_000;
/** Longest text in parameters that is looked into as JSON: the message of a client's signature. */
const longestMessage = 65_536;
/** Characters of such texts that are, in one reading; short ones count as some more. */
const mostCharacters = 4 * longestMessage;
const charactersOfShort = 64;
/** What may be the header of a token, and is decoded to see whether it is, in one reading. */
const mostTokens = 2_000;
/** What is shorter is no token. */
const shortestToken = 40;
/** The header of a token has an `alg`: `{"alg":0}` in base64url. */
const shortestHeader = 12;
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
  if (type !== 'ActivityCompleted') return readableData(data, reading);
  const { result, ...rest } = data as { readonly result: Readonly<Record<string, unknown>> };
  const told = readableResult(result, reading);
  return told === result ? data : { ...rest, result: told };
}

/** A denial as it may be read: its stamp, too, could still be used, once it is allowed. */
export function readableDenial<
  Denial extends { readonly message: string; readonly signature: string; readonly timestampMs: string },
>(denial: Denial, now: number): Denial & Redacted {
  const until = Number(denial.timestampMs) + submitLifeMs;
  const message = readableText(denial.message, newReading(now, false));
  if (until <= now && message === denial.message) return denial;
  return { ...denial, message, ...(until > now ? { signature: '' } : {}), redacted: true };
}

/** How long the codes of what was not done are good for, only those know who have sent them: they are never told. */
function readingOf({ status }: Pick<ActivityRecord<unknown>, 'status'>, now: number): Reading {
  return newReading(now, status === 'ACTIVITY_STATUS_COMPLETED');
}

function newReading(now: number, codesAreSpent: boolean): Reading {
  return { now, codesAreSpent, left: { characters: mostCharacters, tokens: mostTokens } };
}

/** The texts that were signed, a vote's and those of proofs, are read whole. */
function readableData(data: object, reading: Reading): object {
  const signed = (name: string) => (value: unknown) =>
    mapped(value as Readonly<Record<string, unknown>>, (member, key) =>
      key === name && typeof member === 'string' ? readableText(member, reading) : readable(member, reading),
    );
  return mapped(data as Readonly<Record<string, unknown>>, (member, name) => {
    if (name === 'vote') return signed('message')(member);
    if (name === 'proofs' && Array.isArray(member)) return mappedList(member, signed('proofPayload'));
    return readable(member, reading);
  });
}

function readableResult(
  result: Readonly<Record<string, unknown>>,
  reading: Reading,
): Readonly<Record<string, unknown>> {
  return mapped(result, (value, name) => (bearerResults.includes(name) ? readable(value, reading) : value));
}

/** A signed body or the payload of a proof: a text that is JSON, however long. */
function readableText(text: string, reading: Reading): string {
  return isJsonLike(text) ? withoutSecretsInJson(text, reading, 0) : withoutSpelledTokens(text, reading);
}

/** The same value without live secrets; the very same one if it has none. */
function readable<Value>(value: Value, reading: Reading): Value {
  return withoutSecrets(value, reading, 0) as Value;
}

function withoutSecrets(value: unknown, reading: Reading, depth: number): unknown {
  if (typeof value === 'string') return withoutTokens(value, reading, depth);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > deepest) return null;
  if (Array.isArray(value)) return mappedList(value, (element) => withoutSecrets(element, reading, depth + 1));
  return mapped(value as Readonly<Record<string, unknown>>, (member, name) =>
    codes.includes(name) && typeof member === 'string' && member !== '' && !reading.codesAreSpent
      ? ''
      : withoutSecrets(member, reading, depth + 1),
  );
}

function mappedList(list: readonly unknown[], map: (element: unknown) => unknown): readonly unknown[] {
  const elements = list.map(map);
  return elements.some((element, index) => element !== list[index]) ? elements : list;
}

function mapped(
  members: Readonly<Record<string, unknown>>,
  map: (value: unknown, name: string) => unknown,
): Readonly<Record<string, unknown>> {
  const entries = Object.entries(members).map(([name, value]) => [name, map(value, name)] as const);
  return entries.some(([name, value]) => value !== members[name]) ? Object.fromEntries(entries) : members;
}

function isJsonLike(text: string): boolean {
  return /^\s*[{[]/.test(text);
}

function withoutTokens(text: string, reading: Reading, depth: number): string {
  if (text.length > longestMessage || !isJsonLike(text)) return withoutSpelledTokens(text, reading);
  const { left } = reading;
  if (text.length <= left.characters) {
    left.characters -= text.length + charactersOfShort;
    return withoutSecretsInJson(text, reading, depth);
  }
  // Too much to be looked into: a token stands there as it is, or some of it is escaped, and then nobody is told the text.
  return /\\[u/]/.test(text) ? '' : withoutSpelledCodes(withoutSpelledTokens(text, reading), reading);
}

/** Within JSON a token may be written with escapes; a request body that was cut off is none. */
function withoutSecretsInJson(text: string, reading: Reading, depth: number): string {
  const parsed = jsonOf(text);
  if (parsed === undefined) return withoutSpelledCodes(withoutSpelledTokens(text, reading), reading);
  const said = withoutSecrets(parsed, reading, depth + 1);
  return said === parsed ? text : JSON.stringify(said);
}

function withoutSpelledCodes(text: string, { codesAreSpent }: Reading): string {
  return text.replace(/("(?:otpCode|authCode|codeVerifier)"\s*:\s*")((?:[^"\\]|\\.)*)/g, (all, name: string) =>
    codesAreSpent ? all : name,
  );
}

/** Characters that tokens, and base64 around them, are written with: by code, 1 if it is one. */
const inTokens = Uint8Array.from({ length: 128 }, (_, code) => (/[\w+/=.-]/.test(String.fromCharCode(code)) ? 1 : 0));
const dot = 0x2e;

/** Goes by characters, as texts may have millions: a regular expression takes ten times as long. */
function withoutSpelledTokens(text: string, reading: Reading): string {
  let said = '';
  let told = 0;
  let start = 0;
  for (let at = 0; at <= text.length; at++) {
    if (at < text.length && inTokens[text.charCodeAt(at)] === 1) continue;
    if (at - start >= shortestToken) {
      const run = text.slice(start, at);
      const readableRun = withoutTokensIn(run, reading);
      if (readableRun !== run) {
        said += text.slice(told, start) + readableRun;
        told = at;
      }
    }
    start = at + 1;
  }
  return told === 0 ? text : said + text.slice(told);
}

function withoutTokensIn(run: string, reading: Reading): string {
  if (run.includes('.')) return withoutSignatures(run, reading);
  if (run.length > longestToken) return run;
  // Base64 around a token is taken off where it is verified, so it is here.
  const inside = Buffer.from(run, 'base64').toString('latin1');
  const said = /^[\w-]+\.[\w-]*\.[\w-]*$/.test(inside) ? withoutSignatures(inside, reading) : inside;
  return said === inside ? run : Buffer.from(said, 'latin1').toString('base64');
}

/**
 * Of parts between dots, each that two others make the signature of a live token is left out. After too many that may be one,
 * everything is.
 */
function withoutSignatures(run: string, reading: Reading): string {
  let said = '';
  let told = 0;
  let [headerFrom, headerTo, payloadFrom, payloadTo, from] = [0, 0, 0, 0, 0];
  for (let at = 0; at <= run.length; at++) {
    if (at < run.length && run.charCodeAt(at) !== dot) continue;
    let to = at;
    // A brace in base64url, or white space before it.
    if (to > from && headerTo - headerFrom >= shortestHeader && 'eICD='.includes(run[headerFrom]!)) {
      if (reading.left.tokens <= 0) return said + run.slice(told, from);
      if (isLive(run.slice(headerFrom, headerTo), run.slice(payloadFrom, payloadTo), reading)) {
        said += run.slice(told, from);
        told = at;
        to = from;
      }
    }
    [headerFrom, headerTo, payloadFrom, payloadTo, from] = [payloadFrom, payloadTo, from, to, at + 1];
  }
  return told === 0 ? run : said + run.slice(told);
}

/** Ours say milliseconds as a text, those of OpenID providers seconds as a number. */
function isLive(header: string, payload: string, { now, left }: Reading): boolean {
  left.tokens -= 1;
  const { alg } = jsonIn(header);
  if (alg === undefined) return false;
  const { exp } = jsonIn(payload);
  const end = typeof exp === 'number' ? exp * 1000 : Number(exp);
  return end + leewayMs > now;
}

function jsonIn(part: string): { readonly alg?: unknown; readonly exp?: unknown } {
  const text = Buffer.from(part, 'base64url').toString();
  const value = isJsonLike(text) ? jsonOf(text) : undefined;
  return typeof value === 'object' && value !== null ? value : {};
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
