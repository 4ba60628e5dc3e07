import { stampBody, type ApiKeyPair } from 'countersign/internal';
import { reached } from './contact-parameters.js';
import { newKey } from './trial-organization.js';
import type { Makers, Making } from './trial-parameters.js';
import { sealedToBundle } from './trial-secrets.js';

const otpType = 'OTP_TYPE_EMAIL';
const appName = 'Example';

/** What uses codes that came by mail. */
export const codeParameters = {
  async ACTIVITY_TYPE_VERIFY_OTP_V2(making) {
    const { email } = await reached(making);
    return { parameters: await guess(making, email, newKey()) };
  },
  async ACTIVITY_TYPE_OTP_AUTH(making) {
    const { founder } = making.organization;
    const { email: contact } = await reached(making);
    const { otpId } = await founder.perform('ACTIVITY_TYPE_INIT_OTP_AUTH_V3', { otpType, contact, appName });
    const otpCode = await codeFor(making, contact);
    return { parameters: { otpId, otpCode, targetPublicKey: newKey().publicKey } };
  },
  async ACTIVITY_TYPE_OTP_LOGIN_V2(making) {
    const { founder } = making.organization;
    const { userId, email: userEmail } = await reached(making);
    const key = newKey();
    const proof = await guess(making, userEmail, key);
    const { verificationToken } = await founder.perform('ACTIVITY_TYPE_VERIFY_OTP_V2', proof);
    // Only a contact that was proved here logs in.
    await founder.perform('ACTIVITY_TYPE_UPDATE_USER_EMAIL', { userId, userEmail, verificationToken });
    const login = { publicKey: newKey().publicKey };
    const clientSignature = loginSignature(key, verificationToken, login);
    return { parameters: { ...login, verificationToken, clientSignature } };
  },
} satisfies Makers;

/** A code that was sent to somebody, with the key to which the proof of it is bound. */
async function guess(making: Making, contact: string, { publicKey }: ApiKeyPair) {
  const { founder } = making.organization;
  const sent = await founder.perform('ACTIVITY_TYPE_INIT_OTP_V3', { otpType, contact, appName });
  const content = { otp_code: await codeFor(making, contact), public_key: publicKey };
  const sealed = await sealedToBundle(sent.otpEncryptionTargetBundle!, Buffer.from(JSON.stringify(content)));
  return { otpId: sent.otpId, encryptedOtpBundle: sealed };
}

/** The code in the newest mail to somebody. */
async function codeFor({ organization }: Making, contact: string): Promise<string> {
  const code = /^\s*([0-9A-Z]{6,9})\s*$/m.exec(await organization.mailTo(contact))?.[1];
  if (code === undefined) throw new Error(`there is no code in the mail to ${contact}`);
  return code;
}

/** What the client signs to log in with a token (docs/protocol.md, client signatures). */
function loginSignature(key: ApiKeyPair, token: string, login: { readonly publicKey: string }) {
  const claims = JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as { readonly id: string };
  const message = JSON.stringify({ login, tokenId: claims.id, type: 'USAGE_TYPE_LOGIN' });
  const stamp = Buffer.from(stampBody(message, key).headerValue, 'base64url').toString();
  const { signature } = JSON.parse(stamp) as { readonly signature: string };
  return { publicKey: key.publicKey, scheme: 'CLIENT_SIGNATURE_SCHEME_API_P256', message, signature } as const;
}
