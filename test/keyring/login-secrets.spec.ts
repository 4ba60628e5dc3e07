import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { decryptCredentialBundle, encryptOtpCodeToBundle } from '@turnkey/crypto';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { preparePorts } from '../coordinator/prepare-ports.js';
import { publicKeyOf, uncompressPublicKey } from '../../src/keyring/curves.js';
import { openKeyring } from '../../src/keyring/open-keyring.js';
import { ManualClock, SeededRandomness } from '../../src/testing/deterministic.js';
import { LocalKeyEncryption } from '../../src/vault/key-encryption.js';

const store = new InMemoryEventStore();
const { keys, loginSecrets } = await preparePorts(store);
const organizationId = randomUUID();

function target() {
  const { d } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' });
  const privateKey = Buffer.from(d!, 'base64url');
  const publicKey = publicKeyOf('CURVE_P256', privateKey);
  return { privateKey, publicKey, uncompressed: uncompressPublicKey('CURVE_P256', publicKey).toString('hex') };
}

describe('codes', () => {
  test.each([
    ['digits', /^[0-9]{6}$/, 6],
    ['bech32', /^[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{9}$/, 9],
  ] as const)('of %s have the length asked for and every character about as often', (alphabet, pattern, length) => {
    const codes = Array.from({ length: 4_000 }, () => loginSecrets.newCode(length, alphabet, 'user@example.com'));
    const counts = new Map<string, number>();
    for (const code of codes) {
      expect(code).toMatch(pattern);
      for (const character of code) counts.set(character, (counts.get(character) ?? 0) + 1);
    }
    const expected = (4_000 * length) / (alphabet === 'digits' ? 10 : 32);
    expect(counts.size).toBe(alphabet === 'digits' ? 10 : 32);
    for (const count of counts.values()) expect(Math.abs(count / expected - 1)).toBeLessThan(0.25);
  });

  test('are kept as a hash under a key of the installation, bound to their OTP', async () => {
    const hash = await loginSecrets.hashCode('otp-1', 'QPZRY9');
    expect(hash).toMatch(/^[0-9a-f]{64}$/);
    expect(await loginSecrets.hashCode('otp-1', ' qpzry9 ')).toBe(hash);
    expect(await loginSecrets.hashCode('otp-2', 'QPZRY9')).not.toBe(hash);
    const elsewhere = await preparePorts(new InMemoryEventStore(), 'elsewhere');
    expect(await elsewhere.loginSecrets.hashCode('otp-1', 'QPZRY9')).not.toBe(hash);
  });
});

describe('the sandbox', () => {
  const until = Date.UTC(2026, 5, 1);
  const six = async (contact: string, now: number) => {
    const randomness = new SeededRandomness('sandbox');
    const keyEncryption = new LocalKeyEncryption([Buffer.alloc(32, 7)], randomness);
    const clock = new ManualClock(now);
    const world = {
      store: new InMemoryEventStore(),
      keyEncryption,
      clock,
      randomness,
      newId: randomUUID,
      sandboxUntil: until,
    };
    const secrets = (await openKeyring(world)).loginSecrets;
    return (length: number, alphabet: 'digits' | 'bech32') => secrets.newCode(length, alphabet, contact);
  };

  test.each(['user@example.com', '+19999999999'])('gives %s a code that everybody knows', async (contact) => {
    expect((await six(contact, until - 1))(6, 'digits')).toBe('000000');
  });

  test('does so for nobody else, for no other kind of code, and not a moment longer', async () => {
    const inside = await six('user@example.com', until - 1);
    const codes = [
      inside(7, 'digits'),
      inside(6, 'bech32'),
      (await six('user@example.com', until))(6, 'digits'),
      loginSecrets.newCode(6, 'digits', 'user@example.com'),
      (await six('user@example.com.example.org', until - 1))(6, 'digits'),
      (await six('+1999999999', until - 1))(6, 'digits'),
    ];
    for (const code of codes) expect(code).not.toMatch(/^0+$/);
  });
});

test('an API key comes sealed to the target key, and the published client opens it', async () => {
  const { privateKey, publicKey, uncompressed } = target();
  for (const named of [uncompressed, publicKey.toString('hex')]) {
    const made = await loginSecrets.newApiKey(named);
    const opened = decryptCredentialBundle(made.credentialBundle, privateKey.toString('hex'));
    expect(publicKeyOf('CURVE_P256', Buffer.from(opened, 'hex')).toString('hex')).toBe(made.publicKey);
  }
  await expect(loginSecrets.newApiKey('04ff')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
});

describe('a code sealed by the published client', () => {
  const client = target();
  const clientKey = client.publicKey.toString('hex');
  const seal = (code: string, bundle: string, key = clientKey) =>
    encryptOtpCodeToBundle(code, bundle, key, keys.publicKey('verification-token', 'uncompressed'));

  test('is opened with the target key of its OTP', async () => {
    const { vaultId, targetBundle } = await loginSecrets.startOtpTarget(organizationId);
    const sealed = await seal('A1B2C3', targetBundle);
    const place = { organizationId, vaultId };
    expect(await loginSecrets.openOtpBundle(place, sealed)).toEqual({ code: 'A1B2C3', publicKey: clientKey });
  });

  test('for another OTP, or with a key that is none, is refused, and nothing of it is said', async () => {
    const [one, other] = [
      await loginSecrets.startOtpTarget(organizationId),
      await loginSecrets.startOtpTarget(organizationId),
    ];
    const place = { organizationId, vaultId: one.vaultId };
    const attempts = [
      await seal('A1B2C3', other.targetBundle),
      await seal('A1B2C3', one.targetBundle, '02ff'),
      '{}',
      'not JSON A1B2C3',
    ];
    for (const attempt of attempts) {
      const refused: unknown = await loginSecrets.openOtpBundle(place, attempt).catch((error: unknown) => error);
      expect(refused).toMatchObject({ code: 'INVALID_ARGUMENT' });
      expect(String((refused as Error).message)).not.toContain('A1B2C3');
    }
  });
});
