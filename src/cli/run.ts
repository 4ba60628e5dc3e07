import { CommanderError, type Command } from 'commander';
import { slipsBetween } from '../config/environment.js';
import type { CliCommand } from './command.js';
import { asJson } from '../wire/terminal-json.js';
import { exitCodes, type ExitCode } from './exit-codes.js';
import { explained } from './explain.js';
import { printable } from './layout.js';
import type { Terminal } from './terminal.js';
import { commandTree } from './tree.js';

/** Runs one command line; returns the exit code. */
export async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const isForProgram = args.includes('--json');
  const tell = (message: string, exitCode: ExitCode, rest: object = {}): number => {
    terminal.error(isForProgram ? `${asJson({ error: { message, exitCode, ...rest } })}\n` : `error: ${message}\n`);
    return exitCode;
  };
  try {
    const tree = commandTree(terminal, { isForProgram });
    refuseUnknownVerb(tree, args);
    await tree.parseAsync(args, { from: 'user' });
    return terminal.exitCode;
  } catch (error) {
    if (error instanceof CommanderError) {
      // Asking for help is not an error, and people have read the reason already.
      if (error.exitCode === 0) return exitCodes.done;
      const isHelp = error.code.startsWith('commander.help');
      if (isHelp || !isForProgram) return exitCodes.badUsage;
      return tell(error.message.replace(/^error: /, ''), exitCodes.badUsage);
    }
    const { message, exitCode, answer } = explained(error);
    return tell(message.split('\n').map(printable).join('\n'), exitCode, answer);
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
