import { updatePolicy } from '../../../src/activities/policies/update-policy.js';
import { anOrganization, aPolicy } from '../facts.js';
import { given, id } from '../given.js';
import { lifted } from '../lifted.js';

const history = [anOrganization(), aPolicy(id(301), 'a'), aPolicy(id(302), 'b')];

describe('update policy', () => {
  it('changes everything that is sent', () =>
    given(...history)
      .when(updatePolicy, {
        policyId: id(301),
        policyName: 'c',
        policyEffect: 'EFFECT_DENY',
        policyCondition: 'true',
        policyConsensus: 'false',
        policyNotes: 'n',
        time: "time.now > Timestamp('2026-01-01T00:00:00Z')",
      })
      .then(
        [
          {
            type: 'PolicyUpdated',
            data: {
              policyId: id(301),
              policyName: 'c',
              effect: 'EFFECT_DENY',
              condition: 'true',
              consensus: 'false',
              notes: 'n',
              time: "time.now > Timestamp('2026-01-01T00:00:00Z')",
            },
          },
        ],
        { policyId: id(301) },
      ));

  it('leaves alone what is not sent', () => {
    const decided = given(...history).when(updatePolicy, { policyId: id(301), policyNotes: '' });
    decided.then([{ type: 'PolicyUpdated', data: { policyId: id(301), notes: '' } }], { policyId: id(301) });
  });

  it('changes nothing when nothing is sent', () =>
    given(...history)
      .when(updatePolicy, { policyId: id(301) })
      .then([], { policyId: id(301) }));

  it('keeps its own name', () =>
    given(...history)
      .when(updatePolicy, { policyId: id(301), policyName: 'a' })
      .then([{ type: 'PolicyUpdated', data: { policyId: id(301), policyName: 'a' } }], { policyId: id(301) }));

  it.each([
    ['the name of another', { policyName: 'b' }, /^policy label must be unique: `b` is taken/],
    ['a blank condition', { policyCondition: ' ' }, /^invalid policy condition: /],
    ['a consensus that does not parse', { policyConsensus: 'approvers.' }, /^invalid policy consensus: /],
    ['a time of a wrong type', { time: "'now'" }, /^invalid policy time: /],
    [
      'a name that is too long',
      { policyName: 'x'.repeat(256) },
      /parameters\.policyName: must have 1 to 255 characters/,
    ],
  ])('refuses %s', (_what, changes, message) =>
    given(...history)
      .when(updatePolicy, { policyId: id(301), ...changes })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  it('refuses a policy that is not there', () =>
    given(...history)
      .when(updatePolicy, { policyId: id(303), policyNotes: 'n' })
      .thenRefused('NOT_FOUND', new RegExp(`no policy \`${id(303)}\``)));

  it('takes the first version, which has no time', () => {
    const intent = { policyId: id(301), policyName: 'c', policyCondition: 'true' };
    given(...history)
      .when(updatePolicy, lifted('ACTIVITY_TYPE_UPDATE_POLICY', intent))
      .then([{ type: 'PolicyUpdated', data: { policyId: id(301), policyName: 'c', condition: 'true' } }], {
        policyId: id(301),
      });
    expect(() => lifted('ACTIVITY_TYPE_UPDATE_POLICY', { ...intent, time: 'true' })).toThrow(
      /parameters\.time: is not a field of this request/,
    );
  });
});
