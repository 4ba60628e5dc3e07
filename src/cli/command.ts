import { Command } from 'commander';
import type { ExitCode } from './exit-codes.js';
import type { Terminal } from './terminal.js';
import { asJson } from '../wire/terminal-json.js';

/** The output of a command: for people, and with `--json` for programs. */
export interface Outcome {
  readonly text: string;
  readonly json: unknown;
  readonly exitCode?: ExitCode;
}

/** A command line that readers can copy. A test runs each. */
export interface Example {
  readonly line: string;
  readonly about: string;
}

/** A command of the tree: with examples in its help, and one way to print its outcome. */
export class CliCommand extends Command {
  readonly examples: Example[] = [];

  constructor(
    readonly terminal: Terminal,
    name?: string,
  ) {
    super(name);
    this.addHelpText('after', () => this.shownExamples());
  }

  override createCommand(name?: string): CliCommand {
    return new CliCommand(this.terminal, name);
  }

  /** Adds an example to the help; the first one should be the commonest use. */
  example(line: string, about: string): this {
    this.examples.push({ line, about });
    return this;
  }

  /** Adds `--json` and sets the action; its outcome is printed as text, or with `--json` as one line. */
  answers<Options extends object, Arguments extends readonly unknown[] = []>(
    act: (options: Options, ...values: Arguments) => Promise<Outcome>,
  ): this {
    this.option('--json', 'print one line of JSON instead of text');
    return this.action(async () => {
      const options = this.opts<Options & { readonly json?: boolean }>();
      // Commander has parsed them according to the declared arguments.
      const { text, json, exitCode = 0 } = await act(options, ...(this.processedArgs as unknown as Arguments));
      this.terminal.out(options.json ? `${asJson(json)}\n` : text);
      this.terminal.exitCode = exitCode;
    });
  }

  /** Sets the action of a command without a single outcome, such as a server or a shell script. */
  performs<Options extends object, Arguments extends readonly unknown[] = []>(
    act: (options: Options, ...values: Arguments) => Promise<void>,
  ): this {
    return this.action(() => act(this.opts<Options>(), ...(this.processedArgs as unknown as Arguments)));
  }

  /** The full name, as in `countersign kek rotate`. */
  get fullName(): string {
    return this.parent instanceof CliCommand ? `${this.parent.fullName} ${this.name()}` : this.name();
  }

  private shownExamples(): string {
    if (this.examples.length === 0) return '';
    const shown = this.examples.map(({ line, about }) => `  ${about}\n    $ ${line}`);
    const exitCodes = this.parent ? '\nExit codes: see countersign --help' : '';
    return `\nExamples:\n${shown.join('\n')}\n${exitCodes}`;
  }
}
