import { randomUUID } from 'node:crypto';
import { encryptOauth2ClientSecret } from '@turnkey/crypto';
import { CoordinatorError } from '../../src/domain/errors.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { preparePorts } from '../coordinator/prepare-ports.js';
import { unwipedCopies } from './copies.js';

const store = new InMemoryEventStore();
const { keys, oauthSecrets, vault } = await preparePorts(store);
const organizationId = randomUUID();

const seal = (secret: string, key = keys.publicKey('oauth-secret', 'uncompressed')) =>
  encryptOauth2ClientSecret(secret, key);

async function refusal(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt;
  } catch (error) {
    if (error instanceof CoordinatorError) return `${error.code} ${error.message}`;
    throw error;
  }
  return 'taken';
}

describe('a client secret that the published client has sealed', () => {
  test.each(['s', 'Zx-81_~.secret of the app', 'x'.repeat(1_000)])(
    'is kept, and used as it was: %s',
    async (secret) => {
      const vaultId = await oauthSecrets.keep(organizationId, await seal(secret));
      expect(await oauthSecrets.use({ organizationId, vaultId }, (opened) => Promise.resolve(opened))).toBe(secret);
    },
  );

  test('is nowhere in the store but sealed', async () => {
    const vaultId = await oauthSecrets.keep(organizationId, await seal('plain-to-see'));
    const events: unknown[] = [];
    for await (const event of store.read(`vault-${vaultId}`)) events.push(event.data);
    expect(events.length).toBeGreaterThan(0);
    const text = JSON.stringify(events);
    for (const form of ['utf8', 'hex', 'base64'] as const) {
      expect(text).not.toContain(Buffer.from('plain-to-see').toString(form).replace(/=+$/, ''));
    }
  });

  test('leaves no copy in memory', async () => {
    const sealed = await seal('nowhere to be seen');
    const keep = () => oauthSecrets.keep(organizationId, sealed);
    expect(await unwipedCopies(Buffer.from('nowhere to be seen'), keep)).toEqual([]);
  });

  test('is gone with its vault', async () => {
    const vaultId = await oauthSecrets.keep(organizationId, await seal('for a while'));
    await vault.shred(vaultId);
    await expect(oauthSecrets.use({ organizationId, vaultId }, (opened) => Promise.resolve(opened))).rejects.toThrow();
  });

  test('opens for the organization it was sealed for, and no other', async () => {
    const vaultId = await oauthSecrets.keep(organizationId, await seal('mine'));
    const theirs = { organizationId: randomUUID(), vaultId };
    await expect(oauthSecrets.use(theirs, (opened) => Promise.resolve(opened))).rejects.toThrow();
  });
});

describe('an envelope is refused', () => {
  const flipped = (hex: string, at: number): string =>
    hex.slice(0, at) + (hex[at] === '0' ? '1' : '0') + hex.slice(at + 1);

  test('with any byte of it changed', async () => {
    const envelope = await seal('secret');
    const places = Array.from({ length: envelope.length / 2 }, (_none, byte) => 2 * byte + 1);
    for (const at of places) {
      expect(await refusal(oauthSecrets.keep(organizationId, flipped(envelope, at)))).toMatch(
        /^INVALID_ARGUMENT invalid request: parameters\.encryptedClientSecret: /,
      );
    }
  });

  test.each([
    [
      'sealed to another installation',
      async () => seal('secret', (await elsewhere()).publicKey('oauth-secret', 'uncompressed')),
      /could not be decrypted/,
    ],
    [
      'sealed to another key of ours',
      () => seal('secret', keys.publicKey('notarizer', 'uncompressed')),
      /could not be decrypted/,
    ],
    ['cut off', async () => (await seal('secret')).slice(0, -2), /a length that it does not have/],
    ['with more behind it', async () => `${await seal('secret')}00`, /a length that it does not have/],
    ['that is nothing', () => Promise.resolve(''), /not a complete envelope/],
    ['that is not hex', async () => (await seal('secret')).replace(/^../, 'xy'), /not a complete envelope/],
    ['with nothing in it', () => seal(''), /not a client secret/],
    ['with a line break in it', () => seal('two\nlines'), /not a client secret/],
  ])('%s', async (_what, make, said) => {
    expect(await refusal(oauthSecrets.keep(organizationId, await make()))).toMatch(said);
  });

  test('without a word of what was in it', async () => {
    expect(await refusal(oauthSecrets.keep(organizationId, await seal('hush\u0007hush')))).not.toContain('hush');
  });
});

const elsewhere = async () => (await preparePorts(new InMemoryEventStore(), 'elsewhere')).keys;
