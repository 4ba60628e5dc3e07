import { rejectActivity } from '../../../src/activities/consensus/reject-activity.js';
import { validate } from '../../../src/wire/validate.js';

const fingerprint = `sha256:${'0a'.repeat(32)}`;

describe('reject activity', () => {
  it('is a vote against the activity with that fingerprint', () => {
    expect(validate(rejectActivity.intent, { fingerprint }, 'parameters')).toEqual({ fingerprint });
    expect(rejectActivity).toMatchObject({ kind: 'vote', selection: 'VOTE_SELECTION_REJECTED' });
  });

  it.each([
    ['none', {}, /parameters\.fingerprint: is required/],
    ['upper case', { fingerprint: `sha256:${'0A'.repeat(32)}` }, /must be sha256: and 64 lower-case hexadecimal/],
    ['no prefix', { fingerprint: '0a'.repeat(32) }, /must be sha256: and 64 lower-case hexadecimal/],
    ['one digit too many', { fingerprint: `${fingerprint}0` }, /must be sha256: and 64 lower-case hexadecimal/],
    ['a line break behind it', { fingerprint: `${fingerprint}\n` }, /must be sha256: and 64 lower-case hexadecimal/],
    ['an activity id beside it', { fingerprint, activityId: 'a' }, /parameters\.activityId: is not a field/],
  ])('refuses a fingerprint: %s', (_what, intent, message) =>
    expect(() => validate(rejectActivity.intent, intent, 'parameters')).toThrow(message),
  );
});
