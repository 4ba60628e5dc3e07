import { emitKeypressEvents, type Key } from 'node:readline';
import type { ReadStream } from 'node:tty';
import { errorMessage } from '../domain/errors.js';
import type { Registry } from '../decide/registry.js';
import { compareStates } from '../audit/timeline/compare-states.js';
import { tellEvent } from '../audit/explain/event-story.js';
import type { OrganizationReplay } from '../audit/timeline/organization-replay.js';
import { documentOf } from '../audit/timeline/state-things.js';
import { printable } from './layout.js';
import { eventLines, outline } from './replay-text.js';
import { revisionOf } from './typed-point.js';
import type { Terminal } from './terminal.js';

const help = [
  '→ ←        next event, previous event',
  '↓ ↑        next decision, previous decision',
  'home end   first event, last event',
  'g          go to a revision, position:123, a time, or the id of an event',
  's          state after this event',
  'm c        mark this event; compare the marked event with this one',
  'page up/down  scroll',
  'q          quit',
];

const footer = '→ ← event   ↓ ↑ decision   g go to   s state   m mark   c compare   ? help   q quit';
const enter = '\x1b[?1049h\x1b[?25l';
const leave = '\x1b[?25h\x1b[?1049l';

/** Navigates a history, key by key. */
export class ReplaySession {
  private lines: readonly string[] = [];
  private scrolled = 0;
  private mark: number | undefined;
  /** The text typed after `g`. */
  private typed: string | undefined;
  private message = '';
  private readonly now = Date.now();

  private constructor(
    private readonly terminal: Terminal,
    private readonly stdin: ReadStream,
    private readonly replayed: OrganizationReplay,
    private readonly registry: Registry,
    private at: number,
  ) {}

  /** Undefined without a terminal. */
  static on(
    terminal: Terminal,
    replayed: OrganizationReplay,
    registry: Registry,
    at: number,
  ): ReplaySession | undefined {
    const { stdin, columns } = terminal.surroundings;
    if (!stdin.isTTY || columns === undefined || !('setRawMode' in stdin)) return undefined;
    return new ReplaySession(terminal, stdin as ReadStream, replayed, registry, at);
  }

  /** Resolves when the user quits. */
  async run(): Promise<void> {
    const { stdin, terminal } = this;
    emitKeypressEvents(stdin);
    stdin.setRawMode(true);
    terminal.draw(enter);
    try {
      await this.showEvent();
      this.draw();
      await new Promise<void>((resolve, reject) => {
        let working: Promise<void> = Promise.resolve();
        stdin.on('keypress', (text: string | undefined, key: Key) => {
          // Keys pressed during a fold wait for it.
          working = working.then(async () => {
            if (await this.press(text, key)) resolve();
            else this.draw();
          });
          working.catch(reject);
        });
        stdin.once('end', resolve);
        stdin.resume();
      });
    } finally {
      stdin.removeAllListeners('keypress');
      stdin.setRawMode(false);
      stdin.pause();
      terminal.draw(leave);
    }
  }

  /** @returns whether the user has quit */
  private async press(text: string | undefined, key: Key): Promise<boolean> {
    this.message = '';
    if (key.ctrl && key.name === 'c') return true;
    if (this.typed !== undefined) {
      await this.type(text, key);
      return false;
    }
    const { replayed, at } = this;
    switch (text === '?' ? '?' : key.name) {
      case 'q':
        return true;
      case 'right':
        await this.go(Math.min(at + 1, replayed.last));
        break;
      case 'left':
        await this.go(Math.max(at - 1, 0));
        break;
      case 'down':
        await this.go(replayed.nextDecision(at, 1) ?? replayed.last);
        break;
      case 'up':
        await this.go(replayed.nextDecision(at, -1) ?? 0);
        break;
      case 'home':
        await this.go(0);
        break;
      case 'end':
        await this.go(replayed.last);
        break;
      case 'pagedown':
        this.scrolled = Math.min(this.scrolled + this.page, Math.max(0, this.lines.length - this.page));
        break;
      case 'pageup':
        this.scrolled = Math.max(0, this.scrolled - this.page);
        break;
      case 'g':
        this.typed = '';
        break;
      case 's':
        this.show([`state after ${at}`, ...outline(documentOf(await replayed.stateAt(at), this.now))]);
        break;
      case 'm':
        this.mark = at;
        this.message = `${at} is marked: go to another event and press c`;
        break;
      case 'c':
        await this.compare();
        break;
      case '?':
        this.show(help);
        break;
    }
    return false;
  }

  private async type(text: string | undefined, key: Key): Promise<void> {
    const typed = this.typed!;
    if (key.name === 'escape') this.typed = undefined;
    else if (key.name === 'backspace') this.typed = typed.slice(0, -1);
    else if (key.name === 'return' || key.name === 'enter') {
      this.typed = undefined;
      try {
        await this.go(await revisionOf(this.replayed, typed.trim()));
      } catch (error) {
        this.message = errorMessage(error);
      }
    } else if (text !== undefined && printable(text) === text) this.typed = typed + text;
  }

  private async go(revision: number): Promise<void> {
    this.at = revision;
    await this.showEvent();
  }

  private async showEvent(): Promise<void> {
    this.show(eventLines(await tellEvent(this.replayed, this.registry, this.at, this.now), this.replayed.last));
  }

  private async compare(): Promise<void> {
    const { mark, at, replayed } = this;
    if (mark === undefined) {
      this.message = 'first mark an event with m';
      return;
    }
    const [from, to] = [Math.min(mark, at), Math.max(mark, at)];
    const changes = [...compareStates(await replayed.stateAt(from), await replayed.stateAt(to), this.now)];
    const texts = changes.length > 0 ? changes.map(({ text }) => text) : ['nothing has changed'];
    this.show([`from ${from} to ${to}`, ...texts].map(printable));
  }

  private show(lines: readonly string[]): void {
    this.lines = lines;
    this.scrolled = 0;
  }

  /** Lines that fit between the title and the footer. */
  private get page(): number {
    return Math.max(1, (this.terminal.surroundings.rows?.() ?? 24) - 3);
  }

  private draw(): void {
    const { terminal, replayed, scrolled, page } = this;
    const { columns = 80 } = terminal.surroundings;
    const title = `organization ${replayed.organizationId}`;
    const wrapped = this.lines.slice(scrolled, scrolled + page).flatMap((line) => wrap(line, columns));
    const typing = this.typed === undefined ? this.message || footer : `go to: ${this.typed}`;
    const rows = [title, '', ...wrapped.slice(0, page)];
    while (rows.length < page + 2) rows.push('');
    const shown = [...rows, printable(typing)].map((row) => `${[...row].slice(0, columns).join('')}\x1b[K`);
    terminal.draw(`\x1b[H${shown.join('\r\n')}`);
  }
}

/** A line wrapped to the terminal, at most four rows: use `--no-tty` for the rest of a long request. */
function wrap(line: string, columns: number): string[] {
  const characters = [...line];
  const rows: string[] = [];
  for (let at = 0; at < Math.max(1, characters.length) && rows.length < 4; at += columns) {
    rows.push(characters.slice(at, at + columns).join(''));
  }
  return rows;
}
