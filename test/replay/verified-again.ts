import { activities } from '../../src/activities/index.js';
import { buildRegistry } from '../../src/decide/registry.js';
import type { NewEvent } from '../../src/ledger/event-store.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { verifyHistory } from '../../src/replay/verify.js';
import type { TestCoordinator } from '../../src/testing/index.js';

/** Verifies everything that a coordinator has recorded; what was shredded is left out, as no decision was made on it. */
export async function expectVerified(coordinator: TestCoordinator): Promise<void> {
  const copy = new InMemoryEventStore();
  const heads = new Map<string, number>();
  for (const { stream, id, type, data, metadata } of await coordinator.recorded()) {
    if (stream.startsWith('vault-')) continue;
    const event: NewEvent = { id, type, data, metadata };
    heads.set(stream, (await copy.append(stream, [event], heads.get(stream) ?? 'no-stream')).revision);
  }
  const { findings, decisions } = await verifyHistory(copy, { registry: buildRegistry(activities) });
  await copy.close();
  expect(findings).toEqual([]);
  expect(decisions).toBeGreaterThan(10);
}
