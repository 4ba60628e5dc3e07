import { signingKeysOf } from '../../src/oidc/signing-keys.js';

const key = { kty: 'EC', crv: 'P-256', alg: 'ES256', kid: 'k'.repeat(256), x: 'x'.repeat(43), y: 'y'.repeat(43) };

test('of published keys those are kept that may verify, and no more of them than keys need', () => {
  const [kept, ...others] = signingKeysOf([
    { ...key, x5c: ['certificate'.repeat(1_000)], more: 'x'.repeat(1_000) },
    ...['kid', 'x', 'y', 'crv', 'alg', 'e', 'n'].map((member) => ({ ...key, [member]: 'a'.repeat(1_367) })),
    { ...key, kty: 'oct' },
    { ...key, kty: 'a'.repeat(1_000) },
  ]);
  expect(kept).toEqual(key);
  expect(others).toEqual([]);
});
