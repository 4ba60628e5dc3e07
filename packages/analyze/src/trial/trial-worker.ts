/**
 * A coordinator in memory on which examples of analyses are executed, in a process of its own: it ends with the process that
 * started it. Its clock stands where it was last told to, and nothing that it would send leaves it: it delivers no webhooks, and has
 * a mailbox and an OAuth 2.0 provider of its own. It is told the time, the key of somebody for whom it founds another
 * organization without a parent, or an address whose mail is read.
 */
import { randomUUID } from 'node:crypto';
import {
  errorMessage,
  readConfig,
  foundOrganization,
  RetryingDelivery,
  createLogger,
  type EventStore,
  openEventStore,
  type Clock,
  projectInMemory,
  LocalKeyEncryption,
  createCoordinator,
  install,
  type RootCredentials,
  systemRandomness,
} from 'countersign/internal';
import { Mailbox, startProvider } from './trial-world.js';

class ToldClock implements Clock {
  time = 0;

  now(): number {
    return this.time;
  }
}

const reply = (message: object): void => void process.send?.(message);
const clock = new ToldClock();
const mailbox = new Mailbox();

/** None before the start. */
let opened: EventStore | undefined;

/** Starts at this time. */
async function start(at: number): Promise<void> {
  clock.time = at;
  const config = readConfig({ PORT: '0', LOG_LEVEL: 'silent', ...(await startProvider()) });
  const store = await openEventStore('memory:', '');
  opened = store;
  const randomness = systemRandomness();
  const keyEncryption = new LocalKeyEncryption([randomness.bytes(32)], randomness);
  let root: Omit<RootCredentials, 'apiUrl'> | undefined;
  await install(config, { store, clock, randomness, keyEncryption }, undefined, (made) => {
    root = made;
    return Promise.resolve();
  });
  const delivery = new RetryingDelivery({ email: mailbox, sms: mailbox }, () => undefined, { now: () => clock.now() });
  const { app } = await createCoordinator(config, {
    store,
    clock,
    randomness,
    keyEncryption,
    delivery,
    logger: createLogger('silent'),
    projecting: projectInMemory(),
    deliversWebhooks: false,
  });
  await app.listen(0, '127.0.0.1');
  reply({ apiUrl: await app.getUrl(), ...root });
}

async function found(store: EventStore, apiPublicKey: string): Promise<void> {
  const organizationId = randomUUID();
  await foundOrganization(store, {
    organizationId,
    organizationName: 'Example',
    userId: randomUUID(),
    userName: 'Founder',
    apiPublicKey,
    curve: 'API_KEY_CURVE_P256',
    at: clock.now(),
  });
  reply({ organizationId });
}

type Told = { readonly at: number } | { readonly found: string } | { readonly mailTo: string };

async function take(told: Told): Promise<void> {
  if ('found' in told) return found(opened!, told.found);
  if ('mailTo' in told) return reply({ mail: await mailbox.read(told.mailTo) });
  if (!opened) return start(told.at);
  clock.time = told.at;
  reply(told);
}

process.on('message', (told: Told) => {
  void take(told).catch((error: unknown) => reply({ error: errorMessage(error) }));
});
process.on('disconnect', () => process.exit());
