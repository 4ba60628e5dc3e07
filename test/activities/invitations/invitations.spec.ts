import { acceptInvitation } from '../../../src/activities/invitations/accept-invitation.js';
import { createInvitations } from '../../../src/activities/invitations/create-invitations.js';
import { deleteInvitation } from '../../../src/activities/invitations/delete-invitation.js';
import { emptyOrganization, evolve, type OrganizationEvent } from '../../../src/domain/organization/organization.js';
import type { InvitationEvent } from '../../../src/domain/organization/invitations.js';
import { anOrganization, aRegistration, aUser, aUserTag, publicKeyOf } from '../facts.js';
import { given, id } from '../given.js';

type Facts = Extract<InvitationEvent, { type: 'InvitationCreated' }>['data'];

const later = Date.UTC(2026, 0, 9);
const message = { channel: 'email', to: 'bob@example.com', text: 'come' } as const;
const asked = {
  receiverUserName: 'Bob',
  receiverUserEmail: 'bob@example.com',
  receiverUserTags: [id(201)],
  accessType: 'ACCESS_TYPE_WEB',
  senderUserId: id(101),
} as const;
const made = (number: number) => ({
  invitationId: id(500 + number),
  userId: id(600 + number),
  publicKey: publicKeyOf(number),
  expiresAt: later,
});
const invited = (number: number, more: Partial<Facts> = {}): OrganizationEvent => ({
  type: 'InvitationCreated',
  data: { ...asked, ...made(number), ...more },
});
const ended = (invitationId: string, reason: 'accepted' | 'deleted' | 'expired'): OrganizationEvent => ({
  type: 'InvitationClosed',
  data: { invitationId, reason },
});
const world = [anOrganization(), aUser(id(101)), aUserTag(id(201), 'staff')] as const;

