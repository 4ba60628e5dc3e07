import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { styleText } from 'node:util';
import { BadUsage } from './bad-usage.js';
import { printable } from './layout.js';

type Style = Parameters<typeof styleText>[0];

/**
 * Where a command is typed, and where its output goes. Tests pass their own, so that commands run without a process.
 */
export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly home: string;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly out: (text: string) => void;
  readonly error: (text: string) => void;
  /** Whether the output may be coloured. */
  readonly hasColours: { readonly out: boolean; readonly error: boolean };
  /** Whether someone sees progress on standard error. */
  readonly showsProgress: boolean;
  readonly columns: number | undefined;
  /** Current rows of the terminal. */
  readonly rows?: () => number;
}

/** What `styled` writes: no other sequence passes, such as those that hide text or move the cursor. */
const escape = '\x1b';
const styles = new RegExp(`(${escape}\\[(?:1|2|22|3[1-79])m)`);

/** Text with every control character as an escape, except for line ends and tabs, and for styles where there may be any. */
function harmless(text: string, mayBeStyled: boolean): string {
  const parts = mayBeStyled ? text.split(styles) : [text];
  return parts.map((part, index) => (index % 2 === 1 ? part : part.replace(/[^\n\t]+/g, printable))).join('');
}

/** Input and output of commands. `exitCode` is that of the process. */
export class Terminal {
  exitCode = 0;

  constructor(readonly surroundings: Surroundings) {}

  /** The terminal of this process. */
  static ofProcess(): Terminal {
    const { env, stdin, stdout, stderr } = process;
    return new Terminal({
      env,
      cwd: process.cwd(),
      home: homedir(),
      stdin,
      out: (text) => void stdout.write(text),
      error: (text) => void stderr.write(text),
      // For this, Node.js honours NO_COLOR, FORCE_COLOR and TERM=dumb.
      hasColours: { out: stdout.isTTY && stdout.hasColors(), error: stderr.isTTY && stderr.hasColors() },
      showsProgress: stderr.isTTY,
      columns: stdout.isTTY ? stdout.columns : undefined,
      rows: () => stdout.rows,
    });
  }

  get env(): Surroundings['env'] {
    return this.surroundings.env;
  }

  /** Text for standard output: nothing in it can control the terminal, except for line ends and our own styles. */
  out(text: string): void {
    this.surroundings.out(harmless(text, this.surroundings.hasColours.out));
  }

  /** The same for standard error. */
  error(text: string): void {
    this.surroundings.error(harmless(text, this.surroundings.hasColours.error));
  }

  /** Writes control sequences of our own, around text that is `printable`, to a terminal. */
  draw(text: string): void {
    this.surroundings.out(text);
  }

  /** Replaces the line of progress on standard error; without text, clears it. */
  progress(text = ''): void {
    this.surroundings.error(`\r${printable(text)}\x1b[K${text === '' ? '' : '\r'}`);
  }

  /** A file as the user named it. */
  path(file: string): string {
    return resolve(this.surroundings.cwd, file);
  }

  /** Text for standard output, in colour on a terminal. */
  styled(style: Style, text: string): string {
    return this.surroundings.hasColours.out ? styleText(style, text, { validateStream: false }) : text;
  }

  /** Everything on standard input. */
  async input(): Promise<string> {
    const chunks: Buffer[] = [];
    for await (const chunk of this.surroundings.stdin) chunks.push(Buffer.from(chunk as Uint8Array));
    return Buffer.concat(chunks).toString('utf8');
  }

  /** One line typed by the user. @throws {BadUsage} if nobody answers */
  async ask(question: string): Promise<string> {
    const answer = await this.answerTo(`${question} `);
    if (answer === undefined) throw new BadUsage(`no answer to: ${question}`);
    return answer.trim();
  }

  /** Whether the user confirms. @throws {BadUsage} if nobody answers, for example without a terminal */
  async confirm(question: string): Promise<boolean> {
    const answer = await this.answerTo(`${question} [y/N] `);
    if (answer === undefined) throw new BadUsage('not confirmed: add --yes to skip the question');
    return /^\s*y(?:es)?\s*$/i.test(answer);
  }

  private async answerTo(question: string): Promise<string | undefined> {
    const lines = createInterface({ input: this.surroundings.stdin });
    this.error(question);
    try {
      for await (const answer of lines) return answer;
    } finally {
      lines.close();
    }
    // Nobody has ended the line of the question.
    this.error('\n');
    return undefined;
  }
}
