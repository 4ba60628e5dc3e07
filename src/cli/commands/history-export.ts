import type { HistoryExportOptions } from '../history-export.js';
import type { CliCommand } from '../command.js';
import { withStoreOnly } from '../stores.js';

/** `countersign history export`. */
export function mountHistoryExport(parent: CliCommand): void {
  withStoreOnly(
    parent.command('export'),
    'With a profile, ask the operator for the file; `countersign replay --profile` shows the history itself',
  )
    .summary('write the history of an organization to a file')
    .description(
      'Writes one file with everything that the decisions of an organization depended on: its events, those of its parent, its ' +
        'denials and the claims to its keys and contacts. A test can continue from it: startCoordinator({ history }). It contains no secrets, ' +
        'because events contain none; tokens that are still valid lack their signatures. Without --redact, it contains the names, ' +
        'e-mail addresses and phone numbers of everybody in the organization and its parent. Changes nothing, and can run ' +
        'while the coordinator is running. Opens the store, so it is for the operator: with a profile, ask the operator for the ' +
        'file, or look at the history with `countersign replay --profile`.',
    )
    .requiredOption('--organization <id>', 'organization to export')
    .option(
      '--redact',
      'replace personal data with pseudonyms: equal values get equal pseudonyms, and nobody can reverse them',
    )
    .option('--out <file>', 'file to write, which must not exist yet; default: standard output')
    .example(
      'countersign history export --organization $ORGANIZATION --redact --out bug.jsonl',
      'Write a history without names to a file from which a test can continue',
    )
    .answers(async (options: HistoryExportOptions) => {
      const { exportToFile } = await import('../history-export.js');
      return exportToFile(parent.terminal, options);
    });
}
