import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { BadSetting, environment, readConfig } from '../config.js';
import { eventsFile, openEventStore } from '../event-store/open-event-store.js';
import { rotateKek } from '../vault/rotate-kek.js';

/** Wraps every data key of the store under a new key-encryption key; see docs/how-to/rotate-the-kek.md. */

const world = { clock: { now: () => Date.now() }, randomness: { bytes: (count: number) => randomBytes(count) } };

async function rotate(): Promise<string> {
  const { eventStore, dataDir, kek, kekFile } = readConfig(environment());
  if (eventStore === 'memory:') throw new Error('EVENT_STORE=memory: keeps nothing between starts');
  if (eventStore === 'sqlite:' && !existsSync(eventsFile(dataDir))) {
    throw new Error(`there is no ${eventsFile(dataDir)}: set DATA_DIR to the folder of the coordinator`);
  }
  const store = await openEventStore(eventStore, dataDir);
  try {
    const { kekId, vaults, dataKeys, rewrapped, leftToDo } = await rotateKek({ ...world, store }, { kek, kekFile });
    return [
      `The key-encryption key is ${kekId} now.`,
      `${dataKeys} data keys in ${vaults} vaults open under it alone; ${rewrapped} of them were rewrapped.`,
      leftToDo === undefined
        ? `${kekFile} holds the new key only. Make a copy of it now; older backups of the events need the old key.`
        : `Left to do: ${leftToDo}.`,
      '',
    ].join('\n');
  } finally {
    await store.close();
  }
}

try {
  process.stdout.write(await rotate());
} catch (error) {
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(`countersign cannot rotate the key-encryption key: ${message}\n`);
  process.exitCode = error instanceof BadSetting ? 2 : 1;
}
