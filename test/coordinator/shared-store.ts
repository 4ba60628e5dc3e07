import { createCoordinator } from '../../src/app/create-coordinator.js';
import { readConfig } from '../../src/config/config.js';
import { RetryingDelivery } from '../../src/delivery/retrying.js';
import { createLogger } from '../../src/logging/logger.js';
import { install } from '../../src/app/installation.js';
import type { EventStore, SubscribeOptions, Subscription } from '../../src/ledger/event-store.js';
import { projectInMemory } from '../../src/read-models/projecting.js';
import { ReadModelRunner } from '../../src/read-models/runner.js';
import { apiKeyPairFromPrivate, type ApiKeyPair } from '../../src/stamps/sign.js';
import { CapturedMessages } from '../../src/testing/captured-messages.js';
import { SeededRandomness, StampingClient, type ManualClock } from '../../src/testing/index.js';
import { LocalKeyEncryption } from '../../src/vault/key-encryption.js';
import { SteeredStore } from '../ledger/steered-store.js';

const rootKey = apiKeyPairFromPrivate('11'.repeat(32));

/** One coordinator's way to a store that others write to as well: what it asks is seen, and what it is told can be held up. */
class Door extends SteeredStore {
  #held: Promise<void> = Promise.resolve();
  #letIn: () => void = () => undefined;

  constructor(inner: EventStore) {
    super(inner, false);
  }

  /** From now on its read models hear nothing. */
  holdFeed(): void {
    this.#held = new Promise((resolve) => (this.#letIn = resolve));
  }

  releaseFeed(): void {
    this.#letIn();
    this.#held = Promise.resolve();
  }

  override subscribe(options: SubscribeOptions): Subscription {
    const onEvents: SubscribeOptions['onEvents'] = async (events) => {
      await this.#held;
      return options.onEvents(events);
    };
    return super.subscribe({ ...options, onEvents });
  }

  /** The store is the others' too. */
  override close(): Promise<void> {
    return Promise.resolve();
  }
}

/** A whole coordinator, over HTTP, beside others on the same store. */
export async function startBeside(
  inner: EventStore,
  seed: string,
  clock: ManualClock,
  settings: Readonly<Record<string, string>> = {},
) {
  const kept = new CapturedMessages();
  const store = new Door(inner);
  const randomness = new SeededRandomness(seed);
  const keyEncryption = new LocalKeyEncryption([Buffer.alloc(32, 7)], randomness);
  const config = readConfig({ ...settings, PORT: '0', ROOT_API_PUBLIC_KEY: rootKey.publicKey });
  const { founding } = await install(config, { store, clock, randomness, keyEncryption }, undefined, () =>
    Promise.resolve(),
  );
  const { organizationId } = founding;
  const coordinator = await createCoordinator(config, {
    store,
    clock,
    randomness,
    keyEncryption,
    delivery: new RetryingDelivery({ email: kept, sms: kept }, () => undefined, { now: () => clock.now() }),
    logger: createLogger('silent'),
    projecting: projectInMemory(),
  });
  await coordinator.app.listen(0, '127.0.0.1');
  const url = await coordinator.app.getUrl();
  const clientOf = (key: ApiKeyPair, of = organizationId) => new StampingClient(url, of, key, clock);
  return {
    url,
    store,
    organizationId,
    clientOf,
    root: clientOf(rootKey),
    /** Sent by this one. */
    messages: () => kept.messages,
    /** Its read models have seen everything. */
    followed: async () => coordinator.app.get(ReadModelRunner).passed((await inner.head()) ?? -1n, 5_000),
    async close() {
      store.releaseFeed();
      await coordinator.close();
    },
  };
}

export type Beside = Awaited<ReturnType<typeof startBeside>>;
