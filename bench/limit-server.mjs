/**
 * The process under test: the coordinator on the durable SQLite store, and beside it, in the same process, the limit: an
 * empty Fastify route that only verifies a P-256 signature over the body. Prints one JSON line with where both listen.
 */
import '../scripts/no-arguments.mjs';
import { createPublicKey, verify } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Fastify from 'fastify';
import { createCoordinator } from '../dist/app/create-coordinator.js';
import { readConfig } from '../dist/config/config.js';
import { systemClock, systemRandomness } from '../dist/app/world.js';
import { RetryingDelivery } from '../dist/delivery/retrying.js';
import { SqliteEventStore } from '../dist/ledger/stores/sqlite/sqlite.js';
import { createLogger } from '../dist/logging/logger.js';
import { projectIntoFile } from '../dist/read-models/projecting.js';
import { install } from '../dist/app/installation.js';
import { keepThreadsSmall } from '../dist/threads/new-space.js';
import { LocalKeyEncryption } from '../dist/vault/key-encryption.js';

// As src/main.ts does.
keepThreadsSmall();
const folder = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), 'countersign-bench-'));
const config = readConfig({ PORT: '0' });
const world = {
  store: await SqliteEventStore.open(join(folder, 'events.db')),
  clock: systemClock,
  randomness: systemRandomness(),
};
const keyEncryption = new LocalKeyEncryption([world.randomness.bytes(32)], world.randomness);
const nobody = { carry: async () => {}, close: async () => {} };
let root;
const { founding } = await install(config, { ...world, keyEncryption }, undefined, async (credentials) => {
  root = credentials;
});
const coordinator = await createCoordinator(config, {
  ...world,
  keyEncryption,
  delivery: new RetryingDelivery({ email: nobody, sms: nobody }, () => undefined),
  logger: createLogger('error'),
  projecting: await projectIntoFile(
    join(folder, 'read-models.db'),
    { identity: founding.organizationId, head: (await world.store.head()) ?? -1n },
    world.store,
  ),
});
await coordinator.app.listen(0, '127.0.0.1');

const limit = Fastify();
limit.removeAllContentTypeParsers();
limit.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
const keys = new Map();
limit.post('/verify', (request, reply) => {
  const { publicKey, signature } = JSON.parse(Buffer.from(request.headers['x-stamp'], 'base64url').toString());
  let key = keys.get(publicKey);
  if (!key) keys.set(publicKey, (key = keyObject(publicKey)));
  const ok = verify('sha256', request.body, key, Buffer.from(signature, 'hex'));
  reply.status(ok ? 200 : 401).send({ ok });
});
await limit.listen({ port: 0, host: '127.0.0.1' });

/** SubjectPublicKeyInfo of a compressed P-256 point: OpenSSL takes it as it is. */
function keyObject(hex) {
  const prefix = Buffer.from('3039301306072a8648ce3d020106082a8648ce3d030107032200', 'hex');
  return createPublicKey({ key: Buffer.concat([prefix, Buffer.from(hex, 'hex')]), format: 'der', type: 'spki' });
}

process.stdout.write(
  `${JSON.stringify({
    coordinator: await coordinator.app.getUrl(),
    limit: `http://127.0.0.1:${limit.server.address().port}`,
    organizationId: founding.organizationId,
    userId: founding.userId,
    apiPrivateKey: root.apiPrivateKey,
    folder,
  })}\n`,
);
process.on('SIGTERM', async () => {
  await limit.close();
  await coordinator.close();
  process.exit(0);
});
