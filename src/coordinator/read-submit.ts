import type { Attestation } from '../domain/activity/events.js';
import type { Stamp } from '../stamps/stamp.js';
import { maxAheadMs, submitLifeMs } from '../domain/activity/liveness.js';
import { CoordinatorError, invalidField } from '../domain/errors.js';
import type { Found } from '../domain/organization/claims.js';
import { canonicalUuid, DecimalString, Flag, Text, Uuid } from '../wire/fields.js';
import { parseStrictJson } from '../wire/strict-json.js';
import type { QueuePath } from '../fairness/fair-queue.js';
import { fingerprintOf } from '../stamps/fingerprint.js';
import type { ActivityVersion, Registry } from '../decide/registry.js';
import { validate, validateParameters } from '../wire/validate.js';

/**
 * Called with the organization and the credential of a request as soon as its sender is known there, for some more than once.
 * @throws {CoordinatorError} that refuses the request
 */
export type OnKnown = (organizationId: string, credentialId: string) => void;

/** A stamped request as received. The stamp's signature over `body` has been verified, except a passkey's. */
export interface StampedRequest {
  /** Last segment of the path. */
  readonly path: string;
  readonly body: Uint8Array;
  readonly stamp: Stamp;
  /**
   * The sender's place in the order of turns in its organization; absent for nobody in particular. See `senderPath`.
   */
  readonly from?: QueuePath;
  readonly onKnown?: OnKnown | undefined;
  /** The client gets the times of activities as objects. */
  readonly timestampObjects?: boolean;
}

/** A well-formed submit: what it asks for can be decided. */
export interface SubmitRequest {
  readonly version: ActivityVersion;
  readonly organizationId: string;
  readonly timestampMs: string;
  readonly generateAppProofs: boolean | undefined;
  /** As submitted, without null members; `intent` echoes it and history keeps it. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** The newest version's intent. */
  readonly intent: object;
  /** The request body, which is the signed message. */
  readonly text: string;
  readonly body: Uint8Array;
  readonly fingerprint: string;
  readonly stamp: Stamp;
  readonly from: QueuePath;
  readonly onKnown: OnKnown | undefined;
  /** Why it is for this organization although its body names only the parent. */
  readonly found?: Found;
  /** What the token of an attested stamp was found to prove. */
  readonly attestation?: Attestation;
}

class SubmitEnvelope {
  @Text({ max: 255 })
  type!: string;

  @DecimalString({ min: 0, max: Number.MAX_SAFE_INTEGER })
  timestampMs!: string;

  @Uuid()
  organizationId!: string;

  @Flag({ optional: true })
  generateAppProofs?: boolean;
}

/**
 * Parses a submit: strict JSON, a known type on its own path, within the liveness window, with a valid intent.
 * @throws {CoordinatorError} INVALID_ARGUMENT that says what is wrong
 */
export function readSubmit(
  { path, body, stamp, from = [], onKnown }: StampedRequest,
  registry: Registry,
  now: number,
): SubmitRequest {
  const { text, value } = parseStrictJson(body);
  const version = versionOf(path, value, registry);
  const { parameters, ...rest } = value;
  if (typeof parameters !== 'object' || parameters === null || Array.isArray(parameters)) {
    throw invalidField('parameters', parameters === undefined ? 'is required' : 'must be an object');
  }
  // Some clients leave this member of the envelope among the parameters, where no activity has one of that name.
  const { generateAppProofs: misplaced } = parameters as { readonly generateAppProofs?: unknown };
  if (misplaced !== undefined && typeof misplaced !== 'boolean') {
    throw invalidField('parameters.generateAppProofs', 'must be true or false');
  }
  const envelope = { ...rest, generateAppProofs: rest['generateAppProofs'] ?? misplaced };
  const { timestampMs, generateAppProofs, organizationId: named } = validate(SubmitEnvelope, envelope);
  const organizationId = canonicalUuid(named);
  checkLiveness(timestampMs, now);
  const intent = validateParameters(version.intent, parameters);
  return {
    version,
    organizationId,
    timestampMs,
    generateAppProofs,
    parameters: parameters as Record<string, unknown>,
    intent: version.lift ? version.lift(intent) : intent,
    text,
    body,
    fingerprint: fingerprintOf(body),
    stamp,
    from,
    onKnown,
  };
}

function versionOf(path: string, { type }: Record<string, unknown>, registry: Registry): ActivityVersion {
  if (typeof type !== 'string') {
    throw invalidField(
      'type',
      type === undefined ? 'is required' : 'must be a string such as ACTIVITY_TYPE_CREATE_USERS_V4',
    );
  }
  const taken = registry.paths.get(path)!.map((version) => version.type);
  const version = registry.versions.get(type);
  if (!version) {
    throw invalidField(
      'type',
      `is not an activity type of this server: \`${type.slice(0, 100)}\`; this path accepts ${taken.join(', ')}`,
    );
  }
  if (!taken.includes(type)) {
    const own = `/public/v1/submit/${version.kind.toLowerCase()}`;
    throw invalidField('type', `\`${type}\` must be sent to ${own}; this path accepts ${taken.join(', ')}`);
  }
  return version;
}

/** @throws {CoordinatorError} INVALID_ARGUMENT INVALID_TIME that names both clocks and the difference */
export function checkLiveness(timestampMs: string, now: number): void {
  const age = now - Number(timestampMs);
  if (age < submitLifeMs && age >= -maxAheadMs) return;
  const [size, direction] = age > 0 ? [age, 'behind'] : [-age, 'ahead of'];
  throw new CoordinatorError(
    'INVALID_ARGUMENT',
    `timestampMs \`${timestampMs}\` is ${size} ms ${direction} this server's clock (${now}); ` +
      `it must be less than ${submitLifeMs} ms old and at most ${maxAheadMs} ms ahead: set the clock, or stamp the request again`,
    { category: 'INVALID_TIME' },
  );
}
