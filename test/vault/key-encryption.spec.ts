import { SeededRandomness } from '../../src/testing/deterministic.js';
import { KeyEncryptionError, LocalKeyEncryption, openAesGcm, sealAesGcm } from '../../src/vault/key-encryption.js';
import { kekOf, keysOf } from './world.js';

const dataKey = Buffer.from('a data key of just thirty-two B.');

describe('AES-256-GCM', () => {
  it('is the published one', () => {
    // McGrew and Viega, The Galois/Counter Mode of Operation (GCM), appendix B, test case 14.
    const sealed = sealAesGcm(kekOf(0), Buffer.alloc(12), Buffer.alloc(16), '');
    expect(sealed.toString('hex')).toBe(
      `${'00'.repeat(12)}cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919`,
    );
  });

  it('gives nonce, ciphertext and tag, and opens under the same key and context only', () => {
    const nonce = Buffer.from('ac93a1a6145299bde902f21a', 'hex');
    const sealed = sealAesGcm(kekOf(1), nonce, dataKey, 'here');
    expect(sealed).toHaveLength(12 + dataKey.length + 16);
    expect(sealed.subarray(0, 12)).toEqual(nonce);
    expect(openAesGcm(kekOf(1), sealed, 'here')).toEqual(dataKey);
    expect(() => openAesGcm(kekOf(2), sealed, 'here')).toThrow();
    expect(() => openAesGcm(kekOf(1), sealed, 'there')).toThrow();
  });

  it('opens nothing that has one bit changed, or any byte left out', () => {
    const sealed = sealAesGcm(kekOf(1), Buffer.alloc(12, 3), dataKey, 'here');
    for (let bit = 0; bit < 8 * sealed.length; bit++) {
      const changed = Buffer.from(sealed);
      changed[bit >> 3]! ^= 1 << (bit & 7);
      expect(() => openAesGcm(kekOf(1), changed, 'here')).toThrow();
    }
    for (let length = 0; length < sealed.length; length++) {
      expect(() => openAesGcm(kekOf(1), sealed.subarray(0, length), 'here')).toThrow();
      expect(() => openAesGcm(kekOf(1), sealed.subarray(sealed.length - length), 'here')).toThrow();
    }
  });
});

describe('key-encryption keys in memory', () => {
  it('wrap under the first, and unwrap under all', async () => {
    const [one, two, both] = [keysOf(1), keysOf(2), keysOf(2, 1)];
    expect(both.currentId).toBe(two.currentId);
    expect(both.knownIds).toEqual([two.currentId, one.currentId]);
    const old = await one.wrap(dataKey, 'here');
    const now = await both.wrap(dataKey, 'here');
    expect([old.kekId, now.kekId]).toEqual([one.currentId, two.currentId]);
    expect(await both.unwrap(old, 'here')).toEqual(dataKey);
    expect(await two.unwrap(now, 'here')).toEqual(dataKey);
  });

  it('never wrap alike twice', async () => {
    const keys = keysOf(1);
    const wrapped = await Promise.all(Array.from({ length: 50 }, () => keys.wrap(dataKey, 'here')));
    expect(new Set(wrapped.map(({ wrappedKey }) => wrappedKey.slice(0, 16))).size).toBe(50);
  });

  it('refuse what is under another key, in another place, or changed, and tell nothing of any key', async () => {
    const [one, two] = [keysOf(1), keysOf(2)];
    const wrapped = await one.wrap(dataKey, 'here');
    const refusals = [
      two.unwrap(wrapped, 'here'),
      two.unwrap({ ...wrapped, kekId: two.currentId }, 'here'),
      one.unwrap(wrapped, 'there'),
      one.unwrap({ ...wrapped, wrappedKey: '' }, 'here'),
      one.unwrap(
        { ...wrapped, wrappedKey: wrapped.wrappedKey.replace(/^./, (first) => (first === 'A' ? 'B' : 'A')) },
        'here',
      ),
    ];
    const errors = await Promise.all(
      refusals.map((refusal) =>
        refusal.then(
          () => undefined,
          (error: Error) => error,
        ),
      ),
    );
    for (const error of errors) expect(error).toBeInstanceOf(KeyEncryptionError);
    expect(errors[0]!.message).toBe(
      `sealed under key-encryption key \`${one.currentId}\`, which is not among the available ones (${two.currentId})`,
    );
    expect(errors[1]!.message).toContain(`\`${two.currentId}\` does not open a data key`);
    const told = errors.map((error) => error!.message).join();
    for (const secret of [kekOf(1), kekOf(2), dataKey]) {
      expect(told).not.toContain(secret.toString('hex').slice(0, 16));
      expect(told).not.toContain(secret.toString('base64').slice(0, 12));
    }
  });

  it('are copies: the caller may wipe what it has passed', async () => {
    const key = kekOf(1);
    const keys = new LocalKeyEncryption([key], new SeededRandomness('copies'));
    key.fill(0);
    expect(await keysOf(1).unwrap(await keys.wrap(dataKey, 'here'), 'here')).toEqual(dataKey);
  });

  it('must be at least one, of 32 bytes', () => {
    const randomness = new SeededRandomness('none');
    expect(() => new LocalKeyEncryption([], randomness)).toThrow('a key-encryption key is needed, got none');
    expect(() => new LocalKeyEncryption([kekOf(1), Buffer.alloc(31)], randomness)).toThrow('has 31 bytes');
  });

  it('are named by ids that stay the same, since they are recorded', () => {
    expect(keysOf(1).currentId).toMatch(/^[0-9a-f]{16}$/);
    expect([keysOf(0).currentId, keysOf(1).currentId]).toEqual(['c4f8273a5442d026', '3cab4760ae7ed7e3']);
  });
});
