import { signingKeyOf } from '../../domain/organization/signing-keys.js';
import { Text, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { PayloadParams, payloadReader, SignRawPayloadResult } from './payload-params.js';
import { checkStillSignsWith, signAll, signingPolicy, signWithAbout } from './signing-params.js';

class RawPayloadParams extends PayloadParams {
  @Text({ min: 1, max: 2_000_000, about: 'The payload to sign.' })
  payload!: string;
}

class SignRawPayloadIntent extends RawPayloadParams {
  @Uuid({ about: 'The private key that signs.' })
  privateKeyId!: string;
}

class SignRawPayloadIntentV2 extends RawPayloadParams {
  @Text({ min: 1, max: 256, about: signWithAbout })
  signWith!: string;
}

const payloads = payloadReader<SignRawPayloadIntentV2>(
  ({ payload }) => [payload],
  () => 'parameters.payload',
);

/** Signs one payload. */
export const signRawPayload = defineActivity({
  type: 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2',
  resultKey: 'signRawPayloadResult',
  summary: 'Signs a payload: a digest, bytes or text, EIP-712 typed data, or an EIP-7702 authorization.',
  intent: SignRawPayloadIntentV2,
  result: SignRawPayloadResult,
  olderVersions: [
    {
      type: 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD',
      intent: SignRawPayloadIntent,
      lift: ({ privateKeyId, ...rest }: SignRawPayloadIntent): SignRawPayloadIntentV2 => ({
        ...rest,
        signWith: privateKeyId,
      }),
    },
  ],
  policy: signingPolicy,
  params: payloads.params,
  payloads: payloads.payloads,
  content: payloads.content,
  texts: payloads.texts,
  ahead: payloads.ahead,

  check(intent, organization) {
    payloads.read(intent, organization);
  },

  async sign(intent, keyring, { organization }) {
    const { key, parts } = payloads.read(intent, organization);
    const [signature] = await signAll(keyring, organization.organizationId, key, parts);
    return { key, signature: signature! };
  },

  recall: ({ signWith }, recorded, organization) => ({
    key: signingKeyOf(organization, signWith),
    signature: recorded.result,
  }),

  decide({ signWith }, { organization }, { key, signature }) {
    checkStillSignsWith(organization, signWith, key);
    return { events: [], result: { ...signature } };
  },
});
