import { rmSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import type { EventFile } from './event-file.js';
import { openForReading, openForWriting, openingFailed, pidFile } from './open-file.js';
import type { Answer, OpenedFor, Request } from './sqlite-protocol.js';

/** Answers requests until `close`. After a write that failed it only reads: what is on disk then is not certain. */
function serve({ file, openedFor }: WorkerData, port: NonNullable<typeof parentPort>): void {
  let events: EventFile;
  try {
    events = openedFor === 'writing' ? openForWriting(file) : openForReading(file);
  } catch (error) {
    answer({ kind: 'failed', message: openingFailed(file, error) });
    port.close();
    return;
  }
  answer({ kind: 'opened', head: events.head() });

  let failure: string | undefined;
  port.on('message', (request: Request) => {
    switch (request.kind) {
      case 'append':
        write(() => ({ kind: 'appended', outcomes: events.append(request.batch) }));
        break;
      case 'delete':
        write(() => ({ kind: 'deleted', head: events.delete(request.stream) }));
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
        if (openedFor === 'writing') rmSync(pidFile(file), { force: true });
        attempt(() => {
          events.close();
          return { kind: 'closed' };
        });
        port.close();
        break;
    }
  });

  function write(work: () => Answer): void {
    attempt(() => {
      if (failure !== undefined) throw new Error(failure);
      try {
        return work();
      } catch (error) {
        failure =
          `the event store \`${file}\` could not write (${messageOf(error)}) and accepts no more writes: ` +
          'make sure the disk is sound and has space, then restart';
        events.rollback();
        throw new Error(failure);
      }
    });
  }

  function attempt(work: () => Answer): void {
    let result: Answer;
    try {
      result = work();
    } catch (error) {
      result = { kind: 'failed', message: messageOf(error) };
    }
    answer(result);
  }

  function answer(message: Answer): void {
    const handedOver = message.kind === 'chained-page' ? message.runs.map(({ list }) => list.buffer) : [];
    port.postMessage(message, handedOver);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

interface WorkerData {
  readonly file: string;
  readonly openedFor: OpenedFor;
}

if (parentPort !== null) serve(workerData as WorkerData, parentPort);
