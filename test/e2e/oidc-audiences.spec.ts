import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { refusal, textLike } from './exchange.js';
import { IdentityProvider } from './identity-provider.js';

// Google's apps for Android get tokens with the web client in `aud` and their own in `azp`; Zitadel lists every client.

let provider: IdentityProvider;
let coordinator: TestCoordinator;

beforeAll(async () => {
  provider = await IdentityProvider.start();
  coordinator = await startCoordinator({ at: new Date(), settings: provider.settings });
});

afterAll(async () => {
  await coordinator.close();
  await provider.close();
});

const listed = (...socialLinkingClientIds: string[]) =>
  coordinator.client.submit('ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG', { socialLinkingClientIds });

async function person(subject: string, claims: object) {
  const idToken = (publicKey?: string) =>
    provider.idToken({
      subject,
      at: coordinator.clock.now(),
      claims,
      ...(publicKey === undefined ? {} : { publicKey }),
    } as never);
  const signUp = async () => {
    const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V7', {
      subOrganizationName: subject,
      rootUsers: [
        {
          userName: subject,
          apiKeys: [],
          authenticators: [],
          oauthProviders: [{ providerName: 'Provider', oidcToken: await idToken() }],
        },
      ],
      rootQuorumThreshold: 1,
    });
    return (Object.values(result)[0] as { subOrganizationId: string }).subOrganizationId;
  };
  const logIn = async (organizationId: string) => {
    const { publicKey } = coordinator.newKey();
    return coordinator.client.submit(
      'ACTIVITY_TYPE_OAUTH_LOGIN',
      { oidcToken: await idToken(publicKey), publicKey },
      { organizationId },
    );
  };
  return { signUp, logIn };
}

const cases: readonly (readonly [string, object, string])[] = [
  ['another `azp`', { aud: 'web', azp: 'android' }, 'web'],
  ['several `aud` and an `azp`', { aud: ['web', 'ios'], azp: 'ios' }, 'ios'],
];

test.each(cases)('a token with %s counts only for a client id that is listed', async (subject, claims, clientId) => {
  await listed('somebody-else');
  const { signUp, logIn } = await person(subject, claims);
  const refused = { status: 400, message: textLike(`\`${clientId}\` is not a client id of the parent organization`) };
  expect(await refusal(signUp())).toMatchObject(refused);
  await listed();
  expect(await refusal(signUp())).toMatchObject(refused);
  await listed(clientId);
  const organizationId = await signUp();
  expect(await logIn(organizationId)).toMatchObject({ status: 'ACTIVITY_STATUS_COMPLETED' });
  await listed('somebody-else');
  expect(await refusal(logIn(organizationId))).toMatchObject(refused);
});
