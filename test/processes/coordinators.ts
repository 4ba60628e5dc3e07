import { randomBytes } from 'node:crypto';
import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import { EventStoreDbEventStore } from '../../src/ledger/stores/event-store-db/event-store-db.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import {
  apiKeyPairFromPrivate,
  generateApiKeyPair,
  stampBody,
  StampingClient,
  type ApiKeyPair,
} from '../../src/testing/index.js';
import { EventStoreDouble } from '../ledger/stores/double/double.js';
import { exchange, type Exchange } from '../e2e/exchange.js';
import { Installation, main, type Run } from '../e2e/installation.js';
import { until } from '../e2e/until.js';

/** No two bodies of a test are alike by chance, whoever makes them for whichever instance. */
const clock = {
  last: 0,
  now(): number {
    return (this.last = Math.max(Date.now(), this.last + 1));
  },
};

export function newKey(): ApiKeyPair {
  return generateApiKeyPair((count) => crypto.getRandomValues(new Uint8Array(count)));
}

/** All coordinators of a store have the same. */
const sharedKek = randomBytes(32).toString('hex');

/** One coordinator process with a data folder of its own. */
export class Instance {
  private server: (Run & { readonly url: string }) | undefined;

  private constructor(
    readonly installation: Installation,
    private readonly eventStore: string,
  ) {}

  static async make(eventStore: string): Promise<Instance> {
    return new Instance(await Installation.make(), eventStore);
  }

  async start(more: Readonly<Record<string, string>> = {}): Promise<this> {
    this.server = await this.installation.start({ EVENT_STORE: this.eventStore, KEK: sharedKek, ...more });
    return this;
  }

  /** Another process with the same settings and data folder. */
  double(): Run {
    return this.installation.run(main, { EVENT_STORE: this.eventStore, KEK: sharedKek });
  }

  get running(): Run & { readonly url: string } {
    if (!this.server) throw new Error('the instance does not run: start it first');
    return this.server;
  }

  /** The organization that it names when it comes up. */
  get organizationId(): string {
    return /Organization\s+(\S+)/.exec(this.running.stdout())?.[1] ?? '';
  }

  /** Ends it without warning. */
  async kill(): Promise<void> {
    this.running.child.kill('SIGKILL');
    await this.running.exit;
  }

  /** Ends it as a supervisor does. Resolves to its exit code. */
  async terminate(): Promise<number | null> {
    this.running.child.kill('SIGTERM');
    return (await this.running.exit).code;
  }

  /** A value of its metrics, summed over the labels; 0 when there is none. */
  async metric(name: string): Promise<number> {
    const text = await (await fetch(`${this.running.url}/metrics`)).text();
    const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
    return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
  }
}

/** Coordinators on one EventStoreDB. */
export class Coordinators {
  private readonly others: Instance[] = [];
  private readonly relays: Server[] = [];

  private constructor(
    readonly double: EventStoreDouble,
    readonly all: readonly Instance[],
  ) {}

  static async make(count: number): Promise<Coordinators> {
    const double = await EventStoreDouble.start();
    double.maxAppendBytes = 4 * 1024 * 1024;
    const all = Array.from({ length: count }, () => Instance.make(double.connectionString));
    return new Coordinators(double, await Promise.all(all));
  }

  get one(): Instance {
    return this.number(0);
  }

  get two(): Instance {
    return this.number(1);
  }

  get three(): Instance {
    return this.number(2);
  }

  /** Counted from 0, and after the last one from the first again. */
  number(index: number): Instance {
    return this.all[index % this.all.length]!;
  }

  /** One more, for which every byte from and to the store takes so long. Ends with the others. */
  async farAway(delayMs: number): Promise<Instance> {
    const far = await Instance.make(`esdb://127.0.0.1:${await this.longWay(delayMs)}?tls=false`);
    this.others.push(far);
    return far;
  }

  /** The port of a relay to the store. */
  private async longWay(delayMs: number): Promise<number> {
    const relay = createServer((outside) => {
      const inside = connect(this.double.port, '127.0.0.1');
      for (const [from, to] of [
        [outside, inside],
        [inside, outside],
      ] as const) {
        from.setNoDelay(true);
        from.on('data', (bytes) => void setTimeout(() => to.write(bytes), delayMs));
        from.on('error', () => undefined);
        from.on('close', () => to.destroy());
      }
    });
    this.relays.push(relay);
    await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
    return (relay.address() as AddressInfo).port;
  }

  /** Key of the root user. */
  async rootKey(): Promise<ApiKeyPair> {
    return apiKeyPairFromPrivate((await this.one.installation.root())['apiPrivateKey']!);
  }

  /** Everything recorded in the organization's stream, in order. */
  async events(): Promise<RecordedEvent[]> {
    const store = await EventStoreDbEventStore.open(this.double.connectionString);
    try {
      const events: RecordedEvent[] = [];
      for await (const event of store.read(this.stream)) events.push(event);
      return events;
    } finally {
      await store.close();
    }
  }

  /** Name of the organization's stream. */
  get stream(): string {
    return `organization-${this.one.organizationId}`;
  }

  async remove(): Promise<void> {
    await Promise.all([...this.all, ...this.others].map(({ installation }) => installation.remove()));
    for (const relay of this.relays) relay.close();
    await this.double.stop();
  }
}

/** Stamps with a key and sends to that instance. */
export function clientOf({ running: { url }, organizationId }: Instance, key: ApiKeyPair): StampingClient {
  return new StampingClient(url, organizationId, key, clock);
}

/** Asks that instance a query that is to have seen a position; the answer as it comes. */
export function queryFrom(
  { running: { url }, organizationId }: Instance,
  key: ApiKeyPair,
  path: string,
  position: string,
): Promise<Exchange> {
  const body = JSON.stringify({ organizationId });
  const { headerName, headerValue } = stampBody(body, key);
  const headers = { 'content-type': 'application/json', [headerName]: headerValue, 'x-min-position': position };
  return exchange(`${url}/public/v1/query/${path}`, { method: 'POST', body, headers });
}

/** Waits until that instance's read models have seen a position, which may have been written by another one. */
export async function caughtUp(instance: Instance, key: ApiKeyPair, position: bigint): Promise<void> {
  await until(`position ${position} is read`, async () => {
    const { status } = await queryFrom(instance, key, 'whoami', String(position));
    return status === 200;
  });
}
