import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { deserialize, serialize } from 'node:v8';
import { snapshotVersion } from '../ledger/snapshots.js';
import { rulesNumber } from '../domain/activity/rules.js';

/** How far a verification has got: everything up to `position` was looked at, and `state` came of it. */
export interface Kept {
  readonly events: number;
  readonly position: bigint;
  /** Link in its chain of the event there; undefined where it has none. */
  readonly hash: string | undefined;
  readonly state: unknown;
}

/** What the state is made of differs between releases, and so may what comes of the rest. */
const format = `1 ${snapshotVersion} ${rulesNumber}`;

/**
 * The file in which a verification notes how far it is. It is believed when it is read: whoever can write it decides what
 * counts as verified.
 */
export class KeptProgress {
  private last = performance.now();

  /** @param every milliseconds between two notes: writing them must not take longer than what they save */
  constructor(
    private readonly file: string,
    private readonly every = 15_000,
  ) {}

  get isDue(): boolean {
    return performance.now() - this.last >= this.every;
  }

  /**
   * What was noted before; undefined when nothing was.
   * @throws {Error} when the file is something else, or of another release
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
    const beside = `${this.file}.new`;
    await writeFile(beside, serialize({ format, kept }), { mode: 0o600 });
    await rename(beside, this.file);
    this.last = performance.now();
  }

  /** It is done: the next verification begins anew. */
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
