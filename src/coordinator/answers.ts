import { activityEnvelope, type ActivityEnvelope } from '../domain/activity/envelope.js';
import type { PreparePorts } from '../activities/ports.js';
import type { DriveAnswer, Driver } from './drive.js';
import type { OrganizationLoader } from './load-organization.js';
import type { KnownActivities } from './ports.js';
import type { Registry } from './registry.js';

/** What a submit is answered with, and the store position that a reader must have passed to see it. */
export interface ActivityAnswer {
  readonly activity: ActivityEnvelope;
  readonly position: bigint;
}

/** Builds what a caller sees of an activity: from the events just recorded, or from the read model when it was known. */
export class ActivityAnswers {
  constructor(
    private readonly driver: Driver,
    private readonly loader: OrganizationLoader,
    private readonly known: KnownActivities,
    private readonly registry: Registry,
    private readonly ports: Pick<PreparePorts, 'tokens'>,
  ) {}

  async of({ organizationId, activityId, callerUserId, record, position }: DriveAnswer): Promise<ActivityAnswer> {
    const current = record ?? (await this.known.read(organizationId, activityId, position));
    const { keys, definition } = this.registry.versions.get(current.type)!;
    const { organization } = await this.loader.load(organizationId);
    const rights = this.driver.rights(organization, activityId, callerUserId);
    const isSubmitter = current.votes[0]?.userId === callerUserId;
    const { result } = current;
    const revealed =
      isSubmitter && result && definition.kind === 'activity' && definition.reveal
        ? { ...current, result: { ...(await definition.reveal(result, this.ports)) } }
        : current;
    return { activity: activityEnvelope(revealed, { keys, rights }), position };
  }
}
