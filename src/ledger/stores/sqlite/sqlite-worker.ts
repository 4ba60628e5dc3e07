import { rmSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { errorMessage } from '../../../domain/errors.js';
import { LockedByAnother, type EventFile } from './event-file.js';
import { OpenFiles } from './file-lock.js';
import {
  fileLost,
  filesOf,
  openForReading,
  openForWriting,
  openingFailed,
  pidFile,
  writingFailed,
} from './open-file.js';
import type { Answer, Call, ChainedPage, Fault, FileCalls, OpenedFor } from './sqlite-protocol.js';

/** Milliseconds between two checks that the open files are still at their places; every commit is followed by one as well. */
const betweenChecks = 1_000;

const writes: ReadonlySet<keyof FileCalls> = new Set(['append', 'delete', 'probe']);

/** Answers calls until `close`. After a fault it refuses all writes: what is on disk then is not certain. */
function serve({ file, openedFor }: WorkerData, port: NonNullable<typeof parentPort>): void {
  let events: EventFile;
  try {
    events =
      openedFor === 'writing'
        ? openForWriting(file, (error) => fail(writingFailed(file, error)))
        : openForReading(file);
  } catch (error) {
    answer({ kind: 'failed', message: openingFailed(file, error) });
    port.close();
    return;
  }
  let fault: string | undefined;
  const files = new OpenFiles(openedFor === 'writing' ? filesOf(file) : []);
  if (openedFor === 'writing') setInterval(checkFiles, betweenChecks).unref();
  answer({ kind: 'done', result: events.head() });

  port.on('message', ({ method, args }: Call) => {
    const isClosing = method === 'close';
    if (isClosing && openedFor === 'writing' && fault === undefined) rmSync(pidFile(file), { force: true });
    try {
      const run = (): unknown => (events[method] as (...args: readonly unknown[]) => unknown)(...args);
      answer({ kind: 'done', result: writes.has(method) ? written(run) : run() });
    } catch (error) {
      answer(error instanceof LockedByAnother ? { kind: 'locked' } : { kind: 'failed', message: errorMessage(error) });
    }
    if (isClosing) port.close();
  });

  /** What was written counts only if it is in the file that the path leads to. */
  function written(run: () => unknown): unknown {
    if (openedFor === 'reading') throw new Error(`the event store \`${file}\` is open for reading only`);
    if (fault === undefined) {
      try {
        const result = run();
        checkFiles();
        if (fault === undefined) return result;
      } catch (error) {
        if (error instanceof LockedByAnother) throw error;
        fail(writingFailed(file, error));
        events.rollback();
      }
    }
    throw new Error(fault);
  }

  function checkFiles(): void {
    try {
      const path = files.lost();
      if (path !== undefined) fail(fileLost(file, path));
    } catch (error) {
      fail(writingFailed(file, error));
    }
  }

  function fail(message: string): void {
    if (fault !== undefined) return;
    fault = message;
    port.postMessage({ kind: 'fault', message } satisfies Fault);
  }

  function answer(message: Answer): void {
    const page = message.kind === 'done' ? (message.result as Partial<ChainedPage> | undefined) : undefined;
    const handedOver = page?.kind === 'chained-page' ? page.runs!.map(({ list }) => list.buffer) : [];
    port.postMessage(message, handedOver);
  }
}

interface WorkerData {
  readonly file: string;
  readonly openedFor: OpenedFor;
}

if (parentPort !== null) serve(workerData as WorkerData, parentPort);
