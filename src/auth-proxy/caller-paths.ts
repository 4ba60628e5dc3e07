import { callerPath, strangersPath, type QueuePath } from '../fairness/fair-queue.js';
import { LatestEntries } from '../fairness/latest-entries.js';
import type { Configuration } from './api.js';

/** Configurations whose organization is remembered. */
const mostRemembered = 10_000;

/**
 * Where callers of the auth proxy wait for their turn: those of one organization together, and by address as long as it
 * is not known that the configuration exists. Evicting one permits nothing: its next caller waits as its first one did.
 */
export class CallerPaths {
  /** By configuration. */
  private readonly organizations = new LatestEntries<string>(mostRemembered);

  of(configId: string, network: string): QueuePath {
    const organizationId = this.organizations.get(configId);
    return organizationId === undefined ? callerPath(network) : strangersPath(organizationId, network);
  }

  remember({ configId, organizationId }: Configuration): void {
    this.organizations.set(configId, organizationId);
  }
}
