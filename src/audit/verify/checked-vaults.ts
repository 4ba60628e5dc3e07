import { bootStream } from '../../domain/boots.js';
import { organizationStream, type OrganizationView } from '../../domain/organization/organization.js';
import { heldVaults, vaultsEndedBy, type HeldVault } from '../../domain/organization/vaults.js';
import { installationVault, vaultStream } from '../../domain/vault-streams.js';
import type { EventReader, RecordedEvent } from '../../ledger/event-store.js';
import { eventOf } from './deciding-events.js';
import type { Finding } from './finding.js';
import type { Place } from './followed-organization.js';

/** An organization as its stream has left it, and the last event of that stream. */
export interface FoldedOrganization {
  readonly organization: OrganizationView;
  readonly last: Place;
}

const toDo = 'restore a backup of the store that has it';

/**
 * The vaults of a store while it is read. A vault is sealed before the event that names it and shredded after the event
 * that ends it, so one that nothing names is fine, and one that an organization still needs must be there.
 */
export class CheckedVaults {
  private boot: Place | undefined;

  /** @param has whether an event of a stream was read */
  constructor(private readonly has: (stream: string) => boolean) {}

  /** Takes every event of the store, also those that need no other check. */
  take({ stream, revision, position }: RecordedEvent): void {
    if (stream === bootStream) this.boot = { stream, revision, position };
  }

  /**
   * A finding for each vault that is gone and still needed. Reads on only in organizations that miss one.
   * @throws {StoreUnavailable}
   */
  async *missing(store: EventReader, organizations: Iterable<FoldedOrganization>): AsyncGenerator<Finding> {
    if (this.boot && !this.has(vaultStream(installationVault))) {
      yield missingAt(this.boot, {
        vaultId: installationVault,
        holds: 'the keys that this installation signs and encrypts with',
      });
    }
    for (const { organization, last } of organizations) {
      if (organization.isDeleted) continue;
      const missing = heldVaults(organization).filter(({ vaultId }) => !this.has(vaultStream(vaultId)));
      if (missing.length === 0) continue;
      const ended = await endedAfter(store, organization.organizationId, last.revision);
      for (const vault of missing) {
        if (!ended.has(vault.vaultId)) yield missingAt(last, vault, organization.organizationId);
      }
    }
  }
}

/** Where the organization still needs it. */
function missingAt(
  { stream, revision, position }: Place,
  { vaultId, holds }: HeldVault,
  organizationId?: string,
): Finding {
  const whose = organizationId === undefined ? '' : ` of organization \`${organizationId}\``;
  const problem = `the stream \`${vaultStream(vaultId)}\` is missing: this vault${whose} holds ${holds}; ${toDo}`;
  return { stream, revision, position, problem };
}

/** Vaults that were shredded while the store was read: what ended them was recorded meanwhile. */
async function endedAfter(store: EventReader, organizationId: string, revision: number): Promise<ReadonlySet<string>> {
  const ended = new Set<string>();
  for await (const recorded of store.read(organizationStream(organizationId), revision + 1)) {
    for (const vaultId of vaultsEndedBy(eventOf(recorded))) ended.add(vaultId);
  }
  return ended;
}
