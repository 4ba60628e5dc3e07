import { join } from 'node:path';
import { activities } from '../activities/index.js';
import { buildRegistry } from '../decide/registry.js';
import { openForReading } from '../ledger/stores/open-event-store.js';
import { KeptProgress } from '../replay/kept-progress.js';
import { SavedHeads } from '../replay/saved-heads.js';
import { RowsAgain, type RowsCompared } from '../replay/rows-again.js';
import { verifyHistory, type Verification } from '../replay/verify.js';
import { BadUsage } from './bad-usage.js';
import type { Outcome } from './command.js';
import { exitCodes } from './exit-codes.js';
import { printable } from './layout.js';
import { progressBar } from './progress.js';
import { checkSource, storeSettings, type StoreOptions } from './stores.js';
import type { Terminal } from './terminal.js';

export interface VerifyOptions extends StoreOptions {
  readonly json?: boolean;
  readonly quiet?: boolean;
  readonly rows: boolean;
  readonly progress?: string;
  readonly heads?: string;
  /** Asks the coordinator of a profile, instead of opening the store. */
  readonly profile?: string;
}

/** Verifies a whole store; see docs/how-to/verify-history.md. */
export async function verify(terminal: Terminal, options: VerifyOptions): Promise<Outcome> {
  const { json, quiet, rows: withRows, progress, heads: headsFile, profile } = options;
  checkSource(options);
  if (profile !== undefined) {
    for (const [name, given] of Object.entries({ progress, heads: headsFile })) {
      if (given !== undefined) throw new BadUsage(`--${name} is of a store: leave it out with --profile`);
    }
    const { verifyShown } = await import('./shown-history.js');
    return verifyShown(terminal, profile);
  }
  const { eventStore, dataDir } = storeSettings(terminal, options);
  const heads = headsFile === undefined ? undefined : await savedHeads(terminal.path(headsFile));
  const store = await openForReading(eventStore, dataDir);
  const again = withRows ? await RowsAgain.beside(join(dataDir, 'read-models.db'), store) : undefined;
  const rowsAgain = again instanceof RowsAgain ? again : undefined;
  try {
    const isShown = !quiet && !json && terminal.surroundings.showsProgress;
    const started = performance.now();
    const verification = await verifyHistory(store, {
      registry: buildRegistry(activities),
      threads: true,
      heads,
      ...(progress === undefined ? {} : { progress: new KeptProgress(terminal.path(progress)) }),
      ...(rowsAgain ? { onEvent: (recorded) => rowsAgain.take(recorded) } : {}),
      ...(isShown
        ? {
            onProgress: (events: number, share: number) =>
              terminal.error(`\r${progressBar(events, share, performance.now() - started)}\x1b[K`),
          }
        : {}),
    });
    if (isShown) terminal.error('\r\x1b[K');
    const rows = verification.isCut ? undefined : await rowsAgain?.compared();
    const whole: Whole = {
      ...verification,
      ...(heads?.count ? { heads: heads.count } : {}),
      ...rowsOf(rows, typeof again === 'string' ? again : undefined),
    };
    const isWrong = whole.findings.length + (whole.rows?.differences.length ?? 0) > 0;
    if (!isWrong) await heads?.write();
    return { text: asText(whole), json: whole, exitCode: isWrong ? exitCodes.failed : exitCodes.done };
  } finally {
    await rowsAgain?.close();
    await store.close();
  }
}

async function savedHeads(file: string): Promise<SavedHeads> {
  try {
    return await SavedHeads.read(file);
  } catch (error) {
    throw new BadUsage(error instanceof Error ? error.message : String(error));
  }
}

/** The summary at the end. */
type Whole = Verification & { readonly rows?: RowsCompared; readonly heads?: number };

function rowsOf(rows: RowsCompared | undefined, absent: string | undefined): Pick<Whole, 'rows'> {
  if (rows) return { rows };
  return absent === undefined ? {} : { rows: { tables: 0, rows: 0, differences: [], notCompared: [absent] } };
}

function asText({ findings, isCut, rows, heads, ...counts }: Whole): string {
  const { events, streams, decisions, unnumbered, stamps, stampsNotKept, stampsRedacted } = counts;
  const looked = [
    `${events} events in ${streams} streams`,
    `${stamps} stamps verified${stampsNotKept ? `, ${stampsNotKept} of denials not kept in full` : ''}${stampsRedacted ? `, ${stampsRedacted} redacted` : ''}`,
    `${decisions} decisions made again${unnumbered ? `, ${unnumbered} of an earlier release folded only` : ''}`,
    ...(rows?.tables ? [`${rows.rows} rows of the read models built again`] : []),
  ].join('; ');
  const notCompared = (rows?.notCompared ?? []).map((why) => `Read models not compared: ${printable(why)}.\n`).join('');
  const differences = rows?.differences ?? [];
  const count = findings.length + differences.length;
  const saved = heads === undefined ? '' : `; ${heads} heads as they were saved`;
  if (count === 0) return `Nothing is wrong: ${looked}${saved}.\n${notCompared}`;
  const lines = [
    ...findings.map(({ stream, revision, problem }) => printable(`  ${stream} @ ${revision}: ${problem}`)),
    ...differences.map((difference) => printable(`  read model ${difference}`)),
  ];
  const counted = `${isCut ? 'at least ' : ''}${count} finding${count === 1 ? '' : 's'}`;
  return `${counted} (${looked}):\n${lines.join('\n')}\n${notCompared}`;
}
