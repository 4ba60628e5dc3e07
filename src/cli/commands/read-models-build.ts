import { join } from 'node:path';
import type { CliCommand, Outcome } from '../command.js';
import { exitCodes } from '../exit-codes.js';
import { progressBar } from '../progress.js';
import { storeSettings, withStoreOnly, type StoreOptions } from '../stores.js';
import type { Terminal } from '../terminal.js';

/** `countersign read-models build`; see docs/how-to/go-to-production.md. */
export function mountReadModelsBuild(parent: CliCommand): void {
  withStoreOnly(parent.command('build'), 'With a profile, ask the operator to build them')
    .summary('build the read models of this release before it is started')
    .description(
      'Builds the read models of this release from the events, while a coordinator of an earlier release serves. The next start ' +
        'of this release adopts them, so that an upgrade does not wait for a rebuild. Needs as much free disk as the read models take.',
    )
    .example(
      'countersign read-models build --data-dir ./data',
      'Prepare an upgrade of the coordinator whose data is in ./data',
    )
    .answers((options: StoreOptions) => build(parent.terminal, options));
}

async function build(terminal: Terminal, options: StoreOptions): Promise<Outcome> {
  const { eventStore, dataDir } = storeSettings(terminal, options);
  const [{ openForReading }, { rootOrganizationId }, { buildReadModels }] = await Promise.all([
    import('../../ledger/stores/open-event-store.js'),
    import('../../ledger/installation-stream.js'),
    import('../../read-models/build.js'),
  ]);
  const store = await openForReading(eventStore, dataDir);
  try {
    const identity = await rootOrganizationId(store);
    if (identity === undefined) {
      return {
        text: 'The store has no installation: nothing to build.\n',
        json: { built: false },
        exitCode: exitCodes.failed,
      };
    }
    const started = performance.now();
    const isShown = terminal.surroundings.showsProgress;
    const position = await buildReadModels(store, join(dataDir, 'read-models.db'), {
      identity,
      onProgress(reached, goal) {
        if (!isShown || goal <= 0n) return;
        const share = Number(reached) / Number(goal);
        terminal.progress(progressBar(Number(reached), share, performance.now() - started));
      },
    });
    if (isShown) terminal.progress();
    const text = `Built up to position ${position}. The next start of this release adopts the read models.\n`;
    return { text, json: { built: true, position: String(position) } };
  } finally {
    await store.close();
  }
}
