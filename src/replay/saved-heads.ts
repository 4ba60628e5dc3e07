import { readFile } from 'node:fs/promises';
import { replacePrivateFile } from '../files/private-file.js';
import type { RecordedEvent } from '../ledger/event-store.js';
import { linkOf } from './checked-history.js';
import { isChained } from './checked-chains.js';
import type { Finding } from './finding.js';
import { vaultIdOf } from '../domain/vault-streams.js';

/** The last event of a stream, and its link in the chain, which stands for all that came before it. */
interface Head {
  readonly revision: number;
  readonly hash: string;
}

const format = 'countersign heads 1';

/**
 * The last links of all streams as they once were, kept where nobody who can write to the store can write. Whoever recomputes a
 * chain can leave out what no later signature depends on, or cut off its end: neither can give a stream the link that it had.
 */
export class SavedHeads {
  private readonly now = new Map<string, Head>();
  private readonly met = new Set<string>();
  private readonly differing: Finding[] = [];

  private constructor(
    private readonly file: string,
    private readonly saved: ReadonlyMap<string, Head>,
  ) {}

  /**
   * Those in a file; none if there is no such file yet.
   * @throws {Error} if the file is something else
   */
  static async read(file: string): Promise<SavedHeads> {
    let text: string;
    try {
      text = await readFile(file, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return new SavedHeads(file, new Map());
      throw error;
    }
    return new SavedHeads(file, headsIn(text, file));
  }

  /** Of how many streams there are any. */
  get count(): number {
    return this.saved.size;
  }

  /** Takes every event of the store, in order. */
  take(recorded: RecordedEvent): void {
    const { stream, revision, position } = recorded;
    // Vaults are shredded, streams and all.
    if (!isChained(stream) || vaultIdOf(stream) !== undefined) return;
    const hash = linkOf(recorded);
    if (hash === undefined) return;
    this.now.set(stream, { revision, hash });
    const saved = this.saved.get(stream);
    if (saved?.revision !== revision) return;
    this.met.add(stream);
    if (saved.hash === hash) return;
    const problem = `its link was \`${saved.hash}\` when \`${this.file}\` was saved, and is \`${hash}\` now: what the stream has up to here was changed since`;
    this.differing.push({ stream, revision, position, problem });
  }

  /** What is not as it was saved, once every event up to `position` was taken. */
  findings(position: bigint): Finding[] {
    const lost = [...this.saved].filter(([stream]) => !this.met.has(stream));
    return [
      ...this.differing,
      ...lost.map(([stream, { revision }]) => ({
        stream,
        revision,
        position,
        problem:
          `the stream had this event when \`${this.file}\` was saved, and ` +
          (this.now.has(stream) ? `ends at revision ${this.now.get(stream)!.revision} now` : 'is gone now'),
      })),
    ];
  }

  /** Puts the heads of now in place of the saved ones. */
  async write(): Promise<void> {
    const heads = Object.fromEntries([...this.now].sort(([one], [other]) => (one < other ? -1 : 1)));
    await replacePrivateFile(this.file, `${JSON.stringify({ format, heads }, null, 1)}\n`);
  }
}

function headsIn(text: string, file: string): Map<string, Head> {
  const refused = new Error(
    `\`${file}\` does not have heads that were saved by \`countersign verify --heads\`: choose another file, or restore it`,
  );
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw refused;
  }
  const { format: written, heads } = (parsed ?? {}) as { readonly format?: unknown; readonly heads?: unknown };
  if (written !== format || typeof heads !== 'object' || heads === null) throw refused;
  const entries = Object.entries(heads as Readonly<Record<string, Partial<Head> | null>>);
  if (!entries.every(([, head]) => Number.isSafeInteger(head?.revision) && typeof head?.hash === 'string'))
    throw refused;
  return new Map(entries as [string, Head][]);
}
