import { userReachedBy } from '../../domain/organization/users.js';
import { Nested, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import {
  checkOtpLogin,
  checkOtpParams,
  contactKind,
  OlderEmailLooks,
  liftCustomization,
  otpEvents,
  OtpLooks,
  OtpParams,
  OtpRecipient,
  prepareOtp,
  recalledOtp,
  sendOtp,
} from './otp-params.js';
import { otpLengths } from '../../domain/organization/otps.js';

class InitOtpAuthIntent extends OtpRecipient {
  @Nested(() => OlderEmailLooks, { optional: true, about: 'Appearance of the e-mail.' })
  emailCustomization?: OlderEmailLooks;
}

class InitOtpAuthIntentV2 extends OtpLooks {
  @Nested(() => OlderEmailLooks, { optional: true, about: 'Appearance of the e-mail.' })
  emailCustomization?: OlderEmailLooks;
}

class InitOtpAuthResult {
  @Uuid()
  otpId!: string;
}

/**
 * Sends a one-time code to a user's contact, for otp_auth. For a contact that no user has, everything is the same
 * except that nothing is sent: neither the response nor the events reveal whether there is such a user.
 */
export const initOtpAuth = defineActivity({
  type: 'ACTIVITY_TYPE_INIT_OTP_AUTH_V3',
  resultKey: 'initOtpAuthResultV2',
  summary: 'Sends a one-time code to the contact of a user; otp_auth exchanges it for credentials.',
  intent: OtpParams,
  result: InitOtpAuthResult,
  olderVersions: [
    {
      type: 'ACTIVITY_TYPE_INIT_OTP_AUTH_V2',
      intent: InitOtpAuthIntentV2,
      lift: (intent: InitOtpAuthIntentV2): OtpParams => liftCustomization(intent),
    },
    {
      type: 'ACTIVITY_TYPE_INIT_OTP_AUTH',
      intent: InitOtpAuthIntent,
      lift: (intent: InitOtpAuthIntent): OtpParams => liftCustomization(intent),
    },
  ],
  policy: { resource: 'AUTH', action: 'CREATE' },
  params: {
    otp_length: { type: { kind: 'int' }, from: ({ otpLength = otpLengths.usual }) => BigInt(otpLength) },
  },
  submittedBy: 'user-or-parent',
  stamps: ['api-key'],

  check(params, organization) {
    checkOtpParams(params);
    checkOtpLogin(organization, params.otpType);
    userReachedBy(organization, contactKind(params.otpType), params.contact);
  },

  prepare(params, ports, context) {
    const user = userReachedBy(context.organization, contactKind(params.otpType), params.contact);
    return prepareOtp(params, ports, context, { isDelivered: user !== undefined });
  },

  recall: (_intent, recorded) => recalledOtp(recorded),

  decide(params, context, prepared) {
    return { events: otpEvents(params, 'auth', context, prepared), result: { otpId: prepared.otpId } };
  },

  afterwards: (prepared, ports) => sendOtp(prepared, ports),
});
