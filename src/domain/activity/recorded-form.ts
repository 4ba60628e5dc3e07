import { openSealed } from '../sealable.js';
import { textOfUtf8 } from '../text.js';
import { withoutNulls } from '../without-nulls.js';
import type { ActivityEvent } from './events.js';

/**
 * The stored form of an activity's events, which keeps each signed body once (docs/adr/0009): parameters are read from
 * the body, and a long string is stored in base64 if its JSON would be longer. Everything else sees the events as in
 * `events.ts`.
 */

/** Shorter strings are kept as text, which people can read in the store. */
const longText = 65_536;

type Data = Readonly<Record<string, unknown>>;
type Submitted = Extract<ActivityEvent, { type: 'ActivitySubmitted' }>['data'];
type Proved = Extract<ActivityEvent, { type: 'AppProofsIssued' }>['data'];

interface Form {
  readonly pack: (data: Data) => Data;
  readonly unpack: (data: Data) => Data;
}

/** By byte, how many more it takes in JSON: an escape has two characters or six (RFC 8259, section 7). */
const more = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x80 ? JSON.stringify(String.fromCharCode(byte)).length - 3 : 0,
);

/** Members `name` and `nameBase64` of an object, one of which is stored. */
function packText(object: Data, name: string): Data {
  const base64 = shorterBase64(object[name] as string);
  if (base64 === undefined) return object;
  const { [name]: _text, ...rest } = object;
  return { ...rest, [`${name}Base64`]: base64 };
}

function unpackText(object: Data, name: string): Data {
  if (typeof object[`${name}Base64`] !== 'string') return object;
  const { [`${name}Base64`]: base64, ...rest } = object;
  return { ...rest, [name]: textOfUtf8(Buffer.from(base64 as string, 'base64')) };
}

// What JSON writes with a backslash.
const escaped = /["\\\u0000-\u001f]/;

function shorterBase64(text: string): string | undefined {
  if (text.length < longText || !escaped.test(text)) return undefined;
  const bytes = Buffer.from(text);
  return Math.ceil(bytes.length / 3) * 4 < bytesInJson(bytes) ? bytes.toString('base64') : undefined;
}

/** The length of a string's JSON in bytes, without quotes and without building it as `JSON.stringify` would. */
function bytesInJson(bytes: Uint8Array): number {
  let count = bytes.length;
  for (let at = 0; at < bytes.length; at++) count += more[bytes[at]!]!;
  return count;
}

/** Changes a member, and returns the same object if nothing changes. */
function withMember(object: Data, name: string, change: (member: Data) => Data): Data {
  const before = object[name] as Data;
  const after = change(before);
  return after === before ? object : { ...object, [name]: after };
}

const ofVote: Form = {
  pack: (data) => withMember(data, 'vote', (vote) => packText(vote, 'message')),
  unpack: (data) => withMember(data, 'vote', (vote) => unpackText(vote, 'message')),
};

const forms: Readonly<Partial<Record<string, Form>>> = {
  ActivitySubmitted: {
    pack(data) {
      const { intent: _inTheBody, ...rest } = data;
      return ofVote.pack(rest);
    },
    unpack(data) {
      return Object.defineProperty({ ...ofVote.unpack(data) }, 'intent', intentMember);
    },
  },
  ActivityApproved: ofVote,
  ActivityRejected: ofVote,
  AppProofsIssued: {
    pack: (data) => ({ ...data, proofs: proofsIn(data).map((proof) => packText({ ...proof }, 'proofPayload')) }),
    unpack: (data) => ({ ...data, proofs: proofsIn(data).map((proof) => unpackText({ ...proof }, 'proofPayload')) }),
  },
} satisfies Partial<Record<ActivityEvent['type'], Form>>;

function proofsIn(data: Data): Proved['proofs'] {
  return (data as unknown as Proved).proofs;
}

/**
 * The intent is read from the body when it is first looked at: who folds hardly ever does. One description for all, since
 * a getter of its own would give each object a hidden class of its own.
 */
const intentMember = {
  enumerable: true,
  configurable: true,
  get(this: Submitted): Submitted['intent'] {
    const value = intentIn(this.vote.message);
    Object.defineProperty(this, 'intent', { value, enumerable: true });
    return value;
  },
};

/** The parameters of a submitted body without null members, as `parseStrictJson` returned them when the request was decided. */
export function intentIn(message: string): Submitted['intent'] {
  const { parameters } = JSON.parse(message) as { readonly parameters: unknown };
  return withoutNulls(parameters) as Submitted['intent'];
}

/** An event's data as it is stored. */
export function recordedForm(type: string, data: object): object {
  return forms[type]?.pack(data as Data) ?? data;
}

/** The inverse of `recordedForm`. */
export function readForm(type: string, data: unknown): unknown {
  const opened = openSealed(type, data);
  return forms[type]?.unpack(opened as Data) ?? opened;
}
