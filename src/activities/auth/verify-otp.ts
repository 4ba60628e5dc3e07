import { isAuthProxyUser } from '../../domain/organization/auth-proxy.js';
import { issuedAfterMends } from '../../domain/organization/clock-mends.js';
import { invalidField } from '../../domain/errors.js';
import {
  invalidOtpCode,
  isCodeOf,
  otpEnded,
  tokenLifeSeconds,
  usableOtp,
  wrongGuess,
} from '../../domain/organization/otps.js';
import { parsePublicKey } from '../../keyring/curves.js';
import { DecimalString, Hex, Text, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { recalledGuess } from './otp-params.js';
import { claimsOf, withoutSignature } from './token-uses.js';

class VerifyOtpParams {
  @Uuid({ about: 'Id of the code, from init_otp.' })
  otpId!: string;

  @DecimalString({
    optional: true,
    min: 1,
    max: tokenLifeSeconds.max,
    about: `Lifetime of the verification token in seconds; default ${tokenLifeSeconds.usual}.`,
  })
  expirationSeconds?: string;
}

class VerifyOtpIntent extends VerifyOtpParams {
  @Text({ min: 1, max: 64, about: 'The code; not case sensitive.' })
  otpCode!: string;

  @Hex({
    optional: true,
    max: 130,
    removable: true,
    about: 'P-256 key to bind the verification token to: only its holder can use the token.',
  })
  publicKey?: string;
}

class VerifyOtpIntentV2 extends VerifyOtpParams {
  @Text({
    min: 1,
    about: 'The code and the key to bind the token to, sealed to the key from init_otp.',
  })
  encryptedOtpBundle!: string;

  /** Sent in plaintext in the first version. Not a wire field. */
  readonly plain?: { readonly code: string; readonly publicKey?: string };
}

class VerifyOtpResult {
  @Text()
  verificationToken!: string;
}

const resultKey = 'verifyOtpResult';

/** Exchanges a code for a proof of the contact it was sent to. A wrong code counts, and the third locks the code. */
export const verifyOtp = defineActivity({
  type: 'ACTIVITY_TYPE_VERIFY_OTP_V2',
  resultKey,
  summary: 'Exchanges a correct code from init_otp for a verification token.',
  intent: VerifyOtpIntentV2,
  result: VerifyOtpResult,
  olderVersions: [
    {
      type: 'ACTIVITY_TYPE_VERIFY_OTP',
      resultKey,
      intent: VerifyOtpIntent,
      lift: ({ otpCode, publicKey, ...rest }: VerifyOtpIntent): VerifyOtpIntentV2 => ({
        ...rest,
        encryptedOtpBundle: '',
        plain: { code: otpCode, ...(publicKey ? { publicKey } : {}) },
      }),
    },
  ],
  policy: { resource: 'OTP', action: 'VERIFY' },

  check({ otpId, plain }, organization) {
    const { vaultId } = usableOtp(organization, otpId, 'verify');
    if (plain?.publicKey) parsePublicKey('CURVE_P256', plain.publicKey, 'parameters.publicKey');
    if (!plain && vaultId === undefined) {
      throw invalidField(
        'parameters.encryptedOtpBundle',
        'cannot be decrypted: the code was sent without a key to seal it to; request one with ACTIVITY_TYPE_INIT_OTP_V3',
      );
    }
  },

  async prepare({ otpId, encryptedOtpBundle, expirationSeconds, plain }, { loginSecrets, tokens }, context) {
    const { organization, submitterId, now, newId } = context;
    const { organizationId } = organization;
    const otp = usableOtp(organization, otpId, 'verify', now);
    const place = { organizationId, vaultId: otp.vaultId ?? '' };
    const { code, publicKey } = plain ?? (await loginSecrets.openOtpBundle(place, encryptedOtpBundle));
    const codeHash = await loginSecrets.hashCode(otpId, code);
    if (!isCodeOf(otp, codeHash)) return { codeHash, verificationToken: undefined };
    // Members are known. Callers of the auth proxy are not, nor is anyone who is no longer a member.
    const isOfMembers = [otp.requestedBy, submitterId].every(
      (userId) => organization.users.has(userId) && !isAuthProxyUser(organization, userId),
    );
    const key = publicKey === undefined ? undefined : parsePublicKey('CURVE_P256', publicKey).toString('hex');
    const verificationToken = await tokens.signVerification({
      tokenId: newId(),
      verificationType: otp.otpType,
      contact: otp.contact,
      organizationId,
      ...(key === undefined ? {} : { publicKey: key }),
      ...(isOfMembers ? { logsInToIssuer: true as const } : {}),
      expiresAt: now + Number(expirationSeconds ?? tokenLifeSeconds.usual) * 1000,
      ...issuedAfterMends(organization),
    });
    return { codeHash, verificationToken };
  },

  recall({ otpId }, recorded, organization) {
    const isWrong = recorded.all('OtpGuessFailed').length > 0;
    return {
      codeHash: recalledGuess(otpId, recorded, organization),
      verificationToken: isWrong ? undefined : recorded.result.verificationToken,
    };
  },

  decide({ otpId }, { organization, submitterId, now }, { codeHash, verificationToken }) {
    const otp = usableOtp(organization, otpId, 'verify', now);
    if (!isCodeOf(otp, codeHash) || verificationToken === undefined) {
      const isThroughProxy = isAuthProxyUser(organization, submitterId);
      return { events: wrongGuess(otp, { isThroughProxy }), failure: invalidOtpCode() };
    }
    // A recorded token must prove nothing (docs/adr/0017).
    const result = { verificationToken: withoutSignature(verificationToken) };
    return { events: [otpEnded(otp, 'used')], result };
  },

  async reveal({ verificationToken: recorded }, { tokens }, appended) {
    const verificationToken = appended?.prepared.verificationToken;
    if (verificationToken !== undefined) return { verificationToken };
    // Only the holder of the key can use a token bound to it, whoever receives it.
    return isBound(recorded)
      ? { verificationToken: await tokens.signVerificationAgain(withoutSignature(recorded)) }
      : undefined;
  },
});

function isBound(token: string): boolean {
  return 'public_key' in claimsOf(token);
}
