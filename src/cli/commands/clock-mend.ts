import { randomBytes } from 'node:crypto';
import { openEventStore } from '../../ledger/stores/open-event-store.js';
import type { CliCommand, Outcome } from '../command.js';
import { storeSettings, withStoreOnly, type StoreOptions } from '../stores.js';
import type { Terminal } from '../terminal.js';

interface MendOptions extends StoreOptions {
  readonly yes?: boolean;
}

/** `countersign clock mend`; see docs/how-to/mend-a-clock.md. */
export function mountClockMend(parent: CliCommand): void {
  withStoreOnly(parent.command('mend'), 'With a profile, ask the operator to mend it')
    .summary('end the time that a wrong clock recorded')
    .description(
      'For an organization whose last event is more than 30 minutes ahead of the clock, because the clock was ahead when that was ' +
        'recorded. Ends every session, waiting activity, code and token of the false time, as recorded events, and lets the ' +
        'organization continue at the time of this machine. Asks for confirmation. Stop the coordinator of a SQLite store first. Each ' +
        'sub-organization with events of the false time is mended by itself.',
    )
    .argument('<organization>', 'the id of the organization; the log of the coordinator names it')
    .option('--yes', 'do not ask for confirmation')
    .example(
      'countersign clock mend --data-dir ./data "$ORGANIZATION"',
      'Mend one organization of a stopped coordinator',
    )
    .answers((options: MendOptions, organization: string) => mend(parent.terminal, organization, options));
}

async function mend(terminal: Terminal, input: string, options: MendOptions): Promise<Outcome> {
  const organizationId = input.toLowerCase();
  const { eventStore, dataDir } = storeSettings(terminal, options);
  const now = Date.now();
  const question = `Is ${new Date(now).toISOString()} the right time? Sessions, approvals, codes and tokens of organization ${organizationId} end.`;
  if (!options.yes && !(await terminal.confirm(question))) {
    return { text: 'Nothing was changed.\n', json: { mended: false } };
  }
  const [{ mendClock }, { uuidV7 }] = await Promise.all([
    import('../../ledger/mend-clock.js'),
    import('../../ledger/ids.js'),
  ]);
  const clock = { now: () => Date.now() };
  const newId = () => uuidV7(clock, { bytes: (count: number) => randomBytes(count) });
  const store = await openEventStore(eventStore, dataDir);
  try {
    const { name, lastTime, sessions, activities, codes, invitations } = await mendClock(
      { store, clock, newId },
      organizationId,
    );
    const last = new Date(lastTime).toISOString();
    const text = [
      `The clock of organization ${JSON.stringify(name)} (${organizationId}) is mended: its last event was recorded at ${last}.`,
      `Ended: ${sessions} keys that expire, ${activities} waiting activities, ${codes} codes, ${invitations} invitations, and every ` +
        'token and read-only session. Users log in again.',
      '',
    ].join('\n');
    return { text, json: { mended: true, organizationId, lastTime: last, sessions, activities, codes, invitations } };
  } finally {
    await store.close();
  }
}
