import { CoordinatorError } from '../domain/errors.js';

/** Parsing stamp headers: their contents are not trusted, and anything unusual is refused. */

/** A malformed stamp, as UNAUTHENTICATED SIGNATURE_INVALID. */
export function unreadable(header: string, reason: string, cause?: unknown): CoordinatorError {
  return new CoordinatorError('UNAUTHENTICATED', `could not read the ${header} header: ${reason}`, {
    category: 'SIGNATURE_INVALID',
    cause,
  });
}

/** The value of a header that may be sent once, of at most `maxLength` characters. */
export function singleHeader(
  value: string | string[] | undefined,
  header: string,
  maxLength: number,
): string | undefined {
  if (value === undefined) return undefined;
  const values = Array.isArray(value) ? value : [value];
  if (values.length > 1) throw unreadable(header, 'it was sent more than once: send exactly one stamp');
  const [single] = values;
  if (single === undefined) return undefined;
  if (single.length > maxLength) {
    throw unreadable(header, `it has ${single.length} characters: at most ${maxLength} are allowed`);
  }
  return single;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The text in a header of base64url. */
export function base64Text(value: string, header: string): string {
  // Node joins a repeated header with a comma, which base64 does not contain.
  if (value.includes(',')) throw unreadable(header, 'it was sent more than once: send exactly one stamp');
  const bytes = decodeBase64(value);
  if (bytes === undefined) throw unreadable(header, 'it is not base64url: encode the JSON of the stamp');
  try {
    return utf8.decode(bytes);
  } catch (cause) {
    throw unreadable(header, 'it is not base64url of UTF-8 text', cause);
  }
}

/**
 * The bytes of base64url or standard base64, padded or not, or undefined. Otherwise strict: no other character, no
 * mixed alphabets, no bits beyond the last byte, so that encodings can differ only in alphabet and padding.
 */
export function decodeBase64(text: string): Buffer | undefined {
  const unpadded = text.replace(/={1,2}$/, '');
  if (unpadded.length !== text.length && text.length % 4 !== 0) return undefined;
  const bytes = Buffer.from(unpadded, 'base64url');
  if (bytes.toString('base64url') === unpadded) return bytes;
  return bytes.toString('base64').replace(/=+$/, '') === unpadded ? bytes : undefined;
}

/** A JSON object with exactly these members, all strings, none repeated. */
export function readStrings<Member extends string>(
  text: string,
  header: string,
  members: readonly Member[],
): Record<Member, string> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    throw unreadable(header, `it is not valid JSON: send one object with the members ${members.join(', ')}`, cause);
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw unreadable(header, `it is not a JSON object: send the members ${members.join(', ')}`);
  }
  const sent = parsed as Readonly<Partial<Record<Member, unknown>>>;
  const read: Partial<Record<Member, string>> = {};
  for (const member of members) {
    const value = Object.hasOwn(sent, member) ? sent[member] : undefined;
    if (value === undefined) throw unreadable(header, `member ${member} is missing`);
    if (typeof value !== 'string') throw unreadable(header, `member ${member} is not a string`);
    read[member] = value;
  }
  const extra = Object.keys(sent).find((name) => !(members as readonly string[]).includes(name));
  if (extra !== undefined) throw unreadable(header, `member \`${extra.slice(0, 64)}\` is unknown: remove it`);
  // JSON.parse silently keeps the last of two equal members; in a flat object of strings they can be counted.
  const strings = text.match(/"(?:[^"\\]|\\.)*"/g)?.length;
  if (strings !== 2 * members.length) throw unreadable(header, 'it has a duplicate member');
  return read as Record<Member, string>;
}
