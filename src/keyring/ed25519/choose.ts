import { chooseFastest, type Chosen, type Maker } from '../choose-library.js';
import type { Ed25519 } from './ed25519.js';
import { nativeEd25519 } from './native.js';
import { openSslEd25519 } from './openssl.js';

let chosen: Chosen<Ed25519> | undefined;

/** libsodium, if there is a build that loads here and passes its test; else OpenSSL. Chosen at the first call. */
export function chosenEd25519(): Chosen<Ed25519> {
  return (chosen ??= chooseEd25519([nativeEd25519]));
}

export function chooseEd25519(candidates: readonly Maker<Ed25519>[]): Chosen<Ed25519> {
  const openSsl = openSslEd25519();
  return chooseFastest(openSsl, candidates, (library) => checkLibrary(library, openSsl));
}

/** Throws if a library does not sign exactly as another: its signatures could not be made again, or gave the key away. */
function checkLibrary(library: Ed25519, oracle: Ed25519): void {
  for (const key of NOBODYS_KEYS) {
    const [signer, expected] = [library.signer(key), oracle.signer(key)];
    const isSame =
      isEqual(library.publicKeyOf(key), oracle.publicKeyOf(key)) &&
      MESSAGES.every((message) => isEqual(signer.sign(message), expected.sign(message)));
    if (!isSame) throw new Error(`self-test failed: unexpected signature from ${library.name}`);
  }
}

function isEqual(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}

const NOBODYS_KEYS = [Buffer.alloc(32), Buffer.alloc(32, 0xff), Buffer.alloc(32, 0x5a)];
/** Nothing, a digest, and more than a block of SHA-512. */
const MESSAGES = [Buffer.alloc(0), Buffer.alloc(32, 1), Buffer.alloc(300, 2)];
