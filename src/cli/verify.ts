import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { activities } from '../activities/index.js';
import { environment, readConfig } from '../config.js';
import { buildRegistry } from '../coordinator/registry.js';
import { eventsFile, openForReading } from '../event-store/open-event-store.js';
import { verifyHistory, type Verification } from '../replay/verify.js';
import { BadUsage } from './bad-usage.js';

/** Verifies a whole store again; see docs/how-to/verify-history.md. */

export const verifyUsage = `countersign verify [--json] [--quiet]

Folds every stream of the store again, checks its hash chain, verifies every stored stamp over the stored bytes, and makes
every decision again by the rules it was made by. Changes nothing, and needs no key-encryption key. The settings are those
of the coordinator: DATA_DIR, EVENT_STORE. Ends with 0 when nothing is wrong, 1 when something is, 2 when it cannot look.

  --json     one line of JSON instead of text
  --quiet    no progress

  DATA_DIR=./data countersign verify
`;

export interface Outcome {
  readonly text: string;
  readonly exitCode: number;
}

export async function verify(args: readonly string[]): Promise<Outcome> {
  const { json, quiet, help } = options(args);
  if (help) return { text: verifyUsage, exitCode: 0 };
  const { eventStore, dataDir } = readConfig(environment());
  if (eventStore === 'memory:') throw new BadUsage('EVENT_STORE=memory: keeps nothing between starts\n');
  if (eventStore === 'sqlite:' && !existsSync(eventsFile(dataDir))) {
    throw new BadUsage(`there is no ${eventsFile(dataDir)}: set DATA_DIR to the folder of the coordinator\n`);
  }
  const store = await openForReading(eventStore, dataDir);
  try {
    const isShown = !quiet && !json && process.stderr.isTTY;
    const verification = await verifyHistory(store, {
      registry: buildRegistry(activities),
      ...(isShown ? { onProgress: (events: number) => process.stderr.write(`\r${events} events`) } : {}),
    });
    if (isShown) process.stderr.write('\r\x1b[K');
    return { text: json ? asJson(verification) : asText(verification), exitCode: verification.findings.length && 1 };
  } finally {
    await store.close();
  }
}

function options(args: readonly string[]) {
  const flag = { type: 'boolean', default: false } as const;
  try {
    return parseArgs({ args: [...args], options: { json: flag, quiet: flag, help: flag } }).values;
  } catch (cause) {
    throw new BadUsage(`${cause instanceof Error ? cause.message : String(cause)}\n\n${verifyUsage}`, { cause });
  }
}

function asJson(verification: Verification): string {
  // A position may be above 2^53.
  const text = JSON.stringify(verification, (_key, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  );
  return `${text}\n`;
}

function asText({ findings, isCut, ...counts }: Verification): string {
  const { events, streams, decisions, unnumbered, stamps, stampsNotKept } = counts;
  const looked = [
    `${events} events in ${streams} streams`,
    `${stamps} stamps verified${stampsNotKept ? `, ${stampsNotKept} of denials not kept whole` : ''}`,
    `${decisions} decisions made again${unnumbered ? `, ${unnumbered} of an earlier release folded only` : ''}`,
  ].join('; ');
  if (findings.length === 0) return `Nothing is wrong: ${looked}.\n`;
  const lines = findings.map(({ stream, revision, problem }) => `  ${stream} @ ${revision}: ${problem}`);
  const count = `${isCut ? 'at least ' : ''}${findings.length} finding${findings.length === 1 ? '' : 's'}`;
  return `${count} (${looked}):\n${lines.join('\n')}\n`;
}
