import { readStamp } from '../../src/stamps/verify.js';
import { checkWebAuthnChallenge, verifyRegistration, verifyWebAuthnStamp } from '../../src/stamps/webauthn.js';
import { SoftwareAuthenticator } from './software-authenticator.js';

test.each(['ES256', 'EdDSA'] as const)('%s', async (algorithm) => {
  const passkey = new SoftwareAuthenticator({ algorithm });
  const registered = await verifyRegistration(passkey.register());
  const stamp = readStamp({ 'x-stamp-webauthn': passkey.assert({ body: '{}' }) });
  if (stamp.kind !== 'webauthn') throw new Error();
  checkWebAuthnChallenge(stamp, Buffer.from('{}'));
  expect(await verifyWebAuthnStamp(stamp, Buffer.from('{}'), registered, {})).toEqual({
    signCount: 0,
    userVerified: true,
  });
});
