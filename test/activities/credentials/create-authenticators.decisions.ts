import { createAuthenticators } from '../../../src/activities/credentials/create-authenticators.js';
import { CoordinatorError } from '../../../src/domain/errors.js';
import { verifyRegistration } from '../../../src/stamps/webauthn.js';
import { SoftwareAuthenticator } from '../../stamps/software-authenticator.js';
import { anOrganization, aPasskey, aRegistration, aUser } from '../facts.js';
import { emptyOrganization } from '../../../src/domain/organization/organization.js';
import { preparePorts } from '../../coordinator/prepare-ports.js';
import { given, id, usualLimits } from '../given.js';
import { lifted } from '../lifted.js';

const ann = id(101);
const bob = id(102);
const history = [anOrganization(), aUser(ann), aUser(bob, { userName: 'Bob' })];
const ports = { ...(await preparePorts()), verifyRegistration };
const nothing = { organization: emptyOrganization(), submitterId: id(900), now: 0, newId: () => id(1), ...usualLimits };

const attestation = {
  credentialId: 'credential-21',
  clientDataJson: 'e30',
  attestationObject: 'oA',
  transports: ['AUTHENTICATOR_TRANSPORT_INTERNAL'],
};
const passkey = (number: number) => ({
  authenticatorName: `passkey ${number}`,
  challenge: 'Y2hhbGxlbmdl',
  attestation,
});

