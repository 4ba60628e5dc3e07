import { hash } from 'node:crypto';

/** As long as the events of ordinary requests, to begin with; it grows to the longest text that was placed. */
let kept = Buffer.alloc(64 * 1024);
/**
 * Longer ones, which no request makes, have a buffer of their own. Fresh memory costs more than the hash of what is in it, but
 * what is never written to costs nothing.
 */
const mostKept = 16 * 1024 * 1024;

/**
 * A text in UTF-8 with room on both sides: it is encoded once, however often it is hashed. Of use until the next text is placed,
 * because all of them share a buffer: each use is synchronous.
 */
export class PlacedText {
  private readonly buffer: Buffer;
  private readonly end: number;
  /** Length in bytes. */
  readonly length: number;

  /**
   * @param pieces the text, in pieces
   * @param before most bytes that may be hashed before the text
   * @param after most bytes that may be hashed after it
   */
  constructor(
    pieces: readonly string[],
    private readonly before: number,
    after: number,
  ) {
    this.buffer = roomFor(pieces, before + after);
    let end = before;
    for (const piece of pieces) end += this.buffer.write(piece, end, 'utf8');
    this.length = end - before;
    this.end = end;
  }

  /**
   * SHA-256, in hex, of bytes given in hex, a text, this text and another text.
   * @throws {TypeError} if the bytes are not in hex
   */
  hashBetween(bytes: string, before: string, after: string): string {
    const textStart = this.before - Buffer.byteLength(before);
    const start = textStart - bytes.length / 2;
    const end = this.end + Buffer.byteLength(after);
    if (start < 0 || end > this.buffer.length) throw new RangeError('there is too little room around the text');
    // It ends at the first character that is none.
    if (this.buffer.write(bytes, start, 'hex') !== bytes.length / 2) {
      throw new TypeError(`\`${bytes}\` is not ${bytes.length} hex characters`);
    }
    this.buffer.write(before, textStart, 'utf8');
    this.buffer.write(after, this.end, 'utf8');
    return hash('sha256', this.buffer.subarray(start, end), 'hex');
  }
}

function roomFor(pieces: readonly string[], around: number): Buffer {
  // A UTF-16 code unit takes at most three bytes in UTF-8: to count them would take longer than to write them.
  const size = pieces.reduce((sum, { length }) => sum + length * 3, around);
  if (size <= kept.length) return kept;
  const buffer = Buffer.allocUnsafeSlow(size);
  if (size <= mostKept) kept = buffer;
  return buffer;
}