describe('create_invitations', () => {
  const prepared = (...numbers: number[]) => numbers.map((number) => ({ ...made(number), message }));

  it('records everything but the message, in the order of the request', () => {
    const other = { ...asked, receiverUserEmail: 'carol@example.com', accessType: 'ACCESS_TYPE_API' } as const;
    given(...world)
      .when(createInvitations, { invitations: [asked, other] }, { prepared: prepared(1, 2) })
      .then([invited(1), invited(2, other)], { invitationIds: [id(501), id(502)] });
  });

  it('ends expired ones, which then block nobody', () =>
    given(...world, invited(1, { expiresAt: Date.UTC(2026, 0, 1, 12) }))
      .when(createInvitations, { invitations: [asked] }, { prepared: prepared(2) })
      .then([ended(id(501), 'expired'), invited(2)], { invitationIds: [id(502)] }));

  it.each([
    ['a sender from elsewhere', { senderUserId: id(999) }, 'NOT_FOUND', /no user/],
    ['a tag from elsewhere', { receiverUserTags: [id(299)] }, 'NOT_FOUND', /no user tag/],
    ['an access type that is none', { accessType: 'ACCESS_TYPE_NONE' }, 'INVALID_ARGUMENT', /accessType: must be one/],
    ['no address', { receiverUserEmail: '' }, 'INVALID_ARGUMENT', /receiverUserEmail/],
    ['a name with a line break', { receiverUserName: 'a\nb' }, 'INVALID_ARGUMENT', /receiverUserName/],
    [
      'the address of a user',
      { receiverUserEmail: 'ANN@example.com' },
      'ALREADY_EXISTS',
      /user `.*101` already has `ann@/,
    ],
    ['the address of an open one', { receiverUserEmail: 'Bob@Example.com' }, 'ALREADY_EXISTS', /501` to `Bob@/],
  ] as const)('refuses %s', (_what, more, code, words) =>
    given(anOrganization(), aUser(id(101), { userEmail: 'ann@example.com' }), aUserTag(id(201), 'staff'), invited(1))
      .when(
        createInvitations,
        { invitations: [{ ...asked, receiverUserEmail: 'dan@example.com', ...more }] },
        { prepared: prepared(2) },
      )
      .thenRefused(code, words),
  );

  it('refuses a repeated address, an empty list, and more than an organization may have', () => {
    given(...world)
      .when(
        createInvitations,
        { invitations: [asked, { ...asked, receiverUserEmail: 'BOB@example.com' }] },
        { prepared: prepared(1, 2) },
      )
      .thenRefused(
        'INVALID_ARGUMENT',
        /invitations\[1\]\.receiverUserEmail: `BOB@example.com` appears twice in this request/,
      );
    given(...world)
      .when(createInvitations, { invitations: [] }, { prepared: [] })
      .thenRefused('INVALID_ARGUMENT', /invitations: must have 1 to 100/);
    const many = Array.from({ length: 100 }, (_, index) =>
      invited(index + 1, { receiverUserEmail: `${index}@example.com` }),
    );
    given(...world, ...many)
      .when(createInvitations, { invitations: [asked] }, { prepared: prepared(200) })
      .thenRefused('RESOURCE_EXHAUSTED', /100 open invitations: it has 100, and this request adds 1/);
    given(...world, ...many, ended(id(501), 'deleted'))
      .when(createInvitations, { invitations: [asked] }, { prepared: prepared(200) })
      .then([invited(200)], { invitationIds: [id(700)] });
  });
});

describe('delete_invitation', () => {
  it('withdraws an open one, once, and refuses to withdraw an accepted one', () => {
    given(...world, invited(1))
      .when(deleteInvitation, { invitationId: id(501) })
      .then([ended(id(501), 'deleted')], { invitationId: id(501) });
    given(...world, invited(1), ended(id(501), 'deleted'))
      .when(deleteInvitation, { invitationId: id(501) })
      .thenRefused('NOT_FOUND', /no open invitation/);
    given(...world, invited(1), ended(id(501), 'accepted'))
      .when(deleteInvitation, { invitationId: id(501) })
      .thenRefused('FAILED_PRECONDITION', /has been accepted: it created user `.*601`/);
  });
});

describe('accept_invitation', () => {
  const key = (number: number) => ({
    apiKeyName: 'mine',
    publicKey: publicKeyOf(number),
    curveType: 'API_KEY_CURVE_P256',
  });
  const attestation = { credentialId: 'aa', clientDataJson: 'aa', attestationObject: 'aa', transports: [] };
  const passkey = { authenticatorName: 'phone', challenge: 'aa', attestation };
  const all = invited(1, { accessType: 'ACCESS_TYPE_ALL' });
  const api = invited(1, { accessType: 'ACCESS_TYPE_API' });
  const by = (userId: string, prepared: ReturnType<typeof aRegistration>[] = []) => ({ submitterId: userId, prepared });

  it('creates the user with the passkey, name, address and tags', () =>
    given(...world, invited(1))
      .when(acceptInvitation, { invitationId: id(501), authenticators: [passkey] }, by(id(601), [aRegistration(7)]))
      .then(
        [
          ended(id(501), 'accepted'),
          {
            type: 'UserCreated',
            data: { userId: id(601), userName: 'Bob', userEmail: 'bob@example.com', userTags: [id(201)] },
          },
          {
            type: 'AuthenticatorCreated',
            data: { userId: id(601), authenticatorId: id(1), authenticatorName: 'phone', ...aRegistration(7) },
          },
        ],
        { invitationId: id(501), userId: id(601) },
      ));

  it('creates the user with an API key, without a deleted tag', () =>
    given(...world, api, { type: 'UserTagDeleted', data: { tagId: id(201) } })
      .when(acceptInvitation, { invitationId: id(501), apiKeys: [key(9)] }, by(id(601)))
      .then(
        [
          ended(id(501), 'accepted'),
          {
            type: 'UserCreated',
            data: { userId: id(601), userName: 'Bob', userEmail: 'bob@example.com', userTags: [] },
          },
          {
            type: 'ApiKeyCreated',
            data: {
              userId: id(601),
              apiKeyId: id(1),
              apiKeyName: 'mine',
              publicKey: publicKeyOf(9),
              curve: 'API_KEY_CURVE_P256',
              credentialType: 'CREDENTIAL_TYPE_API_KEY_P256',
            },
          },
        ],
        { invitationId: id(501), userId: id(601) },
      ));

  it.each([
    ['an API key for the web', invited(1), { authenticators: [passkey], apiKeys: [key(9)] }, /apiKeys: .* for the web/],
    ['no passkey for the web', invited(1), {}, /authenticators: must have a passkey/],
    ['a passkey for the API', api, { authenticators: [passkey], apiKeys: [key(9)] }, /authenticators: .* for the API/],
    ['no API key for the API', api, { authenticators: [], apiKeys: [] }, /apiKeys: must have an API key/],
    ['nothing at all', all, {}, /apiKeys: must have an API key/],
    ['only a key that ends', all, { apiKeys: [{ ...key(9), expirationSeconds: '60' }] }, /without expirationSeconds/],
    ['the key of the link', all, { apiKeys: [key(1)] }, /apiKeys\[0\]\.publicKey: is the key of the link/],
  ])('refuses %s', (_what, invitation, credentials, words) =>
    given(...world, invitation)
      .when(acceptInvitation, { invitationId: id(501), ...credentials }, by(id(601), [aRegistration(7)]))
      .thenRefused('INVALID_ARGUMENT', words),
  );

  it.each([
    ['the key of another invitation', [all, invited(2)], id(602), 'PERMISSION_DENIED', /is not the key of invitation/],
    ['an expired one', [invited(1, { expiresAt: 5 })], id(601), 'PERMISSION_DENIED', /or the invitation has expired/],
    ['a second time', [all, ended(id(501), 'accepted')], id(601), 'FAILED_PRECONDITION', /has been accepted/],
    ['a withdrawn one', [all, ended(id(501), 'deleted')], id(601), 'NOT_FOUND', /no open invitation/],
    [
      'one whose sender has left',
      [all, { type: 'UserDeleted', data: { userId: id(101) } }],
      id(601),
      'FAILED_PRECONDITION',
      /has been deleted/,
    ],
  ] as [string, OrganizationEvent[], string, 'PERMISSION_DENIED', RegExp][])(
    'refuses %s',
    (_what, history, submitterId, code, words) =>
      given(...world, ...history)
        .when(
          acceptInvitation,
          { invitationId: id(501), authenticators: [passkey] },
          by(submitterId, [aRegistration(7)]),
        )
        .thenRefused(code, words),
  );

  it('is forgotten once the same request can no longer be repeated', () => {
    const organization = emptyOrganization();
    const hour = 60 * 60 * 1000;
    for (const event of [...world, all, invited(2)]) evolve(organization, event, 0);
    evolve(organization, ended(id(501), 'accepted'), hour);
    expect([...organization.invitations.keys()]).toEqual([id(501), id(502)]);
    evolve(organization, ended(id(502), 'deleted'), 4 * hour);
    expect([...organization.invitations.keys()]).toEqual([]);
  });
});
