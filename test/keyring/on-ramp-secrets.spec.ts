import { randomUUID } from 'node:crypto';
import { encryptOnRampSecret } from '@turnkey/crypto';
import { CoordinatorError } from '../../src/domain/errors.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { preparePorts } from '../coordinator/prepare-ports.js';

const { keys, onRampSecrets, vault } = await preparePorts();
const organizationId = randomUUID();

const seal = (secret: string, key = keys.publicKey('on-ramp', 'compressed')) => encryptOnRampSecret(secret, key);

const opened = (vaultId: string, name: string) =>
  vault.open({ organizationId, vaultId, name }, (secret) => secret.toString());

async function refusal(bundle: string): Promise<string> {
  try {
    await onRampSecrets.keep(organizationId, { encryptedSecretApiKey: seal('fine'), encryptedPrivateApiKey: bundle });
  } catch (error) {
    if (error instanceof CoordinatorError) return `${error.code} ${error.message}`;
    throw error;
  }
  return 'taken';
}

const pem = '-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIA==\r\n-----END EC PRIVATE KEY-----\n';

test('keys that the published client has sealed are kept as they were, and gone with their vault', async () => {
  const sealed = { encryptedSecretApiKey: seal('sk_live_1234'), encryptedPrivateApiKey: seal(pem) };
  const vaultId = await onRampSecrets.keep(organizationId, sealed);
  expect(await opened(vaultId, 'secret-api-key')).toBe('sk_live_1234');
  expect(await opened(vaultId, 'private-api-key')).toBe(pem);
  await vault.shred(vaultId);
  await expect(opened(vaultId, 'secret-api-key')).rejects.toThrow();
});

test.each([
  ['sealed to another key of ours', () => seal('secret', keys.publicKey('oauth-secret', 'compressed'))],
  [
    'sealed to another installation',
    async () => seal('secret', (await elsewhere()).publicKey('on-ramp', 'compressed')),
  ],
])('what was %s is refused with where the key is', async (_what, make) => {
  expect(await refusal(await make())).toMatch(
    /^INVALID_ARGUMENT invalid request: parameters\.encryptedPrivateApiKey: .*`onRampEncryption` of \/public\/v1\/discovery/,
  );
});

test.each([
  ['cut off', seal('secret').slice(0, -1), /cut off or changed/],
  [
    'with a character changed',
    seal('secret').replace(/^./, (first) => (first === '2' ? '3' : '2')),
    /cut off or chang/,
  ],
  ['that is no base58', '0OIl', /not base58/],
  ['with no ciphertext', '2', /not base58/],
  ['with nothing in it', seal(''), /not a provider key/],
  ['with only a line break in it', seal('\n'), /not a provider key/],
  ['that is not text', seal('hush\u0007hush'), /not a provider key/],
])('a key %s is refused, without a word of what was in it', async (_what, bundle, said) => {
  const answer = await refusal(bundle);
  expect(answer).toMatch(/^INVALID_ARGUMENT invalid request: parameters\.encryptedPrivateApiKey/);
  expect(answer).toMatch(said);
  expect(answer).not.toContain('hush');
});

const elsewhere = async () => (await preparePorts(new InMemoryEventStore(), 'elsewhere')).keys;
