import { constants } from 'node:fs';
import { mkdir, open, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { codeOf, DeliveryFailed, type AcceptedMessage, type Carrier } from './delivery.js';

interface Waiting {
  readonly line: string;
  readonly resolve: () => void;
  readonly reject: (error: DeliveryFailed) => void;
}

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_RDWR } = constants;

/**
 * Writes messages to `DATA_DIR/outbox.jsonl` instead of sending them, one JSON object per line: `{ at, channel, to,
 * subject?, text, html?, otpId? }`, `at` in RFC 3339. Only its owner can read it, because the texts contain codes. The
 * file may be moved or deleted at any time; only one process at a time writes to a folder.
 */
export class Outbox implements Carrier {
  readonly file: string;
  readonly #now: () => number;
  #endsWithLine = false;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;

  /** @param dataDir created if missing */
  constructor(dataDir: string, now: () => number = Date.now) {
    this.file = join(dataDir, 'outbox.jsonl');
    this.#now = now;
  }

  carry({ channel, to, subject, text, html, otpId }: AcceptedMessage): Promise<void> {
    const at = new Date(this.#now()).toISOString();
    // JSON omits undefined members and escapes line breaks.
    const line = `${JSON.stringify({ at, channel, to, subject, text, html, otpId })}\n`;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ line, resolve, reject });
      this.#writing ??= this.#write();
    });
  }

  async close(): Promise<void> {
    await this.#writing;
  }

  /** One writer at a time; whatever arrives in the meantime goes into its next append. */
  async #write(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      try {
        await this.#append(batch.map(({ line }) => line).join(''));
        for (const { resolve } of batch) resolve();
      } catch (error) {
        const failure = new DeliveryFailed(`the outbox could not be written (${codeOf(error)})`, { retryable: true });
        for (const { reject } of batch) reject(failure);
      }
    }
    // In the same turn as the last check of what waits, so that nothing can arrive in between and be forgotten.
    this.#writing = undefined;
  }

  async #append(lines: string): Promise<void> {
    await mkdir(dirname(this.file), { recursive: true, mode: 0o700 });
    // Opened each time, so that a file that was moved away is replaced. A link could redirect the codes.
    const handle = await open(this.file, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600);
    try {
      await handle.chmod(0o600);
      // Once, and again after a failure: while others write, the file may end in the middle of their line.
      if (!this.#endsWithLine) await cutOffTornLine(handle);
      this.#endsWithLine = false;
      const bytes = Buffer.from(lines);
      const { bytesWritten } = await handle.write(bytes);
      if (bytesWritten < bytes.length) throw Object.assign(new Error('short write'), { code: 'ENOSPC' });
      this.#endsWithLine = true;
    } finally {
      await handle.close();
    }
  }
}

/** Removes an incomplete last line, left by a killed process or a full disk: nobody was told of that message. */
async function cutOffTornLine(handle: FileHandle): Promise<void> {
  const { size } = await handle.stat();
  const piece = Buffer.alloc(64 * 1024);
  for (let end = size; end > 0;) {
    const start = Math.max(0, end - piece.length);
    const { bytesRead } = await handle.read(piece, 0, end - start, start);
    const lineEnd = piece.subarray(0, bytesRead).lastIndexOf(0x0a);
    if (lineEnd >= 0) {
      if (start + lineEnd + 1 < size) await handle.truncate(start + lineEnd + 1);
      return;
    }
    end = start;
  }
  if (size > 0) await handle.truncate(0);
}
