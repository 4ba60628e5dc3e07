/**
 * A coordinator in memory on which examples of analyses are executed, in a process of its own: it ends with the process that
 * started it. Its clock stands where it was last told to, and nothing that it would send leaves it.
 */
import { readConfig } from '../config/config.js';
import { deliveryBy } from '../delivery/open-delivery.js';
import { createLogger } from '../http/logger.js';
import { openEventStore } from '../ledger/stores/open-event-store.js';
import type { Clock } from '../ports/clock.js';
import { projectInMemory } from '../read-models/projecting.js';
import { LocalKeyEncryption } from '../vault/key-encryption.js';
import { createCoordinator } from './create-coordinator.js';
import { install, type RootCredentials } from './installation.js';
import { systemRandomness } from './world.js';

class ToldClock implements Clock {
  time = 0;

  now(): number {
    return this.time;
  }
}

const reply = (message: object): void => void process.send?.(message);
const clock = new ToldClock();

/** Starts at this time. */
async function start(at: number): Promise<void> {
  clock.time = at;
  const config = readConfig({ PORT: '0', LOG_LEVEL: 'silent' });
  const store = await openEventStore('memory:', '');
  const randomness = systemRandomness();
  const keyEncryption = new LocalKeyEncryption([randomness.bytes(32)], randomness);
  let root: Omit<RootCredentials, 'apiUrl'> | undefined;
  await install(config, { store, clock, randomness, keyEncryption }, undefined, (made) => {
    root = made;
    return Promise.resolve();
  });
  const nowhere = { carry: () => Promise.resolve(), close: () => Promise.resolve() };
  const delivery = deliveryBy(
    { email: nowhere, sms: nowhere },
    { restored: false, report: () => undefined, now: () => clock.now() },
  );
  const { app } = await createCoordinator(config, {
    store,
    clock,
    randomness,
    keyEncryption,
    delivery,
    logger: createLogger('silent'),
    projecting: projectInMemory(),
  });
  await app.listen(0, '127.0.0.1');
  reply({ apiUrl: await app.getUrl(), ...root });
}

process.on('message', ({ at }: { readonly at: number }) => {
  if (clock.time === 0) {
    void start(at).catch((error: unknown) => reply({ error: error instanceof Error ? error.message : String(error) }));
    return;
  }
  clock.time = at;
  reply({ at });
});
process.on('disconnect', () => process.exit());
