import type { ActivityEvent } from '../domain/activity/events.js';
import {
  passkeyClaim,
  signUpLifeMs,
  type ClaimedIdentifier,
  type ClaimEvent,
  type ClaimKind,
  type ClaimProof,
  type DueClaim,
  type FirstClaim,
  type Found,
} from '../domain/organization/claims.js';
import { identitiesOfIssuer, oauthIdentity } from '../domain/organization/oauth-identity.js';
import { contactKey } from '../domain/contact-key.js';
import type { Row, Rows } from './database.js';
import type { ProjectedEvent, ReadModel } from './read-model.js';

const claimTables = ['claim_organizations', 'claims', 'claim_streams', 'outranked_claims', 'passkey_counters'];

/**
 * Who has, and who has proved, the public identifiers under a parent (docs/adr/0016). One that has left its
 * organization has no row.
 */
export const claimsModel: ReadModel = {
  name: 'claims',
  version: 1,
  tables: claimTables,
  guards: claimTables,
  // A stranger may assert other people's identifiers as often as sign-ups allow, so every query has its own index.
  schema: `
    CREATE TABLE claim_organizations (
      organization_id TEXT PRIMARY KEY, parent_id TEXT NOT NULL, founded_by TEXT, founded INTEGER NOT NULL,
      is_founding INTEGER NOT NULL DEFAULT 1, proved INTEGER, credentials INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE INDEX claim_organizations_unproved ON claim_organizations (founded)
      WHERE founded_by IS NOT NULL AND proved IS NULL;
    CREATE TABLE claims (
      organization_id TEXT NOT NULL, ref TEXT NOT NULL, kind TEXT NOT NULL,
      parent_id TEXT NOT NULL, value TEXT NOT NULL, owner TEXT NOT NULL, credential_id TEXT, public_key TEXT,
      asserted INTEGER NOT NULL, expires INTEGER, is_member_made INTEGER NOT NULL, is_alone INTEGER NOT NULL,
      is_signup_key INTEGER NOT NULL, proved INTEGER, proved_by TEXT, is_due INTEGER NOT NULL DEFAULT 0,
      recorded INTEGER, outranks INTEGER NOT NULL DEFAULT 0, written TEXT,
      PRIMARY KEY (organization_id, ref, kind)
    ) WITHOUT ROWID;
    CREATE INDEX claims_by_owner ON claims (organization_id, owner);
    CREATE INDEX claims_by_value ON claims (parent_id, kind, value, asserted);
    CREATE INDEX claims_by_credential_id ON claims (parent_id, credential_id, asserted) WHERE credential_id IS NOT NULL;
    CREATE INDEX claims_proved ON claims (parent_id, kind, value, outranks DESC, recorded IS NULL, recorded, proved)
      WHERE proved IS NOT NULL;
    CREATE INDEX claims_recorded ON claims (parent_id, kind, value, outranks DESC, recorded) WHERE recorded IS NOT NULL;
    CREATE INDEX claims_member_made ON claims (parent_id, kind, value) WHERE is_member_made = 1;
    CREATE INDEX claims_alone ON claims (parent_id, kind, value, asserted) WHERE is_alone = 1;
    CREATE INDEX claims_due ON claims (proved) WHERE is_due = 1;
    CREATE TABLE claim_streams (parent_id TEXT PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE outranked_claims (
      parent_id TEXT NOT NULL, kind TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (parent_id, kind, value)
    ) WITHOUT ROWID;
    CREATE TABLE passkey_counters (
      family_id TEXT NOT NULL, credential_id TEXT NOT NULL, public_key TEXT NOT NULL, sign_count INTEGER NOT NULL,
      PRIMARY KEY (family_id, credential_id, public_key)
    ) WITHOUT ROWID;`,

  project(rows, events) {
    const families = new Families(rows);
    for (const event of events) projectOne(rows, families, event);
  },
};

/** Which organizations have a parent, looked up once for all events of a page: most requests are for those without. */
class Families {
  private readonly parentless = new Set<string>();

  constructor(private readonly rows: Rows) {}

  /** For a sub-organization; undefined for an organization without a parent. */
  rowOf(organizationId: string): Row | undefined {
    if (this.parentless.has(organizationId)) return undefined;
    const row = this.rows.get('SELECT * FROM claim_organizations WHERE organization_id = ?', organizationId);
    if (!row) this.parentless.add(organizationId);
    return row;
  }

