import { randomUUID } from 'node:crypto';
import { ProxyKeys } from '../../src/keyring/proxy-keys.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { apiKeyPairFromPrivate, stampBody } from '../../src/stamps/sign.js';
import { SeededRandomness } from '../../src/testing/index.js';
import { preparePorts } from '../coordinator/prepare-ports.js';

const { vault } = await preparePorts(new InMemoryEventStore());
// Not drawn anew: a signature that is shorter than most is one in a hundred.
const place = {
  organizationId: '3f0e4f5c-2f5b-4c53-8f5e-6d0a8d0f4b11',
  vaultId: 'a0b7c6de-1d52-4f0c-9d6f-0a4f0c1f7e22',
};
const keys = new ProxyKeys({ vault, randomness: new SeededRandomness('proxy keys'), newId: randomUUID });

test('a stamp of the proxy is what the client makes with the same key, byte for byte', async () => {
  const publicKey = await keys.provide(place);
  const privateKey = await vault.open({ ...place, name: 'api-key' }, (key) => key.toString('hex'));
  const pair = apiKeyPairFromPrivate(privateKey);
  expect(publicKey).toBe(pair.publicKey);
  // Signatures of all lengths: r and s begin with zeros, or with a bit that DER needs a byte more for.
  const lengths = new Set<number>();
  for (let number = 0; number < 500; number++) {
    const body = `{"organizationId":"${place.organizationId}","number":${number},"text":"ü €"}`;
    const stamp = await keys.stamp(place, body);
    expect(stamp).toBe(stampBody(body, pair).headerValue);
    lengths.add(stamp.length);
  }
  expect(lengths.size).toBeGreaterThan(2);
});
