import { encryptOnRampSecret } from '@turnkey/crypto';
import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { refusal } from './exchange.js';
import { discoveryKeys, resultOf, sdkClient } from './login-world.js';

let coordinator: TestCoordinator;
let seal: (secret: string) => string;

beforeAll(async () => {
  coordinator = await startCoordinator({ at: new Date() });
  const { onRampEncryption } = await discoveryKeys(coordinator);
  seal = (secret) => encryptOnRampSecret(secret, onRampEncryption);
});
afterAll(() => coordinator.close());

const type = (verb: string) => `ACTIVITY_TYPE_${verb}_FIAT_ON_RAMP_CREDENTIAL`;

test('the published client stores, changes and deletes them, and no answer has a secret', async () => {
  const sdk = sdkClient(coordinator, coordinator.client.key);
  const { fiatOnRampCredentialId } = await sdk.createFiatOnRampCredential({
    onrampProvider: 'FIAT_ON_RAMP_PROVIDER_COINBASE',
    projectId: 'project',
    publishableApiKey: 'pk_1',
    encryptedSecretApiKey: seal('sk_1'),
    encryptedPrivateApiKey: seal('private_1'),
    sandboxMode: true,
  });
  const common = { fiatOnrampCredentialId: fiatOnRampCredentialId, organizationId: coordinator.root.organizationId };
  const [created] = (await sdk.listFiatOnRampCredentials({})).fiatOnRampCredentials;
  expect(created).toEqual({
    ...common,
    onrampProvider: 'FIAT_ON_RAMP_PROVIDER_COINBASE',
    projectId: 'project',
    publishableApiKey: 'pk_1',
    encryptedSecretApiKey: '',
    sandboxMode: true,
    createdAt: created!.createdAt,
    updatedAt: created!.createdAt,
  });
  coordinator.clock.advance('1m');
  await sdk.updateFiatOnRampCredential({
    fiatOnrampCredentialId: fiatOnRampCredentialId,
    onrampProvider: 'FIAT_ON_RAMP_PROVIDER_MOONPAY',
    publishableApiKey: 'pk_2',
    encryptedSecretApiKey: seal('sk_2'),
  });
  const [updated] = (await sdk.listFiatOnRampCredentials({})).fiatOnRampCredentials;
  expect(updated).toEqual({
    ...common,
    onrampProvider: 'FIAT_ON_RAMP_PROVIDER_MOONPAY',
    publishableApiKey: 'pk_2',
    encryptedSecretApiKey: '',
    sandboxMode: true,
    createdAt: created!.createdAt,
    updatedAt: { ...created!.createdAt, seconds: String(Number(created!.createdAt.seconds) + 60) },
  });
  await sdk.deleteFiatOnRampCredential({ fiatOnrampCredentialId: fiatOnRampCredentialId });
  expect(await sdk.listFiatOnRampCredentials({})).toEqual({ fiatOnRampCredentials: [] });
});

test('they are taken by the names of the specification; the intent is echoed, sealed as it was', async () => {
  const asked = {
    onrampProvider: 'FIAT_ON_RAMP_PROVIDER_BETA',
    publishableApiKey: 'pk',
    encryptedSecretApiKey: seal('sk_3'),
  };
  const activity = await coordinator.client.submit(type('CREATE'), asked);
  expect(activity.intent).toEqual({ createFiatOnRampCredentialIntent: asked });
  const { fiatOnRampCredentials } = await coordinator.client.query<{ fiatOnRampCredentials: object[] }>(
    'list_fiat_on_ramp_credentials',
  );
  expect(fiatOnRampCredentials).toMatchObject([{ onrampProvider: 'FIAT_ON_RAMP_PROVIDER_BETA', sandboxMode: false }]);
  await coordinator.client.submit(type('DELETE'), {
    fiatOnrampCredentialId: resultOf<{ fiatOnRampCredentialId: string }>(activity).fiatOnRampCredentialId,
  });
});

test('what cannot be opened is refused at once, and nothing is kept', async () => {
  const asked = { onrampProvider: 'FIAT_ON_RAMP_PROVIDER_BETA', publishableApiKey: 'pk' };
  const before = (await coordinator.events()).length;
  // By default the helper seals to a key that is not ours.
  const foreign = coordinator.client.submit(type('CREATE'), {
    ...asked,
    encryptedSecretApiKey: encryptOnRampSecret('sk'),
  });
  expect(await refusal(foreign)).toMatchObject({ status: 400, message: /`onRampEncryption`/ });
  const missing = coordinator.client.submit(type('CREATE'), {
    ...asked,
    onrampProvider: 'FIAT_ON_RAMP_PROVIDER_ALPHA',
    encryptedSecretApiKey: seal('sk'),
  });
  expect(await refusal(missing)).toMatchObject({ status: 400, message: /projectId/ });
  expect(await coordinator.events()).toHaveLength(before);
});

test('policies know it as ON_RAMP_CREDENTIALS, and another organization does not know it at all', async () => {
  const ann = await coordinator.createUser('Ann');
  const asked = {
    onrampProvider: 'FIAT_ON_RAMP_PROVIDER_BETA',
    publishableApiKey: 'pk',
    encryptedSecretApiKey: seal('sk_4'),
  };
  expect(await refusal(ann.client.submit(type('CREATE'), asked))).toMatchObject({ status: 403 });
  await coordinator.createPolicy({
    policyName: 'Ann minds the ramp',
    condition: "activity.resource == 'ON_RAMP_CREDENTIALS' && activity.action == 'CREATE'",
    consensus: `approvers.any(user, user.id == '${ann.userId}')`,
  });
  const { fiatOnRampCredentialId: fiatOnrampCredentialId } = resultOf<{ fiatOnRampCredentialId: string }>(
    await ann.client.submit(type('CREATE'), asked),
  );
  expect(await refusal(ann.client.submit(type('DELETE'), { fiatOnrampCredentialId }))).toMatchObject({ status: 403 });
});
