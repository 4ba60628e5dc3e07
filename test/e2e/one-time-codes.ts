import { p256 } from '@noble/curves/nist.js';
import type { ApiKeyPair, TestCoordinator } from '../../src/testing/index.js';
import { until } from './until.js';

/** The message that carries the code of that OTP, once it has been sent. */
export async function messageOf(coordinator: Pick<TestCoordinator, 'messages'>, otpId: string) {
  const find = () => coordinator.messages().find((message) => message.otpId === otpId);
  await until(`the code of ${otpId} is sent`, () => find() !== undefined);
  return find()!;
}

/** The code of that OTP, read from its message as a person would. */
export async function codeOf(coordinator: Pick<TestCoordinator, 'messages'>, otpId: string): Promise<string> {
  const { text } = await messageOf(coordinator, otpId);
  const code = /^\s*([0-9A-Z]{6,9})(?=\s*$| is your code)/m.exec(text)?.[1];
  if (code === undefined) throw new Error(`there is no code in: ${text}`);
  return code;
}

/** The claims of a token of ours. */
export function claimsOf(token: string): Readonly<Record<string, unknown>> {
  return JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as Readonly<Record<string, unknown>>;
}

/** What a client signs to use a verification token (docs/protocol.md, client signatures), members in the order of the published clients. */
export function clientSignature(
  key: ApiKeyPair,
  verificationToken: string,
  type: 'USAGE_TYPE_LOGIN' | 'USAGE_TYPE_SIGNUP',
  asked: object,
) {
  const message = JSON.stringify({ ...asked, tokenId: claimsOf(verificationToken)['id'], type });
  const signature = p256.sign(Buffer.from(message), Buffer.from(key.privateKey, 'hex'));
  return {
    publicKey: key.publicKey,
    scheme: 'CLIENT_SIGNATURE_SCHEME_API_P256',
    message,
    signature: Buffer.from(signature).toString('hex'),
  } as const;
}
