import type { PreparePorts } from '../../src/activities/ports.js';
import { uuidV7 } from '../../src/coordinator/ids.js';
import type { EventStore } from '../../src/event-store/event-store.js';
import { InMemoryEventStore } from '../../src/event-store/in-memory.js';
import { openKeyring } from '../../src/keyring/open-keyring.js';
import { verifyRegistration } from '../../src/stamps/webauthn.js';
import { ManualClock, SeededRandomness } from '../../src/testing/deterministic.js';
import { LocalKeyEncryption } from '../../src/vault/key-encryption.js';

/** The real ports of `prepare` over a store, a fresh one by default, with keys that follow from the seed. */
export async function preparePorts(
  store: EventStore = new InMemoryEventStore(),
  seed = 'prepare',
): Promise<PreparePorts & Awaited<ReturnType<typeof openKeyring>>> {
  const randomness = new SeededRandomness(seed);
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const keyEncryption = new LocalKeyEncryption([Buffer.alloc(32, 7)], randomness);
  const newId = () => uuidV7(clock, randomness);
  return { verifyRegistration, ...(await openKeyring({ store, keyEncryption, clock, randomness, newId })) };
}
