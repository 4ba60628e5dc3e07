import { createHmacDrbg } from '@noble/curves/utils.js';
import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import fc from 'fast-check';
import { withNonce } from '../../src/keyring/rfc6979.js';

const ofNoble = createHmacDrbg<string>(32, 32, (key: Uint8Array, message: Uint8Array) => hmac(sha256, key, message));
const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const [key, digest] = [Buffer.alloc(32, 7), Buffer.alloc(32, 9)];

test('gives the nonces of noble, for any key and digest, however many are refused', () => {
  const bytes = fc.uint8Array({ minLength: 32, maxLength: 32 });
  fc.assert(
    fc.property(bytes, bytes, fc.nat({ max: 4 }), (anyKey, anyDigest, refused) => {
      const after = (count: number) => (nonce: Uint8Array) => (count-- > 0 ? undefined : hexOf(nonce));
      expect(withNonce(anyKey, anyDigest, after(refused))).toBe(
        ofNoble(Buffer.concat([anyKey, anyDigest]), after(refused)),
      );
    }),
  );
});

test.each([
  ['used', (): string => 'made'],
  [
    'what uses it fails',
    (): string => {
      throw new Error('failed');
    },
  ],
])('leaves no byte of the key, or of a nonce, once %s', (_, make) => {
  const seen: Uint8Array[] = [];
  const sign = () =>
    withNonce(key, digest, (nonce) => {
      seen.push(nonce, new Uint8Array(nonce.buffer));
      expect(hexOf(seen[1]!)).toContain(hexOf(key));
      return make();
    });
  try {
    expect(sign()).toBe('made');
  } catch (error) {
    expect(error).toEqual(new Error('failed'));
  }
  expect(seen.map((bytes) => bytes.some((byte) => byte !== 0))).toEqual([false, false]);
});
