import type { Terminal } from '../terminal.js';

/** A part of the tour, as a program reads it. */
interface Chapter {
  readonly title: string;
  readonly lines: string[];
}

/** How the tour is told: on the terminal as it runs, or for a program at the end. */
export interface Stage {
  readonly chapters: readonly Chapter[];
  title(text: string): void;
  say(text?: string): void;
  /** What may be skipped. */
  note(text: string): void;
  dim(text: string): string;
  green(text: string): string;
  red(text: string): string;
  yellow(text: string): string;
}

/** Opens a stage; on the terminal unless it is for a program, and in colour where supported. */
export function openStage(terminal: Terminal, { isForProgram }: { readonly isForProgram: boolean }): Stage {
  const chapters: Chapter[] = [];
  const inStyle = (style: 'bold' | 'dim' | 'green' | 'red' | 'yellow') => (text: string) =>
    isForProgram ? text : terminal.styled(style, text);
  const [bold, dim] = [inStyle('bold'), inStyle('dim')];
  const say = (text = ''): void => {
    chapters.at(-1)?.lines.push(text.trim());
    if (!isForProgram) terminal.out(`${text}\n`);
  };
  return {
    chapters,
    title(text) {
      if (!isForProgram) terminal.out(`\n${bold(`${chapters.length + 1}. ${text}`)}\n`);
      chapters.push({ title: text, lines: [] });
    },
    say,
    note: (text) => say(`   ${dim(text)}`),
    dim,
    green: inStyle('green'),
    red: inStyle('red'),
    yellow: inStyle('yellow'),
  };
}
