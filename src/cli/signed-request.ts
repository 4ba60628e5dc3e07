import { canonicalJson } from '../domain/canonical-json.js';
import { CoordinatorError } from '../domain/errors.js';
import { verifyStamped } from '../audit/verify/verify-vote.js';
import { fingerprintOf } from '../stamps/fingerprint.js';
import type { ActivityEnvelope } from '../wire/envelope.js';
import { parseStrictJson } from '../wire/strict-json.js';

/** What the submitter of an activity signed, read from the signed bytes. */
export interface SignedRequest {
  readonly type: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** The coordinator's words about an activity differ from what its submitter signed. */
export class NotAsSigned extends Error {
  constructor(difference: string) {
    super(
      `the coordinator's response cannot be trusted: ${difference}; do not vote on this activity, and tell whoever runs the coordinator`,
    );
  }
}

/**
 * Verifies an activity before it is shown or voted on: its fingerprint is SHA-256 of the signed body, which has its type,
 * organization, time and parameters, and the submitter's stamp over that body is valid.
 * @returns undefined if secrets were left out of the signed body, so that it cannot be compared with the fingerprint
 * @throws {NotAsSigned}
 */
export async function signedRequest(
  activity: ActivityEnvelope,
  organizationId: string,
): Promise<SignedRequest | undefined> {
  const [submission] = activity.votes;
  if (typeof submission?.message !== 'string') throw new NotAsSigned('it does not have what the submitter signed');
  const { message, publicKey, signature, scheme, authenticatorData, clientDataJson } = submission;
  const fingerprint = fingerprintOf(message);
  if (fingerprint !== activity.fingerprint && submission.redacted) return undefined;
  same('fingerprint', activity.fingerprint, fingerprint);
  const { type, parameters, ...body } = bodyOf(message);
  same('type', activity.type, type);
  same('organization', activity.organizationId, body['organizationId']);
  same('organization', organizationId, body['organizationId']);
  same('time', activity.timestampMs, body['timestampMs']);
  if (typeof parameters !== 'object' || Array.isArray(parameters))
    throw new NotAsSigned('the signed body has no parameters');
  const [intent, ...others] = Object.values(activity.intent);
  // The signed body is whole, whatever was left out of the intent.
  const isWhole = activity.redacted === undefined;
  if (isWhole && (others.length > 0 || canonicalJson(intent ?? null) !== canonicalJson(parameters ?? null))) {
    throw new NotAsSigned('its parameters are not those of the signed body');
  }
  const webauthn =
    authenticatorData === undefined || clientDataJson === undefined ? undefined : { authenticatorData, clientDataJson };
  try {
    await verifyStamped({ message, publicKey, signature, scheme, webauthn });
  } catch (cause) {
    if (!(cause instanceof CoordinatorError)) throw cause;
    throw new NotAsSigned(`the stamp of its submitter is not valid (${cause.message})`);
  }
  return { type: type as string, parameters: parameters as SignedRequest['parameters'] };
}

function bodyOf(message: string): Readonly<Record<string, unknown>> {
  try {
    return parseStrictJson(Buffer.from(message)).value;
  } catch (cause) {
    if (!(cause instanceof CoordinatorError)) throw cause;
    throw new NotAsSigned(`the signed body cannot be read (${cause.message})`);
  }
}

function same(what: string, shown: string, signed: unknown): void {
  if (shown !== signed)
    throw new NotAsSigned(`its ${what} is \`${shown}\`, but the signed body has \`${String(signed)}\``);
}
