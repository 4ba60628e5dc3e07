import { createReadWriteSession } from '../../../src/activities/auth/create-read-write-session.js';
import { emptyOrganization, evolve, type OrganizationEvent } from '../../../src/domain/organization/organization.js';
import { preparePorts } from '../../coordinator/prepare-ports.js';
import { anApiKey, anOrganization, aUser, publicKeyOf } from '../facts.js';
import { given, id, usualLimits } from '../given.js';
import { lifted } from '../lifted.js';

const ann = id(101);
const history: readonly OrganizationEvent[] = [
  anOrganization(),
  aUser(ann, { userEmail: 'ann@example.com' }),
  aUser(id(102), { userName: 'Ben', userEmail: 'ben@example.com' }),
];
const intent = { targetPublicKey: publicKeyOf(40) };
const prepared = { publicKey: publicKeyOf(50), credentialBundle: 'a bundle' };
const asked = { submitterId: ann, prepared };
const result = {
  organizationId: id(700),
  organizationName: 'Acme',
  userId: ann,
  username: 'Ann',
  apiKeyId: id(1),
  credentialBundle: 'a bundle',
};
const credentialType = 'CREDENTIAL_TYPE_READ_WRITE_SESSION_KEY_P256';
const madeKey = anApiKey(ann, 50, {
  apiKeyId: id(1),
  apiKeyName: 'Read Write Session - 2026-01-02T00:00:00.000Z',
  credentialType,
  expirationSeconds: 900,
});

describe('create_read_write_session', () => {
  it.each([
    ['without a name for it', {}],
    ['by id', { userId: ann }],
  ])('gives a key to whoever asks, %s', (_what, more) =>
    given(...history)
      .when(createReadWriteSession, { ...intent, ...more }, asked)
      .then([madeKey], result),
  );

  it('removes the keys of its class if asked to, and no others', () =>
    given(
      ...history,
      anApiKey(ann, 1, { expirationSeconds: 900, credentialType }),
      anApiKey(ann, 2, { expirationSeconds: 900, credentialType: 'CREDENTIAL_TYPE_LOGIN' }),
    )
      .when(createReadWriteSession, { ...intent, apiKeyName: 'tab', invalidateExisting: true }, asked)
      .then(
        [
          { type: 'ApiKeyDeleted', data: { userId: ann, apiKeyId: id(1) } },
          { ...madeKey, data: { ...madeKey.data, apiKeyName: 'tab' } },
        ],
        result,
      ));

  it('gives nobody a key of somebody else, before one is made and after', async () => {
    const theirs = { ...intent, userId: id(102) };
    given(...history)
      .when(createReadWriteSession, theirs, asked)
      .thenRefused('PERMISSION_DENIED', /a session is issued only to the user who requests it/);
    const organization = emptyOrganization();
    for (const event of history) evolve(organization, event, 0);
    const context = { organization, submitterId: ann, now: 0, newId: () => id(1), ...usualLimits };
    const ports = await preparePorts();
    // It may throw before it gives a promise.
    const attempt = async () => createReadWriteSession.prepare!(theirs, ports, context);
    await expect(attempt()).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
  });

  it('refuses a target key that is none', () =>
    given(...history)
      .when(createReadWriteSession, { targetPublicKey: 'ffff' }, asked)
      .thenRefused('INVALID_ARGUMENT', /parameters\.targetPublicKey/));

  describe('the first version', () => {
    const type = 'ACTIVITY_TYPE_CREATE_READ_WRITE_SESSION';
    const first = {
      targetPublicKey: publicKeyOf(40),
      email: 'ann@example.com',
      apiKeyName: 'tab',
      expirationSeconds: '60',
    };

    it('names the user by e-mail address, which the newest cannot be sent', () => {
      expect(lifted(type, first)).toEqual(first);
      given(...history)
        .when(createReadWriteSession, first, asked)
        .thenRefused('INVALID_ARGUMENT', /email: is not a field of this request/);
    });

    it.each([
      ['of whoever asks', 'ann@example.com', undefined],
      ['of somebody else', 'ben@example.com', 'PERMISSION_DENIED'],
      ['of nobody', 'nobody@example.com', 'PERMISSION_DENIED'],
    ])('takes the address %s accordingly', async (_what, email, code) => {
      const organization = emptyOrganization();
      for (const event of history) evolve(organization, event, 0);
      const context = { organization, submitterId: ann, now: 0, newId: () => id(1), ...usualLimits };
      const ports = await preparePorts();
      const attempt = async () => createReadWriteSession.prepare!({ ...first, email }, ports, context);
      if (code === undefined) expect((await attempt()).credentialBundle).toMatch(/^[1-9A-Za-z]{100,}$/);
      else await expect(attempt()).rejects.toMatchObject({ code });
    });
  });
});
