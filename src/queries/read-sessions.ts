import { Inject, Injectable } from '@nestjs/common';
import { TOKENS, type TokenPort } from '../ports/tokens.js';
import { CoordinatorError } from '../domain/errors.js';
import { mendsOf } from '../domain/organization/clock-mends.js';
import { isExpired } from '../domain/organization/credentials.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import type { User } from '../domain/organization/users.js';
import { readSessionOf, type ReadSession } from '../domain/read-session.js';
import { readingTime } from '../decide/decision-time.js';
import { OrganizationLoader } from '../ledger/load-organization.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { organizationDeleted } from '../decide/refusals.js';
import { apiKeyCredential, authenticatorCredential } from '../domain/organization/credentials-of-users.js';
import type { Caller } from '../decide/resolve-caller.js';

/** The reader, and the organization as it was read to identify them. */
export interface Reader {
  readonly caller: Caller;
  readonly organization: OrganizationView;
}

/** Finds the reader behind a read-only session (docs/protocol.md, read-only sessions). */
@Injectable()
export class ReadSessions {
  constructor(
    private readonly loader: OrganizationLoader,
    @Inject(TOKENS) private readonly tokens: Pick<TokenPort, 'readSessionProved'>,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  /**
   * The user of a session. It reads only the organization that it was created in, and no sub-organization. Decided on
   * the stream's state, so that it ends at once with its user or the credential that created it.
   * @param whereTheCredentialLives the query may name the parent instead
   * @throws {CoordinatorError} UNAUTHENTICATED; NOT_FOUND once the organization was deleted
   */
  async callerOf(session: string, organizationId: string, whereTheCredentialLives: boolean): Promise<Reader> {
    const { loader, tokens, clock } = this;
    const publicHalf = await tokens.readSessionProved(session);
    if (publicHalf === undefined) {
      throw new CoordinatorError('UNAUTHENTICATED', `could not verify the X-Session header: ${makeAnother}`, {
        category: 'SIGNATURE_INVALID',
      });
    }
    const claims = readSessionOf(publicHalf);
    const { organization } = await loader.load(claims.organizationId);
    const now = readingTime(clock, organization);
    if (claims.expiresAt * 1000 <= now) {
      const end = new Date(claims.expiresAt * 1000).toISOString();
      throw new CoordinatorError('UNAUTHENTICATED', `expired read-only session: it ended at ${end}; ${makeAnother}`, {
        category: 'API_KEY_EXPIRED',
      });
    }
    if (claims.clockMends !== mendsOf(organization)) {
      throw new CoordinatorError(
        'UNAUTHENTICATED',
        `this read-only session ended when the clock of organization \`${claims.organizationId}\` was mended: ${makeAnother}`,
        { category: 'API_KEY_EXPIRED' },
      );
    }
    const isNamed =
      organizationId === claims.organizationId ||
      (whereTheCredentialLives && organizationId === organization.parentOrganizationId);
    if (!isNamed) {
      throw new CoordinatorError(
        'UNAUTHENTICATED',
        `this read-only session is valid for organization \`${claims.organizationId}\` only, not for \`${organizationId}\`: stamp the query`,
        { category: 'ORGANIZATION_MISMATCH' },
      );
    }
    if (organization.isDeleted) throw organizationDeleted(claims.organizationId);
    const user = organization.users.get(claims.userId);
    const credential = user && credentialOf(user, claims, now);
    if (credential) return { organization, caller: { user, organizationId: claims.organizationId, credential } };
    throw new CoordinatorError(
      'UNAUTHENTICATED',
      `this read-only session ended with credential \`${claims.credentialId}\` of user \`${claims.userId}\`: ${makeAnother}`,
      { category: 'CREDENTIAL_NOT_FOUND' },
    );
  }
}

const makeAnother = 'create another with create_read_only_session, or stamp the query';

function credentialOf(user: User, { credentialId }: ReadSession, now: number) {
  const key = user.apiKeys.find(({ apiKeyId }) => apiKeyId === credentialId);
  if (key) return isExpired(key, now) ? undefined : apiKeyCredential(user, key);
  const passkey = user.authenticators.find(({ authenticatorId }) => authenticatorId === credentialId);
  return passkey && authenticatorCredential(user, passkey);
}
