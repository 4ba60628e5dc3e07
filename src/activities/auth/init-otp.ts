import { Text, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import {
  checkOtpParams,
  checkOwnContact,
  contactKind,
  liftCustomization,
  OlderOtpParams,
  otpEvents,
  OtpParams,
  prepareOtp,
  recalledOtp,
  sendOtp,
} from './otp-params.js';

class InitOtpIntentV3 extends OtpParams {
  /** Older versions have no key to seal the code to. Not a wire field. */
  readonly withoutTarget?: true;
}

class InitOtpResult {
  @Uuid()
  otpId!: string;

  @Text({ optional: true })
  otpEncryptionTargetBundle?: string;
}

const resultKey = 'initOtpResult';

/** Sends a one-time code to a contact, for verify_otp, whether or not anyone has the contact. */
export const initOtp = defineActivity({
  type: 'ACTIVITY_TYPE_INIT_OTP_V3',
  resultKey: 'initOtpResultV2',
  summary: 'Sends a one-time code to a contact; verify_otp exchanges it for a verification token.',
  intent: InitOtpIntentV3,
  result: InitOtpResult,
  olderVersions: [
    {
      type: 'ACTIVITY_TYPE_INIT_OTP_V2',
      resultKey,
      intent: OtpParams,
      lift: (intent: OtpParams): InitOtpIntentV3 => ({ ...intent, withoutTarget: true }),
    },
    {
      type: 'ACTIVITY_TYPE_INIT_OTP',
      resultKey,
      intent: OlderOtpParams,
      lift: (intent: OlderOtpParams): InitOtpIntentV3 => ({ ...liftCustomization(intent), withoutTarget: true }),
    },
  ],
  policy: { resource: 'OTP', action: 'CREATE' },

  check(params, organization) {
    checkOtpParams(params);
    checkOwnContact(organization, contactKind(params.otpType), params.contact);
  },

  prepare: (params, ports, context) => prepareOtp(params, ports, context, { withTarget: !params.withoutTarget }),

  recall: (_intent, recorded) => recalledOtp(recorded),

  decide(params, context, prepared) {
    const { otpId, targetBundle } = prepared;
    return {
      events: otpEvents(params, 'verify', context, prepared),
      result: { otpId, ...(targetBundle === undefined ? {} : { otpEncryptionTargetBundle: targetBundle }) },
    };
  },

  afterwards: (prepared, ports) => sendOtp(prepared, ports),
});
