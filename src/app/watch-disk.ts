import { stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { Health } from '../ports/health.js';

/** Interval between two looks, in milliseconds. */
const lookMs = 5_000;
const mebibyte = 1024 * 1024;
/** So many times the minimum is nearly full. */
const nearly = 4;
/** A condition ends only with a tenth more than what started it, so that it does not come and go. */
const margin = 1.1;

/** Free bytes on the disk of a folder, for users without privileges; undefined if the system does not say. */
export async function freeBytes(folder: string): Promise<number | undefined> {
  const space = await statfs(folder).catch(() => undefined);
  return space && space.bavail * space.bsize;
}

const files = ['events.db', 'events.db-wal', 'read-models.db', 'read-models.db-wal', 'outbox.jsonl'] as const;

/** Bytes of the files in a data folder that grow; those that are not there are left out. */
export async function sizesIn(dataDir: string): Promise<Readonly<Record<string, number>>> {
  const sizes = files.map(async (name) => [name, await stat(join(dataDir, name)).catch(() => undefined)] as const);
  return Object.fromEntries((await Promise.all(sizes)).flatMap(([name, found]) => (found ? [[name, found.size]] : [])));
}

/** Raises the condition `disk-space` while the disk of the data folder is full or nearly full.. */
export async function watchDisk(dataDir: string, minFree: number, health: Health): Promise<void> {
  let severity: 'failing' | 'degraded' | undefined;
  const below = (free: number, bound: number, isRaised: boolean) => free < bound * (isRaised ? margin : 1);
  const look = async (): Promise<void> => {
    const free = await freeBytes(dataDir);
    if (free === undefined) return;
    const isFull = below(free, minFree, severity === 'failing');
    const isNearlyFull = below(free, minFree * nearly, severity !== undefined);
    severity = isFull ? 'failing' : isNearlyFull ? 'degraded' : undefined;
    if (severity === undefined) return health.clear('disk-space');
    const left = `${Math.floor(free / mebibyte)} MiB are free on the disk of DATA_DIR`;
    const minimum = `MIN_FREE_DISK (${Math.ceil(minFree / mebibyte)} MiB)`;
    const message = isFull
      ? `the disk is full: ${left}, less than ${minimum}; make room, or give DATA_DIR a larger disk`
      : `the disk is nearly full: ${left}, less than ${nearly} times ${minimum}; make room before this server stops`;
    health.raise('disk-space', severity, message);
  };
  await look();
  setInterval(() => void look(), lookMs).unref();
}
