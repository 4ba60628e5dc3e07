import { invalidOtpCode, isCodeOf, otpEnded, usableOtp, wrongGuess } from '../../domain/organization/otps.js';
import type { Login } from '../../domain/organization/quorum-members.js';
import { userReachedBy } from '../../domain/organization/users.js';
import { parsePublicKey } from '../../keyring/curves.js';
import { Flag, Hex, Label, Text, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { checkOtpLogin, contactKind, recalledGuess } from './otp-params.js';
import { recalledKey, sessionKeyEvents, SessionSeconds } from './session-keys.js';

class OtpAuthIntent {
  @Uuid({ about: 'Id of the code, from init_otp_auth.' })
  otpId!: string;

  @Text({ min: 1, max: 64, about: 'The code; not case sensitive.' })
  otpCode!: string;

  @Hex({
    max: 130,
    removable: true,
    about: 'P-256 key to which the credentials are sealed; if empty, none are issued.',
  })
  targetPublicKey!: string;

  @Label({ optional: true, about: 'The name of the new key; `OTP Auth - <Timestamp>` by default.' })
  apiKeyName?: string;

  @SessionSeconds()
  expirationSeconds?: string;

  @Flag({ optional: true, about: "Deletes the user's other keys created by otp_auth." })
  invalidateExisting?: boolean;
}

class OtpAuthResult {
  @Uuid()
  userId!: string;

  @Uuid({ optional: true })
  apiKeyId?: string;

  @Text({ optional: true })
  credentialBundle?: string;
}

/** Gives credentials to the user whose contact received a code. A wrong code counts, and the third locks the code. */
export const otpAuth = defineActivity({
  type: 'ACTIVITY_TYPE_OTP_AUTH',
  summary: "Exchanges a correct code from init_otp_auth for the user's credentials.",
  intent: OtpAuthIntent,
  result: OtpAuthResult,
  policy: { resource: 'AUTH', action: 'CREATE' },
  submittedBy: 'user-or-parent',

  check({ otpId, targetPublicKey }, organization) {
    if (targetPublicKey) parsePublicKey('CURVE_P256', targetPublicKey, 'parameters.targetPublicKey');
    checkOtpLogin(organization, usableOtp(organization, otpId, 'auth').otpType);
  },

  async prepare({ otpId, otpCode, targetPublicKey }, { loginSecrets }) {
    const codeHash = await loginSecrets.hashCode(otpId, otpCode);
    return { codeHash, key: targetPublicKey ? await loginSecrets.newApiKey(targetPublicKey) : undefined };
  },

  recall({ otpId }, recorded, organization) {
    const [made] = recorded.all('ApiKeyCreated');
    return { codeHash: recalledGuess(otpId, recorded, organization), key: made && recalledKey(recorded) };
  },

  decide({ otpId, apiKeyName, expirationSeconds, invalidateExisting }, context, { codeHash, key }) {
    const { organization, now } = context;
    const otp = usableOtp(organization, otpId, 'auth', now);
    const user = userReachedBy(organization, contactKind(otp.otpType), otp.contact);
    if (!isCodeOf(otp, codeHash) || !user) return { events: wrongGuess(otp), failure: invalidOtpCode() };
    const { userId } = user;
    const used = otpEnded(otp, 'used');
    if (!key) return { events: [used], result: { userId } };
    const { apiKeyId, events } = sessionKeyEvents(context, user, {
      publicKey: key.publicKey,
      curve: 'API_KEY_CURVE_P256',
      credentialType: 'CREDENTIAL_TYPE_OTP_AUTH_KEY_P256',
      apiKeyName,
      expirationSeconds,
      invalidateExisting,
    });
    const login: Login = { userId, by: contactKind(otp.otpType) };
    return { events: [used, ...events], result: { userId, apiKeyId, credentialBundle: key.credentialBundle }, login };
  },
});
