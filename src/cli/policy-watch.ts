import { watch } from 'node:fs';
import { BadUsage } from './bad-usage.js';
import type { Outcome } from './command.js';
import { asJson } from '../wire/terminal-json.js';
import { exitCodes, type ExitCode } from './exit-codes.js';
import { printable } from './layout.js';
import type { Terminal } from './terminal.js';

/** Editors write a file in several steps: all of them are one change. */
const settlesAfterMs = 100;

/**
 * Runs something now, and again whenever a YAML file of a folder changes, until the process is told to end. The outcome has the
 * exit code of the last run.
 */
export async function watched(
  terminal: Terminal,
  folder: string,
  options: { readonly json?: boolean },
  run: () => Promise<Outcome>,
): Promise<Outcome> {
  const changes = new Changes();
  const watcher = watch(terminal.path(folder), (_event, file) => {
    // Reports for a CI server may be written to the same folder.
    if (file === null || file.endsWith('.yaml')) changes.add();
  });
  watcher.on('error', () => changes.end());
  const end = () => changes.end();
  process.once('SIGINT', end);
  process.once('SIGTERM', end);
  let runs = 0;
  let last: ExitCode = exitCodes.done;
  try {
    do {
      if (runs > 0 && !options.json) terminal.out('\n');
      const { text, json, exitCode = exitCodes.done } = await outcomeOf(run);
      terminal.out(options.json ? `${asJson(json)}\n` : text);
      last = exitCode;
      runs++;
    } while (await changes.next());
  } finally {
    watcher.close();
    process.removeListener('SIGINT', end);
    process.removeListener('SIGTERM', end);
  }
  return { text: '', json: { runs }, exitCode: last };
}

/** A file that is gone for a moment, or that cannot be read, ends nothing. */
async function outcomeOf(run: () => Promise<Outcome>): Promise<Outcome> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof BadUsage)) throw error;
    const { message } = error;
    return { text: `${printable(message)}\n`, json: { error: { message } }, exitCode: exitCodes.badUsage };
  }
}

/** Changes since the last look, until there are to be no more. */
class Changes {
  private isDue = false;
  private isEnded = false;
  private wake: () => void = () => undefined;

  add(): void {
    this.isDue = true;
    this.wake();
  }

  end(): void {
    this.isEnded = true;
    this.wake();
  }

  /** Resolves at the next change, once it is whole; false at the end. */
  async next(): Promise<boolean> {
    if (!this.isDue && !this.isEnded) await new Promise<void>((resolve) => (this.wake = resolve));
    if (!this.isEnded) await new Promise((resolve) => setTimeout(resolve, settlesAfterMs));
    this.isDue = false;
    return !this.isEnded;
  }
}
