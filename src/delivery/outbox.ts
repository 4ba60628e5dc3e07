import { constants } from 'node:fs';
import { mkdir, open, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DeliveryFailed, type AcceptedMessage, type Carrier } from './delivery.js';

interface Waiting {
  readonly line: string;
  readonly resolve: () => void;
  readonly reject: (error: DeliveryFailed) => void;
}

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_RDWR } = constants;

/**
 * Writes messages to `DATA_DIR/outbox.jsonl` instead of sending them, one JSON object a line: `{ at, channel, to,
 * subject?, text, html?, otpId? }`, `at` in RFC 3339. Readable by its owner only: the texts hold codes. The file may be
 * moved or deleted at any time.
 */
export class Outbox implements Carrier {
  readonly file: string;
  readonly #now: () => number;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;

  /** @param dataDir made when it is missing */
  constructor(dataDir: string, now: () => number = Date.now) {
    this.file = join(dataDir, 'outbox.jsonl');
    this.#now = now;
  }

  carry({ channel, to, subject, text, html, otpId }: AcceptedMessage): Promise<void> {
    const at = new Date(this.#now()).toISOString();
    // JSON leaves out what is undefined, and line breaks within are escaped.
    const line = `${JSON.stringify({ at, channel, to, subject, text, html, otpId })}\n`;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ line, resolve, reject });
      this.#writing ??= this.#write().finally(() => (this.#writing = undefined));
    });
  }

  async close(): Promise<void> {
    await this.#writing;
  }

  /** One writer at a time; what comes in meanwhile goes into its next append. */
  async #write(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      try {
        await this.#append(batch.map(({ line }) => line).join(''));
        for (const { resolve } of batch) resolve();
      } catch (error) {
        const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
        const failure = new DeliveryFailed(`the outbox could not be written (${code})`, { retryable: true });
        for (const { reject } of batch) reject(failure);
      }
    }
  }

  async #append(lines: string): Promise<void> {
    await mkdir(dirname(this.file), { recursive: true, mode: 0o700 });
    // Opened each time: whoever moves the file away gets a new one. A link could lead the codes elsewhere.
    const handle = await open(this.file, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600);
    try {
      await handle.chmod(0o600);
      const end = await endOfLastLine(handle);
      const bytes = Buffer.from(lines);
      const { bytesWritten } = await handle.write(bytes);
      if (bytesWritten < bytes.length) {
        await handle.truncate(end);
        throw Object.assign(new Error('disk full'), { code: 'ENOSPC' });
      }
    } finally {
      await handle.close();
    }
  }
}

/** The size of the file, without a line that a killed process began and never acknowledged: that one is cut off. */
async function endOfLastLine(handle: FileHandle): Promise<number> {
  const { size } = await handle.stat();
  const piece = Buffer.alloc(64 * 1024);
  let end = size;
  while (end > 0) {
    const start = Math.max(0, end - piece.length);
    const { bytesRead } = await handle.read(piece, 0, end - start, start);
    const lineEnd = piece.subarray(0, bytesRead).lastIndexOf(0x0a);
    if (lineEnd >= 0) {
      end = start + lineEnd + 1;
      break;
    }
    end = start;
  }
  if (end < size) await handle.truncate(end);
  return end;
}
