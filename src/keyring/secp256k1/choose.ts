import { createHash } from 'node:crypto';
import { chooseFastest, type Chosen, type Maker } from '../choose-library.js';
import { nativeSecp256k1 } from './native.js';
import { nobleSecp256k1 } from './noble.js';
import type { Secp256k1 } from './secp256k1.js';
import { webAssemblySecp256k1 } from './web-assembly.js';

/** From the slower to the faster. */
const makers: readonly Maker<Secp256k1>[] = [webAssemblySecp256k1, nativeSecp256k1];

let chosen: Chosen<Secp256k1> | undefined;

/** The fastest library that loads here and passes its test. Chosen at the first call. */
export function chosenSecp256k1(): Chosen<Secp256k1> {
  return (chosen ??= chooseFrom(makers));
}

/** The fastest of the candidates, from the slowest to the fastest; else `@noble/curves`. */
export function chooseFrom(candidates: readonly Maker<Secp256k1>[]): Chosen<Secp256k1> {
  return chooseFastest(nobleSecp256k1(), candidates, checkLibrary);
}

/**
 * Throws if a library does not return exactly what it should for inputs that libraries have been seen to treat differently:
 * a digest above the order, keys of both parities, an s that has to be brought low. A library that signs otherwise makes
 * signatures that cannot be repeated, or gives away the key. `@noble/curves` returns the same.
 */
function checkLibrary(library: Secp256k1): void {
  const answers = createHash('sha256');
  let isVerifying = true;
  for (const [key, digest] of KNOWN) {
    const { compact, recoveryId } = library.signEcdsa(digest, key);
    const publicKey = library.publicKeyOf(key);
    for (const bytes of [compact, [recoveryId], publicKey]) answers.update(Uint8Array.from(bytes));
    answers.update(library.uncompress(publicKey)).update(library.addToPoint(publicKey, key));
    answers.update(library.signSchnorr(digest, key));
    const [isRight, isWrong] = [digest, Buffer.alloc(32, 3)].map((one) => library.verifyEcdsa(compact, one, publicKey));
    isVerifying &&= isRight === true && isWrong === false;
  }
  if (isVerifying && answers.digest('hex') === KNOWN_ANSWERS) return;
  throw new Error(`self-test failed: unexpected signature from ${library.name}`);
}

/** Keys of nobody, and digests. */
const KNOWN: readonly (readonly [Uint8Array, Uint8Array])[] = [
  // An even public key; s was high.
  [Buffer.alloc(32, 2), Buffer.alloc(32)],
  // An odd one; the digest is above the order, and s was high.
  [Buffer.alloc(32, 6), Buffer.alloc(32, 0xff)],
  // An odd one; s was low, and the recovery id is 1.
  [Buffer.alloc(32, 1), Buffer.alloc(32, 0x7f)],
];
const KNOWN_ANSWERS = 'b43a476d33d38288ed390522f81aa1cda7287b91e3722dcaa6f3f34af9040c38';
