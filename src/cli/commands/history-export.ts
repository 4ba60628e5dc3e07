import type { HistoryExportOptions } from '../history-export.js';
import type { CliCommand } from '../command.js';
import { withStore } from '../stores.js';

/** `countersign history export`. */
export function mountHistoryExport(parent: CliCommand): void {
  withStore(parent.command('export'))
    .summary('write the history of an organization to a file')
    .description(
      'Writes one file with everything that the decisions of an organization have read: its events, those of its parent, its ' +
        'denials and the claims to its keys and contacts. A test goes on from it: startCoordinator({ history }). No secret is in ' +
        'it, as none is in an event; tokens that are still alive lack their signatures. Without --redact it holds the names, ' +
        'e-mail addresses and phone numbers of everybody in the organization and its parent. Changes nothing, and may run ' +
        'beside the coordinator.',
    )
    .requiredOption('--organization <id>', 'whose history')
    .option('--redact', 'replace personal data by pseudonyms, the same for the same; nobody can turn them back')
    .option('--out <file>', 'the file to write, which must not be there; standard output when absent')
    .example(
      'countersign history export --organization $ORGANIZATION --redact --out bug.jsonl',
      'Write a history without names to a file that a test can go on from',
    )
    .answers(async (options: HistoryExportOptions) => {
      const { exportToFile } = await import('../history-export.js');
      return exportToFile(parent.terminal, options);
    });
}