  forget(organizationId: string): void {
    this.parentless.delete(organizationId);
  }
}

function projectOne(rows: Rows, families: Families, projected: ProjectedEvent): void {
  const { organizationId, at, event } = projected;
  switch (event.type) {
    case 'OrganizationCreated': {
      const { parentOrganizationId, createdBy } = event.data;
      if (parentOrganizationId === undefined) return;
      families.forget(organizationId);
      if (createdBy !== undefined) forgetLapsed(rows, at);
      return rows.run(
        'UPDATE claim_organizations SET founded_by = ?, founded = ? WHERE organization_id = ? AND parent_id = ?',
        createdBy ?? null,
        at,
        organizationId,
        parentOrganizationId,
      );
    }
    case 'SubOrganizationCreated': {
      const { subOrganizationId } = event.data;
      families.forget(subOrganizationId);
      return rows.run(
        // No organization can take over another's sub-organization.
        'INSERT OR IGNORE INTO claim_organizations (organization_id, parent_id, founded) VALUES (?, ?, ?)',
        subOrganizationId,
        organizationId,
        at,
      );
    }
    case 'ClockMended':
      // A public sign-up of the false time lapses like one of today.
      return rows.run(
        'UPDATE claim_organizations SET founded = min(founded, ?) WHERE organization_id = ? AND proved IS NULL',
        at,
        organizationId,
      );
    case 'OrganizationDeleted':
      rows.run('DELETE FROM claims WHERE organization_id = ?', organizationId);
      return rows.run('DELETE FROM claim_organizations WHERE organization_id = ?', organizationId);
    case 'UserCreated':
    case 'UserUpdated': {
      const { userId, userEmail, userPhoneNumber } = event.data;
      const claims = claimsOf(rows, families, projected);
      claims?.putContact('EMAIL', userEmail, userId);
      return claims?.putContact('PHONE_NUMBER', userPhoneNumber, userId);
    }
    case 'UserContactVerified': {
      const { contact, userId } = event.data;
      return claimsOf(rows, families, projected)?.prove(
        userId,
        contact === 'email' ? 'EMAIL' : 'PHONE_NUMBER',
        'token',
      );
    }
    case 'UserContactReleased': {
      const { contact, userId } = event.data;
      return release(rows, organizationId, userId, contact === 'email' ? 'EMAIL' : 'PHONE_NUMBER');
    }
    case 'UserDeleted':
      return rows.run('DELETE FROM claims WHERE organization_id = ? AND owner = ?', organizationId, event.data.userId);
    case 'ApiKeyCreated': {
      const { publicKey, apiKeyId, userId, expirationSeconds, curve } = event.data;
      return claimsOf(rows, families, projected)?.add({
        kind: 'PUBLIC_KEY',
        value: publicKey,
        ref: apiKeyId,
        owner: userId,
        ...(expirationSeconds === undefined ? {} : { expires: at + expirationSeconds * 1000 }),
        isShortLived: curve === 'API_KEY_CURVE_P256' && (expirationSeconds ?? Infinity) <= signUpKeySeconds,
      });
    }
    case 'AuthenticatorCreated': {
      // Its counter is not the passkey's: a registration that nobody attests may be a stranger's (docs/adr/0016).
      const { credentialId, publicKey, authenticatorId, userId } = event.data;
      const passkey = { credentialId, publicKey };
      const claim = passkeyClaim(credentialId, publicKey);
      return claimsOf(rows, families, projected)?.add({ ...claim, ref: authenticatorId, owner: userId, passkey });
    }
    case 'OauthProviderCreated': {
      const { providerId, userId } = event.data;
      const claims = claimsOf(rows, families, projected);
      claims?.add({ kind: 'OIDC', value: oauthIdentity(event.data), ref: providerId, owner: userId });
      // No identity is accepted without a token of its issuer.
      return claims?.prove(providerId, 'OIDC', 'token');
    }
    case 'ApiKeyDeleted':
      return forget(rows, organizationId, event.data.apiKeyId);
    case 'AuthenticatorDeleted':
      return forget(rows, organizationId, event.data.authenticatorId);
    case 'OauthProviderDeleted':
      return forget(rows, organizationId, event.data.providerId);
    case 'ActivitySubmitted':
    case 'ActivityApproved':
    case 'ActivityRejected':
      return takeRequest(rows, families, projected, event);
    case 'ClaimProved':
      return takeRecord(rows, projected, event);
  }
}

