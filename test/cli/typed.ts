import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { run } from '../../src/cli/run.js';
import { Terminal } from '../../src/cli/terminal.js';

/** What a command line wrote, and what its process would have ended with. */
export interface Typed {
  readonly code: number;
  readonly out: string;
  readonly error: string;
}

interface Around {
  readonly env?: Readonly<Record<string, string>>;
  /** What is typed, all of it at once. */
  readonly input?: string;
  /** What is typed when the command asks for something. */
  readonly reply?: (question: string) => string | Promise<string>;
  readonly colours?: boolean;
}

/** A user with a home and a working folder of their own, who types command lines within this process. */
export class TypingUser {
  private constructor(readonly folder: string) {}

  static async sitDown(): Promise<TypingUser> {
    return new TypingUser(await mkdtemp(join(tmpdir(), 'countersign-cli-')));
  }

  path(...names: readonly string[]): string {
    return join(this.folder, ...names);
  }

  /** Words that the shell has separated already. */
  async types(words: readonly string[], { env = {}, input, reply, colours = false }: Around = {}): Promise<Typed> {
    let out = '';
    let error = '';
    const stdin = reply ? new PassThrough() : Readable.from(input === undefined ? [] : [Buffer.from(input)]);
    const terminal = new Terminal({
      env: { PATH: process.env['PATH'], ...env },
      cwd: this.folder,
      home: this.folder,
      stdin,
      out: (text) => (out += text),
      error: (text) => {
        error += text;
        if (reply && stdin instanceof PassThrough && !stdin.writableEnded)
          void Promise.resolve(reply(text)).then((line) => stdin.end(`${line}\n`));
      },
      hasColours: { out: colours, error: colours },
      showsProgress: false,
      columns: undefined,
    });
    const code = await run(words, terminal);
    return { code, out, error };
  }

  /** A command that is to succeed, with what it says to programs. */
  async json<Answer = Readonly<Record<string, unknown>>>(
    words: readonly string[],
    around: Around = {},
  ): Promise<Answer> {
    const { code, out, error } = await this.types([...words, '--json'], around);
    expect({ words, code, error }).toEqual({ words, code: 0, error: '' });
    expect(out).toMatch(/^[^\n]+\n$/);
    return JSON.parse(out) as Answer;
  }

  async leaves(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}
