import type { DenialEvent } from '../domain/activity/denial.js';
import type { BootEvent } from '../domain/boots.js';
import type { ClaimEvent } from '../domain/organization/claims.js';
import type { OrganizationEvent } from '../domain/organization/organization.js';
import type { AttemptedVaultEvent } from '../domain/vault-attempt.js';
import type { WebhookDeliveryEvent } from '../domain/organization/webhook-deliveries.js';
import type { Rows } from './database.js';

/** A recorded event for projections. */
export interface ProjectedEvent {
  /** Empty for an event of the installation itself; for a claim, its parent. */
  readonly organizationId: string;
  /** Place in the store; increases. */
  readonly position: bigint;
  /** Place in its stream. */
  readonly revision: number;
  /** Recorded time, milliseconds since the epoch. */
  readonly at: number;
  readonly id: string;
  readonly event: OrganizationEvent | DenialEvent | WebhookDeliveryEvent | BootEvent | AttemptedVaultEvent | ClaimEvent;
}

/**
 * One table, or a few, derived only from events: rows, projection and queries are in one file. Raise `version` if rows
 * would come out differently: the model is then rebuilt from the first event.
 */
export interface ReadModel {
  readonly name: string;
  readonly version: number;
  /** Names of its tables, to be dropped before a rebuild. */
  readonly tables: readonly string[];
  /**
   * Those of them whose missing rows permit something, such as a request a second time. SQLite takes rows in a lost block for
   * missing without a word, so these are checked whenever the file is opened.
   */
  readonly guards?: readonly string[];
  /** Creates the tables. */
  readonly schema: string;
  /** Applies events to the rows, in position order, inside a transaction that also moves the checkpoint. */
  project(rows: Rows, events: readonly ProjectedEvent[]): void;
}

/** A projection that looks at one event at a time. */
export function eachEvent(project: (rows: Rows, event: ProjectedEvent) => void): ReadModel['project'] {
  return (rows, events) => {
    for (const event of events) project(rows, event);
  };
}
