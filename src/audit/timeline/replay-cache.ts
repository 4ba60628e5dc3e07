import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { deserialize, serialize } from 'node:v8';
import { organizationStream } from '../../domain/organization/organization.js';
import type { EventReader } from '../../ledger/event-store.js';
import type { LoadedOrganization } from '../../ledger/loaded-organization.js';
import type { Snapshots } from '../../ledger/snapshots.js';
import { isConfirmed, type Confirmed } from './nearest-state.js';
import { stateFiles } from './state-files.js';

/** What a pass has noted of each event, by its revision, up to that of a state which is kept. */
export interface Index {
  readonly revision: number;
  /** Events between two states that are kept. */
  readonly every: number;
  /** Entries of all states that are kept. */
  readonly entries: number;
  /** Names of types, and for each event which one it has. */
  readonly names: readonly string[];
  readonly types: Uint16Array;
  readonly times: Float64Array;
  readonly positions: Float64Array;
  readonly decidedAt: Int32Array;
}

/** Raise it when an index is made of something else. */
const version = 1;
const digestLength = 32;

/**
 * What passes over histories have left in files, so that the next one begins where it ended (docs/adr/0022). A state is used
 * only where the stream has the event, by its link in the chain, that the state ends with. May be deleted at any time; what
 * cannot be read or written is done without.
 */
export class ReplayCache {
  private readonly states: Snapshots;

  constructor(private readonly folder: string) {
    this.states = stateFiles(folder);
  }

  /** The index of an organization, with the state that it ends at. */
  async begin(
    store: Pick<EventReader, 'read'>,
    organizationId: string,
  ): Promise<{ index: Index; last: Confirmed } | undefined> {
    const index = await this.readIndex(organizationId);
    if (!index) return undefined;
    const last = await this.nearest(store, organizationId, index.revision);
    return last?.loaded.revision === index.revision ? { index, last } : undefined;
  }

  /** The last state up to a revision that is kept and belongs to the stream. */
  async nearest(
    store: Pick<EventReader, 'read'>,
    organizationId: string,
    revision: number,
  ): Promise<Confirmed | undefined> {
    for await (const loaded of this.states.readable(organizationId, revision)) {
      for await (const event of store.read(organizationStream(organizationId), loaded.revision)) {
        if (isConfirmed(loaded, event)) return { loaded, event };
        break;
      }
    }
    return undefined;
  }

  /** Keeps states, the oldest first, and what was noted up to the last of them. */
  async keep(organizationId: string, states: readonly LoadedOrganization[], index: Index): Promise<void> {
    for (const state of states) {
      this.states.keep(state);
      await this.states.settled();
    }
    const body = serialize({ version, ...index });
    const file = this.indexFile(organizationId);
    try {
      await mkdir(this.folder, { recursive: true, mode: 0o700 });
      await writeFile(`${file}.part`, [digestOf(body), body], { mode: 0o600 });
      await rename(`${file}.part`, file);
    } catch {
      await this.forget(organizationId);
    }
  }

  /** Forgets all of an organization: the next pass begins with its first event. */
  async forget(organizationId: string): Promise<void> {
    const options = { recursive: true, force: true };
    for (const path of [this.indexFile(organizationId), join(this.folder, organizationId)]) {
      await rm(path, options).catch(() => undefined);
    }
  }

  private async readIndex(organizationId: string): Promise<Index | undefined> {
    try {
      const bytes = await readFile(this.indexFile(organizationId));
      const body = bytes.subarray(digestLength);
      if (!digestOf(body).equals(bytes.subarray(0, digestLength))) return undefined;
      const read = deserialize(body) as Index & { readonly version: number };
      return read.version === version ? read : undefined;
    } catch {
      return undefined;
    }
  }

  private indexFile(organizationId: string): string {
    return join(this.folder, `${organizationId}.index`);
  }
}

const digestOf = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest();
