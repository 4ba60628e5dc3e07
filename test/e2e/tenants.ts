import { RetryingDelivery } from '../../src/delivery/retrying.js';
import { CapturedMessages } from '../../src/testing/captured-messages.js';
import { LocalKeyEncryption } from '../../src/vault/key-encryption.js';
import { createCoordinator } from '../../src/app/create-coordinator.js';
import { readConfig } from '../../src/config/config.js';
import { derivedId } from '../../src/ledger/ids.js';
import type { OrganizationEvent } from '../../src/domain/organization/organization.js';
import { organizationStream } from '../../src/domain/organization/organization.js';
import { chainEvent, GENESIS_HASH } from '../../src/ledger/chain.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { createLogger } from '../../src/logging/logger.js';
import { projectInMemory } from '../../src/read-models/projecting.js';
import {
  generateApiKeyPair,
  ManualClock,
  SeededRandomness,
  StampingClient,
  type ApiKeyPair,
} from '../../src/testing/index.js';

/** An organization whose one user is its root user. */
export interface Tenant {
  readonly organizationId: string;
  readonly userId: string;
  readonly client: StampingClient;
}

type Founded = Omit<Tenant, 'client'> & { readonly key: ApiKeyPair };

/** A coordinator with two organizations that have nothing to do with each other, and a sub-organization of the first. */
export async function startTenants(settings: Readonly<Record<string, string>> = {}) {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const randomness = new SeededRandomness('tenants');
  const store = new InMemoryEventStore();

  const newKey = () => generateApiKeyPair((count) => randomness.bytes(count));

  async function found(name: string): Promise<Founded> {
    const key = newKey();
    const organizationId = derivedId('organization', name);
    const userId = derivedId('user', name);
    const facts: readonly OrganizationEvent[] = [
      { type: 'OrganizationCreated', data: { organizationId, name } },
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

  async function foundUnder({ client }: Tenant): Promise<Founded> {
    const key = newKey();
    const { result } = await client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
      subOrganizationName: 'Child',
      rootUsers: [
        {
          userName: 'Root of Child',
          apiKeys: [{ apiKeyName: 'root', publicKey: key.publicKey, curveType: 'API_KEY_CURVE_P256' }],
          authenticators: [],
          oauthProviders: [],
        },
      ],
      rootQuorumThreshold: 1,
    });
    const { subOrganizationId, rootUserIds } = Object.values(result)[0] as {
      subOrganizationId: string;
      rootUserIds: string[];
    };
    return { organizationId: subOrganizationId, userId: rootUserIds[0]!, key };
  }

  const parent = await found('Parent');
  const stranger = await found('Stranger');
  const logger = createLogger('silent');
  const projecting = projectInMemory();
  const config = readConfig({ PORT: '0', ...settings });
  const kept = new CapturedMessages();
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
  const tenant = ({ organizationId, userId, key }: Founded): Tenant => ({
    organizationId,
    userId,
    client: new StampingClient(url, organizationId, key, clock),
  });
  const founder = tenant(parent);
  return {
    url,
    clock,
    parent: founder,
    child: tenant(await foundUnder(founder)),
    stranger: tenant(stranger),
    messages: () => [...kept.messages],
    close: () => coordinator.close(),
  };
}
