import { activities, buildRegistry, type PolicyValue } from 'countersign/internal';
import type { Claim } from '../analysis-subject.js';
import { amountIn, checkMade, flagIn, NotExecuted, recordIn, textIn } from './trial-facts.js';
import type { TrialOrganization } from './trial-organization.js';
import { isOfParent, makers, type Made, type Making } from './trial-parameters.js';
import type { TrialResources } from './trial-resources.js';

const { versions } = buildRegistry(activities);
const makerOf: Readonly<Record<string, (making: Making) => Promise<Made<object>>>> = makers;

/** A request as it is sent, and what policies see of it that is not as in the example. */
export interface TrialRequest {
  /** The newest version of the example's type. */
  readonly type: string;
  /** The organization in which it is submitted. */
  readonly organizationId: string;
  readonly parameters: object;
  readonly resources: Readonly<Record<string, PolicyValue>>;
  readonly params: Readonly<Record<string, PolicyValue | undefined>>;
}

/** Whether the example is of an organization without a parent, and who is still to become a user of it. */
export function placeOf({ found: { request } }: Claim) {
  const { definition } = versions.get(request.activity.type)!;
  const isInvited = definition.kind === 'activity' && definition.submittedBy === 'invitee';
  return { isParent: isOfParent(definition.type), guestId: isInvited ? request.submitterId : undefined };
}

/** Makes the request of an example in an organization, with all that it needs there. @throws {NotExecuted} */
export async function requestOf(
  { found: { request, approvals }, set: { quorum } }: Claim,
  organization: TrialOrganization,
  resources: TrialResources,
): Promise<TrialRequest> {
  const { definition } = versions.get(request.activity.type)!;
  const { type } = definition;
  if (definition.kind !== 'activity') throw new NotExecuted(`${type} is a vote, and no activity`);
  const input = (name: string) => textIn(request.activity.params[name], `activity.params.${name}`);
  const givenAmount = (name: string) => amountIn(request.activity.params[name], `activity.params.${name}`);
  const givenFlag = (name: string) => flagIn(request.activity.params[name], `activity.params.${name}`);
  const facts = recordIn(request.resources, 'the request');
  const user = (): string => {
    const voters = new Set(approvals.map(({ userId }) => userId));
    const requested = input('user_id');
    const named = organization.userIds.find((id) => id === requested);
    const own = request.ownCredentials === true ? request.submitterId : undefined;
    const spare = organization.userIds.find((id) => !voters.has(id) && !quorum.userIds.includes(id));
    const chosen = named ?? own ?? spare;
    if (chosen === undefined) throw new NotExecuted('there is no user whom it could be about');
    if (quorum.userIds.includes(chosen) && !voters.has(chosen))
      throw new NotExecuted('a member of the root quorum is theirs alone, whatever policies say');
    return organization.ids.get(chosen)!;
  };
  const requested = { facts, given: input, givenAmount, givenFlag, user };
  const {
    parameters,
    resources: real = {},
    organizationId = organization.founder.organizationId,
  } = await makerOf[type]!({ ...requested, organization, resources });
  const params = Object.fromEntries(
    Object.entries(definition.params ?? {}).map(([name, param]) => [name, param.from(parameters)]),
  );
  for (const [name, value] of Object.entries(params)) {
    // Ids and keys are the coordinator's own.
    if (/_(?:ids?|key)$/.test(name)) continue;
    checkMade(request.activity.params[name], value, `activity.params.${name}`);
  }
  return { type, organizationId, parameters, resources: real, params };
}
