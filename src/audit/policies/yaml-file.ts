import { isScalar, LineCounter, parseDocument, visit } from 'yaml';

/** A mistake in a file, with its place from 1. */
export interface Mistake {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly text: string;
}

/** Each is looked up in the whole document. */
const mostMistakes = 100;

type Path = readonly (string | number)[];

/** A YAML file, read into plain values, which knows where each of them stands. */
export class YamlFile {
  readonly mistakes: Mistake[] = [];
  private readonly lines = new LineCounter();
  private readonly document;

  constructor(
    readonly name: string,
    private readonly text: string,
  ) {
    // The library compares each key with every other one, which takes minutes for a file of keys.
    this.document = parseDocument(text, { lineCounter: this.lines, intAsBigInt: true, uniqueKeys: false });
    for (const { message, pos } of this.document.errors) this.add(pos[0], message.split(' at line ')[0]!);
    visit(this.document, {
      Alias: (_key, { source, range }) =>
        this.add(range?.[0] ?? 0, `\`*${source}\` is an alias: write out what it stands for`),
      Map: (_key, { items }) => this.addRepeated(items.map(({ key }) => key)),
    });
  }

  /** All of it; undefined if it is no YAML. */
  get value(): unknown {
    return this.mistakes.length > 0 ? undefined : (this.document.toJS() as unknown);
  }

  /** Reports a value; `at` is a place in its text, if that is where it is wrong. */
  wrong(path: Path, text: string, at?: { readonly line: number; readonly column: number }): void {
    if (this.isFull) return;
    const node: unknown = this.document.getIn(path, true);
    const [offset] = (node as { readonly range?: readonly number[] } | null | undefined)?.range ?? [0];
    const { line, col } = this.lines.linePos(offset ?? 0);
    if (!at || !isScalar(node)) this.mistakes.push({ file: this.name, line, column: col, text });
    else if (node.type === 'BLOCK_LITERAL' || node.type === 'BLOCK_FOLDED') {
      this.mistakes.push({ file: this.name, line: line + at.line, column: this.indentAfter(line) + at.column, text });
    } else {
      const quote = node.type === 'PLAIN' ? 0 : 1;
      this.mistakes.push({ file: this.name, line: line + at.line - 1, column: col + quote + at.column - 1, text });
    }
  }

  private indentAfter(line: number): number {
    return /^ */.exec(this.text.slice(this.lines.lineStarts[line] ?? 0))![0].length;
  }

  /** Says, once there are too many mistakes, that there are more. */
  private get isFull(): boolean {
    const { length } = this.mistakes;
    if (length === mostMistakes) {
      const text = `there are more mistakes than these ${mostMistakes}`;
      this.mistakes.push({ ...this.mistakes[length - 1]!, text });
    }
    return length >= mostMistakes;
  }

  private addRepeated(keys: readonly unknown[]): void {
    const seen = new Set<unknown>();
    for (const key of keys) {
      if (!isScalar(key)) continue;
      if (seen.has(key.value)) this.add(key.range?.[0] ?? 0, `\`${String(key.value)}\` stands here twice`);
      seen.add(key.value);
    }
  }

  private add(offset: number, text: string): void {
    if (this.isFull) return;
    const { line, col } = this.lines.linePos(offset);
    this.mistakes.push({ file: this.name, line, column: col, text });
  }
}
