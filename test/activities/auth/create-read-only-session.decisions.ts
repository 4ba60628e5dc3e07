import { createReadOnlySession } from '../../../src/activities/auth/create-read-only-session.js';
import { readSessionOf } from '../../../src/domain/read-session.js';
import { preparePorts } from '../../coordinator/prepare-ports.js';
import { anOrganization, aUser } from '../facts.js';
import { given, id } from '../given.js';

const ann = id(101);
const expiresAt = Date.UTC(2026, 0, 2) / 1000 + 900;
const publicHalf = Buffer.from(
  `{"exp":${expiresAt},"organization_id":"${id(700)}","user_id":"${ann}","credential_id":"${id(301)}"}`,
).toString('base64url');
const result = {
  organizationId: id(700),
  organizationName: 'Acme',
  userId: ann,
  username: 'Ann',
  session: publicHalf,
  sessionExpiry: String(expiresAt),
};

it('records who may read, until when and by which credential, and nothing that proves it', () =>
  given(anOrganization(), aUser(ann))
    .when(createReadOnlySession, {}, { submitterId: ann, credentialId: id(301) })
    .then([], result));

it('takes no parameters', () =>
  given(anOrganization(), aUser(ann))
    .when(createReadOnlySession, { expirationSeconds: '86400' }, { submitterId: ann })
    .thenRefused('INVALID_ARGUMENT', /expirationSeconds: is not a field of this request/));

it('is revealed as a session that only the keys of the installation can make', async () => {
  const [ports, others] = [await preparePorts(), await preparePorts(undefined, 'another installation')];
  const { session, ...rest } = (await createReadOnlySession.reveal!(result, ports, { prepared: undefined }))!;
  expect({ ...rest, session: publicHalf }).toEqual(result);
  expect(session).toMatch(new RegExp(`^${publicHalf}\\.[\\w-]{43}$`));
  // Whoever sends the bytes again may have read them.
  expect(await createReadOnlySession.reveal!(result, ports, undefined)).toBeUndefined();

  expect(await ports.tokens.readSessionProved(session)).toBe(publicHalf);
  expect(readSessionOf(publicHalf)).toEqual({
    organizationId: id(700),
    userId: ann,
    credentialId: id(301),
    expiresAt,
    clockMends: 0,
  });
  expect(await others.tokens.readSessionProved(session)).toBeUndefined();
  const proof = session.slice(publicHalf.length + 1);
  // The last letter holds two bits that are no part of the 32 bytes: another spelling of the same is no other session.
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const respelled = proof.slice(0, -1) + alphabet[alphabet.indexOf(proof.at(-1)!) ^ 1]!;
  expect(Buffer.from(respelled, 'base64url')).toEqual(Buffer.from(proof, 'base64url'));
  const later = Buffer.from(Buffer.from(publicHalf, 'base64url').toString().replace('"exp":1', '"exp":9'));
  for (const forged of [
    '',
    '.',
    publicHalf,
    `${publicHalf}.`,
    `${publicHalf}.${respelled}`,
    `${publicHalf}.${proof}=`,
    `${publicHalf}.${proof}.`,
    `${publicHalf}.${proof.slice(1)}`,
    `${publicHalf}.${'A'.repeat(43)}`,
    `${later.toString('base64url')}.${proof}`,
    `.${proof}`,
    `${'A'.repeat(9_000)}.${proof}`,
  ]) {
    expect(await ports.tokens.readSessionProved(forged)).toBeUndefined();
  }
});
