import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { BadSetting, environment, readConfig } from '../config.js';
import { eventsFile, openEventStore } from '../ledger/stores/open-event-store.js';
import { rotateKek } from '../vault/rotate-kek.js';

/** Wraps every data key of the store under a new key-encryption key; see docs/how-to/rotate-the-kek.md. */

const usage =
  'npm run kek:rotate [-- --yes]\n' +
  '  --yes    do it without asking\n' +
  '  --help   say this, and do nothing\n' +
  'The settings are those of the coordinator: DATA_DIR, EVENT_STORE, KEK or KEK_FILE.';

class BadUsage extends Error {}

const world = { clock: { now: () => Date.now() }, randomness: { bytes: (count: number) => randomBytes(count) } };

function options(): { readonly yes: boolean; readonly help: boolean } {
  try {
    const { values } = parseArgs({ options: { yes: { type: 'boolean' }, help: { type: 'boolean' } } });
    return { yes: values.yes ?? false, help: values.help ?? false };
  } catch (error) {
    throw new BadUsage(error instanceof Error ? error.message : String(error));
  }
}

/** Whether the operator means it. @throws {BadUsage} when nobody answers, as where no terminal is */
async function isMeant(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin });
  process.stderr.write(`${question} [y/N] `);
  try {
    for await (const answer of terminal) return /^\s*y(?:es)?\s*$/i.test(answer);
  } finally {
    terminal.close();
  }
  throw new BadUsage('nobody has answered: say --yes to rotate the key-encryption key without being asked');
}

async function rotate(isSure: boolean): Promise<string> {
  const { eventStore, dataDir, kek, kekFile } = readConfig(environment());
  if (eventStore === 'memory:') throw new Error('EVENT_STORE=memory: keeps nothing between starts');
  if (eventStore === 'sqlite:' && !existsSync(eventsFile(dataDir))) {
    throw new Error(`there is no ${eventsFile(dataDir)}: set DATA_DIR to the folder of the coordinator`);
  }
  const place = eventStore === 'sqlite:' ? eventsFile(dataDir) : 'EVENT_STORE';
  if (!isSure && !(await isMeant(`Wrap every data key of ${place} under a new key-encryption key?`))) {
    return 'Nothing was changed.\n';
  }
  const store = await openEventStore(eventStore, dataDir);
  try {
    const { kekId, vaults, dataKeys, rewrapped, leftToDo } = await rotateKek({ ...world, store }, { kek, kekFile });
    return [
      `The key-encryption key is ${kekId} now.`,
      `${dataKeys} data keys in ${vaults} vaults open under it alone; ${rewrapped} of them were rewrapped.`,
      leftToDo === undefined
        ? `${kekFile} holds the new key only. Make a copy of it now; older backups of the events need the old key.\n` +
          'The old key is kept beside it, as `old-…` with its id: move it to your backups, or destroy it with them.'
        : `Left to do: ${leftToDo}.`,
      '',
    ].join('\n');
  } finally {
    await store.close();
  }
}

try {
  const { yes, help } = options();
  process.stdout.write(help ? `${usage}\n` : await rotate(yes));
} catch (error) {
  const message = error instanceof Error ? error.message : String(error);
  const more = error instanceof BadUsage ? `\n${usage}` : '';
  process.stderr.write(`countersign cannot rotate the key-encryption key: ${message}${more}\n`);
  process.exitCode = error instanceof BadSetting || error instanceof BadUsage ? 2 : 1;
}
