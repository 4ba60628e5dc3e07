import type { Vote } from '../../../src/domain/activity/events.js';
import { limitsInForce } from '../../../src/domain/organization/limits.js';
import { checkRoomForVote } from '../../../src/domain/organization/open-activities.js';
import { emptyOrganization, evolve, type Organization } from '../../../src/domain/organization/organization.js';
import { anOrganization, aUser } from '../../activities/facts.js';
import { id } from '../../activities/given.js';

const [ann, bob] = [id(101), id(102)];

function vote(userId: string, message: string): Vote {
  const [publicKey, signature, scheme] = ['', '', 'SIGNATURE_SCHEME_TK_API_P256'] as const;
  return {
    voteId: `vote of ${userId}`,
    userId,
    selection: 'VOTE_SELECTION_APPROVED',
    message,
    fingerprint: `sha256:${message.length}`,
    publicKey,
    signature,
    scheme,
    credentialId: id(201),
  };
}

/** Activities that wait, each with the characters of its submitted body. */
function waitingFor(...submitted: readonly (readonly [submitter: string, characters: number])[]): Organization {
  const organization = emptyOrganization();
  const facts = [
    anOrganization(),
    aUser(ann),
    aUser(bob),
    ...submitted.map(([submitter, characters], at) => ({
      type: 'ActivitySubmitted',
      data: {
        activityId: id(800 + at),
        type: 'ACTIVITY_TYPE_UPDATE_USER_NAME',
        intent: {},
        fingerprint: `sha256:${at}`,
        timestampMs: '0',
        status: 'ACTIVITY_STATUS_CONSENSUS_NEEDED',
        vote: vote(submitter, 'x'.repeat(characters)),
        decision: { voteId: 'vote', outcome: 'consensus-needed', decidedBy: 'none', evaluations: [], revision: 0 },
      },
    })),
  ];
  for (const fact of facts) evolve(organization, fact, 0);
  return organization;
}

describe('a vote that is kept with its activity', () => {
  const limits = { ...limitsInForce(false), waitingCharacters: 9_000, waitingCharactersOfSubmitter: 6_000 };
  const check = (organization: Organization, characters: number) =>
    checkRoomForVote(organization, organization.openActivities.get(id(800))!, 'x'.repeat(characters), limits);

  it('needs room beside what its submitter has waiting', () => {
    const organization = waitingFor([ann, 4_000], [bob, 1_000]);
    expect(() => check(organization, 2_000)).not.toThrow();
    expect(() => check(organization, 2_001)).toThrow(
      'the waiting activities of the submitter may have 6000 characters in total, and would have 6001 with this body',
    );
  });

  it('needs room beside all that waits', () => {
    const organization = waitingFor([ann, 1_000], [bob, 5_000]);
    expect(() => check(organization, 3_000)).not.toThrow();
    expect(() => check(organization, 3_001)).toThrow(
      'the waiting activities of the organization may have 9000 characters in total, and would have 9001 with this body',
    );
  });

  it('needs none if it is short: who fills the room up does not keep others from voting', () => {
    const organization = waitingFor([ann, 6_000], [bob, 3_000]);
    expect(() => check(organization, 1_024)).not.toThrow();
    expect(() => check(organization, 1_025)).toThrow('send approve_activity with the fingerprint of activity');
  });
});
