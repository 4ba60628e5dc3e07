import { CommanderError } from 'commander';
import { asJson } from './command.js';
import { exitCodes } from './exit-codes.js';
import { explained } from './explain.js';
import { printable } from './layout.js';
import type { Terminal } from './terminal.js';
import { commandTree } from './tree.js';

/** Runs one command line; returns what the process should end with. */
export async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    await commandTree(terminal).parseAsync(args, { from: 'user' });
    return terminal.exitCode;
  } catch (error) {
    // It has said why; asking for help is no error.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.badUsage;
    const { message: said, exitCode, answer } = explained(error);
    const message = said.split('\n').map(printable).join('\n');
    terminal.error(
      args.includes('--json') ? `${asJson({ error: { message, exitCode, ...answer } })}\n` : `error: ${message}\n`,
    );
    return exitCode;
  }
}