/** Number of lapsed sign-ups removed when another starts: more than can be added. */
const mostForgotten = 4;

/** Lapsed sign-ups lead nowhere, and look-ups need not skip what strangers asserted in them. */
function forgetLapsed(rows: Rows, at: number): void {
  const lapsed = rows.all(
    `SELECT organization_id FROM claim_organizations
     WHERE founded_by IS NOT NULL AND proved IS NULL AND founded < ? ORDER BY founded LIMIT ?`,
    // The reader's clock may be behind.
    at - 2 * signUpLifeMs,
    mostForgotten,
  );
  for (const { organization_id: organizationId } of lapsed) {
    rows.run('DELETE FROM claims WHERE organization_id = ?', organizationId!);
    rows.run('DELETE FROM claim_organizations WHERE organization_id = ?', organizationId!);
  }
}

/** Longest lifetime of the key that a client creates only for its sign-up (docs/adr/0016), in seconds. */
const signUpKeySeconds = 60;

interface NewClaim extends ClaimedIdentifier {
  readonly ref: string;
  readonly owner: string;
  readonly passkey?: { readonly credentialId: string; readonly publicKey: string };
  /** Milliseconds since the epoch. */
  readonly expires?: number;
  readonly isShortLived?: boolean;
  /** A contact as its owner wrote it. */
  readonly written?: string;
}

