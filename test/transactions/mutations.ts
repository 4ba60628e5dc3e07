import fc from 'fast-check';

/** Bytes that are nearly `start`: up to three of them changed, put in or taken out, and perhaps cut off. */
export function mutationsOf(start: Uint8Array): fc.Arbitrary<Uint8Array> {
  const edit = fc.record({ at: fc.nat(start.length - 1), remove: fc.nat(2), insert: fc.uint8Array({ maxLength: 2 }) });
  return fc
    .tuple(fc.array(edit, { minLength: 1, maxLength: 3 }), fc.option(fc.nat(start.length), { freq: 5 }))
    .map(([edits, length]) => {
      const bytes = [...start];
      for (const { at, remove, insert } of edits) bytes.splice(at, remove, ...insert);
      return Uint8Array.from(length === null ? bytes : bytes.slice(0, length));
    });
}
