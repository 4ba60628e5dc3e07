import { Writable } from 'node:stream';

/** One line of the log, parsed. */
export interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly [member: string]: unknown;
}

export const levels = { debug: 20, info: 30, warn: 40, error: 50 } as const;

/** A place for a coordinator to write its log to, and the lines that are there so far. */
export class LogLines extends Writable {
  text = '';

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    done();
  }

  all(): LogLine[] {
    return linesIn(this.text);
  }

  /** The lines about requests, in the order of their responses. */
  requests(): LogLine[] {
    return this.all().filter(({ msg }) => msg.startsWith('request'));
  }
}

/** The JSON lines of a text; others are left out. */
export function linesIn(text: string): LogLine[] {
  const lines = text.split('\n').filter((line) => line.startsWith('{'));
  return lines.map((line) => JSON.parse(line) as LogLine);
}
