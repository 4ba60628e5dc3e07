import { RetryingDelivery } from '../../src/delivery/retrying.js';
import { KeptMessages } from '../../src/testing/kept-messages.js';
import { LocalKeyEncryption } from '../../src/vault/key-encryption.js';
import { createCoordinator } from '../../src/app/create-coordinator.js';
import { readConfig } from '../../src/config/config.js';
import { derivedId } from '../../src/ledger/ids.js';
import type { OrganizationEvent } from '../../src/domain/organization/organization.js';
import { organizationStream } from '../../src/domain/organization/organization.js';
import { chainEvent, GENESIS_HASH, type EventMetadata } from '../../src/ledger/chain.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { createLogger } from '../../src/http/logger.js';
import { projectInMemory } from '../../src/read-models/projecting.js';
import { generateApiKeyPair, ManualClock, SeededRandomness, StampingClient } from '../../src/testing/index.js';

/** An organization whose one user is its root user. */
export interface Tenant {
  readonly organizationId: string;
  readonly userId: string;
  readonly client: StampingClient;
}

/** A coordinator with two organizations that have nothing to do with each other, and a sub-organization of the first. */
export async function startTenants(settings: Readonly<Record<string, string>> = {}) {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const randomness = new SeededRandomness('tenants');
  const store = new InMemoryEventStore();

  async function found(name: string, parentOrganizationId?: string) {
    const key = generateApiKeyPair((count) => randomness.bytes(count));
    const organizationId = derivedId('organization', name);
    const userId = derivedId('user', name);
    const parent = parentOrganizationId === undefined ? {} : { parentOrganizationId };
    const facts: readonly OrganizationEvent[] = [
      { type: 'OrganizationCreated', data: { organizationId, name, ...parent } },
      { type: 'UserCreated', data: { userId, userName: `Root of ${name}`, userTags: [] } },
      {
        type: 'ApiKeyCreated',
        data: {
          userId,
          apiKeyId: derivedId('key', name),
          apiKeyName: 'root',
          publicKey: key.publicKey,
          curve: key.curve,
          credentialType: 'CREDENTIAL_TYPE_API_KEY_P256',
        },
      },
      { type: 'RootQuorumUpdated', data: { threshold: 1, userIds: [userId] } },
    ];
    const stream = organizationStream(organizationId);
    let hash = GENESIS_HASH;
    const events = facts.map(({ type, data }, revision) => {
      const id = derivedId(stream, String(revision));
      const metadata = { at: clock.now(), schemaVersion: 1, $correlationId: organizationId, $causationId: id };
      hash = chainEvent(hash, { stream, revision, id, type, data, metadata });
      return { id, type, data, metadata: { ...metadata, hash } };
    });
    await store.append(stream, events, 'no-stream');
    return { organizationId, userId, key };
  }

  /** What earlier releases recorded in the parent after they had founded a sub-organization. */
  async function confirm(parentOrganizationId: string, subOrganizationId: string) {
    const stream = organizationStream(parentOrganizationId);
    let last: RecordedEvent | undefined;
    for await (const event of store.read(stream)) last = event;
    const { revision, metadata } = last!;
    const id = derivedId(stream, subOrganizationId);
    const cause = { at: clock.now(), schemaVersion: 1, $correlationId: subOrganizationId, $causationId: id };
    const said = { type: 'SubOrganizationCreated', data: { subOrganizationId, name: 'Child' } };
    const { hash: before } = metadata as EventMetadata;
    const hash = chainEvent(before, { stream, revision: revision + 1, id, ...said, metadata: cause });
    await store.append(stream, [{ id, ...said, metadata: { ...cause, hash } }], revision);
  }

  const parent = await found('Parent');
  const child = await found('Child', parent.organizationId);
  const stranger = await found('Stranger');
  await confirm(parent.organizationId, child.organizationId);
  const logger = createLogger('silent');
  const projecting = projectInMemory();
  const config = readConfig({ PORT: '0', ...settings });
  const kept = new KeptMessages();
  const coordinator = await createCoordinator(config, {
    store,
    projecting,
    clock,
    randomness,
    delivery: new RetryingDelivery({ email: kept, sms: kept }, () => undefined, { now: () => clock.now() }),
    keyEncryption: new LocalKeyEncryption([randomness.bytes(32)], randomness),
    logger,
  });
  await coordinator.app.listen(0, '127.0.0.1');
  const url = await coordinator.app.getUrl();
  const tenant = ({ organizationId, userId, key }: typeof parent): Tenant => ({
    organizationId,
    userId,
    client: new StampingClient(url, organizationId, key, clock),
  });
  return {
    url,
    clock,
    parent: tenant(parent),
    child: tenant(child),
    stranger: tenant(stranger),
    messages: () => [...kept.messages],
    close: () => coordinator.close(),
  };
}
