/** What puts emphasis on text: a `Terminal`. */
interface Styling {
  styled(style: 'bold', text: string): string;
}

/** A table with columns as wide as their contents. */
export function table(terminal: Styling, head: readonly string[], rows: readonly (readonly string[])[]): string {
  const clean = rows.map((row) => row.map(printable));
  const widths = head.map((title, at) => Math.max(title.length, ...clean.map((row) => row[at]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    cells
      .map((text, at) => text.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd();
  return [terminal.styled('bold', line(head)), ...clean.map(line), ''].join('\n');
}

/** Values with their names in front: pairs, as several facts may have one name, and each is shown. */
export function lines(
  terminal: Styling,
  values: readonly (readonly [name: string, value: string | undefined])[],
): string {
  const shown = values.flatMap(([name, value]) => (value === undefined ? [] : [[printable(name), value] as const]));
  const width = Math.max(...shown.map(([name]) => name.length));
  return shown.map(([name, value]) => `${terminal.styled('bold', name.padEnd(width))}  ${printable(value)}\n`).join('');
}

/**
 * Others' text on one line, safe for a terminal: characters that could move the cursor, colour the rest, reorder it or stay
 * unseen are shown as escapes such as `\u{1b}`.
 */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (found) => {
    return found === '\t' ? ' ' : `\\u{${found.codePointAt(0)!.toString(16)}}`;
  });
}

/** The part of a policy's text that decided, as the end of a sentence; nothing if none did. */
export function becauseOf(
  clause: { readonly name: string; readonly text: string; readonly outcome: string } | undefined,
) {
  return clause === undefined ? '' : `, as its ${clause.name} \`${clause.text}\` is ${clause.outcome}`;
}
