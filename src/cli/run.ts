import { CommanderError, type Command } from 'commander';
import { slipsBetween } from '../config/environment.js';
import { asJson, type CliCommand } from './command.js';
import { exitCodes } from './exit-codes.js';
import { explained } from './explain.js';
import { printable } from './layout.js';
import type { Terminal } from './terminal.js';
import { commandTree } from './tree.js';

/** Runs one command line; returns the exit code. */
export async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    const tree = commandTree(terminal);
    refuseUnknownVerb(tree, args);
    await tree.parseAsync(args, { from: 'user' });
    return terminal.exitCode;
  } catch (error) {
    // The reason was already printed; asking for help is not an error.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.badUsage;
    const { message: said, exitCode, answer } = explained(error);
    const message = said.split('\n').map(printable).join('\n');
    terminal.error(
      args.includes('--json') ? `${asJson({ error: { message, exitCode, ...answer } })}\n` : `error: ${message}\n`,
    );
    return exitCode;
  }
}

/** A group that lists by default would take a misspelled subcommand for an argument of its list. */
function refuseUnknownVerb(tree: CliCommand, args: readonly string[]): void {
  let group: Command = tree;
  for (const word of args) {
    if (word.startsWith('-') || word === 'help') return;
    const next = group.commands.find((command) => command.name() === word);
    if (next) group = next;
    else if (group === tree || group.commands.length === 0) return;
    else return group.error(unknownVerb(word, group));
  }
}

function unknownVerb(word: string, { commands }: Command): string {
  const names = commands.map((command) => command.name());
  const near = names.filter((name) => slipsBetween(word, name) <= 2);
  return `error: unknown command '${word}'\n(${near.length > 0 ? `Did you mean ${near.join(' or ')}?` : `Available: ${names.join(', ')}.`})`;
}
