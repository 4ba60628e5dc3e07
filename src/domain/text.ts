import { isAscii, transcode } from 'node:buffer';

/**
 * The text of valid UTF-8. A long one is kept outside V8's heap, where the allocator reuses memory. In the heap it would take
 * fresh memory each time, which is slow on some machines.
 */
export function textOfUtf8(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return isAscii(buffer) ? buffer.toString('latin1') : transcode(buffer, 'utf8', 'utf16le').toString('utf16le');
}

/**
 * Length of a slice in characters; in JSON, it is up to six times as long. V8 keeps a text of more than 128 KiB by itself, in fresh
 * memory, which takes longer than writing it.
 */
export const longestSlice = 16 * 1024;

/** A text in slices; none ends between the halves of a character (RFC 8259, section 8.2). */
export function* slicesOf(text: string): Generator<string> {
  if (text === '') yield text;
  for (let from = 0; from < text.length;) {
    let to = Math.min(from + longestSlice, text.length);
    const last = text.charCodeAt(to - 1);
    if (last >= 0xd800 && last < 0xdc00 && to < text.length) to += 1;
    yield text.slice(from, to);
    from = to;
  }
}

/** The JSON of a text in pieces: `JSON.stringify` makes a tree of thousands of a long one, which is copied before it is written. */
export function* jsonPiecesOfText(text: string): Generator<string> {
  yield '"';
  for (const slice of slicesOf(text)) yield JSON.stringify(slice).slice(1, -1);
  yield '"';
}
