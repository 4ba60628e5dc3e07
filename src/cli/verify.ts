import { join } from 'node:path';
import { errorMessage } from '../domain/errors.js';
import { activities } from '../activities/index.js';
import { buildRegistry } from '../decide/registry.js';
import type { EventReader } from '../ledger/event-store.js';
import { eventsFile, openForReading } from '../ledger/stores/open-event-store.js';
import { SavedProgress } from '../audit/verify/saved-progress.js';
import { SavedHeads } from '../audit/verify/saved-heads.js';
import { RowsAgain, type RowsCompared } from '../audit/verify/rows-again.js';
import { verifyHistory, type Verification } from '../audit/verify/verify.js';
import { keepHeapSmall } from '../threads/new-space.js';
import { BadUsage } from './bad-usage.js';
import type { Outcome } from './command.js';
import { damagedFiles, type DamagedFile } from './damaged-files.js';
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
  readonly since?: string;
  /** Asks the coordinator of a profile, instead of opening the store. */
  readonly profile?: string;
}

/** Verifies a whole store; see docs/how-to/verify-history.md. */
export async function verify(terminal: Terminal, options: VerifyOptions): Promise<Outcome> {
  const { json, quiet, rows: withRows, progress, heads: headsFile, since: sinceFile, profile } = options;
  checkSource(options);
  if (profile !== undefined) {
    for (const [name, input] of Object.entries({ progress, heads: headsFile, since: sinceFile })) {
      if (input !== undefined) throw new BadUsage(`--${name} is of a store: leave it out with --profile`);
    }
    const { verifyShown } = await import('./shown-history.js');
    return verifyShown(terminal, profile);
  }
  const { eventStore, dataDir } = storeSettings(terminal, options);
  keepHeapSmall();
  let heads: SavedHeads | undefined;
  let since: SavedHeads | undefined;
  let store: EventReader | undefined;
  let rowsAgain: RowsAgain | undefined;
  try {
    if (headsFile !== undefined) heads = await savedHeads(terminal.path(headsFile), true);
    if (sinceFile !== undefined) since = await savedHeads(terminal.path(sinceFile), false);
    const damaged = damagedFiles(eventStore, dataDir);
    if (damaged.some(({ file }) => file === eventsFile(dataDir))) return damageOutcome(damaged);
    store = await openForReading(eventStore, dataDir);
    const isWithRows = withRows && since === undefined && damaged.length === 0;
    const again = await rowsBeside(isWithRows, join(dataDir, 'read-models.db'), store);
    rowsAgain = again instanceof RowsAgain ? again : undefined;
    let rows: RowsCompared | undefined;
    const compareRows = async () => (rows ??= await rowsAgain?.compared());
    const isShown = !quiet && !json && terminal.surroundings.showsProgress;
    const started = performance.now();
    const verification = await verifyHistory(store, {
      registry: buildRegistry(activities),
      threads: true,
      heads,
      since,
      isAllRight: async () => damaged.length === 0 && !(await compareRows())?.differences.length,
      ...(progress === undefined ? {} : { progress: new SavedProgress(terminal.path(progress)) }),
      ...(rowsAgain ? { onEvent: (recorded) => rowsAgain?.take(recorded) } : {}),
      ...(isShown
        ? {
            onProgress: (events: number, share: number) =>
              terminal.progress(progressBar(events, share, performance.now() - started)),
          }
        : {}),
    });
    if (isShown) terminal.progress();
    if (!verification.isCut) await compareRows();
    const compared = Math.max(heads?.count ?? 0, since?.count ?? 0);
    const whole: Whole = {
      ...verification,
      ...(compared ? { heads: compared } : {}),
      ...rowsOf(rows, since && withRows ? '--since leaves them out' : typeof again === 'string' ? again : undefined),
    };
    const isWrong = whole.findings.length + (whole.rows?.differences.length ?? 0) + damaged.length > 0;
    const text = `${damageText(damaged)}${asText(whole)}`;
    const shown = damaged.length > 0 ? { ...whole, damaged } : whole;
    return { text, json: shown, exitCode: isWrong ? exitCodes.failed : exitCodes.done };
  } finally {
    await rowsAgain?.close();
    await store?.close();
    heads?.close();
    since?.close();
  }
}

/** Rows to compare with, or why there are none: they are a cache, so nothing depends on them. */
async function rowsBeside(
  isWanted: boolean,
  file: string,
  store: EventReader,
): Promise<RowsAgain | string | undefined> {
  if (!isWanted) return undefined;
  try {
    return await RowsAgain.beside(file, store);
  } catch (error) {
    return `${file}: ${errorMessage(error)}`;
  }
}

/** Whatever reads a damaged event store would be wrong or fail, so nothing else is verified. */
function damageOutcome(damaged: readonly DamagedFile[]): Outcome {
  return { text: damageText(damaged), json: { damaged }, exitCode: exitCodes.failed };
}

function damageText(damaged: readonly DamagedFile[]): string {
  return damaged
    .map(({ file, problems, toDo }) => {
      const lines = problems.map((problem) => `  ${printable(problem)}\n`).join('');
      return `${printable(file)} is damaged:\n${lines}  → ${printable(toDo)}\n`;
    })
    .join('');
}

async function savedHeads(file: string, isNew: boolean): Promise<SavedHeads> {
  try {
    return await SavedHeads.read(file, isNew);
  } catch (error) {
    throw new BadUsage(errorMessage(error));
  }
}

/** The summary at the end. */
type Whole = Verification & { readonly rows?: RowsCompared; readonly heads?: number };

function rowsOf(rows: RowsCompared | undefined, absent: string | undefined): Pick<Whole, 'rows'> {
  if (rows) return { rows };
  return absent === undefined ? {} : { rows: { tables: 0, rows: 0, differences: [], notCompared: [absent] } };
}

function asText({ findings, isCut, rows, heads, ...counts }: Whole): string {
  const { events, eventsSince, streams, decisions, stamps, stampsNotKept, stampsRedacted } = counts;
  const parts = [
    `${events} events in ${streams} streams`,
    `${stamps} stamps`,
    `${decisions} decisions`,
    ...(rows?.tables ? [`${rows.rows} read-model rows`] : []),
  ];
  const verified = `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)} verified`;
  const notes = [
    ...(eventsSince === undefined
      ? []
      : [`Stamps and decisions: only of ${eventsSince} events since the saved heads.`]),
    ...(stampsNotKept ? [`${stampsNotKept} stamps of denials were not kept in full.`] : []),
    ...(stampsRedacted ? [`${stampsRedacted} stamps are redacted.`] : []),
    ...(heads === undefined ? [] : [`${heads} heads are as saved.`]),
  ].join(' ');
  const notCompared = (rows?.notCompared ?? []).map((why) => `Read models not compared: ${printable(why)}.\n`).join('');
  const differences = rows?.differences ?? [];
  const count = findings.length + differences.length;
  if (count === 0) return `OK: ${verified}.${notes && ` ${notes}`}\n${notCompared}`;
  const lines = [
    ...findings.map(({ stream, revision, problem }) => printable(`  ${stream} @ ${revision}: ${problem}`)),
    ...differences.map((difference) => printable(`  read model ${difference}`)),
  ];
  const counted = `${isCut ? 'at least ' : ''}${count} finding${count === 1 ? '' : 's'}`;
  return `${counted} (${verified}):\n${lines.join('\n')}\n${notCompared}`;
}
