import { rmSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { errorMessage } from '../../../domain/errors.js';
import { LockedByAnother, type EventFile } from './event-file.js';
import {
  fileLost,
  filesOf,
  openForReading,
  openForWriting,
  openingFailed,
  pidFile,
  writingFailed,
} from './open-file.js';
import { OpenFiles } from './open-files.js';
import type { Answer, Fault, OpenedFor, Request } from './sqlite-protocol.js';

/** Milliseconds between two checks that the open files are still at their places; every commit is followed by one as well. */
const betweenChecks = 1_000;

/** Answers requests until `close`. After a fault it refuses all: what is on disk then is not certain. */
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
  answer({ kind: 'opened', head: events.head() });

  port.on('message', (request: Request) => {
    switch (request.kind) {
      case 'append':
        write(() => ({ kind: 'appended', outcomes: events.append(request.batch) }));
        break;
      case 'delete':
        write(() => ({ kind: 'deleted', head: events.delete(request.stream) }));
        break;
      case 'probe':
        write(() => {
          events.probe();
          return { kind: 'writable' };
        });
        break;
      case 'read-stream':
        attempt(() => events.readStream(request.stream, request.from));
        break;
      case 'read-chained':
        attempt(
          () =>
            events.readChained(request.stream, request.from, request.after) ??
            events.readStream(request.stream, request.from),
        );
        break;
      case 'read-last':
        attempt(() => events.readLast(request.stream, request.most));
        break;
      case 'read-all':
        attempt(() => events.readAll(request.after));
        break;
      case 'head':
        attempt(() => ({ kind: 'head', head: events.head() }));
        break;
      case 'close':
        if (openedFor === 'writing' && fault === undefined) rmSync(pidFile(file), { force: true });
        attempt(() => {
          events.close();
          return { kind: 'closed' };
        });
        port.close();
        break;
    }
  });

  /** What was written counts only if it is in the file that the path leads to. */
  function write(work: () => Answer): void {
    attempt(() => {
      if (openedFor === 'reading') throw new Error(`the event store \`${file}\` is open for reading only`);
      if (fault === undefined) {
        try {
          const result = work();
          checkFiles();
          if (fault === undefined) return result;
        } catch (error) {
          if (error instanceof LockedByAnother) return { kind: 'locked' };
          fail(writingFailed(file, error));
          events.rollback();
        }
      }
      throw new Error(fault);
    });
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

  function attempt(work: () => Answer): void {
    let result: Answer;
    try {
      result = work();
    } catch (error) {
      result = { kind: 'failed', message: errorMessage(error) };
    }
    answer(result);
  }

  function answer(message: Answer): void {
    const handedOver = message.kind === 'chained-page' ? message.runs.map(({ list }) => list.buffer) : [];
    port.postMessage(message, handedOver);
  }
}

interface WorkerData {
  readonly file: string;
  readonly openedFor: OpenedFor;
}

if (parentPort !== null) serve(workerData as WorkerData, parentPort);
