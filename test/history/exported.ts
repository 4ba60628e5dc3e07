import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { activities } from '../../src/activities/index.js';
import { buildRegistry } from '../../src/decide/registry.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { exportHistory, type ExportReport } from '../../src/audit/export/export-history.js';
import { verifyHistory, type Verification } from '../../src/audit/verify/verify.js';
import type { TestCoordinator } from '../../src/testing/index.js';

export const registry = buildRegistry(activities);

export interface Exported extends ExportReport {
  readonly file: string;
  readonly text: string;
}

/** Everything that a coordinator has recorded, in a store of its own; what was shredded is not in it. */
export async function copyOf(coordinator: TestCoordinator): Promise<InMemoryEventStore> {
  const copy = new InMemoryEventStore();
  const heads = new Map<string, number>();
  for (const { stream, id, type, data, metadata } of await coordinator.recorded()) {
    if (stream.startsWith('renewals-')) continue;
    const { revision } = await copy.append(stream, [{ id, type, data, metadata }], heads.get(stream) ?? 'no-stream');
    heads.set(stream, revision);
  }
  return copy;
}

export async function verifiedOf(coordinator: TestCoordinator): Promise<Verification> {
  const copy = await copyOf(coordinator);
  try {
    return await verifyHistory(copy, { registry });
  } finally {
    await copy.close();
  }
}

/** Files that go with the test. */
export class Exports {
  private constructor(private readonly folder: string) {}

  static async open(): Promise<Exports> {
    return new Exports(await mkdtemp(join(tmpdir(), 'history-')));
  }

  async of(coordinator: TestCoordinator, organizationId: string, { redact = false } = {}): Promise<Exported> {
    const copy = await copyOf(coordinator);
    let text = '';
    const report = await exportHistory(
      copy,
      { organizationId, registry, now: coordinator.clock.now(), ...(redact ? { redactionKey: randomBytes(32) } : {}) },
      (line) => void (text += line),
    );
    await copy.close();
    return { ...report, text, file: await this.write(text) };
  }

  async write(text: string | Uint8Array, ending = 'jsonl'): Promise<string> {
    const file = join(this.folder, `${randomBytes(8).toString('hex')}.${ending}`);
    await writeFile(file, text);
    return file;
  }

  close(): Promise<void> {
    return rm(this.folder, { recursive: true });
  }
}
