import { randomUUID } from 'node:crypto';
import { ProxyKeys } from '../../src/keyring/proxy-keys.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { apiKeyPairFromPrivate, stampBody } from '../../src/stamps/sign.js';
import { SeededRandomness } from '../../src/testing/index.js';
import { preparePorts } from '../engine/prepare-ports.js';

const { vault } = await preparePorts(new InMemoryEventStore());
const place = { organizationId: randomUUID(), vaultId: randomUUID() };
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
