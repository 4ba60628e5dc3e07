import { send, startCoordinator, submitPath, type TestCoordinator } from '../../src/testing/index.js';
import { exchange } from '../e2e/exchange.js';
import { clientSignature, codeOf } from '../e2e/one-time-codes.js';
import { furnish, identities, sampleSettings, submitSamples } from '../e2e/samples.js';
import { until } from '../e2e/until.js';
import { WebhookReceiver } from '../e2e/webhook-receiver.js';
import { byStream, type History } from '../audit/forged-history.js';
import { SoftwareAuthenticator } from '../stamps/software-authenticator.js';

const settings = {
  ...sampleSettings,
  PROXY_RATE_LIMIT_CODES_PER_ADDRESS: '0',
  PROXY_RATE_LIMIT_PER_CONTACT: '0',
};

export const seed = 'rich history';

interface Rich {
  readonly history: History;
  readonly root: TestCoordinator['root'];
}

/** Everything that a coordinator has recorded of every activity, of people who log in by themselves, and of denials. */
export async function richHistory(): Promise<Rich> {
  const receiver = await WebhookReceiver.start();
  await using coordinator = await startCoordinator({ seed, settings });
  try {
    // At first only: an app proof names the link before it, and so proves everything up to there.
    const tag = { userTagName: 'proved', userIds: [] };
    await coordinator.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', tag, { generateAppProofs: true });
    await peopleOf(coordinator);
    await denialsOf(coordinator);
    await deliveriesOf(coordinator, receiver);
    await everyActivity(coordinator);
    return { history: byStream(await coordinator.recorded()), root: coordinator.root };
  } finally {
    await receiver.close();
    await identities.close();
  }
}

/** One of each activity; those that earlier ones have made impossible are refused. */
async function everyActivity(coordinator: TestCoordinator): Promise<void> {
  const furnished = await furnish(coordinator);
  const last = ['DELETE', 'REJECT', 'DISABLE', 'RELEASE'];
  const isLast = ([type]: [string, object]) => Number(last.some((verb) => type.startsWith(`ACTIVITY_TYPE_${verb}`)));
  const samples = Object.entries<object>(submitSamples(furnished)).sort((one, other) => isLast(one) - isLast(other));
  for (const [type, parameters] of samples) {
    await coordinator.client.submit(type, parameters).catch(() => undefined);
  }
}

/** People who sign up and log in through the auth proxy, whose contacts and keys are claims. */
async function peopleOf(coordinator: TestCoordinator): Promise<void> {
  const ok = async (name: string, body: object): Promise<Readonly<Record<string, string>>> => {
    const answer = await exchange(`${coordinator.url}/v1/${name}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-auth-proxy-config-id': coordinator.root.authProxyConfigId,
      },
      body: JSON.stringify(body),
    });
    if (answer.status !== 200) throw new Error(`${name}: ${answer.status} ${answer.text}`);
    return answer.body as Readonly<Record<string, string>>;
  };
  const [bound, own, session] = [coordinator.newKey(), coordinator.newKey(), coordinator.newKey()];
  const contact = 'dora@example.com';
  const { otpId } = await ok('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact });
  const { verificationToken } = await ok('otp_verify', {
    otpId,
    otpCode: await codeOf(coordinator, otpId!),
    publicKey: bound.publicKey,
  });
  const user = {
    apiKeys: [{ apiKeyName: 'own', publicKey: own.publicKey, curveType: own.curve }],
    authenticators: [{ authenticatorName: 'passkey', ...new SoftwareAuthenticator().register() }],
    oauthProviders: [],
  };
  const { organizationId } = await ok('signup', {
    userName: 'Dora',
    userEmail: contact,
    ...user,
    verificationToken,
    clientSignature: clientSignature(bound, verificationToken!, 'USAGE_TYPE_SIGNUP', {
      signup: { ...user, email: contact },
    }),
  });
  await ok('otp_login', {
    verificationToken,
    publicKey: session.publicKey,
    clientSignature: clientSignature(bound, verificationToken!, 'USAGE_TYPE_LOGIN', {
      login: { publicKey: session.publicKey },
    }),
  });
  await coordinator.clientFor(own, organizationId).submit('ACTIVITY_TYPE_CREATE_USER_TAG', {
    userTagName: 'owner',
    userIds: [],
  });
  await until('the key is claimed', async () => {
    const claims = await coordinator.events(`claims-${coordinator.organizationId}`);
    return claims.some(({ data }) => (data as { value: string }).value === own.publicKey);
  });
  // Named by the parent alone, which the claim resolves.
  await coordinator.clientFor(own).submit('ACTIVITY_TYPE_STAMP_LOGIN', { publicKey: coordinator.newKey().publicKey });
}

/** Requests and a vote that nobody has allowed, with every kind of stamp. */
async function denialsOf(coordinator: TestCoordinator): Promise<void> {
  const { client } = coordinator;
  const denied = (request: Promise<unknown>) =>
    request.then(
      () => Promise.reject(new Error('it was not denied')),
      (error: { readonly status?: number }) => {
        if (error.status !== 403) throw error;
      },
    );
  const eve = await coordinator.createUser('Eve');
  const rename = 'ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME';
  await denied(eve.client.submit(rename, { organizationName: "Eve's" }));
  await coordinator.createPolicy({
    policyName: 'Never so',
    effect: 'EFFECT_DENY',
    condition: "activity.kind == 'CREATE_USER_TAG'",
  });
  await denied(eve.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'a'.repeat(200), userIds: [] }));
  const passkey = new SoftwareAuthenticator();
  await client.submit('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', {
    userId: eve.userId,
    authenticators: [{ authenticatorName: 'passkey', ...passkey.register() }],
  });
  const body = eve.client.submitBody(rename, { organizationName: 'By a passkey' });
  const url = `${coordinator.url}${submitPath(rename)}`;
  await denied(send(url, body, { 'x-stamp-webauthn': passkey.assert({ body }) }));
  const ann = await coordinator.createUser('Ann');
  await coordinator.createPolicy({
    policyName: 'Ann and the root user rename users',
    condition: "activity.kind == 'UPDATE_USER_NAME'",
    consensus: [ann, coordinator.root].map(({ userId }) => `approvers.any(user, user.id == '${userId}')`).join(' && '),
  });
  const waiting = await ann.client.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', { userId: ann.userId, userName: 'Anna' });
  await denied(eve.client.submit('ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint: waiting.fingerprint }));
}

/** Deliveries that arrive, fail, and are given up. */
async function deliveriesOf(coordinator: TestCoordinator, receiver: WebhookReceiver): Promise<void> {
  receiver.teach('/fails', 500);
  for (const path of ['/arrives', '/fails']) {
    await coordinator.client.submit('ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT', {
      url: `${receiver.url}${path}`,
      name: path,
      subscriptions: [{ eventType: 'ACTIVITY_UPDATES', isActive: true }],
    });
  }
  const stream = `webhook-deliveries-${coordinator.organizationId}`;
  await until('deliveries arrive and fail', async () => {
    const types = new Set((await coordinator.events(stream)).map(({ type }) => type));
    return types.has('WebhookDelivered') && types.has('WebhookAttemptFailed');
  });
}
