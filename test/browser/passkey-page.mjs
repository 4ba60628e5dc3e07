/** What the page of passkeys.spec.ts does, with the published clients as they are; called by name from the test. */
import { TurnkeyClient as LoginClient } from '@turnkey/core';
import { getWebAuthnAttestation, TurnkeyClient } from '@turnkey/http';
import { WebauthnStamper } from '@turnkey/webauthn-stamper';

const random = () => crypto.getRandomValues(new Uint8Array(32));
const base64url = (bytes) =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '');
const stamper = () => new WebauthnStamper({ rpId: location.hostname });
const refused = (error) => ({ refused: error.message });

globalThis.ceremonies = {
  /** A new passkey, as `authenticators[]` of an intent takes it. */
  async register({ attestation = 'none' }) {
    const challenge = random();
    const made = await getWebAuthnAttestation({
      publicKey: {
        rp: { id: location.hostname, name: 'Passkeys' },
        user: { id: random(), name: 'ann', displayName: 'Ann' },
        challenge,
        pubKeyCredParams: [
          { type: 'public-key', alg: -7 },
          { type: 'public-key', alg: -257 },
        ],
        authenticatorSelection: { residentKey: 'required', userVerification: 'preferred' },
        attestation,
      },
    });
    return { authenticatorName: 'of the browser', challenge: base64url(challenge), attestation: made };
  },

  async createUserTag({ apiUrl, organizationId, userTagName }) {
    const client = new TurnkeyClient({ baseUrl: apiUrl }, stamper());
    const type = 'ACTIVITY_TYPE_CREATE_USER_TAG';
    const parameters = { userTagName, userIds: [] };
    const { activity } = await client
      .createUserTag({ type, timestampMs: String(Date.now()), organizationId, parameters })
      .catch((error) => ({ activity: refused(error) }));
    return activity;
  },

  whoami: ({ apiUrl, organizationId }) =>
    new TurnkeyClient({ baseUrl: apiUrl }, stamper()).getWhoami({ organizationId }).catch(refused),

  /** The header for a body, for a test that sends it with another. */
  stamp: ({ body }) => stamper().stamp(body),

  /** The later sign-up of the auth proxy, then a login that names no more than the parent organization. */
  async signUp({ path, userName, authenticators, ...config }) {
    const client = new LoginClient({ ...config, passkeyConfig: { rpId: location.hostname } });
    await client.init();
    const account = { userName, apiKeys: [], authenticators, oauthProviders: [] };
    const made = await client.httpClient[path](account).catch(refused);
    if (made.refused) return made;
    await client.loginWithPasskey();
    return { ...made, whoami: await client.httpClient.getWhoami() };
  },
};
