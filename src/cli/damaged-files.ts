import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { eventsFile } from '../ledger/stores/open-event-store.js';
import { integrityProblems } from '../ledger/stores/sqlite/integrity.js';

/** A file whose structures SQLite cannot rely on, and the remedy. */
export interface DamagedFile {
  readonly file: string;
  readonly problems: readonly string[];
  readonly toDo: string;
}

/** The damaged ones of the files of a store. Reads them whole. */
export function damagedFiles(eventStore: string, dataDir: string): readonly DamagedFile[] {
  const rows = join(dataDir, 'read-models.db');
  const damaged: DamagedFile[] = [];
  if (eventStore === 'sqlite:' && existsSync(eventsFile(dataDir))) {
    const file = eventsFile(dataDir);
    const problems = integrityProblems(file);
    const isIndexOnly = problems.every((problem) => /\bindex\b/i.test(problem));
    const toDo = isIndexOnly
      ? `stop the coordinator, copy ${file}, run sqlite3 ${file} REINDEX, and verify again`
      : 'stop the coordinator and restore a backup';
    if (problems.length > 0) damaged.push({ file, problems, toDo });
  }
  const problems = existsSync(rows) ? integrityProblems(rows) : [];
  const toDo = 'stop the coordinator and remove it: it is built anew from the events at the next start';
  if (problems.length > 0) damaged.push({ file: rows, problems, toDo });
  return damaged;
}
