import type { ChildLookUps } from '../ports/child-look-ups.js';
import type { Claims } from '../ports/claims.js';
import type { Clock } from '../ports/clock.js';
import type { PasskeyCounters } from '../ports/passkeys.js';
import type { KnownActivities } from '../ports/known-activities.js';
import type { EventStore } from '../ledger/event-store.js';
import { activityOf, findByFingerprint } from './activities.js';
import { highestCounter, keysOfCredentialId, knowsIssuer, whereItLeads } from './claims.js';
import type { Rows } from './database.js';
import { readWaitMs, type ReadModelRunner } from './runner.js';
import { halfRecorded, recordedByParent } from './sub-organizations.js';

/** Activities that were decided before. */
export function knownActivities(runner: ReadModelRunner, rows: Rows): KnownActivities {
  return {
    checkpoint: () => runner.checkpoint('activities'),
    findByFingerprint: (organizationId, fingerprint) => findByFingerprint(rows, organizationId, fingerprint),
    async read(organizationId, activityId, position) {
      await runner.passed(position, readWaitMs);
      return activityOf(rows, organizationId, activityId);
    },
  };
}

/** What parents have recorded about their sub-organizations. */
export function childLookUps(store: EventStore, runner: ReadModelRunner, rows: Rows): ChildLookUps {
  return {
    recorded: (organizationId) => recordedByParent(rows, organizationId),
    async recordedByNow(organizationId) {
      await runner.passed((await store.head()) ?? -1n, readWaitMs);
      return recordedByParent(rows, organizationId);
    },
    unfounded: () => halfRecorded(rows, 'unfounded'),
    unconfirmed: () => halfRecorded(rows, 'unconfirmed'),
  };
}

/** Where public identifiers lead. */
export function claimLookUps(runner: ReadModelRunner, rows: Rows, clock: Clock): Claims {
  return {
    async whereItLeads(parentId, identifier, position) {
      await runner.passed(position, readWaitMs);
      return whereItLeads(rows, parentId, identifier, clock.now());
    },
    async keysOfCredentialId(parentId, credentialId, position) {
      await runner.passed(position, readWaitMs);
      return keysOfCredentialId(rows, parentId, credentialId);
    },
    async knowsIssuer(parentId, issuer, position) {
      await runner.passed(position, readWaitMs);
      return knowsIssuer(rows, parentId, issuer);
    },
  };
}

/** Signature counters of passkeys, based on everything that this instance has returned (`seen`). */
export function passkeyCounters(runner: ReadModelRunner, rows: Rows, seen: () => bigint): PasskeyCounters {
  return {
    async highest(familyId, { credentialId, publicKey }) {
      await runner.passed(seen(), readWaitMs);
      return highestCounter(rows, familyId, credentialId, publicKey);
    },
  };
}
