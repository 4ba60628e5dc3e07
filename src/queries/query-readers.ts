import { Inject, Injectable } from '@nestjs/common';
import type { Stamp } from '../stamps/stamp.js';
import type { Config } from '../config/config.js';
import { CONFIG } from '../config/config.token.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { COUNTERS, type PasskeyCounters } from '../ports/passkeys.js';
import { checkMayRead } from '../decide/caller.js';
import { checkParentsTime, readingTime } from '../decide/decision-time.js';
import { attestedElsewhere } from '../decide/refusals.js';
import { refusalOf, resolveCaller, type Caller } from '../decide/resolve-caller.js';
import { CoordinatorError } from '../domain/errors.js';
import { checkAuthProxyQuery } from '../domain/organization/auth-proxy.js';
import { apiKeyOf } from '../domain/organization/credentials-of-users.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import { OrganizationLoader } from '../ledger/load-organization.js';
import type { AnyQuery } from '../read-models/index.js';
import type { SessionHeader } from '../stamps/session-header.js';
import { checkCounter, signingKey, verifyPasskey, type PasskeyPorts } from '../coordinator/passkeys.js';
import { ReadSessions, type Reader } from './read-sessions.js';
import { OrganizationLookup } from '../coordinator/organization-lookup.js';
import type { OnKnown } from '../coordinator/read-submit.js';

/** A query as received, and who sends it. The stamp's signature over `body` has been verified, except a passkey's. */
export interface QueryRequest {
  readonly body: Uint8Array;
  readonly by: Stamp | SessionHeader;
  readonly onKnown?: OnKnown | undefined;
  /** The client gets the times of activities as objects. */
  readonly timestampObjects?: boolean;
}

/** Finds who sends a query, and whether they may. */
@Injectable()
export class QueryReaders {
  private readonly passkeyPorts: PasskeyPorts;

  constructor(
    private readonly loader: OrganizationLoader,
    private readonly lookup: OrganizationLookup,
    private readonly sessions: ReadSessions,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(COUNTERS) private readonly counters: PasskeyCounters,
    @Inject(CONFIG) { passkeyOrigins }: Pick<Config, 'passkeyOrigins'>,
  ) {
    this.passkeyPorts = { passkeyOrigins, clock, counters };
  }

  /**
   * A full history shows who did what and when, so only members of the root quorum may read it, and with their own key.
   * @throws {CoordinatorError} PERMISSION_DENIED
   */
  async checkReadsHistory(
    path: string,
    { kind }: QueryRequest['by'],
    organization: OrganizationView,
    caller: Caller,
  ): Promise<void> {
    const refuse = (why: string) =>
      new CoordinatorError('PERMISSION_DENIED', `query ${path}: ${why}`, { category: 'REQUEST_NOT_AUTHORIZED' });
    if (kind === 'session') throw refuse('requires a stamp: a read-only session cannot read whole histories');
    const { organizationId, parentOrganizationId } = organization;
    const parent = (await this.loader.parentOf(organization))?.organization;
    const home = caller.organizationId === organizationId ? organization : parent;
    const { userId } = caller.user;
    if (!home?.rootQuorum.userIds.includes(userId)) {
      throw refuse(`user \`${userId}\` is not in the root quorum of organization \`${caller.organizationId}\``);
    }
    if (home === organization && parent && !parent.features.has('FEATURE_NAME_SUB_ORGANIZATION_EVENTS')) {
      throw refuse(
        `its parent \`${parentOrganizationId}\` has not enabled FEATURE_NAME_SUB_ORGANIZATION_EVENTS (set_organization_feature)`,
      );
    }
  }

  /** Who reads which organization: the named one, or the one where the credential lives. */
  async readerOf(
    { path, whereTheCredentialLives, readsHistory }: AnyQuery,
    { by, body }: QueryRequest,
    name: string,
    minPosition: bigint,
  ): Promise<Reader> {
    if (by.kind === 'attested') throw attestedElsewhere(`query ${path}`);
    if (by.kind === 'session') {
      const { organization, caller } = await this.sessions.callerOf(by.token, name, whereTheCredentialLives === true);
      checkAuthProxyQuery(organization, caller.user.userId, path);
      return { organization, caller };
    }
    const { organization: named } = await this.loader.load(name);
    const organization = whereTheCredentialLives ? await this.home(by, named, minPosition) : named;
    // The organization's own key does not depend on its parent, as long as it counts.
    const key = by.kind === 'api-key' ? apiKeyOf(organization, by.publicKey) : undefined;
    const isOwn = by.kind === 'api-key' && key !== undefined && !refusalOf(key, by, this.clock.now());
    const parent =
      isOwn && readsHistory !== true ? undefined : (await this.loader.parentOf(organization))?.organization;
    // The parent's root quorum reads its sub-organizations' histories: nobody there keeps it out by adding a key of it.
    const isParentsToo = readsHistory === true && parent !== undefined && isOfRootQuorum(by, parent);
    // Read access is decided on the stream's state, so that a revoked credential stops working at once.
    const now = readingTime(this.clock, organization, parent);
    const passkeyKey = by.kind === 'webauthn' ? await signingKey(by, { organization, parent }) : undefined;
    const caller = resolveCaller(by, organization, parent, now, { passkeyKey, isParentsToo });
    if (parent && caller.organizationId !== organization.organizationId) checkParentsTime(this.clock, parent);
    checkMayRead(path, caller, organization, parent, now);
    if (by.kind === 'webauthn') {
      const passkey = await verifyPasskey(by, body, { organization, parent, isParentsToo }, this.passkeyPorts);
      checkCounter(passkey, caller, this.counters);
    }
    return { organization, caller };
  }

  private async home(
    by: Parameters<OrganizationLookup['placeOf']>[0],
    named: OrganizationView,
    minPosition: bigint,
  ): Promise<OrganizationView> {
    const { organizationId } = await this.lookup.placeOf(by, named, minPosition);
    return organizationId === named.organizationId ? named : (await this.loader.load(organizationId)).organization;
  }
}

function isOfRootQuorum(
  by: Exclude<Stamp, { kind: 'attested' }>,
  { apiKeyOwners, authenticatorOwners, rootQuorum }: OrganizationView,
): boolean {
  const owner = by.kind === 'api-key' ? apiKeyOwners.get(by.publicKey) : authenticatorOwners.get(by.credentialId);
  return owner !== undefined && rootQuorum.userIds.includes(owner);
}
