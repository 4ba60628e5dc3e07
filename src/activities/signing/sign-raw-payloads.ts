import { signingKeyOf, type SigningKey } from '../../domain/organization/signing-keys.js';
import type { RawSignature } from '../../ports/keyring.js';
import { ListOf, Text, TextList } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { PayloadParams, payloadReader, SignRawPayloadResult } from './payload-params.js';
import { checkStillSignsWith, signAll, signingPolicy, signWithAbout } from './signing-params.js';

/** Maximum payloads of one activity: half a second of one core, and an event well below 1 MiB. */
const maxPayloads = 1_000;

class SignRawPayloadsIntent extends PayloadParams {
  @Text({ min: 1, max: 256, about: signWithAbout })
  signWith!: string;

  @TextList({ min: 1, max: maxPayloads, about: 'The payloads to sign, all or none.' })
  payloads!: string[];
}

class SignRawPayloadsResult {
  @ListOf(() => SignRawPayloadResult, { max: maxPayloads, about: 'Signatures, in the order of the payloads.' })
  signatures!: SignRawPayloadResult[];
}

/** Output of `prepare`. */
export interface Signed {
  readonly key: SigningKey;
  readonly signatures: readonly RawSignature[];
}

const payloads = payloadReader<SignRawPayloadsIntent>(
  (intent) => intent.payloads,
  (index) => `parameters.payloads[${index}]`,
);

/** Signs several payloads with one key, all or none. */
export const signRawPayloads = defineActivity({
  type: 'ACTIVITY_TYPE_SIGN_RAW_PAYLOADS',
  summary: 'Signs several payloads with one key, all or none.',
  intent: SignRawPayloadsIntent,
  result: SignRawPayloadsResult,
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
    return { key, signatures: await signAll(keyring, organization.organizationId, key, parts) };
  },

  recall: ({ signWith }, recorded, organization): Signed => ({
    key: signingKeyOf(organization, signWith),
    signatures: recorded.result.signatures,
  }),

  decide({ signWith }, { organization }, { key, signatures }) {
    checkStillSignsWith(organization, signWith, key);
    return { events: [], result: { signatures: [...signatures] } };
  },
});
