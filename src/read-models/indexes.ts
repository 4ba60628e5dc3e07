import { contactKey } from '../domain/contact-key.js';
import type { ChildIndex } from '../ports/child-index.js';
import type { Claims } from '../ports/claims.js';
import type { Clock } from '../ports/clock.js';
import type { PasskeyCounters } from '../ports/passkeys.js';
import type { KnownActivities } from '../ports/known-activities.js';
import type { EventStore } from '../ledger/event-store.js';
import { activitiesModel, activityOf, findByFingerprint } from './activities.js';
import { accountOf, claimsModel, highestCounter, keysOfCredentialId, knowsIssuer, whereItLeads } from './claims.js';
import type { Rows } from './database.js';
import { wasDenied } from './denials.js';
import type { ReadModel } from './read-model.js';
import type { ReadModelRunner } from './runner.js';
import { recordedByParent, unfoundedIn } from './sub-organizations.js';
import { tokenUsesModel, tokenUsesOf } from './token-uses.js';

/** Resolves once the rows of a model have everything recorded by now, whichever coordinator recorded it. */
async function caughtUp(store: EventStore, runner: ReadModelRunner, model: ReadModel): Promise<void> {
  await runner.current((await store.head()) ?? -1n, model);
}

/** Activities that were decided before. */
export function knownActivities(runner: ReadModelRunner, rows: Rows): KnownActivities {
  return {
    checkpoint: () => runner.checkpoint('activities'),
    findByFingerprint: (organizationId, fingerprint) => findByFingerprint(rows, organizationId, fingerprint),
    wasDenied: (organizationId, fingerprint) => wasDenied(rows, organizationId, fingerprint),
    async read(organizationId, activityId, position) {
      await runner.current(position, activitiesModel);
      return activityOf(rows, organizationId, activityId);
    },
  };
}

/** What parents have recorded about their sub-organizations. */
export function childIndex(rows: Rows): ChildIndex {
  return {
    recorded: (organizationId) => recordedByParent(rows, organizationId),
    unfounded: () => unfoundedIn(rows),
  };
}

/** Where public identifiers lead. */
export function claimIndex(runner: ReadModelRunner, rows: Rows, clock: Clock): Claims {
  return {
    async whereItLeads(parentId, identifier, position) {
      await runner.current(position, claimsModel);
      return whereItLeads(rows, parentId, identifier, clock.now());
    },
    async keysOfCredentialId(parentId, credentialId, position) {
      await runner.current(position, claimsModel);
      return keysOfCredentialId(rows, parentId, credentialId);
    },
    async knowsIssuer(parentId, issuer, position) {
      await runner.current(position, claimsModel);
      return knowsIssuer(rows, parentId, issuer);
    },
  };
}

/** Signature counters of passkeys, out of everything recorded by now, whichever coordinator recorded it. */
export function passkeyCounters(
  store: EventStore,
  runner: ReadModelRunner,
  rows: Rows,
  { isStrict, notGrown }: Pick<PasskeyCounters, 'isStrict' | 'notGrown'>,
): PasskeyCounters {
  return {
    isStrict,
    notGrown,
    async highest(familyId, { credentialId, publicKey }) {
      await caughtUp(store, runner, claimsModel);
      return highestCounter(rows, familyId, credentialId, publicKey);
    },
  };
}

/** Tokens and contacts, out of everything that anyone can have read by now, whichever coordinator recorded it. */
export function everywhere(store: EventStore, runner: ReadModelRunner, rows: Rows, clock: Clock) {
  return {
    /** What a token has been used for. */
    async tokenUses(tokenId: string): Promise<ReadonlySet<string>> {
      await caughtUp(store, runner, tokenUsesModel);
      return tokenUsesOf(rows, tokenId);
    },
    /** The sub-organization of a parent in which a contact was proved first; undefined for none. */
    async homeOfContact(
      parentId: string,
      kind: 'EMAIL' | 'PHONE_NUMBER',
      contact: string,
    ): Promise<string | undefined> {
      await caughtUp(store, runner, claimsModel);
      return accountOf(rows, parentId, { kind, value: contactKey(contact) }, clock.now());
    },
  };
}
