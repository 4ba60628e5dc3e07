/** As many words as a reader looks through, and as many as are worth a look where there are more. */
const listed = { most: 40, related: 5 } as const;

/**
 * The nearest of some known words, or all of them where they are few, or those that share a part such as `SIGN` with it, as
 * the end of a message.
 */
export function suggestion(text: string, known: Iterable<string>): string {
  const near = didYouMean(text, known);
  if (near !== '') return near;
  const words = [...known];
  if (words.length <= listed.most) return `: known are ${words.map((word) => `\`${word}\``).join(', ')}`;
  const parts = partsOf(text);
  const related = words
    .map((word) => ({ word, shared: partsOf(word).filter((part) => parts.includes(part)).length }))
    .filter(({ shared }) => shared > 0)
    .toSorted((one, other) => other.shared - one.shared)
    .slice(0, listed.related);
  return related.length > 0 ? `: similar are ${related.map(({ word }) => `\`${word}\``).join(', ')}` : '';
}

/** The known word that a text was probably meant to be, as the end of a message; empty where none is near. */
export function didYouMean(text: string, known: Iterable<string>): string {
  const meant = nearest(text, known);
  return meant === undefined ? '' : `: did you mean \`${meant}\`?`;
}

function nearest(text: string, known: Iterable<string>): string | undefined {
  const wanted = text.toUpperCase();
  let best: { readonly word: string; readonly distance: number } | undefined;
  // A very long text has no near neighbours, and would take long to compare.
  if (text.length <= 80) {
    for (const word of known) {
      const distance = editDistance(wanted, word.toUpperCase());
      if (distance < (best?.distance ?? Infinity)) best = { word, distance };
    }
  }
  if (best && best.distance <= Math.min(best.word.length / 2, Math.max(3, best.word.length / 4))) return best.word;
  return undefined;
}

/** What tells words apart: neither what all types begin with, nor their versions. */
function partsOf(text: string): readonly string[] {
  if (text.length > 80) return [];
  return text
    .toUpperCase()
    .replace(/^ACTIVITY_TYPE_/, '')
    .split(/[^A-Z]+/)
    .filter((part) => part.length >= 3)
    .map((part) => part.replace(/S$/, ''));
}

/** Number of letters to insert, remove or change (Levenshtein). */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(change, previous[j]! + 1, row[j - 1]! + 1));
    }
    previous = row;
  }
  return previous[b.length]!;
}
