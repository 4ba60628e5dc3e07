/**
 * Which functions copied a secret while something ran, and left their copy as it was. Sees what is copied with
 * `Buffer.from`, `Buffer.concat`, `Uint8Array.from` and `slice`, by us or by a library; what Node copies inside is left
 * out, because nobody else can wipe it.
 */
export async function unwipedCopies(secret: Uint8Array, run: () => unknown): Promise<string[]> {
  const secretText = textOf(secret);
  const made: { readonly bytes: Uint8Array; readonly by: string }[] = [];
  const restore = [
    [Buffer, 'from'] as const,
    [Buffer, 'concat'] as const,
    [Uint8Array, 'from'] as const,
    [Uint8Array.prototype, 'slice'] as const,
  ].map(([owner, name]) =>
    watch(owner, name, (bytes) => {
      const by = (new Error().stack ?? '').split('\n')[3]?.trim() ?? '';
      const isView = bytes.buffer === secret.buffer && bytes.byteOffset === secret.byteOffset;
      if (bytes.length !== secret.length || textOf(bytes) !== secretText || isView || by.includes('node:')) return;
      made.push({ bytes, by });
    }),
  );
  try {
    await run();
  } finally {
    for (const one of restore) one();
  }
  return made.filter(({ bytes }) => textOf(bytes) === secretText).map(({ by }) => by);
}

/** Tells of each array of bytes that a function returns, until what is returned here is called. */
function watch(owner: object, name: string, tell: (bytes: Uint8Array) => void): () => void {
  const original = Reflect.get(owner, name) as (...given: unknown[]) => unknown;
  Reflect.set(owner, name, function (this: unknown, ...given: unknown[]): unknown {
    const made = Reflect.apply(original, this, given);
    if (made instanceof Uint8Array) tell(made);
    return made;
  });
  return () => {
    Reflect.set(owner, name, original);
  };
}

/** Without any of the functions that are watched. */
const textOf = (bytes: Uint8Array): string => Array.prototype.join.call(bytes, ',');
