import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { activities } from '../activities/index.js';
import { environment, readConfig } from '../config.js';
import { buildRegistry } from '../decide/registry.js';
import { eventsFile, openForReading } from '../ledger/stores/open-event-store.js';
import { KeptProgress } from '../replay/kept-progress.js';
import { RowsAgain, type RowsCompared } from '../replay/rows-again.js';
import { verifyHistory, type Verification } from '../replay/verify.js';
import { BadUsage } from './bad-usage.js';
import { progressBar } from './progress.js';

/** Verifies a whole store again; see docs/how-to/verify-history.md. */

export const verifyUsage = `countersign verify [--json] [--quiet] [--no-rows] [--progress FILE]

Folds every stream of the store again, checks its hash chain, verifies every stored stamp over the stored bytes, and makes
every decision again by the rules it was made by. Builds the read models again, beside, and compares. Changes nothing, needs
no key-encryption key, and the coordinator may run meanwhile. The settings are those of the coordinator: DATA_DIR,
EVENT_STORE. Ends with 0 when nothing is wrong, 1 when something is, 2 when it cannot look.

  --json      one line of JSON instead of text
  --quiet     no progress
  --no-rows   leave the read models out
  --progress FILE   note there how far it is, and go on from there when it has broken off; it is believed, so keep it where
                    nobody else can write

  DATA_DIR=./data countersign verify
`;

export interface Outcome {
  readonly text: string;
  readonly exitCode: number;
}

export async function verify(args: readonly string[]): Promise<Outcome> {
  const { json, quiet, help, 'no-rows': noRows, progress } = options(args);
  if (help) return { text: verifyUsage, exitCode: 0 };
  const { eventStore, dataDir } = readConfig(environment());
  if (eventStore === 'memory:') throw new BadUsage('EVENT_STORE=memory: keeps nothing between starts\n');
  if (eventStore === 'sqlite:' && !existsSync(eventsFile(dataDir))) {
    throw new BadUsage(`there is no ${eventsFile(dataDir)}: set DATA_DIR to the folder of the coordinator\n`);
  }
  const store = await openForReading(eventStore, dataDir);
  const again = noRows ? undefined : await RowsAgain.beside(join(dataDir, 'read-models.db'), store);
  const rowsAgain = again instanceof RowsAgain ? again : undefined;
  try {
    const isShown = !quiet && !json && process.stderr.isTTY;
    const started = performance.now();
    const verification = await verifyHistory(store, {
      registry: buildRegistry(activities),
      threads: true,
      ...(progress === undefined ? {} : { progress: new KeptProgress(progress) }),
      ...(rowsAgain ? { onEvent: (recorded) => rowsAgain.take(recorded) } : {}),
      ...(isShown
        ? {
            onProgress: (events: number, share: number) =>
              process.stderr.write(`\r${progressBar(events, share, performance.now() - started)}\x1b[K`),
          }
        : {}),
    });
    if (isShown) process.stderr.write('\r\x1b[K');
    const rows = verification.isCut ? undefined : await rowsAgain?.compared();
    const whole: Whole = { ...verification, ...rowsOf(rows, typeof again === 'string' ? again : undefined) };
    const isWrong = whole.findings.length + (whole.rows?.differences.length ?? 0) > 0;
    return { text: json ? asJson(whole) : asText(whole), exitCode: Number(isWrong) };
  } finally {
    await rowsAgain?.close();
    await store.close();
  }
}

/** What is said in the end. */
type Whole = Verification & { readonly rows?: RowsCompared };

function rowsOf(rows: RowsCompared | undefined, absent: string | undefined): Pick<Whole, 'rows'> {
  if (rows) return { rows };
  return absent === undefined ? {} : { rows: { tables: 0, rows: 0, differences: [], notCompared: [absent] } };
}

function options(args: readonly string[]) {
  const flag = { type: 'boolean', default: false } as const;
  try {
    return parseArgs({
      args: [...args],
      options: { json: flag, quiet: flag, help: flag, 'no-rows': flag, progress: { type: 'string' } },
    }).values;
  } catch (cause) {
    throw new BadUsage(`${cause instanceof Error ? cause.message : String(cause)}\n\n${verifyUsage}`, { cause });
  }
}

function asJson(verification: Whole): string {
  // A position may be above 2^53.
  const text = JSON.stringify(verification, (_key, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  );
  return `${text}\n`;
}

function asText({ findings, isCut, rows, ...counts }: Whole): string {
  const { events, streams, decisions, unnumbered, stamps, stampsNotKept } = counts;
  const looked = [
    `${events} events in ${streams} streams`,
    `${stamps} stamps verified${stampsNotKept ? `, ${stampsNotKept} of denials not kept whole` : ''}`,
    `${decisions} decisions made again${unnumbered ? `, ${unnumbered} of an earlier release folded only` : ''}`,
    ...(rows?.tables ? [`${rows.rows} rows of the read models built again`] : []),
  ].join('; ');
  const notCompared = (rows?.notCompared ?? []).map((why) => `Read models not compared: ${why}.\n`).join('');
  const differences = rows?.differences ?? [];
  const count = findings.length + differences.length;
  if (count === 0) return `Nothing is wrong: ${looked}.\n${notCompared}`;
  const lines = [
    ...findings.map(({ stream, revision, problem }) => `  ${stream} @ ${revision}: ${problem}`),
    ...differences.map((difference) => `  read model ${difference}`),
  ];
  const counted = `${isCut ? 'at least ' : ''}${count} finding${count === 1 ? '' : 's'}`;
  return `${counted} (${looked}):\n${lines.join('\n')}\n${notCompared}`;
}
