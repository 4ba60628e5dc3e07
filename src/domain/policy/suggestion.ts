/** The nearest of some known words, or all of them where they are few, as the end of a message. */
export function suggestion(text: string, known: ReadonlySet<string>): string {
  const wanted = text.toUpperCase();
  let best: { readonly word: string; readonly distance: number } | undefined;
  // A text without end has no neighbours, and would take long to compare.
  if (text.length <= 80) {
    for (const word of known) {
      const distance = editDistance(wanted, word.toUpperCase());
      if (distance < (best?.distance ?? Infinity)) best = { word, distance };
    }
  }
  if (best && best.distance <= Math.min(best.word.length / 2, Math.max(3, best.word.length / 4)))
    return `: did you mean \`${best.word}\`?`;
  return known.size <= 20 ? `: known are ${[...known].map((word) => `\`${word}\``).join(', ')}` : '';
}

/** Letters to put in, take out or change (Levenshtein). */
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
