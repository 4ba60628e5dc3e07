import { CoordinatorError } from './errors.js';

/** A value encrypted under a key that can be destroyed, so that what an event says of a person can be forgotten. */
export interface Sealed {
  /** Base64 of nonce ‖ ciphertext ‖ tag. */
  readonly sealed: string;
  /** Id of the key. */
  readonly key: string;
}

/** The data of an event, as far as its members may be sealed. */
type Data = Readonly<Record<string, unknown>>;

const ofVote = ['vote.message', 'vote.attestation.contact'];
const ofUser = ['userName', 'userEmail', 'userPhoneNumber'];

/**
 * Members that may be sealed, by event type: signed bodies, and the names and contacts of people. Nothing else may be, so that a
 * caller's own JSON is never taken for a sealed value.
 */
export const sealableMembers: Readonly<Partial<Record<string, readonly string[]>>> = {
  ActivitySubmitted: ofVote,
  ActivityApproved: ofVote,
  ActivityRejected: ofVote,
  ActivityDenied: ['message'],
  UserCreated: ofUser,
  UserUpdated: ofUser,
  OtpSent: ['contact', 'userIdentifier'],
  InvitationCreated: ['receiverUserName', 'receiverUserEmail'],
  ClaimProved: ['value'],
};

/** A sealed value that cannot be opened. Whoever needs the event is refused, and nobody else. */
export class SealedValue extends CoordinatorError {
  constructor(type: string, member: string, key: string) {
    super(
      'UNAVAILABLE',
      `\`${member}\` of an event \`${type}\` is sealed under key \`${key}\`, which is not available: start a release that can open it`,
    );
    this.name = 'SealedValue';
  }
}

/**
 * The recorded data of an event with its sealed members opened. This release seals nothing and has no keys, so it returns the data
 * as it is or throws. A parent's record of the initial events of a sub-organization stays sealed: only the sub-organization reads them.
 * @throws {SealedValue}
 */
export function openSealed<Recorded>(type: string, data: Recorded): Recorded {
  for (const path of sealableMembers[type] ?? []) {
    let value: unknown = data;
    for (const name of path.split('.')) value = isObject(value) ? value[name] : undefined;
    if (isSealed(value)) throw new SealedValue(type, path, value.key);
  }
  return data;
}

/** Whether a recorded member is sealed; ask only about those of `sealableMembers`. */
export function isSealed(value: unknown): value is Sealed {
  return isObject(value) && typeof value['sealed'] === 'string' && typeof value['key'] === 'string';
}

function isObject(value: unknown): value is Data {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
