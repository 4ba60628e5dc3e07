import type { AppProof } from './app-proof.js';
import type { ActivityRecord } from './record.js';
import { otpLifeSeconds } from '../organization/otps.js';
import { submitLifeMs } from './liveness.js';

/**
 * Removes from responses what recorded secrets would still prove (docs/adr/0017): live tokens lose their signature,
 * codes are blanked until they are used up, and so are the ids of codes that may still be live, because guesses end a
 * code (docs/adr/0017). The events keep them as they were signed. Expiry is compared only with recorded times, so that
 * every reader gets the same, except that a submitter sees the ids of their own codes.
 */

/** One reading of an activity, an event or a denial. */
interface Reading {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Whether what was done has used up its codes. */
  readonly codesAreSpent: boolean;
  /** Whether a code that it names may be live, unless it was used up. */
  readonly hidesOtpIds: boolean;
  /** What is told in place of a code, or of a sealed secret. */
  readonly inPlace: string;
  /** Budget for searching: anyone may have written the text, and everyone waits while it is read. */
  readonly left: { characters: number; tokens: number };
}

/**
 * Parameters that hold what someone was sent: one-time codes, and codes of OAuth 2.0 providers with their verifiers. And a key
 * that is imported: until it is, another member may import the same bundle as theirs.
 */
const codes: ReadonlySet<string> = new Set(['otpCode', 'authCode', 'codeVerifier', 'encryptedBundle']);
/** Bearer results; in older history they are complete. */
const bearerResults: readonly string[] = ['verificationToken', 'oidcToken'];
/**
 * Parameters that hold what was sealed to the whole installation: any organization could register it as its own, and use
 * what it cannot read. Nothing uses them up, so they are blanked for good.
 */
const sealedSecrets: ReadonlySet<string> = new Set([
  'encryptedClientSecret',
  'encryptedSecretApiKey',
  'encryptedPrivateApiKey',
]);
/** The member that names a one-time code, and what is there in place of it: the Nil UUID (RFC 9562, section 5.9). */
const otpIdMember = 'otpId';
const hiddenOtpId = '00000000-0000-0000-0000-000000000000';
/** A code that something recorded names has ended by so many milliseconds later. */
const otpLifeMs = otpLifeSeconds.max * 1000;
const spelledCodes = membersSpelled(codes);
const spelledOtpIds = membersSpelled(new Set([otpIdMember]));
const spelledSealedSecrets = membersSpelled(sealedSecrets);
/** Tolerated difference between the clock of a token's issuer and ours. */
const leewayMs = 60_000;
/** Longest string in parameters that is searched as JSON: the message of a client's signature. */
const longestMessage = 65_536;
/** Total characters of such strings searched in one reading; short ones count for more. */
const mostCharacters = 4 * longestMessage;
const charactersOfShort = 64;
/** Maximum candidates for a token's header that are decoded in one reading. */
const mostTokens = 2_000;
/** Anything shorter is not a token. */
const shortestToken = 40;
/** The header of a token has an `alg`: at least `{"alg":0}` in base64url. */
const shortestHeader = 12;
/** Longest OIDC token, wrapped in base64. */
const longestToken = 32_768;
/** Nesting beyond what any request may have is not returned to anyone. */
const deepest = 64;

/** An activity as it may be read. */
export type ReadableActivity<Voter> = Omit<ActivityRecord<Voter>, 'votes' | 'appProofs'> & {
  readonly votes: readonly (ActivityRecord<Voter>['votes'][number] & Redacted)[];
  readonly appProofs?: readonly (AppProof & Redacted)[] | undefined;
} & Redacted;

/** Something was omitted. */
export interface Redacted {
  readonly redacted?: true;
}

/**
 * The activity without secrets that are still usable. `asSubmitted`: the submitter gets it as it was sent
 * (specification, section 4.2), with app proofs that can be verified. `readerId`: the user who reads it, and who has
 * just signed that; undefined for anyone, such as whoever sends a recorded request again.
 */
