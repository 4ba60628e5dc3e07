import { randomBytes } from 'node:crypto';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { publicKeyOf } from '../../src/keyring/curves.js';
import { openCredentialBundle } from '../../src/keyring/hpke.js';
import { InstallationKeys } from '../../src/keyring/installation-keys.js';
import { OidcIssuer } from '../../src/keyring/oidc-issuer.js';
import { preparePorts } from '../coordinator/prepare-ports.js';
import { unwipedCopies } from './copies.js';

const store = new InMemoryEventStore();
const { vault } = await preparePorts(store);
// As in a coordinator without a seed: noble keeps the key among other bytes, where nobody can reach them.
const keys = await InstallationKeys.open(vault, { store, randomness: { bytes: randomBytes } });
const addresses = { told: () => 'https://countersign.example' };

test('a token of another that is sealed into ours leaves no copy, nor does our key, and its seed is wiped', async () => {
  const drawn: Uint8Array[] = [];
  const randomness = {
    bytes(count: number) {
      drawn.push(randomBytes(count));
      return drawn.at(-1)!;
    },
  };
  const issuer = new OidcIssuer(keys, randomness, addresses);
  const target = randomBytes(32).fill(1, 0, 1);
  const text = 'token of the provider';
  const bearerToken = { text, targetPublicKey: publicKeyOf('CURVE_P256', target).toString('hex') };
  const claims = {
    audience: 'app',
    subject: 'person',
    nonce: 'n',
    issuedAt: 0,
    expiresAt: 1_000,
    organizationId: 'o',
    bearerToken,
  };
  const key = await keys.use('oidc-issuer', (opened) => Uint8Array.from(opened));
  let token = '';
  const sign = async (): Promise<void> => void (token = await issuer.sign(claims));
  expect(await unwipedCopies(Buffer.from(text), sign)).toEqual([]);
  expect(await unwipedCopies(key, sign)).toEqual([]);
  expect(drawn).toEqual([Buffer.alloc(32), Buffer.alloc(32)]);

  const [, payload] = token.split('.');
  const { encrypted_bearer_token: sealed } = JSON.parse(Buffer.from(payload!, 'base64url').toString()) as {
    encrypted_bearer_token: string;
  };
  expect((await openCredentialBundle(target, sealed)).toString()).toBe(text);
});
