import { existsSync, renameSync } from 'node:fs';
import type { EventReader } from '../ledger/event-store.js';
import { ReadModelDatabase, removeRows } from './database.js';
import { readModels } from './index.js';
import { projectIntoFile } from './projecting.js';
import { isBuiltBy } from './projector.js';
import { ReadModelRunner } from './runner.js';

/** Rounds of catching up with what a running coordinator records meanwhile; the start that adopts the file does the rest. */
const rounds = 5;

/** The file of read models that the next start adopts. */
function builtFile(file: string): string {
  return `${file}.built`;
}

export interface BuildOptions {
  /** Of the installation: the id of its root organization. */
  readonly identity: string;
  /** Called after each batch with how far it is and how far it has to go, store positions. */
  readonly onProgress?: (reached: bigint, goal: bigint) => void;
}

/**
 * Builds the read models of this release from the events of a store, which a coordinator of another release may be serving, next
 * to the file of that one. The next start of this release adopts them (`adoptBuilt`).
 * @returns the store position that they include
 * @throws {Error} if an event cannot be read, or the store or the disk fails; nothing is adopted then
 */
export async function buildReadModels(
  store: EventReader,
  file: string,
  { identity, onProgress = () => undefined }: BuildOptions,
): Promise<bigint> {
  const unfinished = `${file}.building`;
  removeRows(unfinished);
  let goal = (await store.head()) ?? -1n;
  const projecting = await projectIntoFile(unfinished, { identity, head: goal }, store);
  const stop = new AbortController();
  let failure: Error | undefined;
  const fail = (error: unknown): void => {
    failure ??= error instanceof Error ? error : new Error(String(error));
    stop.abort();
  };
  const runner: ReadModelRunner = new ReadModelRunner(store, projecting, {
    projected: () => onProgress(runner.reached(), goal),
    failed: (model, position, reason) => fail(new Error(`read model \`${model}\` stopped at ${position}: ${reason}`)),
    interrupted: fail,
  });
  let reached = -1n;
  try {
    runner.start();
    for (let round = 0; round < rounds && runner.reached() < goal; round++) {
      await runner.caughtUp(goal, stop.signal);
      if (failure) throw failure;
      goal = (await store.head()) ?? -1n;
    }
    reached = runner.reached();
  } finally {
    await runner.close();
    await projecting.close();
    if (failure) removeRows(unfinished);
  }
  removeRows(builtFile(file));
  moveRows(unfinished, builtFile(file));
  return reached;
}

/**
 * Replaces the read models of a stopped coordinator by those that were built for this release, unless theirs are of this release
 * already. What cannot be used is removed.
 * @returns what was done; undefined if nothing was built
 */
export function adoptBuilt(
  file: string,
  identity: string,
): 'adopted' | 'not-needed' | 'of-another-release' | undefined {
  const built = builtFile(file);
  if (!existsSync(built)) return undefined;
  const isCurrent = (path: string): boolean => {
    const rows = new ReadModelDatabase(path);
    try {
      return isBuiltBy(rows, readModels, identity);
    } finally {
      rows.close();
    }
  };
  const outcome = isCurrent(file) ? 'not-needed' : isCurrent(built) ? 'adopted' : 'of-another-release';
  if (outcome !== 'adopted') {
    removeRows(built);
    return outcome;
  }
  removeRows(file);
  moveRows(built, file);
  return outcome;
}

/** Moves rows that no connection uses to a name that is free: with everything in one file, so that nothing can be left behind. */
function moveRows(from: string, to: string): void {
  const rows = new ReadModelDatabase(from);
  rows.get('PRAGMA wal_checkpoint(TRUNCATE)');
  rows.close();
  renameSync(from, to);
  removeRows(from);
}
