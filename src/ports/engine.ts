import type { ActivityRecord } from '../domain/activity/record.js';
import type { ClaimedIdentifier, Found } from '../domain/organization/claims.js';
import type { Meter } from '../domain/steps.js';
import type { User } from '../domain/organization/users.js';
import type { QueuePath } from '../fairness/fair-queue.js';
import type { ReadingOutcome, ToRead } from '../transactions/reading.js';

/** The world as the driver meets it. Each has one adapter for real runs and one that a test can steer. */

/** Wall-clock time, milliseconds since the epoch. */
export interface Clock {
  now(): number;
  /** By how many milliseconds it has jumped against a monotonic clock, 0 for none. A clock that is steered never does. */
  jumped?(): number;
}

/** Cryptographically secure bytes; a seeded source in tests. */
export interface Randomness {
  bytes(count: number): Uint8Array;
}

/** Injects where passkeys may be used unless an organization or its parent says so; empty is the rule of `stamps/webauthn.ts`. */
export const PASSKEY_ORIGINS = Symbol('PasskeyOrigins');
export const LIMITS = Symbol('Limits');

/** Finds what has been decided before and is no longer in folded state: the activities read model. */
export interface KnownActivities {
  /** Everything recorded up to this position (inclusive) is found. */
  checkpoint(): bigint;
  /** Id of the activity that a request with this fingerprint belongs to: its submission, or a vote on it. */
  findByFingerprint(organizationId: string, fingerprint: string): string | undefined;
  /** The activity once everything up to `position` is known; waits for that, within bounds. */
  read(organizationId: string, activityId: string, position: bigint): Promise<ActivityRecord<User | undefined>>;
}

/** Finds sub-organizations by the public identifiers of their users: the read model of claims (docs/adr/0028). */
export interface Claims {
  /**
   * Where an identifier leads to whoever has shown that it is theirs, once everything up to `position` is known; waits
   * for that, within bounds. No id for nowhere, several where only a name tells them apart.
   */
  whereItLeads(
    parentId: string,
    identifier: ClaimedIdentifier,
    position: bigint,
  ): Promise<Pick<Found, 'by'> & { readonly organizationIds: readonly string[] }>;
  /** Keys (COSE, base64url) that were registered under a credential id, the first one first, by the same knowledge. */
  keysOfCredentialId(parentId: string, credentialId: string, position: bigint): Promise<readonly string[]>;
  /** Whether somebody in a sub-organization of the parent has an identity at the issuer, by the same knowledge. */
  knowsIssuer(parentId: string, issuer: string, position: bigint): Promise<boolean>;
}

/** What was counted of passkeys, wherever under one parent they have stamped. */
export interface PasskeyCounters {
  /** The highest counter that was recorded in a parent (`familyId`) or one of its sub-organizations; 0 for none. */
  highest(familyId: string, passkey: { readonly credentialId: string; readonly publicKey: string }): Promise<number>;
}

/** Signs facts with the key of this boot (client protocol 7.8). */
export interface ProofSigner {
  /** 130 bytes, lower-case hex: names the boot. */
  readonly publicKey: string;
  /** r ‖ s over SHA-256 of the text, hex; the same text gives the same signature. */
  sign(text: string): string;
}

/** Reads what takes long where nobody else waits for it (see `reading-threads.ts`). */
export interface ReadingPort {
  /** @throws {CoordinatorError} when it was not read at all, which is no outcome */
  read(job: ToRead, path: QueuePath): Promise<ReadingOutcome>;
}

/** Counters and timers of the driver (see `http/metrics.ts`). */
export interface DriverMetrics {
  decided(outcome: string, type: string): void;
  /** What one request has taken. */
  spent(on: 'submit' | 'query', meter: Meter): void;
  appended(seconds: number, batch: number): void;
  conflict(): void;
  folded(seconds: number, events: number): void;
}

export const DRIVER_METRICS = Symbol('DriverMetrics');
export const CLOCK = Symbol('Clock');
export const RANDOMNESS = Symbol('Randomness');
export const EVENT_STORE = Symbol('EventStore');
export const REGISTRY = Symbol('Registry');
export const ROWS = Symbol('Rows');
export const OIDC = Symbol('Oidc');
export const COUNTERS = Symbol('PasskeyCounters');
