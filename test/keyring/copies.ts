import { createDecipheriv } from 'node:crypto';

const someDecipher = createDecipheriv('aes-256-gcm', Buffer.alloc(32), Buffer.alloc(12));
const decipher = Object.getPrototypeOf(someDecipher) as object;

/**
 * Which functions copied a secret while something ran, among other bytes too, and left their copy as it was. Sees
 * what is copied with `Buffer.from`, `Buffer.concat`, `Uint8Array.from`, `slice` and `set`, and decrypted, by us or by a
 * library; what Node copies inside is left out, because nobody else can wipe it.
 */
export async function unwipedCopies(
  secret: Uint8Array,
  run: () => unknown,
  which: 'alone' | 'among others too' = 'among others too',
): Promise<string[]> {
  const secretText = textOf(secret);
  const isIn = (bytes: Uint8Array): boolean =>
    which === 'alone' ? textOf(bytes) === secretText : textOf(bytes).includes(secretText);
  const made: { readonly bytes: Uint8Array; readonly by: string }[] = [];
  const restore = [
    [Buffer, 'from'] as const,
    [Buffer, 'concat'] as const,
    [Uint8Array, 'from'] as const,
    [Uint8Array.prototype, 'slice'] as const,
    [Uint8Array.prototype, 'set'] as const,
    [decipher, 'update'] as const,
  ].map(([owner, name]) =>
    watch(owner, name, (bytes) => {
      const by = (new Error().stack ?? '').split('\n')[3]?.trim() ?? '';
      const isView = bytes.buffer === secret.buffer && bytes.byteOffset === secret.byteOffset;
      if (!isIn(bytes) || isView || by.includes('node:')) return;
      made.push({ bytes, by });
    }),
  );
  try {
    await run();
  } finally {
    for (const one of restore) one();
  }
  return made.filter(({ bytes }) => isIn(bytes)).map(({ by }) => by);
}

/** Tells of each array of bytes that a function returns or, if it returns none, changes, until what is returned here is called. */
function watch(owner: object, name: string, tell: (bytes: Uint8Array) => void): () => void {
  const original = Reflect.get(owner, name) as (...given: unknown[]) => unknown;
  const isOwn = Object.hasOwn(owner, name);
  Reflect.set(owner, name, function (this: unknown, ...given: unknown[]): unknown {
    const made = Reflect.apply(original, this, given);
    const bytes = made ?? this;
    if (bytes instanceof Uint8Array) tell(bytes);
    return made;
  });
  return () => {
    if (isOwn) Reflect.set(owner, name, original);
    else Reflect.deleteProperty(owner, name);
  };
}

/** Without any of the functions that are watched. */
const textOf = (bytes: Uint8Array): string => `,${Array.prototype.join.call(bytes, ',')},`;
