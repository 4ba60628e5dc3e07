import { errorMessage } from '../../../domain/errors.js';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import Database from 'libsql';

/**
 * What SQLite finds wrong with the structures of a file, such as an index that lacks a row; empty if nothing. It says nothing about
 * the contents. Reads the whole file.
 */
export function integrityProblems(file: string): readonly string[] {
  try {
    // A writer would copy the log back into the file as it closes; a reader would leave an empty log where there is none.
    const mode = existsSync(`${file}-wal`) ? 'ro' : 'rw';
    const database = new Database(`${pathToFileURL(resolve(file)).href}?mode=${mode}`);
    try {
      const found = database.pragma('integrity_check') as readonly { readonly integrity_check: string }[];
      return found.map(({ integrity_check: problem }) => problem).filter((problem) => problem !== 'ok');
    } finally {
      database.close();
    }
  } catch (error) {
    return [errorMessage(error)];
  }
}
