import { readFile } from 'node:fs/promises';
import { replacePrivateFile } from '../../files/private-file.js';
import type { RecordedEvent } from '../../ledger/event-store.js';
import { linkOf } from '../../ledger/chain.js';
import { isChained, type CheckedChains } from './checked-chains.js';
import type { Finding } from './finding.js';
import { Spill, SpilledMap } from './spill.js';
import { vaultIdOf } from '../../domain/vault-streams.js';

/** The last event of a stream, and its link in the chain, which stands for all that came before it. */
interface SavedHead {
  readonly revision: number;
  readonly hash: string;
}

/** @see SavedHeads.take */
interface Head extends SavedHead {
  /** The store still has the event. */
  isMet: boolean;
}

/** Heads in memory. */
const mostInMemory = 20_000;

const format = 'countersign heads 1';

/**
 * The last links of all streams as they once were, kept where nobody who can write to the store can write. Whoever recomputes a
 * chain can leave out what no later signature depends on, or cut off its end: neither can give a stream the link that it had.
 */
export class SavedHeads {
  private readonly differing: Finding[] = [];
  private met = 0;

  private constructor(
    private readonly file: string,
    private readonly spill: Spill,
    private readonly saved: SpilledMap<Head>,
  ) {}

  /**
   * Those in a file.
   * @param isNew whether there may be no such file yet
   * @throws {Error} if the file is something else
   */
  static async read(file: string, isNew: boolean): Promise<SavedHeads> {
    const spill = new Spill();
    const saved = new SpilledMap<Head>(spill, {
      name: 'heads',
      most: mostInMemory,
      sizeOf: () => 1,
      write: (head) => Buffer.from(JSON.stringify(head)),
      read: (bytes) => JSON.parse(bytes.toString()) as Head,
    });
    for (const [stream, { revision, hash }] of headsIn(await textOf(file, isNew), file)) {
      saved.set(stream, { revision, hash, isMet: false });
      saved.shrink();
    }
    return new SavedHeads(file, spill, saved);
  }

  /** Of how many streams there are any. */
  get count(): number {
    return this.saved.size;
  }

  /** Whether an event was in the store when these were saved, if its stream is still the same. */
  has({ stream, revision }: RecordedEvent): boolean {
    return revision <= (this.saved.get(stream)?.revision ?? -1);
  }

  /** Takes every event of the store, in order. */
  take(recorded: RecordedEvent): void {
    const { stream, revision, position } = recorded;
    this.saved.shrink();
    const saved = this.saved.get(stream);
    const hash = linkOf(recorded);
    if (saved?.revision !== revision || hash === undefined) return;
    if (!saved.isMet) this.met++;
    saved.isMet = true;
    if (saved.hash === hash) return;
    const problem = `its link was \`${saved.hash}\` when \`${this.file}\` was saved, and is \`${hash}\` now: what the stream has up to here was changed since`;
    this.differing.push({ stream, revision, position, problem });
  }

  /** What is not as it was saved, once every event up to `position` was taken. @param chains where the streams end now */
  *findings(position: bigint, chains: CheckedChains): Generator<Finding> {
    yield* this.differing;
    if (this.met === this.saved.size) return;
    for (const [stream, { revision, isMet }] of this.saved.entries()) {
      if (isMet) continue;
      const end = chains.endOf(stream);
      const now = end ? `ends at revision ${end.revision} now` : 'is gone now';
      yield {
        stream,
        revision,
        position,
        problem: `the stream had this event when \`${this.file}\` was saved, and ${now}`,
      };
    }
  }

  /** Puts the heads of now in place of the saved ones. */
  async write(chains: CheckedChains): Promise<void> {
    const text: string[] = [];
    for (const [stream, { revision, hash }] of chains.all()) {
      if (!hasHead(stream)) continue;
      text.push(`${JSON.stringify(stream)}: ${JSON.stringify({ revision, hash })}`);
    }
    const heads = text.length === 0 ? '{}' : `{\n  ${text.join(',\n  ')}\n }`;
    await replacePrivateFile(this.file, `{\n "format": ${JSON.stringify(format)},\n "heads": ${heads}\n}\n`);
  }

  close(): void {
    this.spill.close();
  }
}

/** Whether a stream has a head to be saved. Vaults are shredded, streams and all. */
export function hasHead(stream: string): boolean {
  return isChained(stream) && vaultIdOf(stream) === undefined;
}

async function textOf(file: string, isNew: boolean): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT') throw error;
    if (isNew) return undefined;
    throw new Error(`\`${file}\` does not exist: save heads with \`countersign verify --heads\` first`, {
      cause: error,
    });
  }
}

function headsIn(text: string | undefined, file: string): (readonly [string, SavedHead])[] {
  if (text === undefined) return [];
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
  const entries = Object.entries(heads as Readonly<Record<string, Partial<SavedHead> | null>>);
  if (!entries.every(([, head]) => Number.isSafeInteger(head?.revision) && typeof head?.hash === 'string'))
    throw refused;
  return entries as [string, SavedHead][];
}
