import { randomBytes } from 'node:crypto';
import { ApiError, StampingClient } from '../../client/stamping-client.js';
import { generateApiKeyPair } from '../../stamps/sign.js';
import { explained } from '../explain.js';
import { ifAliceAlone, linted, triedOnly, whoCould, whyItWaits } from './lab.js';
import type { Stage } from './stage.js';

/** The people in the rest of the story. */
export interface Cast {
  readonly client: StampingClient;
  readonly alice: StampingClient;
  readonly bob: StampingClient;
  readonly aliceId: string;
  readonly bobId: string;
  /** Revision of the organization before any of it. */
  readonly before: number;
  /** The request that waited for Bob. */
  readonly activityId: string;
}

/** Users, a four-eyes policy, votes, a denial, and the events behind it. `run` keeps names apart from earlier tours. */
export async function people(stage: Stage, apiUrl: string, client: StampingClient, run: string): Promise<Cast> {
  const { title, say, note, dim, green, red, yellow } = stage;
  const { organizationId } = client;
  title('Who am I?');
  note('POST /public/v1/query/whoami, stamped with the root API key of root.json');
  const me = await client.query<{ organizationName: string; username: string; userId: string }>('whoami');
  say(`   ${green(me.username)} (${me.userId}) of ${green(me.organizationName)}`);

  title('Two colleagues, each with an API key of their own');
  const newcomer = (name: string) => ({ name, key: generateApiKeyPair((count) => randomBytes(count)) });
  const people = [newcomer(`Alice ${run}`), newcomer(`Bob ${run}`)];
  const created = await client.submit('ACTIVITY_TYPE_CREATE_USERS_V4', {
    users: people.map(({ name, key }) => ({
      userName: name,
      apiKeys: [{ apiKeyName: 'Tour key', publicKey: key.publicKey, curveType: key.curve }],
      authenticators: [],
      oauthProviders: [],
      userTags: [],
    })),
  });
  const { userIds } = created.result['createUsersResult'] as { userIds: [string, string] };
  people.forEach(({ name }, index) => say(`   ${green(name)}  ${userIds[index]}`));
  const [alice, bob] = people.map(({ key }) => new StampingClient(apiUrl, organizationId, key)) as [
    StampingClient,
    StampingClient,
  ];

  title('A policy: changing users takes two approvals, of Alice and of Bob');
  const condition = "activity.resource == 'USER' && activity.action == 'UPDATE'";
  const consensus = `approvers.any(user, user.id == '${userIds[0]}') && approvers.any(user, user.id == '${userIds[1]}')`;
  note(`condition  ${condition}`);
  note(`consensus  ${consensus}`);
  const policyName = `Four eyes on users ${run}`;
  const policy = await client.submit('ACTIVITY_TYPE_CREATE_POLICY_V3', {
    policyName,
    effect: 'EFFECT_ALLOW',
    condition,
    consensus,
    notes: 'from the tour',
  });
  say(`   ${green(policy.status)}`);

  title('Alice asks for a change');
  const requested = await alice.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', {
    userId: userIds[1],
    userName: `Robert ${run}`,
  });
  say(`   ${yellow(requested.status)}  approve it by its fingerprint ${requested.fingerprint.slice(0, 23)}…`);

  title('Why does it wait, and who could make it pass?');
  await whyItWaits(stage, client, requested.id);
  await whoCould(stage, client, requested.id);

  title('Bob approves');
  const approved = await bob.approve(requested.fingerprint);
  say(`   ${green(approved.status)}  ${JSON.stringify(approved.result)}`);

  title('Bob asks what deleting Alice would come to');
  const deletion = { type: 'ACTIVITY_TYPE_DELETE_USERS', parameters: { userIds: [userIds[0]] } };
  await triedOnly(stage, bob, deletion);

  title('Bob tries it all the same');
  try {
    await bob.submit(deletion.type, deletion.parameters);
    throw new Error('the attempt was not denied');
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 403) throw error;
    const [why, ...policies] = explained(error).message.split('\n');
    say(`   ${red(`HTTP ${error.status}`)}  ${why}`);
    for (const line of policies) note(line.trim());
  }

  title('The activity, with its votes');
  const { activity } = await client.query<{ activity: typeof approved }>('get_activity', { activityId: requested.id });
  say(`   ${activity.type}  ${green(activity.status)}`);
  for (const vote of activity.votes) {
    say(
      `   ${vote.selection.replace('VOTE_SELECTION_', '').toLowerCase()} by ${green(vote.user?.userName ?? vote.userId)}`,
    );
    note(`signature ${vote.signature.slice(0, 32)}… over ${vote.message.length} bytes with ${vote.scheme}`);
  }
  const { policyEvaluations } = await client.query<{
    policyEvaluations: {
      outcome: string;
      revision: string;
      policyEvaluations: { policyId: string; outcome: string }[];
    }[];
  }>('get_policy_evaluations', { activityId: requested.id });
  for (const [index, one] of policyEvaluations.entries()) {
    note(
      `decision ${index + 1}: ${one.outcome} at revision ${one.revision}, policies: ${one.policyEvaluations.map(({ outcome }) => outcome).join(', ')}`,
    );
  }

  title('The events behind it');
  note('every one is linked to the one before by SHA-256; nothing is ever changed');
  const { events } = await client.query<{
    events: { revision: string; type: string; hash: string; recordedAt: string }[];
  }>('list_activity_events', { activityId: requested.id });
  for (const event of events) {
    say(
      `   ${event.revision.padStart(5)}  ${event.type.padEnd(18)} ${dim(`${event.recordedAt}  ${event.hash.slice(0, 16)}…`)}`,
    );
  }

  const first = await client.query<{ events: { revision: string }[] }>('list_activity_events', {
    activityId: created.id,
  });
  const before = Number(first.events[0]!.revision) - 1;

  title('What if the policy had asked for Alice alone?');
  await ifAliceAlone(stage, client, { policy: policyName, aliceId: userIds[0], before });

  title('Is anything wrong with the policies?');
  await linted(stage, client);

  return { client, alice, bob, aliceId: userIds[0], bobId: userIds[1], before, activityId: requested.id };
}