export function readableActivity<Voter>(
  record: ActivityRecord<Voter>,
  now: number,
  { asSubmitted = false, readerId }: { readonly asSubmitted?: boolean; readonly readerId?: string | undefined } = {},
): ReadableActivity<Voter> {
  const isOwn = asSubmitted || (readerId !== undefined && record.votes[0]?.userId === readerId);
  const reading = { ...readingOf(record, now), hidesOtpIds: !isOwn && mayNameLiveOtp(record.updatedAt, now) };
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

/**
 * An event of an activity as it may be read; the same object if nothing has to be omitted. `inPlace` is told
 * where a code or a sealed secret was; by default, nothing. `at` is when it was recorded, milliseconds since the epoch;
 * without it, ids of codes stay, so that the event can be folded.
 */
export function readableEvent<Event extends { readonly type: string; readonly data: object }>(
  event: Event,
  record: Pick<ActivityRecord<unknown>, 'status'>,
  now: number,
  { inPlace = '', at }: { readonly inPlace?: string; readonly at?: number } = {},
): Event {
  const hidesOtpIds = at !== undefined && mayNameLiveOtp(at, now);
  const data = readableEventData(event, { ...readingOf(record, now), inPlace, hidesOtpIds });
  return data === event.data ? event : { ...event, data };
}

/** Of the same shape: what is omitted from a text leaves a text. */
function readableEventData({ type, data }: { readonly type: string; readonly data: object }, reading: Reading): object {
  if (type !== 'ActivityCompleted') return readableData(data, reading);
  const { result, ...rest } = data as { readonly result: Readonly<Record<string, unknown>> };
  const told = readableResult(result, reading);
  return told === result ? data : { ...rest, result: told };
}

/** A denial as it may be read: its stamp, too, could be reused once policies allow it. */
export function readableDenial<
  Denial extends { readonly message: string; readonly signature: string; readonly timestampMs: string },
>(denial: Denial, now: number): Denial & Redacted {
  const until = Number(denial.timestampMs) + submitLifeMs;
  // When it was recorded, its timestamp was not older than a submit may be.
  const hidesOtpIds = mayNameLiveOtp(until, now);
  const message = readableText(denial.message, { ...newReading(now, false), hidesOtpIds });
  if (until <= now && message === denial.message) return denial;
  return { ...denial, message, ...(until > now ? { signature: '' } : {}), redacted: true };
}

/** Only the sender knows how long the codes in a request that did not happen are valid, so they are never returned. */
function readingOf({ status }: Pick<ActivityRecord<unknown>, 'status'>, now: number): Reading {
  return newReading(now, status === 'ACTIVITY_STATUS_COMPLETED');
}

/** Whether a code that was named at a time may be live: `now` and `at` in milliseconds since the epoch. */
function mayNameLiveOtp(at: number, now: number): boolean {
  return at + otpLifeMs > now;
}

/** Whether parameters name a code that may be live; what was done has used it up. */
function hidesNamedOtp({ hidesOtpIds, codesAreSpent }: Reading): boolean {
  return hidesOtpIds && !codesAreSpent;
}

function newReading(now: number, codesAreSpent: boolean): Reading {
  return {
    now,
    codesAreSpent,
    hidesOtpIds: false,
    inPlace: '',
    left: { characters: mostCharacters, tokens: mostTokens },
  };
}

/** The signed texts, of votes and of proofs, are searched completely. */
function readableData(data: object, reading: Reading): object {
  const signed = (name: string) => (value: unknown) =>
    mapped(value as Readonly<Record<string, unknown>>, (member, key) =>
      key === name && typeof member === 'string' ? readableText(member, reading) : readable(member, reading),
    );
  return mapped(data as Readonly<Record<string, unknown>>, (member, name) => {
    if (name === 'vote') return signed('message')(member);
    if (name === 'proofs' && Array.isArray(member)) return mappedList(member, signed('proofPayload'));
    if (name === otpIdMember && reading.hidesOtpIds) return hiddenOtpId;
    return readable(member, reading);
  });
}

function readableResult(
  result: Readonly<Record<string, unknown>>,
  reading: Reading,
): Readonly<Record<string, unknown>> {
  return mapped(result, (value, name) => {
    if (name === otpIdMember && reading.hidesOtpIds) return hiddenOtpId;
    return bearerResults.includes(name) ? readable(value, reading) : value;
  });
}

/** A signed body or the payload of a proof: JSON text of any length. */
function readableText(text: string, reading: Reading): string {
  return isJsonLike(text) ? withoutSecretsInJson(text, reading, 0) : withoutSpelledTokens(text, reading);
}

/** The same value without live secrets; the identical object if it has none. */
function readable<Value>(value: Value, reading: Reading): Value {
  return withoutSecrets(value, reading, 0) as Value;
}

function withoutSecrets(value: unknown, reading: Reading, depth: number): unknown {
  if (typeof value === 'string') return withoutTokens(value, reading, depth);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > deepest) return null;
  if (Array.isArray(value)) return mappedList(value, (element) => withoutSecrets(element, reading, depth + 1));
  return mapped(value as Readonly<Record<string, unknown>>, (member, name) => {
    const isHidden = sealedSecrets.has(name) || (codes.has(name) && !reading.codesAreSpent);
    if (isHidden && typeof member === 'string') return member && reading.inPlace;
    if (name === otpIdMember && hidesNamedOtp(reading) && typeof member === 'string') return hiddenOtpId;
    return withoutSecrets(member, reading, depth + 1);
  });
}