describe('create authenticators', () => {
  it('records what was verified, in the order given', () =>
    given(...history)
      .when(
        createAuthenticators,
        { userId: ann, authenticators: [passkey(21), passkey(22)] },
        { prepared: [aRegistration(21), aRegistration(22)] },
      )
      .then(
        [
          {
            type: 'AuthenticatorCreated',
            data: { userId: ann, authenticatorId: id(1), authenticatorName: 'passkey 21', ...aRegistration(21) },
          },
          {
            type: 'AuthenticatorCreated',
            data: { userId: ann, authenticatorId: id(2), authenticatorName: 'passkey 22', ...aRegistration(22) },
          },
        ],
        { authenticatorIds: [id(1), id(2)] },
      ));

  it('records a real passkey as the verification found it', async () => {
    const device = new SoftwareAuthenticator();
    const authenticators = [{ authenticatorName: 'phone', ...device.register() }];
    const prepared = await createAuthenticators.prepare!({ userId: ann, authenticators }, ports, nothing);
    given(...history)
      .when(createAuthenticators, { userId: ann, authenticators }, { prepared })
      .then(
        [
          {
            type: 'AuthenticatorCreated',
            data: {
              userId: ann,
              authenticatorId: id(1),
              authenticatorName: 'phone',
              credentialId: device.credentialId,
              publicKey: expect.any(String) as string,
              aaguid: expect.any(String) as string,
              attestationType: 'none',
              transports: authenticators[0]!.attestation.transports,
              rpIdHash: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
              signCount: 0,
            },
          },
        ],
        { authenticatorIds: [id(1)] },
      );
  });

  it('says which registration does not verify, and why', async () => {
    const good = new SoftwareAuthenticator().register();
    const bad = { ...new SoftwareAuthenticator().register(), challenge: 'b3RoZXI' };
    const authenticators = [good, bad].map((registration) => ({ authenticatorName: 'phone', ...registration }));
    const refused: unknown = await createAuthenticators.prepare!({ userId: ann, authenticators }, ports, nothing).catch(
      (error: unknown) => error,
    );
    expect(refused).toBeInstanceOf(CoordinatorError);
    expect(refused).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(
        /^invalid request: parameters\.authenticators\[1\]: attestation\.clientDataJson: challenge is/,
      ) as string,
    });
  });

  it.each([
    ['a defect', new Error('out of memory')],
    ['a refusal of another kind', new CoordinatorError('UNAVAILABLE', 'try again later')],
  ])('lets %s through as it is', async (_what, failure) => {
    await expect(
      createAuthenticators.prepare!(
        { userId: ann, authenticators: [passkey(21)] },
        { ...ports, verifyRegistration: () => Promise.reject(failure) },
        nothing,
      ),
    ).rejects.toBe(failure);
  });

  it('refuses a passkey that the organization knows, naming its user', () =>
    given(...history, aPasskey(bob, 21))
      .when(createAuthenticators, { userId: ann, authenticators: [passkey(21)] }, { prepared: [aRegistration(21)] })
      .thenRefused(
        'ALREADY_EXISTS',
        new RegExp(
          `parameters\\.authenticators\\[0\\]\\.attestation: credential \`credential-21\` is already registered for user \`${bob}\``,
        ),
      ));

  it('refuses the same passkey twice in one request', () =>
    given(...history)
      .when(
        createAuthenticators,
        { userId: ann, authenticators: [passkey(21), passkey(22)] },
        { prepared: [aRegistration(21), aRegistration(21)] },
      )
      .thenRefused('ALREADY_EXISTS', /authenticators\[1\]\.attestation: .* appears twice in this request/));

  it('refuses a user that is not there', () =>
    given(...history)
      .when(createAuthenticators, { userId: id(103), authenticators: [passkey(21)] }, { prepared: [aRegistration(21)] })
      .thenRefused('NOT_FOUND', new RegExp(`no user \`${id(103)}\``)));

  it('refuses an eleventh authenticator', () => {
    const there = Array.from({ length: 10 }, (_, index) => aPasskey(ann, 200 + index));
    const eleventh = { userId: ann, authenticators: [passkey(21)] };
    given(...history, ...there.slice(1))
      .when(createAuthenticators, eleventh, { prepared: [aRegistration(21)] })
      .then([expect.objectContaining({ type: 'AuthenticatorCreated' })], { authenticatorIds: [id(1)] });
    given(...history, ...there)
      .when(createAuthenticators, eleventh, { prepared: [aRegistration(21)] })
      .thenRefused('RESOURCE_EXHAUSTED', /a user may have 10 authenticators: this one has 10, and this request adds 1/);
  });

  it('verifies nothing when more come than any user may have', async () => {
    const authenticators = Array.from({ length: 11 }, (_, index) => passkey(index));
    const mustNotRun = { ...ports, verifyRegistration: () => Promise.reject(new Error('was verified all the same')) };
    await expect(
      createAuthenticators.prepare!({ userId: ann, authenticators }, mustNotRun, nothing),
    ).rejects.toMatchObject({
      code: 'RESOURCE_EXHAUSTED',
    });
  });

  it.each([
    ['no authenticators', [], /parameters\.authenticators: must have 1 to 100 elements/],
    ['no challenge', [{ authenticatorName: 'a', attestation }], /authenticators\[0\]\.challenge: is required/],
    [
      'a long challenge',
      [{ ...passkey(1), challenge: 'a'.repeat(257) }],
      /challenge: must have 1 to 256 characters, has 257/,
    ],
    [
      'an unknown transport',
      [{ ...passkey(1), attestation: { ...attestation, transports: ['PIGEON'] } }],
      /attestation\.transports: must be a list of AUTHENTICATOR_TRANSPORT_BLE/,
    ],
    ['an attestation that is no object', [{ ...passkey(1), attestation: 'x' }], /attestation: must be an object/],
  ])('refuses %s', (_what, authenticators, message) =>
    given(...history)
      .when(createAuthenticators, { userId: ann, authenticators }, { prepared: [] })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  it('does not repeat a long attestation in its refusal', () => {
    const long = `${'A'.repeat(500)}!`;
    given(...history)
      .when(
        createAuthenticators,
        { userId: ann, authenticators: [{ ...passkey(1), attestation: { ...attestation, attestationObject: long } }] },
        { prepared: [] },
      )
      .thenRefused('INVALID_ARGUMENT', /attestationObject: must be bytes in base64url, got `A{64}…`$/);
  });

  describe('first version', () => {
    const type = 'ACTIVITY_TYPE_CREATE_AUTHENTICATORS';
    const old = (more: object = {}) => ({
      authenticatorName: 'passkey 21',
      userId: ann,
      challenge: 'Y2hhbGxlbmdl',
      attestation: {
        id: 'credential-21',
        rawId: 'credential-21',
        type: 'public-key',
        authenticatorAttachment: 'platform',
        response: {
          clientDataJson: 'e30',
          attestationObject: 'oA',
          transports: ['AUTHENTICATOR_TRANSPORT_INTERNAL'],
          authenticatorAttachment: 'platform',
        },
        clientExtensionResults: { appid: false, credProps: { rk: true } },
        ...more,
      },
    });

    it('is the same registration in another shape', () =>
      expect(lifted(type, { userId: ann, authenticators: [old()] })).toEqual({
        userId: ann,
        authenticators: [passkey(21)],
      }));

    it('may leave the transports out', () => {
      const response = { clientDataJson: 'e30', attestationObject: 'oA' };
      expect(lifted(type, { userId: ann, authenticators: [old({ response })] })).toMatchObject({
        authenticators: [{ attestation: { transports: [] } }],
      });
    });

    it('refuses ids that differ', () =>
      expect(() => lifted(type, { userId: ann, authenticators: [old({ rawId: 'other' })] })).toThrow(
        /parameters\.authenticators\[0\]\.attestation\.rawId: must be the same as id/,
      ));

    it('refuses a user that is not the user of the request', () =>
      expect(() => lifted(type, { userId: bob, authenticators: [old()] })).toThrow(
        new RegExp(`authenticators\\[0\\]\\.userId: must be the user of the request, \`${bob}\``),
      ));
  });
});
