import { randomBytes } from 'node:crypto';
import { eventsFile, openEventStore } from '../../ledger/stores/open-event-store.js';
import type { CliCommand, Outcome } from '../command.js';
import { storeSettings, withStoreOnly, type StoreOptions } from '../stores.js';
import type { Terminal } from '../terminal.js';

interface RotateOptions extends StoreOptions {
  readonly yes?: boolean;
}

/** `countersign kek rotate`; see docs/how-to/rotate-the-kek.md. */
export function mountKekRotate(parent: CliCommand): void {
  withStoreOnly(parent.command('rotate'), 'With a profile, ask the operator to rotate it')
    .summary('encrypt every data key with a new key-encryption key')
    .description(
      'Encrypts every data key of the store with a new key-encryption key. Asks for confirmation. Stop the coordinator first, unless the ' +
        'keys are in KEK and the store is an EventStoreDB. To finish an interrupted rotation, run the command again.',
    )
    .option('--yes', 'do not ask for confirmation')
    .example('countersign kek rotate --data-dir ./data --yes', 'Rotate the key of a stopped coordinator')
    .answers((options: RotateOptions) => rotate(parent.terminal, options));
}

const world = { clock: { now: () => Date.now() }, randomness: { bytes: (count: number) => randomBytes(count) } };

async function rotate(terminal: Terminal, options: RotateOptions): Promise<Outcome> {
  const { eventStore, dataDir, kek, kekFile } = storeSettings(terminal, options);
  const place = eventStore === 'sqlite:' ? eventsFile(dataDir) : 'EVENT_STORE';
  const question = `Encrypt every data key of ${place} with a new key-encryption key?`;
  if (!options.yes && !(await terminal.confirm(question))) {
    return { text: 'Nothing was changed.\n', json: { rotated: false } };
  }
  const { rotateKek } = await import('../../vault/rotate-kek.js');
  const store = await openEventStore(eventStore, dataDir);
  try {
    const rotation = await rotateKek({ ...world, store }, { kek, kekFile });
    const { kekId, vaults, dataKeys, rewrapped, leftToDo } = rotation;
    const text = [
      `The key-encryption key is now ${kekId}.`,
      `${dataKeys} data keys in ${vaults} vaults can be opened with it alone; ${rewrapped} of them were re-encrypted.`,
      leftToDo === undefined
        ? `${kekFile} now holds only the new key. Make a copy of it; older backups of the events still need the old key.\n` +
          'The old key is kept next to it, as `old-…` with its id: move it to your backups, or destroy it together with them.'
        : `Left to do: ${leftToDo}.`,
      '',
    ].join('\n');
    return { text, json: { rotated: true, kekId, vaults, dataKeys, rewrapped, leftToDo } };
  } finally {
    await store.close();
  }
}
