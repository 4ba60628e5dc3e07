import { Inject, Injectable } from '@nestjs/common';
import { activityEnvelope, type ActivityEnvelope } from '../wire/envelope.js';
import type { AnyActivity } from '../activities/define-activity.js';
import type { ActivityRecord } from '../domain/activity/record.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import { hasTimestampObjects } from '../domain/organization/settings.js';
import type { User } from '../domain/organization/users.js';
import { organizationPath, type QueuePath } from '../fairness/fair-queue.js';
import { largeBody, thisThread } from '../fairness/turns.js';
import { Driver } from './execute-activity.js';
import type { SubmitResult } from './pending-request.js';
import { Meter } from '../domain/steps.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { DRIVER_METRICS, type DriverMetrics } from '../ports/driver-metrics.js';
import { KNOWN_ACTIVITIES, type KnownActivities } from '../ports/known-activities.js';
import { TOKENS, type TokenPort } from '../ports/tokens.js';
import { toldOnce } from '../decide/refusals.js';
import { REGISTRY, type Registry } from '../decide/registry.js';
import type { StampedRequest, SubmitRequest } from './read-submit.js';

/** The response to a submit, and the store position that a reader must have passed to see it. */
export interface ActivityResponse {
  readonly activity: ActivityEnvelope;
  readonly position: bigint;
}

/** Characters that were signed for an activity: they make up nearly all of a response. */
export function sizeOf({ votes }: { readonly votes: readonly { readonly message: string }[] }): number {
  return votes.reduce((sum, { message }) => sum + message.length, 0);
}

type Format = Pick<StampedRequest, 'timestampObjects'>;

/**
 * Builds the caller's view of an activity: from the events just recorded, or from the read model if it was known
 * before.
 */
@Injectable()
export class ActivityResponses {
  constructor(
    private readonly driver: Driver,
    @Inject(KNOWN_ACTIVITIES) private readonly known: KnownActivities,
    @Inject(REGISTRY) private readonly registry: Registry,
    @Inject(TOKENS) private readonly tokens: TokenPort,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(DRIVER_METRICS) private readonly metrics: Pick<DriverMetrics, 'spent'>,
  ) {}

  /** Executes the request and builds the response, on one meter. @throws {CoordinatorError} as `Driver.execute` does */
  async to(request: SubmitRequest, { timestampObjects = false }: Format): Promise<ActivityResponse> {
    const meter = new Meter();
    try {
      return await this.of(await this.driver.execute(request, meter), timestampObjects);
    } finally {
      this.metrics.spent('submit', meter);
    }
  }

  async of(
    { organizationId, organization, activityId, callerUserId, record, position, meter, appended }: SubmitResult,
    timestampObjects = false,
  ): Promise<ActivityResponse> {
    const current = record ?? (await this.known.read(organizationId, activityId, position));
    const { keys, definition } = this.registry.versions.get(current.type)!;
    const rights = await this.driver.rights.afterReading(organization, activityId, callerUserId, meter);
    const isSubmitter = current.votes[0]?.userId === callerUserId;
    const told =
      isSubmitter && definition.kind === 'activity' ? await this.revealed(definition, current, appended) : undefined;
    // Everything that was signed is searched for what may still be a secret.
    const turn = sizeOf(current) > largeBody ? thisThread.next(pathOf(organization), { alone: true }) : undefined;
    if (turn) await turn;
    const context = {
      keys,
      rights,
      now: this.clock.now(),
      told,
      asSubmitted: isSubmitter && appended !== undefined,
      timestampObjects: timestampObjects || hasTimestampObjects(organization),
    };
    return { activity: activityEnvelope(current, context), position };
  }

  /** The result with its secret, if any: others may have read the bytes and sent them again. */
  private async revealed(
    { type, reveal }: AnyActivity,
    { activityId, result }: ActivityRecord<User | undefined>,
    appended: SubmitResult['appended'],
  ): Promise<Readonly<Record<string, unknown>> | undefined> {
    if (!reveal || !result) return undefined;
    const revealed = await reveal(result, { tokens: this.tokens }, appended);
    if (!revealed) throw toldOnce(type, activityId);
    return { ...revealed };
  }
}

function pathOf({ organizationId, parentOrganizationId }: OrganizationView): QueuePath {
  return organizationPath(organizationId, parentOrganizationId);
}
