import { Inject, Injectable } from '@nestjs/common';
import type { Config } from '../config/config.js';
import { CONFIG } from '../config/config.token.js';
import { contactKey } from '../domain/contact-key.js';
import { LOGGER, type Log } from '../logging/logger.js';
import { Metrics } from '../metrics/metrics.js';
import type { ChildIndex, ParentRecord } from '../ports/child-index.js';
import type { Claims } from '../ports/claims.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import type { PasskeyCounters } from '../ports/passkeys.js';
import type { KnownActivities } from '../ports/known-activities.js';
import { EVENT_STORE, type EventStore } from '../ledger/event-store.js';
import { activitiesModel, activityOf, findByFingerprint } from './activities.js';
import { accountOf, claimsModel, highestCounter, keysOfCredentialId, knowsIssuer, whereItLeads } from './claims.js';
import type { Rows } from './database.js';
import { ROWS } from './define-query.js';
import { denialsRevision, wasDenied } from './denials.js';
import type { ReadModel } from './read-model.js';
import { ReadModelRunner } from './runner.js';
import { recordedByParent, unfoundedIn } from './sub-organizations.js';
import { unnamedVaults, type UnnamedVault } from './unnamed-vaults.js';
import { tokenUsesModel, tokenUsesOf } from './token-uses.js';

/** Resolves once the rows of a model have everything recorded by now, whichever coordinator recorded it. */
async function caughtUp(store: EventStore, runner: ReadModelRunner, model: ReadModel): Promise<void> {
  await runner.current((await store.head()) ?? -1n, model);
}

/** Activities that were decided before. */
@Injectable()
export class ActivityIndex implements KnownActivities {
  constructor(
    private readonly runner: ReadModelRunner,
    @Inject(ROWS) private readonly rows: Rows,
  ) {}

  checkpoint(): bigint {
    return this.runner.checkpoint('activities');
  }

  findByFingerprint(organizationId: string, fingerprint: string): string | undefined {
    return findByFingerprint(this.rows, organizationId, fingerprint);
  }

  wasDenied(organizationId: string, fingerprint: string): boolean {
    return wasDenied(this.rows, organizationId, fingerprint);
  }

  lastDenial(organizationId: string): number {
    return denialsRevision(this.rows, organizationId);
  }

  async read(organizationId: string, activityId: string, position: bigint): ReturnType<KnownActivities['read']> {
    await this.runner.current(position, activitiesModel);
    return activityOf(this.rows, organizationId, activityId);
  }
}

/** What parents have recorded about their sub-organizations. */
@Injectable()
export class RecordedChildren implements ChildIndex {
  constructor(@Inject(ROWS) private readonly rows: Rows) {}

  recorded(organizationId: string): ParentRecord | undefined {
    return recordedByParent(this.rows, organizationId);
  }

  unfounded(): readonly string[] {
    return unfoundedIn(this.rows);
  }
}

/** Where public identifiers lead. */
@Injectable()
export class ClaimIndex implements Claims {
  constructor(
    private readonly runner: ReadModelRunner,
    @Inject(ROWS) private readonly rows: Rows,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  async whereItLeads(...[parentId, identifier, position]: Parameters<Claims['whereItLeads']>) {
    await this.runner.current(position, claimsModel);
    return whereItLeads(this.rows, parentId, identifier, this.clock.now());
  }

  async keysOfCredentialId(parentId: string, credentialId: string, position: bigint): Promise<readonly string[]> {
    await this.runner.current(position, claimsModel);
    return keysOfCredentialId(this.rows, parentId, credentialId);
  }

  async knowsIssuer(parentId: string, issuer: string, position: bigint): Promise<boolean> {
    await this.runner.current(position, claimsModel);
    return knowsIssuer(this.rows, parentId, issuer);
  }
}

/** Signature counters of passkeys, out of everything recorded by now, whichever coordinator recorded it. */
@Injectable()
export class CounterIndex implements PasskeyCounters {
  readonly isStrict: boolean;

  constructor(
    @Inject(EVENT_STORE) private readonly store: EventStore,
    private readonly runner: ReadModelRunner,
    @Inject(ROWS) private readonly rows: Rows,
    @Inject(CONFIG) config: Pick<Config, 'passkeyCounters'>,
    private readonly metrics: Metrics,
    @Inject(LOGGER) private readonly logger: Pick<Log, 'warn'>,
  ) {
    this.isStrict = config.passkeyCounters === 'strict';
  }

  notGrown(seen: Parameters<PasskeyCounters['notGrown']>[0]): void {
    this.metrics.passkeyCounterNotGrown();
    this.logger.warn(seen, 'the signature counter of a passkey did not grow: there may be a copy of it');
  }

  async highest(...[familyId, { credentialId, publicKey }]: Parameters<PasskeyCounters['highest']>): Promise<number> {
    await caughtUp(this.store, this.runner, claimsModel);
    return highestCounter(this.rows, familyId, credentialId, publicKey);
  }
}

/** Tokens and contacts, out of everything that anyone can have read by now, whichever coordinator recorded it. */
@Injectable()
export class InstallationIndex {
  constructor(
    @Inject(EVENT_STORE) private readonly store: EventStore,
    private readonly runner: ReadModelRunner,
    @Inject(ROWS) private readonly rows: Rows,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  /** Vaults from attempts between two times (milliseconds since the epoch, the first exclusive) that no event names, latest first. */
  unnamedVaults(after: number, until: number): Iterable<UnnamedVault> {
    return unnamedVaults(this.rows, after, until);
  }

  /** What a token has been used for. */
  async tokenUses(tokenId: string): Promise<ReadonlySet<string>> {
    await caughtUp(this.store, this.runner, tokenUsesModel);
    return tokenUsesOf(this.rows, tokenId);
  }

  /** The sub-organization of a parent in which a contact was proved first; undefined for none. */
  async homeOfContact(parentId: string, kind: 'EMAIL' | 'PHONE_NUMBER', contact: string): Promise<string | undefined> {
    await caughtUp(this.store, this.runner, claimsModel);
    return accountOf(this.rows, parentId, { kind, value: contactKey(contact) }, this.clock.now());
  }
}
