import { Argument } from 'commander';
import type { CliCommand } from '../command.js';

/** `countersign completion`. */
export function mountCompletion(parent: CliCommand): void {
  parent
    .command('completion')
    .addArgument(new Argument('<shell>', 'your shell').choices(['bash', 'zsh', 'fish']))
    .summary('print a completion script for your shell')
    .description(
      'Prints a script that completes commands, options, and the names of activities and queries. To install it, add ' +
        '`source <(countersign completion bash)` to ~/.bashrc, the same with zsh to ~/.zshrc, or save the script as ' +
        '~/.config/fish/completions/countersign.fish.',
    )
    .example('countersign completion bash', 'Print the script for bash')
    .answers(async (_options: object, shell: 'bash' | 'zsh' | 'fish') => {
      const { completionScript } = await import('../completion.js');
      const script = completionScript(parent, shell);
      return { text: script, json: { shell, script } };
    });
}
