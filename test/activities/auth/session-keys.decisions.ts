import { sessionKeyEvents } from '../../../src/activities/auth/session-keys.js';
import type { CredentialEvent, LoginCredentialType } from '../../../src/domain/organization/credentials.js';
import { emptyOrganization, evolve, type OrganizationEvent } from '../../../src/domain/organization/organization.js';
import { anApiKey, anOrganization, aUser, publicKeyOf } from '../facts.js';
import { id, usualLimits } from '../given.js';

const ann = id(101);
const now = Date.UTC(2026, 0, 2, 3, 4, 5, 6);
const minutes = (count: number) => count * 60_000;

/** A login of Ann with key 50; what was recorded before, and how long ago. */
function login(
  history: readonly (readonly [OrganizationEvent, agoMs?: number])[],
  more: Partial<Parameters<typeof sessionKeyEvents>[2]> = {},
  by = ann,
): CredentialEvent[] {
  const organization = emptyOrganization();
  for (const [event, ago = 0] of [[anOrganization()], [aUser(ann)], [aUser(id(102))], ...history] as const) {
    evolve(organization, event, now - ago);
  }
  const context = { organization, now, newId: () => id(1), ...usualLimits };
  const { apiKeyId, events } = sessionKeyEvents(context, organization.users.get(by)!, {
    publicKey: publicKeyOf(50),
    curve: 'API_KEY_CURVE_P256',
    credentialType: 'CREDENTIAL_TYPE_LOGIN',
    ...more,
  });
  expect(apiKeyId).toBe(id(1));
  return events;
}

const gone = (events: readonly CredentialEvent[]): number[] =>
  events.flatMap(({ type, data }) => (type === 'ApiKeyDeleted' ? [Number(data.apiKeyId.slice(-6))] : []));
const made = (events: readonly CredentialEvent[]) => events.find(({ type }) => type === 'ApiKeyCreated')?.data;
const key = (number: number, expirationSeconds?: number, credentialType?: LoginCredentialType) =>
  anApiKey(ann, number, {
    ...(expirationSeconds === undefined ? {} : { expirationSeconds }),
    ...(credentialType === undefined ? {} : { credentialType }),
  });

describe('the key of a session', () => {
  it('lives 15 minutes and is named by its class and the time, unless the login says otherwise', () => {
    expect(login([])).toEqual([
      {
        type: 'ApiKeyCreated',
        data: {
          userId: ann,
          apiKeyId: id(1),
          apiKeyName: 'Login - 2026-01-02T03:04:05.006Z',
          publicKey: publicKeyOf(50),
          curve: 'API_KEY_CURVE_P256',
          credentialType: 'CREDENTIAL_TYPE_LOGIN',
          expirationSeconds: 900,
        },
      },
    ]);
    const named = made(login([], { apiKeyName: 'my phone', expirationSeconds: '61' }));
    expect(named).toMatchObject({ apiKeyName: 'my phone', expirationSeconds: 61 });
  });

  it.each([
    ['CREDENTIAL_TYPE_OTP_AUTH_KEY_P256', 'OTP Auth - 2026-01-02T03:04:05.006Z'],
    ['CREDENTIAL_TYPE_OAUTH_KEY_P256', 'Oauth - 2026-01-02T03:04:05.006Z'],
    ['CREDENTIAL_TYPE_EMAIL_AUTH_KEY_P256', 'Email Auth - 2026-01-02T03:04:05.006Z'],
    ['CREDENTIAL_TYPE_READ_WRITE_SESSION_KEY_P256', 'Read Write Session - 2026-01-02T03:04:05.006Z'],
  ] as const)('of class %s is called %s', (credentialType, apiKeyName) => {
    expect(made(login([], { credentialType }))).toMatchObject({ credentialType, apiKeyName });
  });

  it('is kept in the one spelling of keys, and refused when it is none', () => {
    expect(made(login([], { publicKey: publicKeyOf(50).toUpperCase() }))).toMatchObject({ publicKey: publicKeyOf(50) });
    expect(() => login([], { publicKey: '02ff' })).toThrow(/P-256/);
  });

  it('leaves all others where they are, and with invalidateExisting takes exactly those of its class', () => {
    const others = [
      [key(1)],
      [key(2, 900)],
      [key(3, 900, 'CREDENTIAL_TYPE_LOGIN')],
      [key(4, 900, 'CREDENTIAL_TYPE_OTP_AUTH_KEY_P256')],
      [key(5, 60, 'CREDENTIAL_TYPE_LOGIN'), minutes(5)],
      [anApiKey(id(102), 6, { expirationSeconds: 900, credentialType: 'CREDENTIAL_TYPE_LOGIN' })],
    ] as const;
    expect(gone(login(others))).toEqual([]);
    expect(gone(login(others, { invalidateExisting: true }))).toEqual([3, 5]);
  });

  it('takes the place of keys that are over, then of the oldest, when there are ten that expire', () => {
    const ten = Array.from({ length: 10 }, (_, number) => [key(number + 1, 900), minutes(14 - number)] as const);
    const lasting = [[key(30)], [key(31)]] as const;
    expect(gone(login([...lasting, ...ten]))).toEqual([1]);
    expect(gone(login([...lasting, ...ten.slice(1)]))).toEqual([]);
    const oneOver = [...ten.slice(0, 9), [key(20, 1), minutes(1)] as const];
    expect(gone(login([...lasting, ...oneOver]))).toEqual([20]);
    // What goes with its class makes room already.
    const logins = ten.map(([{ data }, ago], number) =>
      number === 4
        ? ([key(40, 900, 'CREDENTIAL_TYPE_LOGIN'), ago] as const)
        : ([anApiKey(ann, number + 1, data), ago] as const),
    );
    expect(gone(login(logins, { invalidateExisting: true }))).toEqual([40]);
  });

  it('may be the one of the login before, or one that is over, of the same user', () => {
    expect(gone(login([[key(50, 900, 'CREDENTIAL_TYPE_LOGIN')]]))).toEqual([50]);
    expect(gone(login([[key(50, 60), minutes(2)]]))).toEqual([50]);
  });

  it.each([
    ['a key that lasts', [key(50)]],
    ['a key that lives in another class', [key(50, 900, 'CREDENTIAL_TYPE_OTP_AUTH_KEY_P256')]],
    ["another user's", [anApiKey(id(102), 50, { expirationSeconds: 1 }), minutes(1)]],
  ] as const)('is refused when it is %s already', (_what, known) => {
    expect(() => login([known])).toThrow(
      expect.objectContaining({
        code: 'ALREADY_EXISTS',
        message: expect.stringMatching(
          /^public key `02.* is already registered for user `.*`: log in with a new key$/,
        ) as string,
      }) as Error,
    );
  });
});