function mappedList(list: readonly unknown[], map: (element: unknown) => unknown): readonly unknown[] {
  const elements = list.map(map);
  return elements.some((element, index) => element !== list[index]) ? elements : list;
}

function mapped(
  members: Readonly<Record<string, unknown>>,
  map: (value: unknown, name: string) => unknown,
): Readonly<Record<string, unknown>> {
  let changed: [string, unknown][] | undefined;
  for (const name of Object.keys(members)) {
    const value = map(members[name], name);
    if (value !== members[name]) (changed ??= []).push([name, value]);
  }
  return changed ? { ...members, ...Object.fromEntries(changed) } : members;
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
  // Too long to search: an unescaped token is found, and a text in which one may be escaped is omitted.
  return /\\[u/]/.test(text) ? '' : withoutSpelledSecrets(text, reading);
}

/** Within JSON, a token may be written with escapes; a truncated request body is not JSON. */
function withoutSecretsInJson(text: string, reading: Reading, depth: number): string {
  const parsed = jsonOf(text);
  if (parsed === undefined) return withoutSpelledSecrets(text, reading);
  const said = withoutSecrets(parsed, reading, depth + 1);
  return said === parsed ? text : JSON.stringify(said);
}

/** In text that is not read as JSON: what stands there without escapes. */
function withoutSpelledSecrets(text: string, reading: Reading): string {
  const told = (_all: string, name: string) => name + reading.inPlace;
  // Sealed ones first: they are long, and have no tokens in them.
  const sealed = withoutSpelledTokens(text.replace(spelledSealedSecrets, told), reading);
  const said = hidesNamedOtp(reading)
    ? sealed.replace(spelledOtpIds, (_all, name: string) => name + hiddenOtpId)
    : sealed;
  return reading.codesAreSpent ? said : said.replace(spelledCodes, told);
}

/** Members of these names that are strings, from the name to where the string ends. */
function membersSpelled(names: ReadonlySet<string>): RegExp {
  return new RegExp(`("(?:${[...names].join('|')})"\\s*:\\s*")(?:[^"\\\\]|\\\\.)*`, 'g');
}

/** Characters of tokens, and of base64 around them: by character code, 1 if it is one. */
const inTokens = Uint8Array.from({ length: 128 }, (_, code) => (/[\w+/=.-]/.test(String.fromCharCode(code)) ? 1 : 0));
const dot = 0x2e;

/** Goes through the characters, because strings may have millions: a regular expression takes ten times as long. */
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
  // Verification removes base64 around a token, so this does too.
  const inside = Buffer.from(run, 'base64').toString('latin1');
  const said = /^[\w-]+\.[\w-]*\.[\w-]*$/.test(inside) ? withoutSignatures(inside, reading) : inside;
  return said === inside ? run : Buffer.from(said, 'latin1').toString('base64');
}

/**
 * Of parts between dots, each that completes two others to a live token is omitted. After too many candidates,
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

/** Ours give milliseconds as a string, those of OpenID providers seconds as a number. */
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
