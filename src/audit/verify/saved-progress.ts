import { readFile, rm } from 'node:fs/promises';
import { deserialize, serialize } from 'node:v8';
import { replacePrivateFile } from '../../files/private-file.js';
import type { Finding } from './finding.js';
import { rulesNumber } from '../../domain/activity/rules.js';

/** What was checked. */
export interface Counts {
  /** Decisions that were made again. */
  decisions: number;
  /** Stamps of requests, votes and denials whose signature is valid for the stored bytes. */
  stamps: number;
  /**
   * Denials whose request was too long to be stored in full, or was stamped by a passkey: their stamps cannot be
   * verified.
   */
  stampsNotKept: number;
  /**
   * Stamps of events that an export has redacted, which no key verifies any more; only in a history imported for tests.
   */
  stampsRedacted: number;
}

/** The progress of a verification: stamps and decisions up to `position` were checked, with these results. */
export interface Kept {
  readonly position: bigint;
  /** The event's link in its chain; undefined if it has none. */
  readonly hash: string | undefined;
  readonly counts: Counts;
  readonly findings: readonly Finding[];
}

/** Releases with other rules may have other results. */
const format = `2 ${rulesNumber}`;

/**
 * The file in which a verification saves its progress. It is trusted when read: whoever can write it decides which stamps and
 * decisions count as verified.
 */
export class SavedProgress {
  private last = performance.now();

  /** @param every milliseconds between two saves: writing must not take longer than it saves */
  constructor(
    private readonly file: string,
    private readonly every = 15_000,
  ) {}

  get isDue(): boolean {
    return performance.now() - this.last >= this.every;
  }

  /**
   * The saved progress; undefined if there is none.
   * @throws {Error} if the file is something else, or from another release
   */
  async read(): Promise<Kept | undefined> {
    let bytes: Buffer;
    try {
      bytes = await readFile(this.file);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
    const { kept, format: written } = readAs(bytes);
    if (written !== format || !kept) {
      throw new Error(
        `\`${this.file}\` was not written by a verification of this release: remove it, or choose another file`,
      );
    }
    return kept;
  }

  async write(kept: Kept): Promise<void> {
    await replacePrivateFile(this.file, serialize({ format, kept }));
    this.last = performance.now();
  }

  /** Verification is done: the next one starts from the beginning. */
  async remove(): Promise<void> {
    await rm(this.file, { force: true });
  }
}

function readAs(bytes: Buffer): { readonly format?: unknown; readonly kept?: Kept } {
  try {
    return deserialize(bytes) as { readonly format?: unknown; readonly kept?: Kept };
  } catch {
    return {};
  }
}