/** Removes claims of one sub-organization; undefined for an organization without a parent. */
function claimsOf(rows: Rows, families: Families, { organizationId, position }: ProjectedEvent) {
  const organization = families.rowOf(organizationId);
  if (!organization) return undefined;
  const isFounding = organization['is_founding'] === 1;
  const isMemberMade = organization['founded_by'] === null;

  function add({ kind, value, ref, owner, passkey, expires, isShortLived = false, written }: NewClaim): void {
    const { credentials } = rows.get(
      'UPDATE claim_organizations SET credentials = credentials + 1 WHERE organization_id = ? RETURNING credentials',
      organizationId,
    )!;
    const isAlone = credentials === 1;
    if (credentials === 2) {
      rows.run('UPDATE claims SET is_alone = 0 WHERE organization_id = ? AND is_alone = 1', organizationId);
    }
    rows.run(
      `INSERT OR REPLACE INTO claims (organization_id, ref, kind, parent_id, value, owner, credential_id, public_key,
         asserted, expires, is_member_made, is_alone, is_signup_key, written)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      organizationId,
      ref,
      kind,
      organization!['parent_id']!,
      value,
      owner,
      passkey?.credentialId ?? null,
      passkey?.publicKey ?? null,
      position,
      expires ?? null,
      Number(isFounding && isMemberMade),
      Number(isAlone && kind === 'PUBLIC_KEY'),
      Number(isFounding && !isMemberMade && isShortLived),
      written ?? null,
    );
  }

  return {
    add,
    prove: (ref: string, kind: ClaimKind, by: ClaimProof) => prove(rows, organizationId, ref, kind, by, position),
    /** Undefined leaves the contact as it is, an empty string removes it. */
    putContact(kind: 'EMAIL' | 'PHONE_NUMBER', contact: string | undefined, userId: string): void {
      if (contact === undefined) return;
      const value = contactKey(contact);
      const place = [organizationId, userId, kind] as const;
      const held = rows.get(
        'SELECT value, written FROM claims WHERE organization_id = ? AND ref = ? AND kind = ?',
        ...place,
      );
      if (held?.['value'] === value) {
        if (held['written'] === contact) return;
        // The proof was of the contact as it was written (`userUpdated`): nobody logs in by this one until it is proved again.
        release(rows, ...place);
        rows.run('UPDATE claims SET written = ? WHERE organization_id = ? AND ref = ? AND kind = ?', contact, ...place);
        return;
      }
      // The proof was of the old contact.
      rows.run('DELETE FROM claims WHERE organization_id = ? AND ref = ? AND kind = ?', ...place);
      if (contact) add({ kind, value, ref: userId, owner: userId, written: contact });
    },
  };
}

function prove(
  rows: Rows,
  organizationId: string,
  ref: string,
  kind: ClaimKind,
  by: ClaimProof,
  position: bigint,
): void {
  rows.run(
    'UPDATE claim_organizations SET proved = ? WHERE organization_id = ? AND proved IS NULL',
    position,
    organizationId,
  );
  const claim = rows.get(
    `UPDATE claims SET proved = ?, proved_by = ?, is_due = expires IS NULL
     WHERE organization_id = ? AND ref = ? AND kind = ? AND proved IS NULL RETURNING parent_id, value, expires`,
    position,
    by,
    organizationId,
    ref,
    kind,
  );
  if (!claim || claim['expires'] === null) return;
  // A short-lived key needs no place in the order, unless it was used in two organizations.
  const held = [claim['parent_id']!, kind, claim['value']!];
  const { used } = rows.get(
    `SELECT count(*) AS used FROM (
       SELECT 1 FROM claims WHERE parent_id = ? AND kind = ? AND value = ? AND proved IS NOT NULL LIMIT 2
     )`,
    ...held,
  )!;
  if (Number(used) < 2) return;
  rows.run(
    `UPDATE claims SET is_due = 1
     WHERE parent_id = ? AND kind = ? AND value = ? AND proved IS NOT NULL AND recorded IS NULL`,
    ...held,
  );
}

function forget(rows: Rows, organizationId: string, ref: string): void {
  rows.run('DELETE FROM claims WHERE organization_id = ? AND ref = ?', organizationId, ref);
}

/** A proved claim becomes merely asserted and loses its place in the order: the next oldest proof holds. */
function release(rows: Rows, organizationId: string, ref: string, kind: ClaimKind): void {
  rows.run(
    `UPDATE claims SET proved = NULL, proved_by = NULL, is_due = 0, recorded = NULL, outranks = 0
     WHERE organization_id = ? AND ref = ? AND kind = ?`,
    organizationId,
    ref,
    kind,
  );
}

/** A recorded request proves the key that stamped it, in the organization that recorded it. */
function takeRequest(
  rows: Rows,
  families: Families,
  { organizationId, position }: ProjectedEvent,
  { type, data }: Extract<ActivityEvent, { data: { vote: unknown } }>,
): void {
  const { vote } = data;
  const { credentialId: ref, webauthn, publicKey, attestation } = vote;
  if (webauthn) count(rows, organizationId, { ...webauthn, publicKey });
  const family = families.rowOf(organizationId);
  if (!family) return;
  if (family['is_founding'] === 1) {
    rows.run('UPDATE claim_organizations SET is_founding = 0 WHERE organization_id = ?', organizationId);
  }
  // Someone who stamps for the parent, or with a key that a token vouches for, proves no key of this organization.
  if (attestation || (type === 'ActivitySubmitted' && data.decision.authority)) return;
  const by = type === 'ActivitySubmitted' && data.decision.resolution ? 'resolved-request' : 'request';
  prove(rows, organizationId, ref, webauthn ? 'PASSKEY' : 'PUBLIC_KEY', by, position);
}

function takeRecord(rows: Rows, { organizationId: parentId, revision }: ProjectedEvent, { data }: ClaimEvent): void {
  const { kind, value, organizationId, ownerId: ref, outranks } = data;
  rows.run('INSERT OR REPLACE INTO claim_streams VALUES (?, ?)', parentId, revision);
  rows.run(
    `UPDATE claims SET recorded = ?, outranks = ?, is_due = 0
     WHERE organization_id = ? AND ref = ? AND kind = ? AND value = ? AND proved IS NOT NULL AND recorded IS NULL`,
    revision,
    Number(outranks === true),
    organizationId,
    ref,
    kind,
    value,
  );
  if (outranks) rows.run('INSERT OR IGNORE INTO outranked_claims VALUES (?, ?, ?)', parentId, kind, value);
}

/** A passkey has one counter, in whichever of a parent and its sub-organizations it stamps. */
function count(
  rows: Rows,
  organizationId: string,
  passkey: { readonly credentialId: string; readonly publicKey: string; readonly signCount: number },
): void {
  const { credentialId, publicKey, signCount } = passkey;
  if (signCount === 0) return;
  const parent = rows.get('SELECT parent_id FROM claim_organizations WHERE organization_id = ?', organizationId);
  rows.run(
    `INSERT INTO passkey_counters VALUES (?, ?, ?, ?)
     ON CONFLICT (family_id, credential_id, public_key) DO UPDATE SET sign_count = max(sign_count, excluded.sign_count)`,
    parent?.['parent_id'] ?? organizationId,
    credentialId,
    publicKey,
    signCount,
  );
}

/** The highest recorded counter of a passkey in a parent or one of its sub-organizations; 0 for none. */
export function highestCounter(rows: Rows, familyId: string, credentialId: string, publicKey: string): number {
  const row = rows.get(
    'SELECT sign_count FROM passkey_counters WHERE family_id = ? AND credential_id = ? AND public_key = ?',
    familyId,
    credentialId,
    publicKey,
  );
  return Number(row?.['sign_count'] ?? 0);
}

/** `c` belongs to an existing sub-organization whose sign-up has not lapsed; takes the time before which one has. */
const standing = `JOIN claim_organizations o ON o.organization_id = c.organization_id
   AND (o.founded_by IS NULL OR o.proved IS NOT NULL OR o.founded > ?)`;
const ofIdentifier = 'c.parent_id = ? AND c.kind = ? AND c.value = ? AND (c.expires IS NULL OR c.expires > ?)';
/** First those that outrank, then in recorded order; those not recorded yet come last, in their own order. */
const inOrder = 'ORDER BY c.outranks DESC, c.recorded IS NULL, c.recorded, c.proved';

/** Where an identifier leads, and why: to an organization, nowhere, or to several that only a name can tell apart. */
type LedTo = Pick<Found, 'rule'> & { readonly organizationIds: readonly string[] };

/**
 * Where a public identifier leads under a parent, for someone who has proved it (security rule R4). `now` is
 * milliseconds since the epoch.
 */
export function whereItLeads(rows: Rows, parentId: string, identifier: ClaimedIdentifier, now: number): LedTo {
  const live = ledTo(rows, parentId, identifier, now, now);
  // Holders of an expired key are told that it has expired.
  return live.organizationIds.length > 0 ? live : ledTo(rows, parentId, identifier, now, -1);
}

function ledTo(rows: Rows, parentId: string, identifier: ClaimedIdentifier, now: number, alive: number): LedTo {
  const told = toldTo(rows, parentId, identifier, now, alive);
  if (told.organizationIds.length > 0) return told;
  const first = firstAsserted(rows, parentId, identifier, now, alive);
  return { rule: 'first-assertion', organizationIds: first ? [String(first['organization_id'])] : [] };
}

/** Where it leads by 1 and 2 of the rule only, which anyone may learn. */
function toldTo(rows: Rows, parentId: string, { kind, value }: ClaimedIdentifier, now: number, alive: number): LedTo {
  const place = [now - signUpLifeMs, parentId, kind, value, alive] as const;
  const proved = rows.get(
    `SELECT c.organization_id FROM claims c ${standing} WHERE ${ofIdentifier} AND c.proved IS NOT NULL ${inOrder} LIMIT 1`,
    ...place,
  );
  if (proved) return { rule: 'proof', organizationIds: [String(proved['organization_id'])] };
  // A contact that someone has merely written down leads nowhere.
  if (kind === 'EMAIL' || kind === 'PHONE_NUMBER') return { rule: 'founding', organizationIds: [] };
  const made = rows.all(
    `SELECT DISTINCT c.organization_id FROM claims c ${standing} WHERE ${ofIdentifier} AND c.is_member_made = 1 LIMIT 2`,
    ...place,
  );
  return { rule: 'founding', organizationIds: made.map((row) => String(row['organization_id'])) };
}

function firstAsserted(
  rows: Rows,
  parentId: string,
  { kind, value }: ClaimedIdentifier,
  now: number,
  alive: number,
): Row | undefined {
  const place = [now - signUpLifeMs, parentId, kind, value, alive] as const;
  const all = `SELECT c.organization_id, c.is_signup_key FROM claims c ${standing} WHERE ${ofIdentifier}`;
  if (kind === 'PASSKEY') return rows.get(`${all} ORDER BY c.asserted LIMIT 1`, ...place);
  if (kind !== 'PUBLIC_KEY') return undefined;
  const alone = rows.get(`${all} AND c.is_alone = 1 ORDER BY c.asserted DESC LIMIT 1`, ...place);
  if (alone) return alone;
  // The key that a client created for signing up with its passkey, which nobody could know before. It counts for
  // everyone who ever had it: someone who has read it since must not come first once its minute is over.
  const first = rows.get(
    `SELECT c.organization_id, c.is_signup_key, c.expires FROM claims c ${standing} WHERE ${ofIdentifier}
     ORDER BY c.asserted LIMIT 1`,
    ...place.with(-1, -1),
  );
  if (first?.['is_signup_key'] !== 1 || Number(first['expires']) <= alive) return undefined;
  const passkey = rows.get(
    `SELECT 1 FROM claims WHERE organization_id = ? AND kind = 'PASSKEY' LIMIT 1`,
    first['organization_id']!,
  );
  return passkey && first;
}

/** The organization that may be disclosed for a public identifier; undefined if there is none, or several. */
export function accountOf(
  rows: Rows,
  parentId: string,
  identifier: ClaimedIdentifier,
  now: number,
): string | undefined {
  const { organizationIds } = toldTo(rows, parentId, identifier, now, now);
  return organizationIds.length === 1 ? organizationIds[0] : undefined;
}

/** Maximum keys tried of those registered under one credential id. */
const mostKeys = 32;

/** Keys (COSE, base64url) registered under a credential id below a parent, the first one first. */
export function keysOfCredentialId(rows: Rows, parentId: string, credentialId: string): readonly string[] {
  const found = rows.all(
    `SELECT c.public_key FROM claims c JOIN claim_organizations o
       ON o.organization_id = c.organization_id
     WHERE c.parent_id = ? AND c.credential_id = ? ORDER BY c.asserted LIMIT ?`,
    parentId,
    credentialId,
    mostKeys,
  );
  return [...new Set(found.map((row) => String(row['public_key'])))];
}

/** Whether anyone in a sub-organization of the parent has an identity at the issuer. */
export function knowsIssuer(rows: Rows, parentId: string, issuer: string): boolean {
  const prefix = identitiesOfIssuer(issuer);
  // In ASCII, the comma that ends a prefix is followed by the minus: as a range, the index can be used.
  const found = rows.get(
    `SELECT 1 FROM claims c JOIN claim_organizations o ON o.organization_id = c.organization_id
     WHERE c.parent_id = ? AND c.kind = 'OIDC' AND c.value >= ? AND c.value < ? LIMIT 1`,
    parentId,
    prefix,
    prefix.replace(/,$/, '-'),
  );
  return found !== undefined;
}

/** Proofs without a place in the order, in recorded order. */
export function dueClaims(rows: Rows, most: number): readonly DueClaim[] {
  return rows
    .all(
      `SELECT c.* FROM claims c JOIN claim_organizations o
         ON o.organization_id = c.organization_id
       WHERE c.is_due = 1 ORDER BY c.proved LIMIT ?`,
      most,
    )
    .map((row) => ({
      parentId: String(row['parent_id']),
      kind: row['kind'] as ClaimKind,
      value: String(row['value']),
      organizationId: String(row['organization_id']),
      ref: String(row['ref']),
      by: row['proved_by'] as ClaimProof,
    }));
}

/** The first claim of an identifier in the order, if any, and whether a claim has already outranked another. */
export function firstClaim(rows: Rows, parentId: string, { kind, value }: ClaimedIdentifier): FirstClaim | undefined {
  const first = rows.get(
    `SELECT c.organization_id, c.proved_by FROM claims c
     WHERE c.parent_id = ? AND c.kind = ? AND c.value = ? AND c.proved IS NOT NULL AND c.recorded IS NOT NULL
     ORDER BY c.outranks DESC, c.recorded LIMIT 1`,
    parentId,
    kind,
    value,
  );
  if (!first) return undefined;
  const outranked = rows.get(
    'SELECT 1 FROM outranked_claims WHERE parent_id = ? AND kind = ? AND value = ?',
    parentId,
    kind,
    value,
  );
  return {
    organizationId: String(first['organization_id']),
    by: first['proved_by'] as ClaimProof,
    isSettled: outranked !== undefined,
  };
}

/** Revision of the last record in the parent's claims that the rows include; -1 for none. */
export function claimsRevision(rows: Rows, parentId: string): number {
  return Number(rows.get('SELECT revision FROM claim_streams WHERE parent_id = ?', parentId)?.['revision'] ?? -1);
}
