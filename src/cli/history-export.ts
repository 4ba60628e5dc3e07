import { randomBytes } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { activities } from '../activities/index.js';
import { buildRegistry } from '../decide/registry.js';
import { openForReading } from '../ledger/stores/open-event-store.js';
import { exportHistory, NothingToExport, type ExportReport } from '../audit/export/export-history.js';
import { BadUsage } from './bad-usage.js';
import type { Outcome } from './command.js';
import { storeSettings, type StoreOptions } from './stores.js';
import type { Terminal } from './terminal.js';

export interface HistoryExportOptions extends StoreOptions {
  readonly organization: string;
  readonly redact?: boolean;
  readonly out?: string;
  readonly json?: boolean;
}

/** Writes the history of an organization to a file or to standard output; see docs/how-to/production-bugs.md. */
export async function exportToFile(terminal: Terminal, options: HistoryExportOptions): Promise<Outcome> {
  if (options.json && options.out === undefined) {
    throw new BadUsage('--json prints a report: add --out FILE, because the history itself goes to standard output');
  }
  const { eventStore, dataDir } = storeSettings(terminal, options);
  const store = await openForReading(eventStore, dataDir);
  try {
    const exporting = (write: (line: string) => Promise<void> | void) =>
      exportHistory(
        store,
        {
          organizationId: options.organization.toLowerCase(),
          registry: buildRegistry(activities),
          now: Date.now(),
          ...(options.redact ? { redactionKey: randomBytes(32) } : {}),
        },
        write,
      );
    if (options.out === undefined) {
      const report = await exporting((line) => terminal.out(line));
      return { text: '', json: report };
    }
    const file = terminal.path(options.out);
    const report = await written(file, exporting);
    return { text: asText(file, report), json: { file, ...report } };
  } catch (error) {
    if (error instanceof NothingToExport) throw new BadUsage(error.message, { cause: error });
    throw error;
  } finally {
    await store.close();
  }
}

/** Readable only by its owner, because it may contain personal data; an incomplete file is removed. */
async function written(
  file: string,
  exporting: (write: (line: string) => Promise<void>) => Promise<ExportReport>,
): Promise<ExportReport> {
  const handle = await open(file, 'wx', 0o600).catch((cause: unknown) => {
    const isThere = (cause as NodeJS.ErrnoException).code === 'EEXIST';
    throw new BadUsage(
      isThere ? `${file} already exists: choose another name` : `${file} cannot be written: ${String(cause)}`,
      {
        cause,
      },
    );
  });
  try {
    return await exporting((line) => handle.appendFile(line));
  } catch (error) {
    await rm(file, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}

function asText(file: string, { header, events, changed, otherwise, unknownMembers }: ExportReport): string {
  const told = {
    none: 'nothing was replaced',
    tokens: `live tokens and sealed secrets were removed from ${changed} events`,
    'personal-data': `personal data was replaced in ${changed} events`,
  }[header.redacted];
  const notes = [
    ...otherwise.map((one) => `Decided differently on pseudonyms: ${one}`),
    ...(unknownMembers.length > 0 ? [`Replaced because their content is unknown: ${unknownMembers.join(', ')}`] : []),
  ];
  return [`${file}: ${events} events of organization ${header.organizationId}; ${told}.`, ...notes, ''].join('\n');
}
