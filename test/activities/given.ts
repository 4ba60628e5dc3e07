import type { ActivityDefinition } from '../../src/activities/define-activity.js';
import { validate } from '../../src/wire/validate.js';
import { buildRegistry } from '../../src/decide/registry.js';
import { activities } from '../../src/activities/index.js';
import type { Attestation } from '../../src/domain/activity/events.js';
import { CoordinatorError, type ErrorCode } from '../../src/domain/errors.js';
import { checkQuorumMembers } from '../../src/domain/organization/quorum-members.js';
import { checkQuorumReachable } from '../../src/domain/organization/login-methods.js';
import { limitsToCheck } from '../../src/decide/decision-context.js';
import { checkLimits, limitsInForce } from '../../src/domain/organization/limits.js';
import { emptyOrganization, evolve, type OrganizationEvent } from '../../src/domain/organization/organization.js';

export const { policyEnvironment } = buildRegistry(activities);

/** Recorded time of the facts that a test gives, and of its decision. */
const givenAt = Date.UTC(2026, 0, 1);
const decidedAt = Date.UTC(2026, 0, 2);

/** A running number as a UUID: `id(1)` is the first id that a decision makes. */
export const id = (number: number): string => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;

/** What holds where nobody has set anything else, and no stream is ahead of the clock. */
export const usualLimits = {
  limits: limitsInForce(false),
  subOrganizationLimits: limitsInForce(true),
  checkParentsTime: () => undefined,
};

/** Folds the given facts with the real `evolve`, validates the intent with its real class, and decides. */
export function given(...history: readonly OrganizationEvent[]) {
  const organization = emptyOrganization();
  for (const event of history) evolve(organization, event, givenAt);

  return {
    when<Intent extends object, Result extends object, Recalled, Prepared = Recalled>(
      definition: ActivityDefinition<string, Intent, Result, Recalled, Prepared>,
      intent: object,
      {
        submitterId = id(900),
        credentialId = id(901),
        prepared,
        attestation,
        isRootQuorums = true,
      }: {
        submitterId?: string;
        credentialId?: string;
        prepared?: Prepared;
        attestation?: Attestation;
        isRootQuorums?: boolean;
      } = {},
    ) {
      let count = 0;
      const limits = limitsToCheck({ organization });
      const decide = () => {
        const valid = validate(definition.intent, intent, 'parameters');
        definition.check?.(valid, organization, limits);
        const outcome = definition.decide(
          valid,
          {
            organization,
            activityId: id(800),
            submitterId,
            credentialId,
            ...(attestation ? { attestation } : {}),
            now: decidedAt,
            newId: () => id(++count),
            policyEnvironment,
            isRootQuorums,
            ...limits,
          },
          prepared as Recalled & Prepared,
        );
        checkLimits(organization, outcome.events, limits.limits);
        checkQuorumMembers(
          organization,
          outcome.events,
          { isRootQuorums, userIds: [submitterId] },
          'login' in outcome ? outcome.login : undefined,
        );
        checkQuorumReachable(organization, outcome.events, decidedAt);
        return outcome;
      };
      return {
        then(events: readonly OrganizationEvent[], result: Result) {
          const outcome = decide();
          expect(outcome.events).toEqual(events);
          expect('result' in outcome ? outcome.result : outcome.failure).toEqual(result);
          // What was decided must fold, or the stream could not be read again.
          for (const event of outcome.events) evolve(organization, event, decidedAt);
        },
        /** What is recorded although it fails. */
        thenFails(events: readonly OrganizationEvent[], code: ErrorCode, message: RegExp) {
          const outcome = decide();
          expect(outcome.events).toEqual(events);
          const failure = 'failure' in outcome ? outcome.failure : undefined;
          expect([failure?.code, failure?.message]).toEqual([code, expect.stringMatching(message)]);
          for (const event of outcome.events) evolve(organization, event, decidedAt);
        },
        thenRefused(code: ErrorCode, message: RegExp) {
          let thrown: unknown;
          try {
            decide();
          } catch (error) {
            thrown = error;
          }
          expect(thrown).toBeInstanceOf(CoordinatorError);
          const { code: actual, message: text } = thrown as CoordinatorError;
          expect({ code: actual, message: text }).toEqual({ code, message: expect.stringMatching(message) as string });
        },
      };
    },
  };
}
