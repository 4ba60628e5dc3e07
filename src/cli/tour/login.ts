import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StampingClient } from '../../client/stamping-client.js';
import { generateApiKeyPair } from '../../stamps/sign.js';
import { clientSignature } from '../client-signature.js';
import type { Stage } from './stage.js';

interface Proxy {
  readonly authProxyUrl: string;
  readonly authProxyConfigId: string;
}

/** Someone signs up with an e-mailed code through the auth proxy, logs in, acts, and changes the phone number. */
export async function login(
  { title, say, note, dim, green }: Stage,
  apiUrl: string,
  proxy: Proxy,
  parent: StampingClient,
  { run, dataDir }: { readonly run: string; readonly dataDir: string },
): Promise<void> {
  const email = `dana-${run}@example.com`;
  const ask = async <Answer>(path: string, body: object): Promise<Answer> => {
    const response = await fetch(`${proxy.authProxyUrl}/v1/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-auth-proxy-config-id': proxy.authProxyConfigId },
      body: JSON.stringify(body),
    });
    const answer = (await response.json()) as Answer & { message?: string };
    if (!response.ok) throw new Error(`/v1/${path}: HTTP ${response.status} ${answer.message}`);
    return answer;
  };

  title('A stranger signs up by e-mail, through the auth proxy: no back end in between');
  note(`POST ${proxy.authProxyUrl}/v1/otp_init, with X-Auth-Proxy-Config-Id and no stamp`);
  const { otpId } = await ask<{ otpId: string }>('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact: email });
  const code = await codeFor(otpId, dataDir);
  say(`   the mail to ${green(email)} is in the outbox; its code is ${green(code)}`);
  const session = generateApiKeyPair((count) => randomBytes(count));
  const { verificationToken } = await ask<{ verificationToken: string }>('otp_verify', {
    otpId,
    otpCode: code,
    publicKey: session.publicKey,
  });
  const { id: tokenId } = JSON.parse(Buffer.from(verificationToken.split('.')[1]!, 'base64url').toString()) as {
    id: string;
  };
  say(`   ${green('a verification token')}, bound to the key of the browser`);
  const nobody = { apiKeys: [], authenticators: [], oauthProviders: [] };
  const { organizationId, userId } = await ask<{ organizationId: string; userId: string }>('signup', {
    userEmail: email,
    userName: `Dana ${run}`,
    organizationName: `Dana's ${run}`,
    verificationToken,
    ...nobody,
    clientSignature: clientSignature(session, { signup: { ...nobody, email }, tokenId, type: 'USAGE_TYPE_SIGNUP' }),
  });
  say(`   ${green('a sub-organization of her own')}  ${organizationId}`);

  title('She logs in: the key of her browser becomes a session');
  const { session: token } = await ask<{ session: string }>('otp_login', {
    verificationToken,
    publicKey: session.publicKey,
    organizationId,
    clientSignature: clientSignature(session, {
      login: { publicKey: session.publicKey },
      tokenId,
      type: 'USAGE_TYPE_LOGIN',
    }),
  });
  const claims = JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as { exp: number };
  say(`   ${green('logged in')} until ${new Date(claims.exp * 1000).toISOString()}`);
  const dana = new StampingClient(apiUrl, organizationId, session);
  const me = await dana.query<{ username: string; organizationName: string }>('whoami');
  say(`   ${green(me.username)} of ${green(me.organizationName)} ${dim('by a stamp of the session key')}`);

  title('She changes her phone number, and proves that it is hers');
  const phone = `+1321${String(parseInt(run, 16)).padStart(7, '0')}`;
  const started = await parent.submit('ACTIVITY_TYPE_INIT_OTP_V2', {
    otpType: 'OTP_TYPE_SMS',
    contact: phone,
    appName: 'Countersign tour',
  });
  const { otpId: smsId } = started.result['initOtpResult'] as { otpId: string };
  const verified = await parent.submit('ACTIVITY_TYPE_VERIFY_OTP', {
    otpId: smsId,
    otpCode: await codeFor(smsId, dataDir),
  });
  const proof = (verified.result['verifyOtpResult'] as { verificationToken: string }).verificationToken;
  const changed = await dana.submit('ACTIVITY_TYPE_UPDATE_USER_PHONE_NUMBER', {
    userId,
    userPhoneNumber: phone,
    verificationToken: proof,
  });
  say(`   ${green(changed.status)}  ${phone}`);
}

/** The code of a message in the outbox; if mail is really sent, only its receiver has it. */
async function codeFor(otpId: string, dataDir: string): Promise<string> {
  const file = join(dataDir, 'outbox.jsonl');
  for (let tries = 0; tries < 100; tries++) {
    const lines = (await readFile(file, 'utf8').catch(() => '')).split('\n').filter((line) => line !== '');
    const message = lines
      .map((line) => JSON.parse(line) as { otpId?: string; text: string })
      .find((one) => one.otpId === otpId);
    const code = message && /(?:^|\s)([0-9A-Z]{6,9})(?:\s|$)/.exec(message.text)?.[1];
    if (code) return code;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(
    `${file} has no code for ${otpId}: the tour reads it there, so SMTP_URL and SMS_WEBHOOK_URL must be empty`,
  );
}
