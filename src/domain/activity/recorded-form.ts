import { withoutNulls } from '../without-nulls.js';
import type { ActivityEvent, Vote } from './events.js';

/**
 * How the events of an activity stand in the store, where each signed body is kept once (docs/adr/0045): parameters are
 * read out of the body, and a long text is kept in base64 where its JSON would be longer. Everybody else sees the events
 * as `events.ts` has them.
 */

/** Texts of fewer characters stay texts, which people can read in the store. */
const longText = 65_536;

type Data = Readonly<Record<string, unknown>>;
type Submitted = Extract<ActivityEvent, { type: 'ActivitySubmitted' }>['data'];
type Proved = Extract<ActivityEvent, { type: 'ActivityProved' }>['data'];

interface Form {
  readonly pack: (data: Data) => Data;
  readonly unpack: (data: Data) => Data;
}

const quotationMark = 0x22;
const backslash = 0x5c;
/** Backspace, tab, line feed, form feed and carriage return: two characters in JSON, other control characters six. */
const hasShortEscape: ReadonlySet<number> = new Set([0x08, 0x09, 0x0a, 0x0c, 0x0d]);

/** Members `name` and `nameBase64` of one object, of which one is kept. */
function packText(object: Data, name: string): Data {
  const { [name]: text, ...rest } = object as Readonly<Record<string, string>>;
  const base64 = shorterBase64(text!);
  return base64 === undefined ? object : { ...rest, [`${name}Base64`]: base64 };
}

function unpackText(object: Data, name: string): Data {
  const { [`${name}Base64`]: base64, ...rest } = object;
  return typeof base64 === 'string' ? { ...rest, [name]: Buffer.from(base64, 'base64').toString('utf8') } : object;
}

function shorterBase64(text: string): string | undefined {
  if (text.length < longText) return undefined;
  const bytes = Buffer.from(text);
  return Math.ceil(bytes.length / 3) * 4 < bytesInJson(bytes) ? bytes.toString('base64') : undefined;
}

/** How many bytes the JSON of a text has without its quotes: `JSON.stringify` would write it out. */
function bytesInJson(bytes: Uint8Array): number {
  let count = bytes.length;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte === quotationMark || byte === backslash) count += 1;
    else if (byte < 0x20) count += hasShortEscape.has(byte) ? 1 : 5;
  }
  return count;
}

/** Changes a member and leaves the object alone when nothing of it changes. */
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
      const read = ofVote.unpack(data);
      return read['intent'] === undefined ? { ...read, intent: parametersIn(read['vote'] as Vote) } : read;
    },
  },
  ActivityApproved: ofVote,
  ActivityRejected: ofVote,
  ActivityProved: {
    pack: (data) => ({ ...data, proofs: proofsIn(data).map((proof) => packText({ ...proof }, 'proofPayload')) }),
    unpack: (data) => ({ ...data, proofs: proofsIn(data).map((proof) => unpackText({ ...proof }, 'proofPayload')) }),
  },
} satisfies Partial<Record<ActivityEvent['type'], Form>>;

function proofsIn(data: Data): Proved['proofs'] {
  return (data as unknown as Proved).proofs;
}

/** What a request has submitted, without null members, as `parseStrictJson` gave it when the request was decided. */
function parametersIn({ message }: Vote): Submitted['intent'] {
  const { parameters } = JSON.parse(message) as { readonly parameters: unknown };
  return withoutNulls(parameters) as Submitted['intent'];
}

/** Types that stand in the store in another form than `events.ts` has them. */
export const packedTypes: readonly string[] = Object.keys(forms);

/** An event's data as it is recorded. */
export function recordedForm(type: string, data: object): object {
  return forms[type]?.pack(data as Data) ?? data;
}

/** What `recordedForm` was given, of what it gave; what was recorded before there was such a form stays as it is. */
export function readForm(type: string, data: unknown): unknown {
  return forms[type]?.unpack(data as Data) ?? data;
}
